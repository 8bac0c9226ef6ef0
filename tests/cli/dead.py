#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A model that diverges in its last update is reported and never saved."""
import json
import os
import shutil
import struct
import sys

from configs import tiny
from saved import entries_of, metrics, parameters, same_files, steps, write_tensors
from tap import case, main

FLOPS = {"f32": "50G", "bf16": "50G", "f16": "50G"}
DEADLY = {"train.optimizer.lr": 1e6}


def half(**changes):
    return tiny(**{"train__precision": {"compute": "f16"}, "cluster__device__flops": FLOPS,
                   "train__checkpoint": {}, **changes})


def settings(**values):
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


@case
def a_dead_model_is_not_saved(weft):
    """The save is at the end, in the background, or missing. Earlier checkpoints stay."""
    config = weft.write("run.json", half(train__steps=4, train__checkpoint={"every": 1}))
    weft.expect(0, "train", config, "--run", "whole", "-q", *settings(**{"train.steps": 6}))
    weft.expect(0, "train", config, "--run", "run", "-q")
    assert steps(weft, "run") == ["step-3", "step-4"], steps(weft, "run")
    shutil.copytree(weft.path("run/checkpoints/step-4"), weft.path("kept"))
    for more in ({"train.steps": 5, "train.checkpoint.every": 0},
                 {"train.steps": 5}, {"train.steps": 9},
                 {"train.steps": 5, "train.checkpoint.every": 0, "train.checkpoint.at_end": "false"}):
        code, _, err = weft.run("train", config, "--run", "run", "-q", "--resume",
                                *settings(**DEADLY, **more))
        assert code == 79 and "Lower train.optimizer.lr (1e+06)" in err, (code, err)
        assert err.count("weft: step ") == 1 and "go on with --resume" in err, err
        assert "the latest checkpoint is step-4" in err or "after step-4 was saved" in err, err
        assert steps(weft, "run") == ["step-3", "step-4"], (more, steps(weft, "run"))
        same_files(weft, "run/checkpoints/step-4", "kept")
    # The advice works, and nothing was lost.
    weft.expect(0, "train", config, "--run", "run", "-q", "--resume", *settings(**{"train.steps": 6}))
    assert parameters(weft, "run") == parameters(weft, "whole")


@case
def a_run_that_saves_nothing_claims_no_success(weft):
    for compute in ("f16", "bf16"):
        config = weft.write("run.json", half(
            train__steps=1, train__checkpoint={"at_end": False},
            train__precision={"compute": compute}, train__optimizer={"type": "adamw", "lr": 1e6}))
        wanted = 79 if compute == "f16" else 0  # the same update is finite in bf16
        weft.expect(wanted, "train", config, "--run", compute, "-q")
        assert os.path.exists(weft.path(f"{compute}/result.json")) == (wanted == 0)
        assert not os.path.exists(weft.path(f"{compute}/checkpoints"))


@case
def a_model_with_an_infinite_held_out_loss_is_not_saved(weft):
    """One update makes logits infinite and leaves parameters finite. The step's loss comes before the update."""
    held = {"share": 0.1, "every": 3, "samples": 5}
    config = weft.write("run.json", tiny(
        train__steps=5, train__checkpoint={"at_end": True}, train__validation=held, train__clip_norm=0,
        train__optimizer={"type": "sgd", "lr": 0}, plan__planner="greedy"))
    weft.expect(0, "train", config, "--run", "small", "-q")
    large = [(name, dtype, shape, struct.pack("<f", 1e8) * (len(data) // 4))
             if name == "ln_f.weight" else (name, dtype, shape, data)
             for name, dtype, shape, data in entries_of(weft, "small/checkpoints/step-5/model.safetensors")]
    begun = write_tensors(weft, "large.safetensors", large)
    for ranks, every in ((1, 1), (2, 2), (3, 0)):
        run = ["train", config, "--run", f"run-{ranks}", "-q", "-n", str(ranks), "--set",
               f"train.checkpoint={json.dumps({'every': every, 'keep': 9})}"]
        weft.expect(0, *run, "--from", begun)
        before = steps(weft, f"run-{ranks}")
        for more in ({"train.steps": 6}, {"train.steps": 6, "train.checkpoint.at_end": "false"},
                     {"train.steps": 9}):
            weft.expect(79, *run, "--resume", *settings(**DEADLY, **more),
                        says=["step 6: the model is dead: the loss of the held-out data is nan. Its last",
                              "Lower train.optimizer.lr (1e+06)", "go on with --resume"])
            assert steps(weft, f"run-{ranks}") == before, (more, steps(weft, f"run-{ranks}"))
            last = metrics(weft, f"run-{ranks}")[-1]
            assert last["kind"] == "validation" and last["validation_loss"] is None, last
        _, out, err = weft.run(*(word for word in run if word != "-q"), "--resume",
                               *settings(**DEADLY, **{"train.steps": 6}))
        assert "loss nan, nan bits a byte" in out and "-nan" not in out + err, (out, err)
        weft.expect(0, *run, "--resume", *settings(**{"train.steps": 6}))


main(sys.argv[1])
