#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Extreme models and clusters: every verb of planning gives a right answer."""
import json
import sys

from configs import tiny
from tap import Skip, case, drawn_case, main

GIB = 1 << 30


def layers(n=1, parameters=1000000, flops="1G", name="l"):
    return [{"name": name + ".{i}" if n > 1 else name, "type": "custom", "hidden": 1, "repeat": n,
             "parameters": parameters, "forward_flops": flops, "backward_flops": flops,
             "output": "1KiB", "saved": "4KiB"}]


def answers(weft, planner="ilp", timeout=120, **changes):
    """Runs every verb of planning; returns the JSON of plan and estimate."""
    config = weft.write("run.json", tiny(train__data=None, **changes))
    plan = weft.path("plan.json")
    weft.expect(0, "check", config)
    rows = json.loads(weft.expect(0, "estimate", config, "--json", timeout=timeout))["rows"]
    assert all(row["step_ns"] >= row["exposed_ns"] >= 0 for row in rows), rows
    said = json.loads(weft.expect(0, "plan", config, "--planner", planner, "-o", plan, "--json",
                                  timeout=timeout))
    assert 0 <= said["bound_ns"] <= said["step_ns"], said
    assert said["total_bytes"] <= said["memory_limit_bytes"], said
    assert said["compute_ns"] + said["exposed_ns"] <= said["step_ns"]
    weft.expect(0, "verify", plan, "--config", config, timeout=timeout)
    weft.expect(0, "explain", plan, timeout=timeout)
    replayed = json.loads(weft.expect(0, "simulate", plan, "--json", timeout=timeout))
    assert replayed["step_ns"] == said["step_ns"]
    return said, rows


def sweeps(weft, *flags):
    said = json.loads(weft.expect(0, "sweep", weft.path("run.json"), "--points", "2", "--planners",
                                  "ilp,all-fsdp", "--json", "-q", *flags))
    points = said["curves"][0]["points"]
    assert all(point["fits"] for point in points[1:]), points


@drawn_case
def one_layer(weft):
    said, _ = answers(weft, model__layers=layers())
    assert len(said["policies"]) == 1
    assert said["step_ns"] == said["bound_ns"], "with one layer there is nothing to gain"
    sweeps(weft)


@case
def no_parameters_at_all(weft):
    said, rows = answers(weft, model__layers=layers(3, 0))
    assert said["policies"] == {}
    assert said["step_ns"] == said["bound_ns"]
    assert len({row["step_ns"] for row in rows}) == 1, "there is nothing to shard"
    sweeps(weft)


@drawn_case
def layers_without_parameters_between_others(weft):
    said, _ = answers(weft, model__layers=layers(2, 0, name="a") + layers(3) +
                      layers(2, 0, name="z"))
    assert len(said["policies"]) == 3
    sweeps(weft)


@drawn_case
def one_huge_layer_among_small_ones(weft):
    """10^10 parameters, 40 GB that must be gathered at once."""
    model = layers(3, 1000, name="a") + layers(1, 10 ** 10, name="huge") + layers(3, 1000, name="z")
    said, _ = answers(weft, model__layers=model, cluster__memory_limit="1TiB",
                      plan__block_size="64MiB")
    assert said["total_bytes"] > 4 * 10 ** 10
    weft.expect(78, "plan", weft.path("run.json"), "--memory-limit", "40GB",
                says=["the least limit that fits", "largest layer cut into smaller ones"])


@drawn_case
def a_thousand_layers(weft):
    if weft.is_sanitized():
        raise Skip("a case with neighbours fused runs the same code in less time")
    said, _ = answers(weft, planner="all-fsdp", timeout=600, model__layers=layers(1000, 10000),
                      cluster__memory_limit="10GiB")
    assert len(said["policies"]) == 1000


@drawn_case
def a_thousand_layers_planned_jointly(weft):
    """A limit of work ends the search with a plan that fits and a bound."""
    if weft.is_sanitized():
        raise Skip("planning takes minutes under a sanitizer")
    for limit in ("10GiB", "126MB"):
        config = weft.write("run.json", tiny(train__data=None, model__layers=layers(1000, 10000),
                                             cluster__memory_limit=limit,
                                             plan__work_limit="2G"))
        said = json.loads(weft.expect(0, "plan", config, "--json", timeout=600))
        assert 0 < said["bound_ns"] <= said["step_ns"], said
        assert said["total_bytes"] <= said["memory_limit_bytes"], said


@drawn_case
def a_thousand_layers_with_neighbours_fused(weft):
    said, _ = answers(weft, timeout=200, model__layers=layers(1000, 10000),
                      cluster__memory_limit="10GiB", plan__fuse=True, plan__block_size="1MiB")
    assert 30 <= len(said["policies"]) <= 40, len(said["policies"])


@drawn_case
def a_link_of_next_to_nothing(weft):
    """At one byte per second communication dominates, so the plan moves as little as possible."""
    said, _ = answers(weft, model__layers=layers(4, 100), plan__block_size="1GiB",
                      cluster__link={"intra": {"alpha": "20us", "bandwidth": "1B/s"}})
    assert said["step_ns"] > 100 * 10 ** 9
    assert said["exposed_ns"] > 0.99 * (said["step_ns"] - said["compute_ns"])
    sweeps(weft)


@case
def times_beyond_counting_are_refused(weft):
    config = weft.write("run.json", tiny(train__data=None, model__layers=layers(8),
                                         cluster__link={"intra": {"alpha": "20us",
                                                                  "bandwidth": "1B/s"}}))
    for verb in ("plan", "estimate", "sweep"):
        weft.expect(65, verb, config, says="add up to more than 2^53 ns")


@drawn_case
def no_compute(weft):
    said, _ = answers(weft, model__layers=layers(8, flops="0"))
    assert said["step_ns"] > 0
    sweeps(weft)


@drawn_case
def no_communication(weft):
    """With unlimited bandwidth nothing needs hiding, so every step takes its compute time."""
    said, _ = answers(weft, model__layers=layers(8), cluster__link={
        "intra": {"alpha": "0ns", "bandwidth": "1000000TB/s"}})
    assert said["exposed_ns"] < said["step_ns"] / 1000
    sweeps(weft)


def least_limit(weft, config, *flags):
    message = weft.run("plan", config, "--memory-limit", "1KiB", *flags)[2]
    return int(message.split("the least limit that fits is ")[1].split("(")[1].split()[0])


@case
def a_base_of_any_size(weft):
    """Rows round the base up to the arena's alignment, and so does the named least limit."""
    for base in ("1B", "1001B"):
        config = weft.write("run.json", tiny(train__data=None, model__layers=layers(4),
                                             cluster__base=base))
        least = least_limit(weft, config)
        weft.expect(0, "plan", config, "--memory-limit", f"{least}B")
        weft.expect(78, "plan", config, "--memory-limit", f"{least - 1}B")


@drawn_case
def one_unit_and_both_cadences(weft):
    """With a reduction per micro-step, a slice is live together with the next full gradient. One reduction per step
    needs less memory here. A refusal names the smaller limit, and a sweep starts there.
    """
    config = weft.write("run.json", tiny(plan__recompute="none", train__data=None, train__grad_accum=3,
                                         train__seq_len=1, train__micro_batch=1, cluster__ranks=64,
                                         plan__fuse=True, plan__block_size="1MiB"))
    least = {cadence: least_limit(weft, config, "--set", f"train.reduce={cadence}")
             for cadence in ("auto", "step", "micro_step")}
    assert least["auto"] == least["step"] < least["micro_step"], least
    weft.expect(0, "plan", config, "--memory-limit", f"{least['auto']}B")
    weft.expect(78, "plan", config, "--memory-limit", f"{least['auto'] - 1}B")
    said = json.loads(weft.expect(0, "sweep", config, "--points", "2", "--planners", "ilp",
                                  "--json", "-q"))
    first, last = said["curves"][0]["points"]
    assert first["fits"] and first["memory_limit_bytes"] == least["auto"], first
    free = json.loads(weft.expect(0, "plan", config, "--json"))
    assert last["step_ns"] <= 1.002 * free["step_ns"], (last, free)


@case
def one_rank(weft):
    said, _ = answers(weft, model__layers=layers(8), cluster__ranks=1, cluster__link={})
    assert said["exposed_ns"] == 0 and said["step_ns"] == said["bound_ns"]
    sweeps(weft)


@drawn_case
def ten_thousand_ranks(weft):
    said, _ = answers(weft, model__layers=layers(8), cluster__ranks=10000,
                      cluster__ranks_per_node=8, cluster__memory_limit="8GiB",
                      cluster__link={"intra": {"alpha": "5us", "bandwidth": "100GB/s"},
                                     "inter": {"alpha": "50us", "bandwidth": "10GB/s"}})
    assert said["total_bytes"] < GIB
    sweeps(weft)


@drawn_case
def more_ranks_than_parameters(weft):
    said, _ = answers(weft, model__layers=layers(3, 7), cluster__ranks=4096)
    assert said["step_ns"] >= said["compute_ns"]


main(sys.argv[1])
