#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Input and output of a run: data in both formats, and held-out data."""
import gzip
import json
import os
import re
import resource
import struct
import sys
import time

from configs import tiny
from tap import Skip, case, drawn_case, main


def token_file(tokens, magic=20240520, version=1, count=None):
    header = struct.pack("<3i", magic, version, len(tokens) if count is None else count)
    return header.ljust(1024, b"\0") + struct.pack(f"<{len(tokens)}H", *tokens)


def lines_of(out):
    return [json.loads(line) for line in out.splitlines()]


@drawn_case
def a_token_file_trains_like_the_text(weft):
    """Bytes as 16-bit tokens are the same samples, so losses are equal."""
    text = bytes(i * 7919 >> 8 & 255 or 1 for i in range(20000))
    losses = []
    for data in (text, token_file(text)):
        config = weft.write("run.json", tiny(train__data=weft.write("data", data)))
        out = weft.expect(0, "train", config, "--run", weft.fresh("run"), "--json")
        losses.append([line["loss"] for line in lines_of(out) if "loss" in line])
    assert losses[0] == losses[1] and len(losses[0]) >= 3, losses


@drawn_case
def a_plan_knows_its_device(weft):
    config = weft.write("run.json", tiny())
    hashes = set()
    for device in ("cpu", "cuda"):
        weft.expect(0, "plan", config, "-o", "plan.json", "--set", f"cluster.device.type={device}")
        with open(weft.path("plan.json"), encoding="utf-8") as file:
            hashes.add(json.load(file)["problem"]["config_hash"])
    assert len(hashes) == 2, "a plan does not know its device"
    weft.expect(65, "train", config, "--run", "no", "--set", "cluster.device.type=abacus",
                says=["abacus", '"cpu" or "cuda"'])


@case
def data_that_are_no_text_are_refused_until_they_are_bytes(weft):
    text = b"the quick brown fox jumps over the lazy dog\n" * 500
    tokens = struct.pack("<9000H", *(i * 7919 >> 4 & 4095 for i in range(9000)))
    files = {"tokens.bin": (tokens, "tokens without a header"),
             "array.npy": (b"\x93NUMPY\1\0v\0" + text, "a NumPy array"),
             "text.gz": (gzip.compress(text * 9), "compressed by gzip"),
             "text.zst": (b"\x28\xb5\x2f\xfd" + text, "compressed by zstd"),
             "train.jsonl": (b'{"text": "a"}\n' * 900, "lines of JSON"),
             "digits": (b"\0\0\x08\x03" + text, "an IDX array")}
    bare = ("tokens.bin", "array.npy")
    for name, (content, says) in files.items():
        path = weft.write(name, content)
        held_out = tiny(train__data=weft.write("text", text),
                        train__validation={"data": path, "every": 2})
        for config in (tiny(train__data=path), held_out):
            weft.expect(65, "train", weft.write("run.json", config), "--run", "no",
                        says=[name, says, "256 int32" if name in bare else '"format": "bytes"'])
    assert not os.path.exists(weft.path("no")), "a run was begun"
    as_bytes = {"path": weft.path("tokens.bin"), "format": "bytes"}
    config = weft.write("run.json", tiny(train__data=as_bytes,
                                         train__validation={"data": weft.path("text"), "every": 2}))
    weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q")
    with open(weft.path("run/config.json"), encoding="utf-8") as file:
        assert json.load(file)["train"]["data"] == as_bytes
    short = {"path": weft.path("text"), "format": "auto"}
    said = json.loads(weft.expect(0, "check", weft.write("run.json", tiny(train__data=short)),
                                  "--print"))
    assert said["train"]["data"] == weft.path("text"), said
    weft.expect(65, "check", weft.write("run.json", tiny(train__data={"format": "bytes"})),
                says=['$.train.data', '"path" is missing'])
    weft.expect(65, "check", weft.write("run.json", tiny(train__data=7)), says="a path, or")


@drawn_case
def shards_train_like_one_file(weft):
    text = bytes(i * 7919 >> 8 & 255 or 1 for i in range(20000))
    losses = []
    for cuts in ((0, 20000), (0, 7001, 7002, 20000)):
        for number, (first, last) in enumerate(zip(cuts, cuts[1:])):
            weft.write(f"shard_{len(cuts)}_{number}.bin", token_file(text[first:last]))
        config = weft.write("run.json", tiny(train__data=weft.path(f"shard_{len(cuts)}_*.bin")))
        out = weft.expect(0, "train", config, "--run", f"run{len(cuts)}", "--json")
        losses.append([line["loss"] for line in lines_of(out) if "loss" in line])
    assert losses[0] == losses[1] and len(losses[0]) >= 3, losses
    config = weft.write("run.json", tiny(train__data=weft.path("shard_9_*.bin")))
    weft.expect(66, "train", config, "--run", "none", says="matches no file")


@drawn_case
def micro_steps_train_like_one(weft):
    """The samples are the same, so losses agree to rounding in both periods and cadences. Bits agree in both periods of
    one cadence.
    """
    losses, prints = {}, {}
    for accumulate, reduce in ((1, "auto"), (2, "micro_step"), (2, "step"), (4, "auto")):
        for clip_norm in (0, 1e9):
            config = weft.write("run.json", tiny(
                train__micro_batch=4 // accumulate, train__grad_accum=accumulate,
                train__reduce=reduce, train__clip_norm=clip_norm, plan__planner="greedy", train__steps=6))
            out = lines_of(weft.expect(0, "train", config, "--run", weft.fresh("run"), "--json"))
            losses[accumulate, reduce, clip_norm] = [x["loss"] for x in out if "loss" in x]
            with open(weft.path("run/result.json"), encoding="utf-8") as file:
                prints[accumulate, reduce, clip_norm] = json.load(file)["fingerprint"]
            weft.expect(0, "verify", weft.path("run/plan.json"), "--config", config)
    first = losses[1, "auto", 0]
    assert len(first) == 6
    for key, values in losses.items():
        assert all(abs(a - b) < 1e-5 * b for a, b in zip(values, first)), (key, values, first)
    for key in ((1, "auto"), (2, "micro_step"), (2, "step")):
        assert prints[key + (0,)] == prints[key + (1e9,)], (key, prints)
    assert prints[2, "step", 0] != prints[2, "micro_step", 0]


def measured_run(hidden=32, **changes):
    """Returns a config without figures, so the machine is measured first."""
    config = tiny(train__optimizer={"type": "adamw"}, train__seq_len=64, train__micro_batch=4,
                  cluster__ranks=1, cluster__threads=1, cluster__device=None, cluster__link=None,
                  plan__planner="all-sdp", **changes)
    for layer in config["model"]["layers"]:
        layer["hidden"] = hidden
    config["model"]["layers"][0]["positions"] = 64
    config["model"]["layers"][1]["ffn"] = 4 * hidden
    return config


@drawn_case
def no_more_memory_is_taken_than_was_measured(weft):
    """The base includes memory that a library of products keeps after its first product."""
    config = weft.write("run.json", measured_run(hidden=256, model__layers__1__repeat=8))
    weft.expect(0, "profile", config, "-o", "profile.json", "-q")
    weft.expect(0, "train", config, "--set", "cluster.profile=profile.json", "--run", weft.fresh("run"), "-q")
    with open(weft.path("run/result.json"), encoding="utf-8") as file:
        result = json.load(file)
    assert result["measured_bytes"] <= result["planned_bytes"], result


@drawn_case
def a_run_multiplies_as_its_profile_did(weft):
    """Planned times and memory belong to one way to multiply."""
    config = weft.write("run.json", measured_run(train__checkpoint={}))
    profile, auto = weft.path("profile.json"), {"WEFT_GEMM": ""}
    weft.expect(0, "profile", config, "-o", profile, "-q", env={"WEFT_GEMM": "plain"})
    with open(profile, encoding="utf-8") as file:
        text = re.sub(r'("busy_millicores": *)\d+', r"\g<1>0", file.read())  # no warning of that
    weft.write("profile.json", text)

    def kernels(run, env, **files):
        for name, text in files.items():
            weft.write(f"{name}.json", text)
        _, _, err = weft.run("train", config, "--set", "cluster.profile=profile.json", "--run", run,
                             "-q", env=env)
        with open(weft.path(f"{run}/checkpoints/step-3/manifest.json"), encoding="utf-8") as file:
            return json.load(file)["kernels"], err

    assert kernels("same", auto) == ("plain", "")
    found, err = kernels("named", {"WEFT_GEMM": "onednn"})
    assert found == "onednn" and "onednn" in err and "plain" in err and err.count("\n") == 1, err
    assert '"kernels": "plain"' in text, text[:500]
    found, err = kernels("lost", auto, profile=text.replace('"plain"', '"abacus"'))
    assert found != "abacus" and "was measured with abacus" in err and err.count("\n") == 1, err


@case
def hostile_token_files(weft):
    tokens = list(range(200))
    files = {
        "says 300 tokens": token_file(tokens, count=300),
        "version 7": token_file(tokens, version=7),
        "version 1: version 7 (32-bit tokens)": token_file(tokens, magic=20240801),
        "questions with several answers": token_file(tokens, magic=20240522),
        "shorter than its header": token_file(tokens)[:500],
        "token 150 is 65535": token_file(tokens[:150] + [65535] + tokens),
        "0 tokens": token_file([]),
    }
    for text, content in files.items():
        config = weft.write("run.json", tiny(train__data=weft.write("data.bin", content)))
        weft.expect(65, "train", config, "--run", weft.fresh("run"), says=["data.bin", text])


def taken_by_others_s():
    """Returns the CPU seconds of other processes on this machine."""
    with open("/proc/stat", encoding="utf-8") as file:
        user, nice, system, _, _, irq, softirq, stolen = map(int, file.readline().split()[1:9])
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = user + nice + system + irq + softirq + stolen
    return ticks / os.sysconf("SC_CLK_TCK") - own.ru_utime - own.ru_stime


@drawn_case
def data_are_waited_for_in_no_steady_step(weft):
    """A step reads the next one's data during its 1 ms of compute. A busy machine may not run the reader then. So a run
    that waited next to other load is repeated. An idle machine has no excuse.
    """
    config = weft.write("run.json", tiny(train__steps=40, train__micro_batch=8))
    for attempt in range(6):
        others_s, took_s = -taken_by_others_s(), -time.monotonic()
        weft.expect(0, "train", config, "--run", f"run{attempt}", "-q")
        others_s, took_s = others_s + taken_by_others_s(), took_s + time.monotonic()
        with open(weft.path(f"run{attempt}/metrics.jsonl"), encoding="utf-8") as file:
            waits = [json.loads(line)["data_wait_ns"] for line in file]
        with open(weft.path(f"run{attempt}/result.json"), encoding="utf-8") as file:
            assert json.load(file)["data_wait_ns"] == sum(waits[2:])
        assert len(waits) == 40
        share = others_s / took_s / os.cpu_count()
        if share < 0.1 or sum(wait > 0 for wait in waits[2:]) <= 2:
            break
    assert sum(wait > 0 for wait in waits[2:]) <= 2, (attempt, share, waits)


def validated(weft, **changes):
    """Returns the lines of a run of 5 steps with evaluations, and its result."""
    text = bytes(i * 7919 >> 9 & 255 or 1 for i in range(30000))
    validation = {"data": weft.write("held", text), "every": 2, "samples": 12}
    config = weft.write("run.json", tiny(train__steps=5, train__validation=validation, **changes))
    lines = lines_of(weft.expect(0, "train", config, "--run", weft.fresh("run"), "--json", "--poison"))
    return lines[:-1], lines[-1]


@drawn_case
def evaluation_is_the_same_under_every_policy_and_changes_nothing(weft):
    plain = weft.write("plain.json", tiny(train__steps=5))
    result = lines_of(weft.expect(0, "train", plain, "--run", "plain", "--json"))[-1]
    losses = []
    for planner in ("all-fsdp", "all-sdp", "all-zero1", "all-dp", "random"):
        lines, said = validated(weft, plan__planner=planner)
        evaluations = [line for line in lines if "validation_loss" in line]
        assert [line["step"] for line in evaluations] == [2, 4, 5], evaluations
        assert all(line["samples"] == 12 for line in evaluations)
        for line in evaluations:
            assert abs(line["bits_per_byte"] * 0.6931471805599453 - line["validation_loss"]) < 1e-6
        assert said["fingerprint"] == result["fingerprint"], planner
        assert said["validation_loss"] == evaluations[-1]["validation_loss"]
        losses.append([line["validation_loss"] for line in evaluations])
    assert all(other == losses[0] for other in losses), losses


@drawn_case
def evaluation_is_the_same_for_other_numbers_of_ranks(weft):
    losses = []
    for ranks, batch in ((1, 4), (2, 2), (4, 1)):
        lines, _ = validated(weft, cluster__ranks=ranks, train__micro_batch=batch)
        losses.append([line["validation_loss"] for line in lines if "validation_loss" in line])
    for other in losses[1:]:
        assert all(abs(a - b) < 1e-4 for a, b in zip(losses[0], other)), losses


@drawn_case
def a_rate_that_never_falls_is_told(weft):
    """check and train warn before anything starts; the run is not refused."""
    for schedule, says in (({"type": "cosine", "warmup_steps": 5}, "longer than the run of 3 steps"),
                           ({"type": "wsd"}, "a tenth of 3 steps is no step")):
        config = weft.write("run.json", tiny(train__lr_schedule=schedule))
        for verb in (("check", config), ("train", config, "--run", weft.fresh("run"), "-q")):
            weft.expect(0, *verb, says=["warning: train.lr_schedule.", says])


@case
def a_share_is_held_out(weft):
    config = weft.write("run.json", tiny(train__validation={"share": 0.1}))
    out = weft.expect(0, "train", config, "--run", weft.fresh("run"))
    assert re.search(r"^step +3/3 .*\nvalidation after step 3 .* bits a byte", out, re.M), out
    out = weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q")
    with open(weft.path("run/result.json"), encoding="utf-8") as file:
        loss = json.load(file)["validation_loss"]
    assert f"\nvalidated loss {loss:.4f} " in out and "validation after" not in out, out
    out = weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q", "--set",
                      "train.validation.share=0")
    assert "validated" not in out, out
    both = {"share": 0.1, "data": "x"}
    config = weft.write("run.json", tiny(train__validation=both))
    weft.expect(65, "train", config, "--run", weft.fresh("run"), says="a file of their own or a share")


def learn(weft, data, **changes):
    config = weft.write("run.json", tiny(
        train__data=weft.write("data", data), train__steps=120, train__micro_batch=8,
        train__optimizer={"type": "adamw", "lr": 0.01}, train__checkpoint={"at_end": True},
        **changes))
    weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q")


@case
def a_model_continues_what_it_has_learnt(weft):
    """Compares the forward pass of generation, including the window, with a text that has one continuation."""
    learn(weft, b"the quick brown fox jumps " * 1000)
    said = weft.expect(0, "generate", "run", "--prompt", "the quick", "--tokens", "70",
                       "--temperature", "0")
    assert said == "the quick brown fox jumps " + "the quick brown fox jumps " * 2 + "t\n", said
    again = [weft.expect(0, "generate", f"run/checkpoints/step-120{slash}", "--tokens", "50",
                         "--json", "--temperature", "1.5", "--seed", seed)
             for seed, slash in (("1", ""), ("1", "/"), ("2", "//"))]
    assert json.loads(again[0]) == {**json.loads(again[1])}, again
    first, other = (json.loads(text)["tokens"] for text in again[1:])
    assert len(first) == 50 and first != other
    likeliest = weft.expect(0, "generate", "run", "--prompt", "fox", "--top-k", "1")
    assert likeliest.startswith("fox jumps the quick brown fox jumps"), likeliest


@drawn_case
def kept_keys_and_values_change_no_token(weft):
    """Within the window each token costs one row; beyond it everything is recomputed."""
    with open("/usr/share/common-licenses/GPL-3", "rb") as file:
        learn(weft, file.read(), train__seq_len=160, model__layers__0__positions=160)
    blocks = "a prompt goes in two blocks of rows, the last of them not whole " * 2
    for prompt, flags in (("", ["--temperature", "0"]), ("The program", ["--temperature", "0.9"]),
                          (blocks, ["--temperature", "0.5"]),
                          ("a", ["--temperature", "1.3", "--top-k", "20", "--seed", "5"])):
        said = [weft.expect(0, "generate", "run", "--prompt", prompt, "--tokens", "170", "--json",
                            *flags, *more) for more in ([], ["--no-cache"])]
        tokens = [json.loads(text)["tokens"] for text in said]
        assert len(tokens[0]) == 170 and tokens[0] == tokens[1], (prompt, tokens)
    # A text that was cut continues in the same way.
    whole, part = (weft.expect(0, "generate", "run", "--prompt", "The", "--tokens", n,
                               "--temperature", "0.9", "--json") for n in ("40", "20"))
    whole, part = (bytes(json.loads(text)["tokens"]) for text in (whole, part))
    assert len(set(whole)) > 4 and whole.startswith(part) and b"\0" not in part, (whole, part)
    again = weft.expect(0, "generate", "run", "--prompt", b"The" + part, "--tokens", "20",
                        "--temperature", "0.9", "--json")
    assert bytes(json.loads(again)["tokens"]) == whole[20:], (again, whole)


@drawn_case
def a_model_of_tokens_says_tokens(weft):
    learn(weft, token_file([300 + 7 * i % 50 for i in range(5000)]),
          model__layers__0__vocab=400, model__layers__3__vocab=400)
    said = weft.expect(0, "generate", "run", "--prompt", "300,307, 314", "--tokens", "20",
                       "--temperature", "0")
    assert said.split() == [str(300 + 7 * i % 50) for i in range(23)], said
    weft.expect(64, "generate", "run", "--prompt", "hello",
                says=["this model's tokens are not bytes", "numbers of tokens"])
    os.remove(weft.path("data"))
    weft.expect(64, "generate", "run", "--prompt", "hello", says=["train.data cannot be read", "numbers of tokens"])
    weft.expect(65, "generate", "run", "--prompt", "400", says="outside the vocabulary")


@case
def generate_refuses_what_it_cannot(weft):
    weft.expect(66, "generate", "nowhere", says="no checkpoint there")
    for flag, value in (("--tokens", "0"), ("--tokens", "x"), ("--temperature", "-1"),
                        ("--temperature", "nan"), ("--top-k", "-2")):
        weft.expect(64, "generate", "run", flag, value, says=flag)
    learn(weft, b"abcdefgh" * 500)
    weft.expect(66, "generate", "run/checkpoints/step-7",
                says="run/checkpoints/step-7: no such checkpoint")
    path = weft.path("run/checkpoints/step-120/model.safetensors")
    with open(path, "r+b") as file:
        file.seek(-5, 2)
        file.write(b"x")
    weft.expect(65, "generate", "run", says="model.safetensors")
    classifier = tiny()
    classifier["model"]["layers"][3] = {"name": "out", "type": "classifier", "hidden": 32,
                                        "classes": 10}
    weft.expect(65, "generate", "run", "--config", weft.write("other.json", classifier),
                says="end with an lm_head")


@drawn_case
def every_time_of_an_emulated_link_says_so(weft):
    """The label is in a profile, a plan, lines of steps, the summary, metrics, result and sweep."""
    link = {"intra": {"alpha": "20us", "bandwidth": "1GB/s"}}
    run = tiny(cluster__emulate=True, cluster__link=link, cluster__memory_limit="1GiB",
               train__validation={"share": 0.25, "every": 3, "samples": 4})
    config = weft.write("run.json", run)
    assert json.loads(weft.expect(0, "plan", config, "--json"))["times"] == \
        "analytic, emulated link"
    profile = weft.path("profile.json")
    assert "measured, emulated link" in weft.expect(0, "profile", config, "-o", profile)
    run["cluster"]["profile"] = "profile.json"
    weft.write("run.json", run)
    plan = weft.path("plan.json")
    assert "times measured, emulated link\n" in weft.expect(0, "plan", config, "-o", plan)
    for verb in ("explain", "simulate"):
        assert "times measured, emulated link\n" in weft.expect(0, verb, plan), verb
    assert "over an emulated link" in " ".join(weft.expect(0, "verify", plan).split())
    out = weft.expect(0, "train", config, "--plan", plan, "--run", weft.fresh("run"))
    said = " ".join(out.split())
    lines = re.findall(r"(?:step \d+/|validation after).*?(?=step \d+/| validation|$)", said)
    assert len(lines) == 4 and all("s emulated" in line for line in lines), lines
    assert len(re.findall(r"[mu]?s measured over an emulated link, ", said)) == 2, out
    metrics = lines_of(open(weft.path("run/metrics.jsonl"), encoding="utf-8").read())
    timed = [row for row in metrics if "step_ns" in row or "validation_ns" in row]
    assert len(timed) == 4 and all(row["emulated"] is True for row in timed), metrics
    assert json.load(open(weft.path("run/result.json"), encoding="utf-8"))["emulated"] is True
    assert '"emulated":true' in weft.expect(0, "train", config, "--plan", plan, "--run", "again",
                                           "--json").splitlines()[-1].replace(" ", "")
    sweep = ("sweep", config, "--measure", "--limits", "1GiB", "--planners", "greedy", "-q")
    picture, table = weft.path("sweep.svg"), weft.path("sweep.csv")
    out = " ".join(weft.expect(0, *sweep, "--svg", picture, "--csv", table).split())
    assert "times measured, emulated link limit" in out and "greedy, measured, emulated " in out, out
    assert open(table, encoding="utf-8").readlines()[1].endswith(
        ',"measured, emulated link",emulated\n')
    drawn = " ".join(re.findall(r"<text[^>]*>([^<]*)<", open(picture, encoding="utf-8").read()))
    assert "times measured, emulated link; weft" in drawn, drawn
    assert "In rings: measured, emulated link." in drawn, drawn
    # The label is absent without emulation, and with a virtual clock, which predicts times.
    run["cluster"]["emulate"] = False
    del run["cluster"]["profile"]
    run["cluster"]["base"] = "512MiB"
    weft.write("run.json", run)
    assert "emulated" not in weft.expect(0, "train", config, "--run", "local")
    assert "emulated" not in weft.expect(0, "train", config, "--run", "virtual", "--clock",
                                         "virtual", "--set", "cluster.emulate=true").split(
                                             "in all")[1]


main(sys.argv[1])
