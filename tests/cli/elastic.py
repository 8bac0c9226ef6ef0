#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs that go on if ranks die, and plans for several numbers of ranks. TAP."""
import json
import os
import shutil
import sys

from configs import tiny
from saved import parameters, saved_run
from tap import Skip, case, main

CORES = len(os.sched_getaffinity(0))


def elastic_config(weft, **changes):
    checkpoint = {"every": 3, "keep": 5, "at_end": True}
    return weft.write("run.json", tiny(**{"train__steps": 8, "train__micro_batch": 1, "train__grad_accum": 2,
                                          "train__checkpoint": checkpoint, "train__reduce": "step", **changes}))


def lines_of(err, text):
    return [line for line in err.splitlines() if text in line]


@case
def a_run_goes_on_with_fewer_ranks(weft):
    """Rank 1 dies in step 5 of each start that has it: once with 2 ranks from step 3, and then 1 rank goes on."""
    if CORES < 2:
        raise Skip("one core")
    config = elastic_config(weft)
    weft.expect(0, "train", config, "--run", weft.fresh("whole"), "-q")
    for place in ("forward", "all_gather"):
        code, _, err = weft.run("train", config, "--run", weft.fresh("run"), "-q", "--elastic", "1:2",
                                "--set", "plan.planner=all-fsdp", env={"WEFT_FAILPOINT": f"{place}:rank=1:step=5"})
        assert code == 0, err
        again, fewer = lines_of(err, "Starting again with")
        assert "rank 1" in again and "signal 9" in again and again.endswith("Starting again with 2 ranks"), err
        assert fewer.endswith("Starting again with 1 rank"), err
        same, less = lines_of(err, "go on after step 3")
        assert "2 of 2 ranks" in same and "step 4 is lost and done again" in same, err
        assert "1 of 2 ranks" in less and "is predicted to take" in less, err
        assert parameters(weft, "run") == parameters(weft, "whole"), place


@case
def without_a_checkpoint_the_run_begins_again_with_its_batch(weft):
    if CORES < 2:
        raise Skip("one core")
    config = elastic_config(weft)
    weft.expect(0, "train", config, "--run", weft.fresh("whole"), "-q")
    _, _, err = weft.run("train", config, "--run", weft.fresh("run"), "-q", "--elastic", "1:2",
                         "--set", "train.grad_accum=2", env={"WEFT_FAILPOINT": "forward:rank=1:step=2"})
    assert "1 of 2 ranks go on after step 0: step 1 is lost" in err, err
    assert parameters(weft, "run") == parameters(weft, "whole")


@case
def a_run_ends_with_the_least_ranks(weft):
    config = elastic_config(weft, cluster__ranks=1)
    weft.expect(69, "train", config, "--run", weft.fresh("run"), "-q", "--elastic", "1:1",
                says="Starting again with 1 rank", env={"WEFT_FAILPOINT": "forward:rank=0:step=5"})
    # Another error is no rank that died.
    _, _, err = weft.run("train", config, "--run", weft.fresh("run"), "-q", "--elastic", "1:1",
                         env={"WEFT_FAILPOINT": "forward:rank=0:step=5:do=error"})
    assert "Starting again" not in err and "failed as WEFT_FAILPOINT asks" in err, err


@case
def other_numbers_are_refused(weft):
    config = elastic_config(weft)
    for flags, says in ((["--elastic", "4", "--run", "r"], "such as 2:4"),
                        (["--elastic", "3:2", "--run", "r"], "such as 2:4"),
                        (["--elastic", "0:2", "--run", "r"], "such as 2:4"),
                        (["--elastic", "1:1"], "give --run DIR"),
                        (["--elastic", "1:1", "--run", "r", "-n", "2"], "-n 2 is not between"),
                        (["--elastic", f"1:{CORES + 1}", "--run", "r"], f"at most --elastic 1:{CORES}")):
        weft.expect(64, "train", config, *flags, says=says)


@case
def plans_of_several_numbers_of_ranks(weft):
    """All have the batch of 4 ranks: 4 groups of 2 micro-batches. A resumed run takes the plan of its number."""
    config = saved_run(weft, cluster__ranks=4, train__micro_batch=1, train__grad_accum=2, train__group=2)
    shutil.copytree(weft.path("run"), weft.path("moved"))
    shutil.rmtree(weft.path("moved/checkpoints/step-8"))
    os.remove(weft.path("moved/result.json"))
    said = json.loads(weft.expect(0, "plan", "moved/config.json", "--ranks", "2..5", "-o", "moved", "--json"))
    rows = {row["ranks"]: row for row in said["plans"]}
    assert sorted(rows) == [2, 3, 4, 5] and "4 groups" in rows[5]["error"], rows
    assert {rows[n]["samples"] for n in (2, 3, 4)} == {8} and rows[3]["idle_ranks"] == 2, rows
    assert all(rows[n]["bound_ns"] <= rows[n]["step_ns"] for n in (2, 3, 4)), rows
    most = max(rows, key=lambda n: rows[n].get("tokens_per_s", 0))
    assert said["answer"].startswith(f"{most} ranks: the most tokens/s: "), said["answer"]
    assert sorted(os.listdir(weft.path("moved/plans"))) == ["2.json", "3.json", "4.json"]
    table = weft.expect(0, "plan", config, "--ranks", "3..4")
    assert "tokens/s" in table and "2 idle in the last round" in table, table
    _, _, err = weft.run("train", "--resume", "--run", "moved", "-n", "3")
    assert "planned again" not in err, err
    with open(weft.path("moved/plan.json"), "rb") as used, open(weft.path("moved/plans/3.json"), "rb") as made:
        assert used.read() == made.read()
    assert parameters(weft, "moved") == parameters(weft, "run")
    for ranks in ("3..2", "0..2", "2..", "..3"):
        weft.expect(64, "plan", config, "--ranks", ranks, says="4..8")
    weft.expect(64, "train", config, "-n", "1..2", says="a number from 1")
    weft.expect(64, "plan", config, "--ranks", "1..70", says="at most 64")


main(sys.argv[1])
