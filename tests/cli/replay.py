#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A replay repeats a run's bits on other ranks and plans, and names the first step that was computed wrongly."""
import array
import ast
import json
import math
import os
import random
import re
import shutil
import sys

from configs import LICENCE, tiny
from saved import copy_step, manifest, parameters, rewrite, saving, steps
from tap import case, drawn_case, main, some

FLOPS = {"f32": "50G", "bf16": "50G", "f16": "50G"}


def hashed(**changes):
    return saving(**{"cluster__ranks": 4, "train__micro_batch": 1, "train__batch": 8,
                     "train__fingerprint": {"every": 1}, "cluster__device__flops": FLOPS,
                     "plan__work_limit": "20M", **changes})


def grouped(**changes):
    """8 groups a step on 4 ranks: 1, 2, 4 and 8 ranks share them."""
    return hashed(train__group=1, **changes)


def lines(weft, run, kind="step"):
    with open(weft.path(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["kind"] == kind]


def replay(weft, *arguments, code=0, verb="replay", **options):
    out = weft.expect(code, verb, *arguments, "--json", **options)
    return json.loads(out[:out.rindex("}") + 1])


@case
def every_number_of_ranks_and_every_plan_repeats_a_run(weft):
    config = weft.write("run.json", grouped(train__validation={"share": 0.1, "every": 2, "samples": 8}))
    weft.expect(0, "train", config, "--run", "run", "-q")
    for flags in (["-n", "1"], ["-n", "3"], ["-n", "8", "--poison"], ["--planner", "all-fsdp"], ["-n", "2", "--planner", "random"]):
        found = replay(weft, "run", *flags)
        assert found["equal"] and found["compared"] == 8 and found["missing"] == 0, (flags, found)
        assert found["fingerprint"] == parameters(weft, "run"), flags
    found = replay(weft, "run", "--steps", "7..7")
    assert (found["from_step"], found["compared"]) == (6, 1), found
    found = replay(weft, "run", "--steps", "4..5", "-n", "2")
    assert (found["from_step"], found["compared"]) == (0, 2), found
    assert sorted(os.listdir(weft.path("run"))) == ["checkpoints", "config.json", "lock", "metrics.jsonl", "plan.json",
                                                    "profile.json", "result.json", "weft-run"]


@drawn_case
def the_recorded_hash_is_that_of_the_parameters(weft):
    """Under every form of the period, and for updates on the host, a step's hash is the fingerprint of a run up to it."""
    half = {"compute": "bf16", "reduce": "f32"}
    link = {"alpha": "10us", "bandwidth": "1GB/s"}
    host = {"cluster__host": {"memory_limit": "1GiB", "down": link, "up": link, "update": "1GB/s"},
            "plan__offload": {"activations": ["device"], "state": ["host"], "update": ["host"]}}
    forms = [{}, {"train__clip_norm": 0}, {"train__delay": 1}, {"train__optimizer": {"type": "lamb", "lr": 1e-3}},
             {"train__precision": half}, {"train__precision": half, **host}, host,
             {"train__checkpoint": {"every": 1, "keep": 3}}]
    for number, form in enumerate(some(forms, 5)):
        config = weft.write("run.json", hashed(**form))
        weft.expect(0, "train", config, "--run", f"run{number}", "-q")
        recorded = {line["step"]: line.get("parameters") for line in lines(weft, f"run{number}")}
        # With a delay the first step updates nothing.
        assert all(recorded[step] for step in range(3 if "train__delay" in form else 2, 9)), (form, recorded)
        weft.expect(0, "train", config, "--run", f"short{number}", "-q", "--set", "train.steps=5", "--set",
                    "train.lr_schedule.steps=8")
        assert parameters(weft, f"short{number}") == recorded[6], form
        assert manifest(weft, f"run{number}/checkpoints/step-6")["parameters"] == recorded[7], form


@drawn_case
def a_groups_hash_is_that_of_its_gradient_on_any_ranks(weft):
    """Forms of the period: with and without clipping, of one and of several rounds, with idle ranks."""
    forms = [{}, {"train__group": 1}, {"train__group": 1, "train__clip_norm": 0}, {"train__clip_norm": 0},
             {"train__group": 1, "train__batch": 7, "train__precision": {"compute": "bf16", "reduce": "f32"}},
             {"train__group": 1, "train__batch": 72, "train__steps": 3}]
    for number, form in enumerate(forms):
        config = weft.write("run.json", hashed(**form))
        weft.expect(0, "train", config, "--run", f"run{number}", "-q")
        found = [line["gradients"] for line in lines(weft, f"run{number}") if "gradients" in line]
        late, last = form.get("train__clip_norm") == 0, form.get("train__steps", 8)
        groups = {1: form.get("train__batch", 8)}.get(form.get("train__group"), 4)
        # A rotated period has no gradients of the last step, and those of a step before it one line later.
        assert [line["step"] for line in found] == list(range(1, last if late else last + 1)), (form, found)
        assert all((line["ranks"], line["groups"], len(set(line["hashes"]))) == (4, groups, min(groups, 64)) for line in found)
        for ranks in ("1", "3") if "train__group" in form else ():
            assert replay(weft, f"run{number}", "-n", ranks)["equal"], (form, ranks)
        # A hash that was changed is told from others.
        path = weft.path(f"run{number}/metrics.jsonl")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        wrong = found[1]["hashes"][-1]
        weft.write(f"run{number}/metrics.jsonl", text.replace(wrong, wrong[::-1]))
        got = replay(weft, f"run{number}", "-n", "2" if "train__group" in form else "4", code=79)
        assert (got["differs_at"], got["rank"]) == (2, (min(groups, 64) - 1) % 4), (form, got)


@case
def a_flipped_bit_is_named_with_its_step(weft):
    config = weft.write("run.json", grouped(train__compare_every=0))
    draw = random.Random(os.environ.get("WEFT_TEST_SEED", "1"))
    for op in "forward", "backward", "update":
        step, rank = draw.randrange(2, 8), draw.randrange(4)
        run = weft.fresh("run")
        weft.expect(0, "train", config, "--run", run, "-q", env={"WEFT_FAILPOINT": f"{op}:rank={rank}:step={step}:do=flip"})
        found = replay(weft, run, "-n", "2", code=79)
        if op == "update":  # shows in the hash after the next one, or in the step of groups that read a token's row
            assert step <= found["differs_at"] <= step + 1, (op, rank, step, found)
            assert found["differs_at"] == step or "rank" not in found, (op, rank, step, found)
        else:
            assert (found["differs_at"], found["rank"]) == (step, rank), (op, rank, step, found)
            assert re.search(rf"gradient of group \d+ \(rank {rank}\)", found["differs_in"]), found
            weft.expect(79, "replay", run, "-q", says=f"in a gradient that rank {rank} computed")
        # An audit also has the checkpoint before, which a hash of the next step may be later than.
        weft.expect(79, "audit", run, says="has other bits when replayed")


@drawn_case
def groups_of_a_replay_are_steps_of_their_own(weft):
    """A rate that updates nothing leaves group 0 the step of a batch of 1. A text of one sample makes all groups alike."""
    still = {"train__optimizer": {"type": "sgd", "lr": 1e-30}, "train__steps": 2, "train__fingerprint": {"every": 0}}
    for number, form in enumerate(({}, {"train__clip_norm": 0}, {"train__precision": {"compute": "f16", "reduce": "f32"}},
                                   {"train__data": weft.write("one.txt", "one sample alone!")})):
        config = weft.write("run.json", grouped(**still, **form))
        weft.expect(0, "train", config, "--run", f"run{number}", "-q")
        alone = weft.write("alone.json", grouped(**{**still, **form, "train__batch": 1, "train__clip_norm": 1e9, "cluster__ranks": 1}))
        weft.expect(0, "train", alone, "--run", f"alone{number}", "-q")
        found = replay(weft, f"run{number}", "--groups")
        assert found["equal"] and found["ranks"] == 1 and len(found["groups"]) == 16, found
        for line, whole in zip(lines(weft, f"alone{number}"), lines(weft, f"run{number}")):
            groups = [group for group in found["groups"] if group["step"] == line["step"]]
            assert [(group["group"], group["first_sample"], group["samples"]) for group in groups] == [(n, n, 1) for n in range(8)]
            for group in groups if "train__data" in form else groups[:1]:
                assert abs(group["loss"] / line["loss"] - 1) < 1e-6 and abs(group["norm"] / line["norm"] - 1) < 1e-3, (group, line)
            mean = sum(group["loss"] for group in groups) / 8
            assert abs(mean / whole["loss"] - 1) < 1e-6, (mean, whole)
            with open(LICENCE, "rb") as file:
                length = len(file.read())
            places = {group["place"] for group in groups}
            assert places == {0} if "train__data" in form else len(places) > 1 and 0 <= min(places) <= max(places) < length, places
    text = weft.expect(0, "replay", "run0", "--steps", "2..2", "--groups", "-q")
    found = replay(weft, "run0", "--groups", "--steps", "2..2")["groups"]
    highest = max(found, key=lambda group: group["norm"])
    assert f"highest   norm {highest['norm']:.4f}: group {highest['group']} of step 2" in text, text
    weft.expect(64, "replay", "run0", "--groups", "-n", "2", says="one rank computes all groups")


def load(weft, name):
    """Reads a .npy of f32 without NumPy: its shape and its numbers."""
    with open(weft.path(name), "rb") as file:
        content = file.read()
    length = int.from_bytes(content[8:10], "little")
    assert content[:8] == b"\x93NUMPY\x01\x00" and (10 + length) % 64 == 0, content[:10]
    header = ast.literal_eval(content[10:10 + length].decode())
    assert header["descr"] == "<f4" and header["fortran_order"] is False, header
    numbers = array.array("f", content[10 + length:])
    assert len(numbers) == math.prod(header["shape"]), header
    return header["shape"], numbers


@drawn_case
def dumped_tensors_are_those_of_the_step(weft):
    """With SGD an update is the rate times the sum of all groups' gradients. A layer's output is the next one's input."""
    for number, form in enumerate(({"train__clip_norm": 1e9}, {"train__clip_norm": 0},
                                   {"train__group": 2, "train__precision": {"compute": "f16", "reduce": "f32"}})):
        config = weft.write("run.json", hashed(**{"train__group": 1, "train__optimizer": {"type": "sgd", "lr": 0.5, "momentum": 0,
                                                                                                   "weight_decay": 0}, **form}))
        weft.expect(0, "train", config, "--run", f"run{number}", "-q")
        names = ("h.0", "h.1")
        out = replay(weft, f"run{number}", "--steps", "8..8", "--dump", f"layer:{','.join(names)}", "--into", f"dump{number}")
        assert out["equal"] and out["ranks"] == 1, out
        files = sorted(os.listdir(weft.path(f"dump{number}")))
        assert {name.split(".")[0] for name in files} == {"step-8"}, files
        updates = [name for name in files if name.endswith(".update.npy") and name.startswith("step-8.")]
        assert updates, files
        groups = 8 // form.get("train__group", 1)
        last = lines(weft, f"run{number}")[-1]
        rate = last["lr"] * last["clip"]
        for name in updates:
            tensor = name[len("step-8."):-len(".update.npy")]
            shape, update = load(weft, f"dump{number}/{name}")
            parts = [load(weft, f"dump{number}/step-8.group-{group}.{tensor}.gradient.npy") for group in range(groups)]
            assert all(part[0] == shape for part in parts), (tensor, shape)
            scale = max(map(abs, update)) or 1
            for at in range(0, len(update), 7):
                wanted = -rate * sum(part[1][at] for part in parts)
                assert abs(update[at] - wanted) < 1e-3 * scale + 1e-7, (tensor, at, update[at], wanted)
        for micro in range(8):
            left, right = (load(weft, f"dump{number}/step-8.micro-{micro}.{name}.npy") for name in ("h.0.y", "h.1.x"))
            assert left == right and len(left[0]) == 2, micro


@drawn_case
def a_dump_that_cannot_be_is_refused(weft):
    config = weft.write("run.json", grouped())
    weft.expect(0, "train", config, "--run", "run", "-q")
    weft.expect(64, "replay", "run", "--dump", "layer:hh.0", says="has no layer of that name: did you mean h.0")
    weft.expect(64, "replay", "run", "--dump", "h.0", says="write layer:NAME")
    weft.expect(64, "replay", "run", "--dump", "layer:h.0", "-n", "2", says="one rank computes all groups")
    weft.expect(64, "replay", "run", "--into", "there", says="it is the folder of --dump")
    weft.write("file", "in the way")
    weft.expect(73, "replay", "run", "--steps", "8..8", "--dump", "layer:h.0", "--into", "file/there", says="the folder of the dump")


@drawn_case
def an_audit_replays_the_drawn_parts(weft):
    config = weft.write("run.json", grouped(train__checkpoint={"every": 1, "keep_every": 2}))
    weft.expect(0, "train", config, "--run", "run", "-q")
    assert steps(weft, "run") == ["step-2", "step-4", "step-6", "step-7", "step-8"]
    found = replay(weft, "run", "-n", "2", verb="audit")
    assert found["equal"] and found["chance"] == 1 and found["replayed"] == 8, found
    assert found["chain"] == {"checkpoints": 5, "whole": 2, "broken": 0, "gone": 3}, found
    assert all(part["equal"] and part["ends_in_checkpoint"] for part in found["parts"]), found
    drawn = set()
    for seed in range(4):
        found = replay(weft, "run", "--part", "25", "--draw", str(seed), verb="audit")
        assert 2 <= found["replayed"] <= 3 and found["chance"] == found["replayed"] / 8, found
        drawn.add(tuple(part["replayed"] for part in found["parts"]))
    assert len(drawn) > 1, drawn
    again = replay(weft, "run", "--part", "25", "--draw", "3", verb="audit")
    assert again == found
    # A checkpoint that was made anew has another manifest, and breaks the chain.
    path = weft.path("run/checkpoints/step-7")
    shutil.rmtree(path)
    weft.expect(0, "train", config, "--run", "other", "-q", "--set", "train.steps=7", "--set", "train.seed=8")
    shutil.copytree(weft.path("other/checkpoints/step-7"), path)
    assert replay(weft, "run", code=79, verb="audit")["chain"]["broken"] == 2


@drawn_case
def a_run_begun_with_other_parameters_is_replayed_from_them(weft):
    config = weft.write("run.json", grouped())
    weft.expect(0, "train", config, "--run", "first", "-q")
    weft.expect(0, "train", config, "--run", "second", "-q", "--from", "first")
    assert replay(weft, "second", "--steps", "1..3", "-n", "2")["equal"]
    copy_step(weft, "first", "moved", 6)
    weft.expect(0, "train", config, "--run", "third", "-q", "--resume=moved/checkpoints/step-6", "--set", "train.steps=9",
                "--set", "train.lr_schedule.steps=8")
    weft.expect(66, "replay", "third", "--steps", "8..9", says="no kept checkpoint reaches step 8")
    weft.expect(66, "audit", "third", says="no recorded step comes after a kept checkpoint")


@drawn_case
def plain_products_have_the_same_bits_at_every_level(weft):
    """Levels of Weft's kernels, of oneDNN and of the C library's functions, which has others for FMA."""
    config = weft.write("run.json", grouped(train__steps=3))
    levels = ["plain", *(level for level in ("avx2", "avx512") if weft.run("doctor", env={"WEFT_KERNELS": level})[0] == 0)]
    old_libc = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable", "DNNL_MAX_CPU_ISA": "SSE41"}
    found = set()
    for level in levels:
        for number, env in enumerate(({}, old_libc)):
            run = f"{level}{number}"
            weft.expect(0, "train", config, "--run", run, "-q", env={"WEFT_GEMM": "plain", "WEFT_KERNELS": level, **env})
            assert manifest(weft, f"{run}/checkpoints/step-3")["bits"] == "products: plain; attention: products"
            found.add((parameters(weft, run), *(line["loss"] for line in lines(weft, run))))
    assert len(levels) > 1 and len(found) == 1, found
    env = {"WEFT_GEMM": "plain", "WEFT_KERNELS": "plain", **old_libc}
    assert replay(weft, "avx20", "-n", "2", env=env)["equal"]


@drawn_case
def a_replay_names_what_its_bits_depend_on(weft):
    config = weft.write("run.json", grouped())
    weft.expect(0, "train", config, "--run", "run", "-q")
    bits = manifest(weft, "run/checkpoints/step-8")["bits"]
    assert bits.startswith("products: onednn, oneDNN "), bits
    lowest = {"DNNL_MAX_CPU_ISA": "SSE41"}
    for verb in "replay", "audit":
        weft.expect(1, verb, "run", env=lowest, says=f"{bits.split('; ')[0]} in the run, and products: onednn, oneDNN ")
        # Also from the first parameters, which no checkpoint has.
        weft.expect(1, verb, "run", env={"WEFT_GEMM": "plain"}, says="and products: plain here")
    weft.expect(64, "train", config, "--run", "other", env={"WEFT_KERNELS": "sse"}, says='levels are "plain", "avx2" and')


@case
def a_run_that_was_resumed_with_other_data_names_the_data(weft):
    """Steps read the data of the first checkpoint after them. Without one, the data is a possible cause."""
    texts = [weft.write(f"{name}.txt", f"A text by {name}, of many words. " * 300) for name in ("one", "two")]
    keep = {"every": 4, "at_end": True, "keep": 8}
    for steps, text in zip((4, 8), texts):
        config = weft.write("run.json", tiny(train__data=text, train__steps=steps, train__checkpoint=keep))
        weft.expect(0, "train", config, "--run", "run", *["--resume"][:steps - 4], "-q")
    weft.expect(65, "replay", "run", says=["run: read other data after step 4 than before", "Replay steps up to 4"])
    weft.expect(65, "audit", "run", says="two.txt: the run read other data in steps 1 to 4")
    for steps, right, wrong in ("1..4", *texts), ("5..8", *texts[::-1]):
        weft.expect(0, "replay", "run", "--steps", steps, "--set", f"train.data={right}")
        weft.expect(65, "replay", "run", "--steps", steps, "--set", f"train.data={wrong}",
                    says=f"{wrong}: the run read other data in steps {steps.replace('..', ' to ')}")
    shutil.rmtree(weft.path("run/checkpoints/step-4"))
    weft.expect(79, "replay", "run", says=["step 1 has other bits", "The cause may be other data, because no kept"])
    weft.expect(0, "train", weft.write("run.json", tiny(train__data=texts[0], train__steps=4, train__checkpoint=keep)),
                "--run", "again", "-q")
    with open(weft.path("again/metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    [line for line in lines if line["kind"] == "step"][-1]["loss"] = 1
    weft.write("again/metrics.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    weft.expect(79, "replay", "again", says="Either the run or the replay computed wrongly")
    longer = tiny(train__data=texts[0], train__steps=5, train__checkpoint=keep)
    weft.expect(0, "train", weft.write("run.json", longer), "--run", "again", "--resume", "-q")
    weft.expect(79, "replay", "again", says="The cause may be other settings of train, with which the run was resumed")


@case
def what_cannot_be_replayed_is_refused(weft):
    config = weft.write("run.json", grouped())
    weft.expect(66, "replay", "run", says="no run has begun there")
    weft.expect(0, "train", config, "--run", "run", "-q")
    weft.expect(64, "replay", "run", "--steps", "3..30", says="recorded steps 1 to 8")
    for steps_text in "", "0..3", "3..2", "a..b", "3..", "3-5", "3..5x":
        weft.expect(64, "replay", "run", "--steps", steps_text, says="write A..B")
    weft.expect(64, "replay", "run", "--set", "train.seed=3", says="a replay has the run's training")
    weft.expect(64, "replay", "run", "--set", "train.seq_len=8", says="a replay has the run's training")
    weft.expect(65, "replay", "run", "-n", "9", says="8 groups of 1 (train.group x micro_batch), fewer than 9 ranks")
    weft.expect(64, "audit", "run", "--part", "0", says="above 0 and at most 100")
    weft.expect(64, "audit", "run", "--draw", "-1", says="--draw -1")
    other = weft.write("other.txt", "Another text than the run's. " * 200)
    weft.expect(65, "replay", "run", "--steps", "7..8", "--set", f"train.data={other}", says="read other data")
    weft.expect(1, "replay", "run", "--steps", "7..8", env={"WEFT_GEMM": "plain"}, says="would have other bits")
    with open(weft.path("run/metrics.jsonl"), encoding="utf-8") as file:
        text = file.readlines()
    torn = [line[:40] + "\n" if '"step": 7,' in line else line for line in text]
    missing = [line for line in text if '"step": 7,' not in line]
    for lines_left in torn, missing:
        weft.write("run/metrics.jsonl", "".join(lines_left))
        weft.expect(65, "replay", "run", says="1 of the steps 1 to 8 have no whole line")
        weft.expect(65, "audit", "run", says="1 replayed steps have no whole line")
    os.remove(weft.path("run/metrics.jsonl"))
    for verb in "replay", "audit":
        weft.expect(66, verb, "run", says="run/metrics.jsonl: No such file or directory")


@case
def an_audit_without_a_hash_proves_nothing(weft):
    config = weft.write("run.json", grouped(train__fingerprint={"every": 0}, train__checkpoint={"at_end": False}))
    weft.expect(0, "train", config, "--run", "run", "-q")
    weft.expect(66, "audit", "run", says=["an audit proves nothing", "train.fingerprint.every"])
    assert replay(weft, "run")["equal"]


@case
def sixteen_bits_are_added_up_in_one_round(weft):
    half = {"compute": "bf16", "reduce": "bf16"}
    for precision, key in ((half, "reduce"), ({"compute": "bf16", "accumulate": "bf16"}, "accumulate")):
        weft.expect(65, "train", weft.write("two.json", grouped(train__precision=precision)), "--run", weft.fresh("run"),
                    says=[f"train.precision.{key} is bf16", 'Set it to "f32"'])
    config = weft.write("run.json", grouped(train__batch=4, train__precision=half))
    weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q")
    says = ["train.precision.reduce is bf16, and 2 ranks would add up the 4 groups of a step in 2 rounds", "(-n 4)"]
    weft.expect(64, "replay", "run", "-n", "2", says=says)
    shutil.rmtree(weft.path("run/checkpoints/step-8"))
    os.remove(weft.path("run/result.json"))
    weft.expect(64, "train", "--resume", "--run", "run", "-n", "2", says=says)
    weft.expect(0, "train", "--resume", "--run", "run", "-q")


@case
def a_checkpoint_of_an_older_order_is_named(weft):
    """Older manifests have no number of ranks."""
    config = weft.write("run.json", saving(cluster__ranks=4, train__micro_batch=1, train__grad_accum=2))
    weft.expect(0, "train", config, "--run", "run", "-q")
    bits = parameters(weft, "run")
    shutil.rmtree(weft.path("run/checkpoints/step-8"))
    os.remove(weft.path("run/result.json"))
    rewrite(weft.path("run/checkpoints/step-6/manifest.json"), '\n  "ranks": 4,', "")
    weft.expect(64, "replay", "run", "-n", "2", says="no kept checkpoint says in which groups the run's 4 ranks summed")
    shutil.copytree(weft.path("run"), weft.path("fewer"))
    weft.expect(0, "train", "--resume", "--run", "run", "-q", says="without the number of its ranks")
    assert parameters(weft, "run") == bits
    weft.expect(0, "train", "--resume", "--run", "fewer", "-n", "2", "-q",
                says=["another one may round otherwise", "goes on with 4 a step"])


main(sys.argv[1])
