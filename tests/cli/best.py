#!/usr/bin/env python3
"""`weft best` plans every combination by hand, and the joint plan, under one limit."""
import json
import sys

from configs import tiny
from tap import case, main

POLICIES = ["dp", "zero1", "sdp", "fsdp"]
WORK = ("--work-limit", "200M", "--jobs", "2")
LINK = {"alpha": "10us", "bandwidth": "1GB/s"}


def chosen(weft, config, *flags, code=0):
    path = weft.write("run.json", config)
    return json.loads(weft.expect(code, "best", path, "--json", *WORK, *flags))


@case
def lists_every_combination(weft):
    """The joint plan is at least as fast, and each row is the plan of its own settings."""
    answer = chosen(weft, tiny(plan__gap=0))
    rows = {(row["policy"], row["recompute"]): row for row in answer["combinations"]}
    assert list(rows) == [(p, r) for p in POLICIES for r in ("none", "selective", "whole")]
    assert all(row["offload"] == "none" and row["fits"] for row in rows.values())
    assert answer["samples"] == 4 and answer["best"]["step_ns"] <= answer["joint"]["step_ns"]
    assert answer["joint"]["step_ns"] <= min(row["step_ns"] for row in rows.values())
    assert answer["best"] == min([*rows.values(), answer["joint"]],
                                 key=lambda row: (row["step_ns"], row["total_bytes"])), answer
    for row in rows.values():
        assert row["micro_batch"] * row["micro_steps"] == 2, row
        assert row["bound_ns"] <= row["step_ns"] and row["gap"] >= 0
        tokens = 4 * 16 * 1e9 / row["step_ns"]
        assert abs(row["tokens_per_s"] - tokens) < 1e-6 * tokens
    report = json.loads(weft.expect(
        0, "plan", "run.json", "--json", "--work-limit", "21M", "--set", "plan.policies=sdp", "--set",
        "plan.recompute=whole", "--set", "train.batch=4", "--set", "train.micro_batch=auto"))
    row = rows["sdp", "whole"]
    assert (report["step_ns"], report["micro_batch"]) == (row["step_ns"], row["micro_batch"])


@case
def a_limit_leaves_some_without_a_plan(weft):
    free = chosen(weft, tiny())
    most = max(row["total_bytes"] for row in free["combinations"])
    tight = chosen(weft, tiny(), "--memory-limit", f"{int(most * 0.72)}B")
    assert not all(row["fits"] for row in tight["combinations"])
    assert all(row["total_bytes"] <= most * 0.72 for row in tight["combinations"] if row["fits"])
    assert all("least limit" in row["reason"] or "at least" in row["reason"]
               for row in tight["combinations"] if not row["fits"]), tight
    table = weft.expect(0, "best", "run.json", "--memory-limit", f"{int(most * 0.72)}B", *WORK)
    assert "joint" in table and "tokens/s" in table and "by hand" in table, table
    weft.expect(78, "best", "run.json", "--memory-limit", "1KiB", *WORK, says="no combination has a plan")


@case
def keeps_a_split_that_a_flag_names(weft):
    answer = chosen(weft, tiny(), "--set", "train.micro_batch=2")
    assert {row["micro_batch"] for row in answer["combinations"]} == {2}
    answer = chosen(weft, tiny(train__batch=8, train__micro_batch="auto"), "--set", "plan.policies=fsdp")
    assert answer["samples"] == 8 and {row["policy"] for row in answer["combinations"]} == {"fsdp"}


@case
def offloads_if_there_is_a_host(weft):
    host = {"memory_limit": "1GiB", "update": "1GB/s", "down": LINK, "up": LINK}
    answer = chosen(weft, tiny(cluster__host=host, plan__policies="fsdp"))
    rows = {(row["recompute"], row["offload"]): row for row in answer["combinations"]}
    assert {offload for _, offload in rows} == {"none", "state", "activations", "both"}
    assert answer["joint"]["offload"] == "auto"
    assert rows["none", "state"]["total_bytes"] < rows["none", "none"]["total_bytes"]
    assert rows["none", "none"]["step_ns"] <= rows["none", "both"]["step_ns"]


@case
def refuses_bad_flags(weft):
    path = weft.write("run.json", tiny())
    weft.expect(64, "best", path, "--jobs", "0", says="--jobs 0: a number from 1 to")
    weft.expect(66, "best", "absent.json", says="absent.json")


main(sys.argv[1])
