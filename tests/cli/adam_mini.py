#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adam-mini has one second moment a tensor: its formula, its memory, its checkpoints, and what is refused."""
import json
import math
import shutil
import struct
import sys

from configs import tiny
from saved import copy_step, entries_of, manifest, parameters, same_files, saving, tensors
from tap import case, main, some

FLOPS = {"f32": "50G", "bf16": "50G", "f16": "50G"}
LINK = {"alpha": "10us", "bandwidth": "1GB/s"}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "1GB/s"}
BETAS = (0.5, 0.9)


def mini(**changes):
    optimizer = {"type": "adam_mini", "lr": 0.01, "betas": list(BETAS), "weight_decay": 0.1}
    return saving(**{"train__optimizer": optimizer, "train__steps": 4, "train__checkpoint": {"every": 1, "keep": 9},
                     "train__lr_schedule": {"type": "constant"}, "cluster__device__flops": FLOPS,
                     "plan__work_limit": "20M", **changes})


def floats(data):
    return struct.unpack(f"<{len(data) // 4}f", data)


def state_of(weft, run, step):
    """Returns {name: floats} of parameters and of the optimizer's state."""
    files = [tensors(weft, f"{run}/checkpoints/step-{step}/{name}.safetensors") for name in ("model", "optimizer")]
    return [{name: floats(data) for name, data in file.items()} for file in files]


def check_step(step, before, after, decays):
    """The gradient follows from the first moments of two steps. Then the second moment and the parameters must be
    those of the formula.
    """
    lr, eps, decay = 0.01, 1e-8, 0.1
    (old, old_state), (new, new_state) = before, after
    for name, values in new.items():
        m0, m1 = old_state[f"{name}.moment1"], new_state[f"{name}.moment1"]
        gradient = [(b - BETAS[0] * a) / (1 - BETAS[0]) for a, b in zip(m0, m1)]
        mean = math.fsum(g * g for g in gradient) / len(gradient)
        (v0,), (v1,) = old_state[f"{name}.mean2"], new_state[f"{name}.mean2"]
        wanted = BETAS[1] * v0 + (1 - BETAS[1]) * mean
        assert abs(v1 - wanted) <= 1e-5 * wanted, (step, name, v1, wanted)
        divisor = math.sqrt(v1 / (1 - BETAS[1] ** step)) + eps
        for p0, p1, m in zip(old[name], values, m1):
            expected = p0 - lr * (m / (1 - BETAS[0] ** step) / divisor + (decay * p0 if name in decays else 0))
            assert abs(p1 - expected) < 1e-6 * max(1, abs(p0)), (step, name, p1, expected)


@case
def every_step_is_the_formula(weft):
    config = weft.write("run.json", mini(cluster__ranks=3, train__clip_norm=0.5))
    weft.expect(0, "train", config, "--run", "run", "-q")
    states = [state_of(weft, "run", step) for step in range(1, 5)]
    shapes = {name: shape for name, _, shape, _ in entries_of(weft, "run/checkpoints/step-4/model.safetensors")}
    decays = {name for name, shape in shapes.items() if len(shape) == 2}
    assert decays and len(decays) < len(shapes)
    for step in range(2, 5):
        check_step(step, states[step - 2], states[step - 1], decays)
    saved = entries_of(weft, "run/checkpoints/step-4/optimizer.safetensors")
    assert {name for name, _, shape, _ in saved if shape == [1]} >= {f"{name}.mean2" for name in shapes}
    assert not [name for name, *_ in saved if name.endswith(".moment2")]
    # The same model has the loss of AdamW, about: it learns.
    last = [line["loss"] for line in steps_of(weft, "run")]
    assert last[-1] < last[0], last


def steps_of(weft, run):
    with open(weft.path(f"{run}/metrics.jsonl"), encoding="utf-8") as file:
        return [line for line in map(json.loads, file) if line["kind"] == "step"]


@case
def bits_do_not_depend_on_where_state_is(weft):
    """State on the host, updates there, state on the disk, and policies."""
    half = {"train__precision": {"compute": "bf16"}, "cluster__ranks": 2, "train__checkpoint": {"every": 4}}
    disk = {"path": weft.path("scratch"), "limit": "1GiB", "read": LINK, "write": LINK}
    homes = [{"cluster__host": HOST, "plan__offload": {"state": ["host"], "update": ["device"]}},
             {"cluster__host": HOST, "plan__offload": {"state": ["host"], "update": ["host"]}},
             {"cluster__disk": disk, "plan__offload": {"state": ["disk"]}},
             {"plan__planner": "all-dp"}, {"plan__planner": "all-zero1"}, {"train__clip_norm": 1}]
    (weft.directory / "scratch").mkdir()
    weft.expect(0, "train", weft.write("run.json", mini(**half, plan__planner="all-fsdp")), "--run", "run", "-q")
    for number, home in enumerate(some(homes, 3)):
        config = weft.write("run.json", mini(**half, **home))
        weft.expect(0, "train", config, "--run", f"run{number}", "-q", "--poison")
        assert parameters(weft, f"run{number}") == parameters(weft, "run"), home
        same_files(weft, f"run{number}/checkpoints/step-4", "run/checkpoints/step-4")


@case
def goes_on_with_its_bits_on_other_ranks(weft):
    """Also after a save in the background, whose moments the next step changes."""
    for changes in ({}, {"train__precision": {"compute": "f16"}, "train__loss_scale": {"initial": 2 ** 24}}):
        checkpoint = {"every": 2, "keep": 9, "asynchronous": True}
        config = weft.write("run.json", mini(train__steps=8, train__micro_batch=1, train__batch=4, train__group=1,
                                             cluster__ranks=4, train__checkpoint=checkpoint, **changes))
        weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q")
        for ranks in ("4", "2", "1"):
            copy_step(weft, "run", weft.fresh("again"), 4)
            weft.expect(0, "train", config, "--run", "again", "-q", "--resume", "-n", ranks, "--poison")
            assert parameters(weft, "again") == parameters(weft, "run"), (changes, ranks)
            same_files(weft, "again/checkpoints/step-8", "run/checkpoints/step-8")
        shutil.rmtree(weft.path("run"))


@case
def its_moments_are_not_adamws(weft):
    adamw = weft.write("adamw.json", saving(train__steps=4, train__checkpoint={"every": 4}))
    weft.expect(0, "train", adamw, "--run", "run", "-q")
    config = weft.write("run.json", mini(train__steps=6))
    _, _, err = weft.run("train", config, "--run", "on", "-q", "--resume=run/checkpoints/step-4")
    assert "all moments start at 0: those of the checkpoint are adamw's" in err, err
    assert manifest(weft, "on/checkpoints/step-6")["moments_began"] == 4


@case
def a_plan_has_one_state_less(weft):
    """To the byte: each rank has a moment less, and for each tensor two records with squares and a divisor."""
    said = []
    for kind in ("adamw", "adam_mini"):
        config = weft.write("run.json", tiny(train__optimizer={"type": kind}, cluster__ranks=4))
        said.append(json.loads(weft.expect(0, "plan", config, "--planner", "all-fsdp", "-o", "none", "--json")))
    adamw, mini_s = (plan["peak_memory_bytes"] for plan in said)
    n_tensors = 2 + 3 * 12 + 2 + 1
    record = -(-(8192 + 164 * n_tensors) // 256) * 256
    assert 2 * mini_s["optimizer_state"] == adamw["optimizer_state"] > 0, said
    assert (adamw["communication"], mini_s["communication"]) == (2 * 8192, 2 * record), said
    rest = [{name: bytes_ for name, bytes_ in memory.items() if name not in ("optimizer_state", "communication")}
            for memory in (adamw, mini_s)]
    assert rest[0] == rest[1], rest


@case
def what_excludes_it_is_refused(weft):
    config = weft.write("run.json", mini())
    weft.expect(65, "check", config, "--set", "train.delay=1",
                says=["$.train.delay", "take adamw or sgd"])
    weft.expect(65, "check", config, "--set", "plan.for=fsdp2", says=["$.plan.for", "train.optimizer.type to \"adamw\""])
    weft.expect(65, "check", config, "--set", "train.optimizer.type=adammini", says=["did you mean \"adam_mini\"?"])


main(sys.argv[1])
