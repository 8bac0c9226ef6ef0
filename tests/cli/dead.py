#!/usr/bin/env python3
"""A model that diverges in its last update is reported and never saved."""
import os
import shutil
import sys

from configs import tiny
from saved import parameters, same_files, steps
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


main(sys.argv[1])
