#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The planner splits train.batch into micro-steps: train.micro_batch "auto"."""
import json
import os
import re
import shlex
import sys
from pathlib import Path

from configs import tiny
from tap import case, main

SPLITS = [1, 2, 4]  # of 8 samples on 2 ranks


def split(**changes):
    """Returns a config with an open split, and so many parameters that gathers matter."""
    changes = {"train__micro_batch": "auto", "train__batch": 8, "plan__gap": 0, **changes}
    if changes["train__batch"] is None:
        del changes["train__batch"]
    return tiny(**changes)


def planned(weft, config, *flags):
    """Returns the report of `weft plan` and the plan's file."""
    path = weft.write("run.json", config)
    out = weft.expect(0, "plan", path, "-o", "plan.json", "--json", *flags)
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        return json.loads(out), json.load(file)


@case
def takes_the_fastest_split(weft):
    """The open plan is as fast as the fastest of all splits by hand, and proves a bound for each."""
    steps = {}
    for size in SPLITS:
        report, plan = planned(weft, tiny(train__micro_batch=size, train__batch=8, plan__gap=0))
        steps[size] = report["step_ns"]
        assert report["micro_steps"] == 4 // size and "micro_batch" not in report
        assert "micro_batch" not in plan["problem"], "as without train.batch"
    report, plan = planned(weft, split())
    assert report["step_ns"] == min(steps.values()), (report["step_ns"], steps)
    assert report["micro_batch"] * report["micro_steps"] == 4
    assert plan["problem"]["micro_batch"] == report["micro_batch"]
    others = [other["problem"]["micro_batch"] for other in plan["other_periods"]]
    assert set(others + [report["micro_batch"]]) == set(SPLITS), others
    for size in set(others):  # two cadences have a bound each
        bounds = [other["bound_ns"] for other in plan["other_periods"]
                  if other["problem"]["micro_batch"] == size]
        assert min(bounds) <= steps[size], (size, bounds, steps)
    out = weft.expect(0, "verify", "plan.json", "--config", "run.json")
    assert f"and none of {len(others) + 1} of " in " ".join(out.split()), out


@case
def auto_micro_batch_takes_the_largest_that_fits(weft):
    flags, config = ("--planner", "auto-micro-batch"), split()
    rule = {size: planned(weft, tiny(train__micro_batch=size, train__batch=8), "--planner", "fsdp2")[0]
            for size in SPLITS}
    assert planned(weft, config, *flags)[0]["micro_batch"] == max(SPLITS)
    limit = rule[2]["total_bytes"] + (rule[4]["total_bytes"] - rule[2]["total_bytes"]) // 2
    report, plan = planned(weft, config, *flags, "--memory-limit", f"{limit}B")
    assert report["micro_batch"] == 2 and len(plan["other_periods"]) > 0, report


@case
def is_as_fast_as_a_rule_that_recomputes(weft):
    """Each split has little work, so the search ends far from the best plan."""
    config = str(Path(__file__).resolve().parents[2] / "configs/runs/gpt3-13b.json")
    settings = ("train.batch=64", "train.micro_batch=auto", "plan.recompute=auto",
                "cluster.link.inter.alpha=50us", "cluster.link.inter.bandwidth=12.5GB/s")
    flags = [part for setting in settings for part in ("--set", setting)] + ["--work-limit", "500M", "--json"]
    steps = {planner: json.loads(weft.expect(0, "plan", config, "--planner", planner, *flags))["step_ns"]
             for planner in ("ilp", "recompute-selective:kept")}
    assert steps["ilp"] <= steps["recompute-selective:kept"], steps


@case
def a_batch_with_its_micro_batch_is_as_micro_steps(weft):
    _, by_batch = planned(weft, tiny(train__micro_batch=2, train__batch=8))
    _, by_steps = planned(weft, tiny(train__micro_batch=2, train__grad_accum=2))
    assert by_batch == by_steps


@case
def a_limit_chooses_a_smaller_micro_batch(weft):
    """Memory decides: least rows grow with the micro-batch."""
    free, _ = planned(weft, split())
    _, _, err = weft.run("plan", weft.write("run.json", tiny(train__micro_batch=1, train__grad_accum=4)),
                         "--memory-limit", "1KiB")
    least = int(err[err.index("(", err.index("least")) + 1:].split(" bytes")[0])
    tight, _ = planned(weft, split(), "--memory-limit", f"{int(least * 1.02)}B")
    assert tight["micro_batch"] < free["micro_batch"], (tight["micro_batch"], free["micro_batch"])
    weft.expect(78, "plan", "run.json", "--memory-limit", "1KiB",
                says=["No split of train.batch fits", "micro-batches of 1 samples"])


@case
def precisions_forbid_splits(weft):
    """Gradients of several micro-steps are added up in f32."""
    report, plan = planned(weft, split(train__precision={"compute": "bf16", "reduce": "bf16"},
                                       cluster__device__flops={"bf16": "50G"}))
    assert report["micro_steps"] == 1, report
    assert all(other["problem"]["period"]["micro_steps"] == 1 for other in plan["other_periods"])


@case
def refuses_what_cannot_be_split(weft):
    for changes, says in (
            ({"train__batch": None}, ["train.micro_batch", "there is none"]),
            ({"train__batch": 9}, ["train.batch", "no multiple of 2 ranks", "try 8"]),
            ({"train__micro_batch": 3}, ["train.micro_batch", "does not divide the 4 samples"]),
            ({"train__micro_batch": 2, "train__grad_accum": 3}, ["train.grad_accum", "2 micro-steps"]),
            ({"train__grad_accum": 3}, ["train.grad_accum", "cannot divide the 4 samples"]),
            ({"train__micro_batch": "all"}, ["train.micro_batch", 'an integer or "auto"']),
            ({"train__validation": {"batches": 2}}, ["validation.batches", "samples"])):
        path = weft.write("run.json", split(**changes))
        weft.expect(65, "plan", path, says=says)
        _, _, err = weft.run("plan", path)
        assert err.count("weft: ") == 1, err


def trained(weft, config, *flags):
    out = weft.expect(0, "train", weft.write("run.json", config), "--json", "-q", *flags)
    return json.loads(out.splitlines()[-1])


def manifest(weft, step):
    with open(weft.path(f"run/checkpoints/step-{step}/manifest.json"), encoding="utf-8") as file:
        return json.load(file)


@case
def trains_as_the_same_split_by_hand(weft):
    """The chosen split has the bits of the same split by hand. A resumed run keeps it under another limit."""
    saving = {"every": 2, "at_end": True}
    _, plan = planned(weft, split())
    size = plan["problem"]["micro_batch"]
    by_hand = trained(weft, tiny(train__micro_batch=size, train__batch=8, plan__gap=0), "--run", "hand")
    config = split(train__checkpoint=saving, train__steps=4)
    chosen = trained(weft, config, "--run", "run", "--set", "train.steps=3")
    assert chosen["fingerprint"] == by_hand["fingerprint"], (chosen, by_hand)
    assert manifest(weft, 3)["micro_batch"] == size and manifest(weft, 3)["micro_steps"] == 4 // size
    weft.expect(0, "train", "--resume", "--run", "run", "--set", "train.steps=4", "--set",
                "plan.policies=fsdp", says=["goes on with the checkpoint's micro-batches"])
    with open(weft.path("run/plan.json"), encoding="utf-8") as file:
        again = json.load(file)
    assert again["problem"]["micro_batch"] == size
    assert {other["problem"]["micro_batch"] for other in again["other_periods"]} <= {size}
    weft.expect(0, "train", "--resume", "--run", "run", "--set", "train.steps=5", "--set",
                "train.micro_batch=auto")
    with open(weft.path("run/plan.json"), encoding="utf-8") as file:
        anew = json.load(file)
    assert {other["problem"]["micro_batch"] for other in anew["other_periods"]} != {size}


@case
def a_profile_has_every_micro_batch(weft):
    path = weft.write("run.json", split(cluster__device=None, cluster__link=None, train__batch=4))
    weft.expect(0, "profile", path, "-o", "profile.json", "-q")
    with open(weft.path("profile.json"), encoding="utf-8") as file:
        keys = [layer["key"] for layer in json.load(file)["layers"]]
    for size in (1, 2):
        assert sum(f"samples={size} " in key for key in keys) == 4, keys
    weft.expect(0, "plan", path, "--profile", "profile.json")
    weft.expect(65, "plan", path, "--profile", "profile.json", "--set", "train.batch=8",
                says=["samples=4", "run.json -o profile.json`"])


@case
def takes_the_fastest_size_of_blocks(weft):
    """The open size is as fast as the fastest by hand, and each size is a variant with a bound."""
    coarse = {"cluster__link__intra__bandwidth": "0.05GB/s", "plan__block_size": "16KiB", "plan__gap": 0}
    steps = {}
    for scale in ("usual", "half", "twice", "whole"):
        report, plan = planned(weft, tiny(plan__block_scale=scale, **coarse))
        steps[scale] = report["step_ns"]
        assert ("scale" in plan["problem"]["blocks"]) == (scale != "usual"), plan["problem"]["blocks"]
    assert len(set(steps.values())) > 1, steps
    report, plan = planned(weft, tiny(plan__block_scale="auto", **coarse))
    assert report["step_ns"] == min(steps.values()), (report["step_ns"], steps)
    scales = [problem["blocks"].get("scale", 0) for problem in
              [plan["problem"], *(other["problem"] for other in plan["other_periods"])]]
    assert sorted(scales) == [0, 1, 2, 3], scales
    weft.expect(0, "verify", "plan.json", "--config", "run.json")
    weft.expect(65, "verify", "plan.json", "--config", "run.json", "--set",
                "plan.block_scale=" + ("half" if scales[0] != 1 else "usual"))


@case
def recomputes_if_nothing_fits_without(weft):
    """A plan that fits stays as it was. Below the least limit layers recompute, which one line tells with its cost."""
    base = 64 << 20
    path = weft.write("run.json", tiny(train__micro_batch=8, cluster__base="64MiB"))
    plan = weft.path("plan.json")

    def planned(*flags):
        code, out, err = weft.run("plan", path, "--json", *flags)
        assert code == 0, err
        return json.loads(out), err

    free, err = planned()
    assert "recompute" not in err and planned("--set", "plan.recompute=none")[0] == free
    _, _, err = weft.run("plan", path, "--memory-limit", "1KiB", "--set", "plan.recompute=none")
    least = int(re.search(r"least limit[^(]*\((\d+) bytes\)", err).group(1))
    limit = ("--memory-limit", f"{base + int((least - base) * 0.97)}B")
    weft.expect(78, "plan", path, *limit, "--set", "plan.recompute=none", says="It would fit without pages with plan.recompute=")
    tight, err = planned(*limit, "-o", plan)
    assert re.search(r"nothing fits .* without recomputation: \d layers? recomputes?.*, which takes [\d.]+ .s of a step", err), err
    assert tight == planned(*limit, "--set", "plan.recompute=auto")[0] and tight["step_ns"] >= free["step_ns"]
    for verb in ("verify", "simulate"):
        weft.expect(0, verb, plan, "--config", path)
    weft.expect(65, "verify", plan, "--config", path, "--set", "plan.recompute=none")
    run = ("train", path, "--clock", "virtual", "-q", "--run")
    kept, again, planned_here = (weft.expect(0, *run, *words) for words in (
        ("kept",), ("again", "--plan", plan), ("here", *limit)))
    ends = [re.search(r"parameters\s+([0-9a-f]{32})", text).group(1) for text in (kept, again, planned_here)]
    assert len(set(ends)) == 1, ends
    weft.expect(78, "plan", path, "--memory-limit", "1KiB", "--for", "fsdp2", says="no plan fits")
    weft.expect(78, "plan", path, *limit, "--planner", "greedy")
    old = {"format": "weft-profile", "version": 1, "source": "measured", "machine": "old", "ranks": 2, "collectives": {},
           "layers": [{"name": f"h.{i}", "forward_ns": 10000, "backward_ns": 20000} for i in range(3)]}
    weft.expect(78, "plan", path, *limit, "--profile", weft.write("old.json", old),
                says="layers do not recompute, as the profile has no times of that: measure them with `weft profile")


@case
def recomputes_only_where_that_helps(weft):
    """With equal step times saved activations are kept, as far as they fit."""
    slow = {"cluster__link__intra__bandwidth": "0.01GB/s", "plan__recompute": "auto"}
    free, _ = planned(weft, tiny(**slow))
    assert set(free["saved"].values()) == {"device"}, free["saved"]
    tight, _ = planned(weft, tiny(**slow), "--memory-limit", f"{free['total_bytes'] - 4096}B")
    assert 0 < list(tight["saved"].values()).count("device") < 3, tight["saved"]
    assert tight["step_ns"] == free["step_ns"]


@case
def a_refusal_is_a_table_of_changes_that_fit(weft):
    """Each row is a command that plans, the cheapest first. A child's plan on standard output has no table."""
    path = weft.write("run.json", tiny(train__micro_batch=8))
    refused = ("plan", path, "--memory-limit", "1MiB", "--set", "plan.recompute=none")
    answer = json.loads(weft.expect(78, *refused, "--json"))
    assert answer["error"]["exit_code"] == 78 and answer["memory_limit_bytes"] == 1 << 20, answer
    changes = [row["change"] for row in answer["would_fit"]]
    assert any("--memory-limit" in change for change in changes), answer
    assert any("plan.recompute=auto" in change for change in changes) or len(changes) > 1, answer
    rates = [row["samples_per_s"] for row in answer["would_fit"] if "-n " not in row["change"] and row["step_ns"]]
    assert rates == sorted(rates, reverse=True), answer
    for row in answer["would_fit"]:
        if row["step_ns"] is None:
            continue
        report = json.loads(weft.expect(0, *refused, *shlex.split(row["change"]), "--json"))
        assert report["total_bytes"] <= report["memory_limit_bytes"], (row, report)
        assert row["least_bytes"] <= report["memory_limit_bytes"], (row, report)
    told = weft.expect(78, *refused)
    assert told.startswith("nothing fits 1.00 MiB: the cheapest change is "), told
    assert weft.expect(78, *refused, "-o", "-") == ""
    train = ("train", path, "--memory-limit", "1MiB", "--set", "plan.recompute=none", "--run", "refused")
    assert weft.expect(78, *train) == told
    line = weft.expect(78, *train, "--json")
    assert line.count("\n") == 1 and json.loads(line)["would_fit"] == answer["would_fit"], line
    assert not os.path.exists(weft.path("refused/plan.json"))


main(sys.argv[1])
