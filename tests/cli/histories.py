#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random histories of a run: killed ranks, and resumes with other numbers of ranks, planners and offloading, end in the
bits of the undisturbed run. WEFT_HISTORIES and WEFT_HISTORIES_SEED give their number and the first seed. TAP."""
import os
import random
import re
import shutil
import sys

from configs import tiny
from saved import parameters, steps
from tap import case, main

STEPS, EVERY, MOST_STARTS = 12, 3, 12
PLANNERS = ("all-fsdp", "all-sdp", "ilp", "random")
PLACES = ("update", "load", "forward", "backward", "norm", "all_gather", "reduce_scatter", "agree")


def random_config(draw):
    groups, group = draw.choice((4, 6, 8)), draw.choice((1, 2))
    optimizer = draw.choice(({"type": "adamw", "lr": 1e-3}, {"type": "lamb", "lr": 1e-2},
                             {"type": "sgd", "lr": 0.01, "momentum": 0.9}))
    config = tiny(train__steps=STEPS, train__batch=groups * group, train__micro_batch=1, train__group=group,
                  train__optimizer=optimizer, train__clip_norm=draw.choice((0, 0.5)),
                  train__precision={"compute": draw.choice(("f32", "bf16"))},
                  train__checkpoint={"every": EVERY, "keep": STEPS, "at_end": True},
                  cluster__device__flops={"f32": "50G", "bf16": "50G"}, cluster__threads=1,
                  model__layers__1__repeat=2, plan__work_limit="20M")
    return groups, config


def start(weft, draw, first, ranks, run):
    """Runs until the end or a kill. The first start names the config, and others go on with the run's own."""
    flags = ["--set", f"plan.planner={draw.choice(PLANNERS)}", "--set", f"plan.seed={draw.randrange(1000)}",
             "-n", str(ranks), "-q"]
    env = {}
    if draw.random() < 0.7:
        step = draw.randint(1, STEPS)
        env["WEFT_FAILPOINT"] = f"{draw.choice(PLACES)}:rank={draw.randrange(ranks)}:step={step}"
    words = [first, "--resume=if-any"] if first else ["--resume"]
    code, _, err = weft.run("train", *words, "--run", run, *flags, env=env)
    assert code in (0, 69), (code, env, flags, err)
    assert "sums round otherwise" not in err, err
    return code == 0


def live(weft, seed):
    draw = random.Random(seed)
    groups, content = random_config(draw)
    content["cluster"]["ranks"] = draw.randint(1, groups)
    config = weft.write("run.json", content)
    weft.expect(0, "train", config, "--run", weft.fresh("whole"), "-q")
    run, history = weft.fresh("run"), []
    for number in range(MOST_STARTS + 1):
        ranks = draw.randint(1, groups)
        # A kill may leave a checkpoint that is not committed, under another name.
        saved = [name for name in (steps(weft, run) if os.path.isdir(weft.path(f"{run}/checkpoints")) else [])
                 if re.fullmatch(r"step-\d+", name)]
        history.append((ranks, saved[-1] if saved else None))
        if number == MOST_STARTS:
            draw.random = lambda: 1  # no more kills
        if start(weft, draw, None if saved else config, ranks, run):
            break
    assert parameters(weft, run) == parameters(weft, "whole"), (seed, history)
    shutil.rmtree(weft.path(run))
    return len(history)


@case
def random_histories_end_in_the_bits_of_the_undisturbed_run(weft):
    first, n = int(os.environ.get("WEFT_HISTORIES_SEED", "1")), int(os.environ.get("WEFT_HISTORIES", "10"))
    starts = sum(live(weft, seed) for seed in range(first, first + n))
    print(f"# {n} histories of {starts} starts", flush=True)
    assert starts > n, "no rank was killed"


main(sys.argv[1])
