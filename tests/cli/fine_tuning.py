#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning: frozen layers in every precision, and runs that start from another run's parameters."""
import json
import math
import os
import random
import shutil
import struct
import sys

from saved import (copy_step, entries_of, manifest, metrics, parameters, put_value, rewrite, same_files,
                   saved_run, saving, steps, tensors, write_tensors)
from tap import case, main

FLOPS = {"f32": "50G", "bf16": "50G", "f16": "50G"}


@case
def frozen_parameters_of_16_bits_are_kept_as_rounded(weft):
    """Frozen parameters have no master. The files have their values, and a run in any precision resumes from them."""
    for compute in ("bf16", "f16"):
        config = saved_run(weft, model__layers__1__frozen=True, cluster__device__flops=FLOPS,
                           train__precision={"compute": compute})
        for planner in ("all-fsdp", "all-dp"):
            run = f"{compute}-{planner}"
            copy_step(weft, "run", run, 6)
            weft.expect(0, "train", config, "--run", run, "-q", "--resume", "--planner", planner)
            same_files(weft, f"{run}/checkpoints/step-8", "run/checkpoints/step-8")
        wide = f"{compute}-wide"
        weft.expect(0, "train", config, "--run", wide, "-q", "-n", "3", "--set",
                    "train.precision.compute=f32", "--resume=run/checkpoints/step-8", "--set",
                    "train.steps=9")
        before = tensors(weft, "run/checkpoints/step-8/model.safetensors")
        after = tensors(weft, f"{wide}/checkpoints/step-9/model.safetensors")
        frozen = [name for name in before if name.startswith("h.")]
        assert 0 < len(frozen) < len(before), before.keys()
        for name in before:
            assert (before[name] == after[name]) == (name in frozen), name
            if compute == "bf16":
                low = any(before[name][0::4]) or any(before[name][1::4])
                assert low == (name not in frozen), name
        shutil.rmtree(weft.path("run"))


def origin(weft, run):
    with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
        return json.load(file)["origin"]


@case
def from_takes_parameters_and_nothing_else(weft):
    """From initial parameters the run equals one that started by itself."""
    changes = {"train__lr_schedule": {"type": "cosine", "warmup_steps": 3},
               "train__precision": {"compute": "f16"}, "cluster__device__flops": FLOPS,
               "train__loss_scale": {"initial": 2 ** 24, "growth_steps": 2}}
    config = saved_run(weft, **changes)
    still = ["--set", "train.optimizer.lr=0", "--set", "train.steps=5"]
    weft.expect(0, "train", config, "--run", "initial", "-q", *still)
    weft.expect(0, "train", config, "--run", "from", "-q", "--from", "initial")
    same_files(weft, "from/checkpoints/step-8", "run/checkpoints/step-8")
    said, before = (manifest(weft, f"{run}/checkpoints/step-8") for run in ("from", "run"))
    assert said.pop("origin") == origin(weft, "from") and "origin" not in before, said
    for key in "crc32c", "previous":  # the manifest before it has the origin too
        said.pop(key), before.pop(key)
    assert said == before, (said, before)
    lines = [line for line in metrics(weft, "from") if "loss" in line]
    assert [line["step"] for line in lines] == list(range(1, 9)), lines
    assert origin(weft, "from")["path"] == os.path.realpath(weft.path("initial/checkpoints/step-5"))


@case
def from_is_the_same_under_every_policy_and_number_of_ranks(weft):
    saved_run(weft)
    wanted = parameters(weft, "run")
    frozen = {"model__layers__1__frozen": True, "cluster__device__flops": FLOPS,
              "train__steps": 2}
    sgd = {"train__optimizer": {"type": "sgd", "lr": 0.01, "momentum": 0.9}}
    for number, changes in enumerate([{"train__steps": 2}, {**frozen, **sgd},
                                      {**frozen, "train__precision": {"compute": "bf16"}}]):
        config = weft.write("tuned.json", saving(**changes))
        begun, ended = set(), {}
        for ranks, planner in ((1, "all-dp"), (2, "all-zero1"), (2, "all-fsdp"), (3, "all-sdp"),
                               (3, "all-dp")):
            run = f"tuned-{number}-{ranks}-{planner}"
            weft.expect(0, "train", config, "--run", run, "-q", "-n", str(ranks), "--planner",
                        planner, "--from", "run/checkpoints/step-8/")
            begun.add(origin(weft, run)["parameters"])
            ended.setdefault(ranks, set()).add(parameters(weft, run))
        assert len(begun) == 1 and all(len(ends) == 1 for ends in ended.values()), (begun, ended)
        # Frozen parameters of 16 bits are rounded.
        assert (begun == {wanted}) == (number < 2), (begun, wanted)


@case
def a_file_of_tensors_will_do(weft):
    config = saved_run(weft)
    path = "run/checkpoints/step-8/model.safetensors"
    few = ["--set", "train.steps=1"]
    weft.expect(0, "train", config, "--run", "plain", "-q", "--from", path, *few,
                says="cannot be checked")
    assert origin(weft, "plain")["parameters"] == parameters(weft, "run")
    entries = entries_of(weft, path)

    def narrow(entry):
        name, _, shape, data = entry
        return name, "BF16", shape, b"".join(data[i + 2:i + 4] for i in range(0, len(data), 4))

    def cut(entry):
        data = b"".join(b"\0\0" + entry[3][i + 2:i + 4] for i in range(0, len(entry[3]), 4))
        return (*entry[:3], data)
    for name, change in (("narrow", narrow), ("cut", cut)):
        write_tensors(weft, f"{name}.safetensors", [change(entry) for entry in entries])
        weft.expect(0, "train", config, "--run", name, "-q", "--from", f"{name}.safetensors", *few)
    assert origin(weft, "narrow")["parameters"] == origin(weft, "cut")["parameters"]
    assert parameters(weft, "narrow") == parameters(weft, "cut")
    # The message names every difference.
    changed = [(name, "I32", shape, data) if name == "wte.tokens" else
               (name, dtype, shape[::-1], data) if name == "h.0.mlp.fc.weight" else
               (name + "s", dtype, shape, data) if name.startswith("ln_f") else
               (name, dtype, shape, data) for name, dtype, shape, data in entries]
    write_tensors(weft, "other.safetensors", changed)
    weft.expect(65, "train", config, "--run", "no", "--from", "other.safetensors",
                says=["missing (2): ln_f.weight, ln_f.bias; ",
                      "not the model's (2): ln_f.weights, ln_f.biass; ",
                      "of another shape (1): h.0.mlp.fc.weight is [", "(1): wte.tokens is I32"])
    assert not os.path.exists(weft.path("no")), "something was made"


@case
def values_that_are_not_finite_are_named_before_the_first_step(weft):
    """The values are at random places: in any tensor, of any rank, frozen or not."""
    config = saved_run(weft, cluster__device__flops=FLOPS, plan__planner="greedy")
    entries = entries_of(weft, "run/checkpoints/step-8/model.safetensors")
    draw = random.Random(20261128)
    above = 'is 70000, which is infinite in f16: set train.precision.compute to "bf16"'
    large = 'is 3.4e+38, which is infinite in {}: set train.precision.compute to "f32"'
    for value, compute, says in (
            (math.nan, "f32", "is nan"), (-math.nan, "bf16", "is nan"), (math.inf, "f32", "is inf"),
            (-math.inf, "f16", "is -inf"), (70000, "f16", above), (-70000, "f16", above.replace("70", "-70")),
            (3.4e38, "bf16", large.format("bf16")), (3.4e38, "f16", large.format("f16")),
            (70000, "bf16", None), (65519, "f16", None), (3.4e38, "f32", None)):
        tensor = draw.randrange(len(entries))
        element = draw.randrange(len(entries[tensor][3]) // 4)
        write_tensors(weft, "bad.safetensors", put_value(entries, (tensor, element), value))
        flags = ["--from", "bad.safetensors", "-q", "-n", str(draw.randint(1, 3)), "--set",
                 f"train.precision.compute={compute}", "--set", "train.optimizer.lr=0", "--set",
                 f"model.layers.1.frozen={draw.choice(['true', 'false'])}", "--set", "train.steps=1"]
        code, _, err = weft.run("train", config, "--run", weft.fresh("bad"), *flags)
        told = f"bad.safetensors: element {element} of tensor {entries[tensor][0]} "
        if says is None:
            assert told not in err and code in (0, 79), (code, err)
        else:
            assert code == 65 and told + says in err and "step 1:" not in err, (code, err)
    # A checkpoint is read by the same door: f16 begins where f32 ended.
    begun = weft.path("begin.safetensors")
    last = [entry[0] for entry in entries].index("ln_f.bias")
    write_tensors(weft, "begin.safetensors", put_value(entries, (last, 2), 1e5))
    weft.expect(0, "train", config, "--run", "wide", "-q", "--from", begun, "--set", "train.steps=1",
                "--set", "train.optimizer.lr=0")
    flags = ["--resume", "-q", "--set", "train.steps=2", "--set", "train.optimizer.lr=0"]
    weft.expect(65, "train", config, "--run", "wide", *flags, "--set", "train.precision.compute=f16",
                says=["step-1: element 2 of tensor ln_f.bias is 100000, which is infinite in f16", '"bf16"'])
    weft.expect(0, "train", config, "--run", "wide", *flags, "--set", "train.precision.compute=bf16")


@case
def from_what_does_not_fit_is_refused(weft):
    config = saved_run(weft)
    other = weft.write("other.json", saving(model__layers__1__heads=8))
    open(weft.path("empty"), "w", encoding="utf-8").close()
    os.mkdir(weft.path("hollow"))
    for code, arguments, says in (
            (66, ["--from", "nowhere"], "nowhere: No such file"),
            (66, ["--from", "hollow"], "no checkpoint is there"),
            (66, ["--from", "run/checkpoints/step-7"], "No such file"),
            (65, ["--from", "empty"], "empty"),
            (64, ["--from", "run", "--resume"], "--resume=if-any"),
            (64, ["--from", "run", "--resume=run/checkpoints/step-6"], "--resume=if-any")):
        weft.expect(code, "train", config, "--run", "no", *arguments, says=says)
    weft.expect(65, "train", other, "--run", "no", "--from", "run",
                says=["heads is 8, and was 2", "all the same", "model.safetensors"])
    weft.expect(73, "train", config, "--run", "run", "--from", "run", says="has checkpoints already")
    assert not os.path.exists(weft.path("no")), "something was made"
    # Damage is reported by the rank that reads it.
    path = weft.path("run/checkpoints/step-8/model.safetensors")
    with open(path, "r+b") as file:
        file.seek(-5, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-5, os.SEEK_END)
        file.write(bytes([byte ^ 1]))
    weft.expect(65, "train", config, "--run", "no", "--from", "run", says="is damaged in chunk")


@case
def a_command_that_is_queued_again_begins_once(weft):
    """--resume=if-any resumes if it can; then the origin may be gone."""
    config = saved_run(weft)
    command = ["train", config, "--run", "tuned", "--from", "run", "--resume=if-any", "-q"]
    wanted = {"path": os.path.realpath(weft.path("run/checkpoints/step-8")),
              "parameters": parameters(weft, "run")}
    weft.expect(0, *command, "--set", "train.steps=6")
    shutil.rmtree(weft.path("run"))
    weft.expect(0, *command)
    assert steps(weft, "tuned") == ["step-6", "step-8"], steps(weft, "tuned")
    for step in (6, 8):
        assert manifest(weft, f"tuned/checkpoints/step-{step}")["origin"] == wanted
    assert origin(weft, "tuned") == wanted
    weft.expect(0, "train", config, "--run", "next", "-q", "--set", "train.steps=9",
                "--resume=tuned/checkpoints/step-8")
    assert origin(weft, "next") == wanted
    path = weft.path("tuned/checkpoints/step-8/manifest.json")
    rewrite(path, f'"path": "{wanted["path"]}"', '"path": "' + "x" * 1024 + '"')
    weft.expect(65, *command, says=["origin", "too long"])


def resume(weft, config, run, *arguments):
    """Resumes from run/checkpoints/step-8 in another directory; returns stderr."""
    code, _, err = weft.run("train", config, "--run", run, "-q",
                            "--resume=run/checkpoints/step-8", *arguments)
    assert code == 0, (code, err)
    return err


@case
def moments_that_are_missing_start_at_0_and_are_named(weft):
    saved_run(weft, model__layers__1__frozen=True)
    config = weft.write("more.json", saving(train__steps=10))
    ends = set()
    for number, planner in enumerate(("all-dp", "all-fsdp")):
        err = resume(weft, config, f"more{number}", "--planner", planner)
        assert "h.0: moments start at 0\nh.1: moments start at 0\n" in err, err
        assert "ln_f: " not in err and "wte: " not in err and "all moments" not in err, err
        ends.add(parameters(weft, f"more{number}"))
    assert len(ends) == 1, ends
    # Moments that started at 0 contain only one step after it.
    resume(weft, config, "one", "--set", "train.steps=9", "--set", "train.optimizer.betas=[0.5,0.5]",
           "--set", "train.clip_norm=0")
    state = tensors(weft, "one/checkpoints/step-9/optimizer.safetensors")
    fresh, old = 0, 0
    for name in [name for name in state if name.endswith(".moment1")]:
        first, second = (struct.unpack(f"<{len(data) // 4}f", data) for data in
                         (state[name], state[name.replace(".moment1", ".moment2")]))
        same = all(abs(2 * m * m - v) <= 1e-5 * v + 1e-30 for m, v in zip(first, second))
        assert same == name.startswith("h."), name
        fresh, old = fresh + same, old + (not same)
    assert fresh > 0 and old > 0
    err = resume(weft, config, "long", "--set", "train.optimizer.betas=[0.9,0.999]")
    assert "bias correction of step 9" in err and "--from run/checkpoints/step-8" in err, err
    # A layer that is frozen now needs no moments.
    err = resume(weft, config, "less", "--set", "model.layers.1.frozen=true", "--set",
                 "model.layers.2.frozen=true")
    assert "ln_f: moments of the checkpoint are not needed any more" in err and "h.0" not in err, err


@case
def another_optimizer_begins_its_moments_and_their_correction(weft):
    saved_run(weft, train__optimizer={"type": "sgd", "lr": 0.01, "momentum": 0.9})
    adamw = {"type": "adamw", "lr": 0.001, "betas": [0.9, 0.999], "weight_decay": 0, "eps": 1e-30}
    config = weft.write("adamw.json", saving(train__steps=10, train__optimizer=adamw,
                                             train__checkpoint={"every": 1}))
    err = resume(weft, config, "adamw")
    assert "all moments start at 0: those of the checkpoint are sgd's" in err, err
    for step in (9, 10):
        assert manifest(weft, f"adamw/checkpoints/step-{step}")["moments_began"] == 8
    # The first corrected update of an element has the size of the rate, for any gradient.
    before = tensors(weft, "run/checkpoints/step-8/model.safetensors")["h.0.mlp.fc.weight"]
    after = tensors(weft, "adamw/checkpoints/step-9/model.safetensors")["h.0.mlp.fc.weight"]
    lengths = sorted(abs(a - b) / 0.001 for a, b in zip(*(struct.unpack(f"<{len(data) // 4}f", data)
                                                          for data in (before, after))))
    assert 0.98 < lengths[len(lengths) // 2] < 1.02, lengths[len(lengths) // 2]
    copy_step(weft, "adamw", "again", 9)
    weft.expect(0, "train", config, "--run", "again", "-q", "--resume")
    same_files(weft, "again/checkpoints/step-10", "adamw/checkpoints/step-10")
    # LAMB has AdamW's moments; SGD without momentum has none.
    copy_step(weft, "adamw", "lamb", 10)
    _, _, err = weft.run("train", config, "--run", "lamb", "-q", "--resume", "--set",
                         "train.optimizer.type=lamb", "--set", "train.steps=11")
    assert "optimizer.type: lamb, was adamw" in err and "moments" not in err, err
    copy_step(weft, "run", "plain", 8)
    _, _, err = weft.run("train", weft.path("run.json"), "--run", "plain", "-q", "--resume", "--set",
                         "train.optimizer.momentum=0", "--set", "train.steps=9")
    assert "ln_f: its moment of the checkpoint is not needed any more" in err, err
    err = weft.run("train", weft.path("run.json"), "--run", "plain", "-q", "--resume", "--set",
                   "train.steps=10")[2]
    assert "ln_f: its moment starts at 0" in err, err


@case
def moments_of_an_unknown_optimizer_are_not_taken(weft):
    sgd = {"type": "sgd", "lr": 0.01, "momentum": 0.9}
    saved_run(weft, train__optimizer=sgd)
    rewrite(weft.path("run/checkpoints/step-8/manifest.json"), '"type": "sgd"', '"type": "lion"')
    err = resume(weft, weft.write("more.json", saving(train__steps=9, train__optimizer=sgd)), "more")
    assert "all moments start at 0: those of the checkpoint are lion's" in err, err


@case
def a_model_with_everything_frozen_is_refused_alike(weft):
    """The error comes before planning or measuring."""
    layers = [{**layer, "frozen": True} for layer in saving()["model"]["layers"]]
    config = weft.write("frozen.json", saving(model__layers=layers))
    for verb in ("check", "plan", "estimate", "profile", "sweep", "train"):
        code, out, err = weft.run(verb, config)
        assert code == 65 and "nothing to train" in out + err, (verb, code, out, err)


main(sys.argv[1])
