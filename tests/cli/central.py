#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rank 0 owns all state: the bits of dp, checkpoints for any policy, and what is refused."""
import json
import sys

from configs import tiny
from tap import case, main

SPEED = {"f32": "50G", "bf16": "50G"}
STEPS = {"train__steps": 20, "train__checkpoint": {"every": 10, "at_end": True}}


def of(ranks, compute="f32", **changes):
    precision = {"compute": compute, "reduce": compute}
    return tiny(cluster__ranks=ranks, cluster__threads=1, cluster__device__flops=SPEED, plan__work_limit="20M",
                plan__blocks=2, train__precision=precision, **{**STEPS, **changes})


def train(weft, run, ranks, compute, *flags, **changes):
    config = weft.write("run.json", of(ranks, compute, **changes))
    weft.expect(0, "train", config, "--quiet", "--run", run, *flags)
    return json.loads((weft.directory / run / "result.json").read_text())["fingerprint"]


def plan(weft, planner, **changes):
    config = weft.write("run.json", of(4, **changes))
    return json.loads(weft.expect(0, "plan", config, "--planner", planner, "-o", "none", "--json"))


@case
def a_parameter_server_ends_in_the_bits_of_dp(weft):
    for ranks, compute in ((1, "f32"), (2, "bf16"), (3, "f32"), (4, "bf16")):
        expected = train(weft, weft.fresh("dp"), ranks, compute, "--planner", "all-dp")
        assert train(weft, weft.fresh("run"), ranks, compute, "--planner", "all-central") == expected, (ranks, compute)


@case
def its_plan_needs_no_flag_again(weft):
    config = weft.write("run.json", of(3))
    weft.expect(0, "plan", config, "--planner", "all-central", "-o", "plan.json")
    weft.expect(0, "train", config, "--quiet", "--plan", "plan.json", "--run", "planned")
    found = json.loads((weft.directory / "planned/result.json").read_text())["fingerprint"]
    assert found == train(weft, "dp", 3, "f32", "--planner", "all-dp")


@case
def its_checkpoints_go_on_under_any_policy(weft):
    expected = train(weft, weft.fresh("whole"), 3, "bf16", "--planner", "all-fsdp")
    train(weft, weft.fresh("central"), 3, "bf16", "--planner", "all-central")
    for source, planner in (("central", "all-fsdp"), ("central", "all-dp"), ("whole", "all-central")):
        found = train(weft, weft.fresh("on"), 3, "bf16", "--planner", planner, f"--resume={source}/checkpoints/step-10")
        assert found == expected, (source, planner)
    config = weft.write("run.json", of(2, "bf16"))
    weft.expect(64, "train", config, "--quiet", "--run", weft.fresh("on"), "--planner", "all-central",
                "--resume=whole/checkpoints/step-10", says="start 3 ranks (-n 3)")


@case
def it_costs_what_docs_hosts_says(weft):
    """Memory of the owner: that of dp. Time of the network: that of dp times the number of ranks."""
    link = {"intra": {"alpha": "0s", "bandwidth": "1MB/s"}}
    plans = {planner: plan(weft, planner, cluster__link=link, train__clip_norm=0) for planner in ("all-dp", "all-central")}
    assert plans["all-central"]["peak_bytes"] == plans["all-dp"]["peak_bytes"]
    record_ns = 2 * 8192 * 3 // 4 * 1000  # the sum of the step's record, under any policy
    times = {planner: found["communication_ns"] - record_ns for planner, found in plans.items()}
    assert abs(times["all-central"] / times["all-dp"] / 4 - 1) < 1e-6, times


@case
def what_it_cannot_do_is_refused(weft):
    for changes, code, words in (({"train__delay": 1}, 65, "central has no delayed updates"),
                                 ({"train__across": {"every": 2}, "cluster__ranks": 4, "cluster__ranks_per_node": 2},
                                  65, "central has no owner in each node"),
                                 ({"train__grad_accum": 2, "train__reduce": "micro_step"}, 65, "set train.reduce")):
        config = weft.write("run.json", of(changes.pop("cluster__ranks", 2), plan__policies="central", **changes))
        weft.expect(code, "plan", config, says=words)
    config = weft.write("run.json", of(2, plan__policies="centre"))
    weft.expect(65, "plan", config, says="write some of dp, zero1, sdp, fsdp, hsdp, central, nodes")
    host = {"memory_limit": "1GiB", "down": {"bandwidth": "1GB/s"}, "up": {"bandwidth": "1GB/s"}, "update": "1GB/s"}
    config = weft.write("run.json", of(2, cluster__host=host, plan__offload={"state": ["host"]}))
    weft.expect(65, "plan", config, "--planner", "all-central", says="planner all-central: its rule gives unit")
    config = weft.write("run.json", of(2, cluster__memory_limit="650KiB"))
    weft.expect(78, "plan", config, "--planner", "all-central", says="planner all-central: its plan holds")


@case
def no_plan_has_it_unless_it_is_better_than_zero1(weft):
    for changes in ({}, {"plan__policies": "zero1,central"}):
        assert "central" not in plan(weft, "ilp", **changes)["policies"].values(), changes
    assert set(plan(weft, "ilp", plan__policies="central")["policies"].values()) == {"central"}


main(sys.argv[1])
