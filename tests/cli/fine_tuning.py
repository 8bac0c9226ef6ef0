#!/usr/bin/env python3
"""Fine-tuning: frozen layers in every precision, and runs that begin with another one's parameters."""
import json
import os
import shutil
import struct
import sys

from saved import (copy_step, manifest, metrics, parameters, rewrite, same_files, saved_run, saving,
                   steps, tensors)
from tap import case, main

FLOPS = {"f32": "50G", "bf16": "50G", "f16": "50G"}


@case
def frozen_parameters_of_16_bits_are_kept_as_rounded(weft):
    """They have no master: the files have their values, and any precision goes on from those."""
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


def write_tensors(weft, name, entries):
    """A safetensors file of (name, dtype, shape, bytes)."""
    header, at = {}, 0
    for tensor, dtype, shape, data in entries:
        header[tensor] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    return weft.write(name, struct.pack("<Q", len(text)) + text + b"".join(e[3] for e in entries))


def entries_of(weft, path):
    with open(weft.path(path), "rb") as file:
        data = file.read()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    values = tensors(weft, path)
    return [(name, entry["dtype"], entry["shape"], values[name]) for name, entry in header.items()]


@case
def from_takes_parameters_and_nothing_else(weft):
    """With initial values for parameters it is the run that began with them by itself."""
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
    said.pop("crc32c"), before.pop("crc32c")
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
    # Everything that differs is named.
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
    # Damage shows when it is read, and by whichever rank reads it.
    path = weft.path("run/checkpoints/step-8/model.safetensors")
    with open(path, "r+b") as file:
        file.seek(-5, os.SEEK_END)
        byte = file.read(1)[0]
        file.seek(-5, os.SEEK_END)
        file.write(bytes([byte ^ 1]))
    weft.expect(65, "train", config, "--run", "no", "--from", "run", says="is damaged in chunk")


@case
def a_command_that_is_queued_again_begins_once(weft):
    """--resume=if-any goes on where it can; then the origin may be gone."""
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


main(sys.argv[1])
