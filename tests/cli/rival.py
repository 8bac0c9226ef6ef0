#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans by other programs (docs/rivals.md): the simulator and the row check judge them as plans of weft, and a wrong file
is refused with its reason.
"""
import copy
import json
import sys

from configs import tiny
from tap import case, main, some

WORK = {"plan__work_limit": "50M"}
LINK = {"alpha": "10us", "bandwidth": "1GB/s"}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "1GB/s"}
PLANNERS = ["greedy", "fsdp2", "ddp", "seed-ilp", "zero2", "dear", "deepcompile", "two-stage"]


def rival_of(*plans, name="mine"):
    """Returns the plans as a rival: only what docs/rivals.md asks for."""
    return {"format": "weft-rival", "version": 1, "name": name, "plans": [
        {"problem": {key: plan["problem"][key] for key in ("micro_batch", "blocks", "period") if key in plan["problem"]},
         "strategies": plan["strategies"], "placements": plan["placements"]} for plan in plans]}


def plan_of(weft, config, *flags):
    weft.expect(0, "plan", config, "-q", "-o", "plan.json", *flags)
    return json.loads(open(weft.path("plan.json"), encoding="utf-8").read())


@case
def copies_of_plans_are_judged_as_the_plans(weft):
    """Open periods, offloaded state and random placements are judged alike too."""
    shapes = [({}, planner) for planner in some(PLANNERS, 3)]
    shapes += [({"train__grad_accum": 2, "train__reduce": "auto"}, "greedy"),
               ({"plan__block_scale": "auto", "plan__blocks": 2}, "greedy"),
               ({"cluster__host": HOST, "plan__offload": {"state": ["device", "host"]}}, "random")]
    for changes, planner in shapes:
        config = weft.write("run.json", tiny(**WORK, **changes))
        plan = plan_of(weft, config, "--planner", planner)
        weft.write("mine.json", rival_of(plan))
        judged = plan_of(weft, config, "--rival", "mine.json")
        for key in ("prediction", "strategies", "placements", "pages"):
            assert judged[key] == plan[key], (planner, changes, key)
        assert judged["planner"] == "rival:mine"
        weft.expect(0, "verify", "plan.json", "--config", config, "-q")
        said = json.loads(weft.expect(0, "simulate", "mine.json", "--config", config, "--json"))
        assert said["step_ns"] == plan["prediction"]["step_ns"], (planner, changes)


@case
def a_bound_is_claimed_only_if_one_period_is_open(weft):
    """Copies of activations are open: in blocks or whole."""
    away = {"cluster__host": HOST, "plan__offload": {"state": ["device"], "activations": ["host"]}}
    for changes, n_open in (({}, 1), (away, 2)):
        config = weft.write("run.json", tiny(**WORK, **changes))
        weft.write("mine.json", rival_of(plan_of(weft, config, "--planner", "greedy")))
        judged = plan_of(weft, config, "--rival", "mine.json")
        assert judged["periods_open"] == n_open, judged["periods_open"]
        assert (judged["bound"]["bound_ns"] > 0) == (n_open == 1), judged["bound"]
        weft.expect(0, "verify", "plan.json", "--config", config, "-q")


@case
def the_fastest_plan_that_fits_counts(weft):
    """A file with plans of two limits is a staircase in a sweep."""
    config = weft.write("run.json", tiny(**WORK))
    ample = plan_of(weft, config, "--planner", "ddp")
    lean = plan_of(weft, config, "--planner", "fairscale")
    sizes = [plan["prediction"]["total_bytes"] for plan in (lean, ample)]
    assert sizes[0] < sizes[1], "choose other rules"
    weft.write("mine.json", rival_of(lean, ample))
    limits = [sizes[0] - 4096, sizes[0], sizes[1] - 4096, sizes[1]]
    said = json.loads(weft.expect(0, "sweep", config, "--rival", "mine.json", "--planners", "greedy", "--json", "-q",
                                  "--limits", ",".join(f"{size}B" for size in limits)))
    curve = {curve["planner"]: curve["points"] for curve in said["curves"]}["rival:mine"]
    assert [point["fits"] for point in curve] == [False, True, True, True], curve
    steps = [lean["prediction"]["step_ns"]] * 2 + [ample["prediction"]["step_ns"]]
    best = [min(steps[:n]) for n in (1, 2, 3)]
    assert [point["step_ns"] for point in curve[1:]] == best, (curve, steps)
    weft.expect(78, "plan", config, "--rival", "mine.json", "--memory-limit", f"{limits[0]}B", says="the leanest takes")
    weft.expect(78, "plan", config, "--rival", "mine.json", "--memory-limit", "64KiB", says=["plans[0]", "holds"])


def changes_of(plan):
    """Returns (change of a rival, words of the refusal), 50 in all. The plan has gathers of several blocks."""
    at = plan["placements"]
    items = plan["problem"]["items"]
    slots = len(plan["problem"]["slots"])
    first = next(k for k, one in enumerate(at) if items[one["item"]]["acquires"])
    last = next(k for k in reversed(range(len(at))) if not items[at[k]["item"]]["acquires"])
    item = at[first]["item"]
    again = next(k for k, one in enumerate(at) if one["item"] == item and k > first)

    def put(*path, value):
        def change(rival):
            target = rival
            for key in path[:-1]:
                target = target[key]
            target[path[-1]] = value
        return change

    def drop(*path):
        def change(rival):
            target = rival
            for key in path[:-1]:
                target = target[key]
            del target[path[-1]]
        return change

    def swap(rival):
        placed = rival["plans"][0]["placements"]
        placed[first], placed[again] = placed[again], placed[first]

    def move(k, key, value):
        return put("plans", 0, "placements", k, key, value=value)

    def place(value):
        return put("plans", 0, "placements", value=value)

    def terms(key, value):
        return put("plans", 0, "problem", key, value=value)

    period = plan["problem"]["period"]
    strategies = plan["strategies"]
    return [
        (put("format", value="weft-plan"), "of weft-plan"), (put("format", value=7), "is not a plan"),
        (drop("format"), "is not a plan"), (put("version", value=2), "version"), (put("version", value="1"), "version"),
        (drop("version"), "version"), (put("name", value=""), "name"), (put("name", value="a b"), "letters"),
        (put("name", value="x" * 49), "1 to 48"), (put("name", value="a/../b"), "letters"),
        (put("name", value="\u001b[31m"), "letters"), (put("name", value=1), "name"), (drop("name"), "name"),
        (put("plans", value=[]), "plans is empty"), (put("plans", value={}), "plans"), (drop("plans"), "plans"),
        (put("planz", value=[]), "planz"), (put("plans", 0, value=[]), "plans[0]"),
        (put("plans", 0, value=None), "plans[0]"), (put("plans", 0, "bound", value=1), "bound"),
        (terms("tiers", []), "tiers"), (terms("micro_batch", -1), "micro_batch"), (terms("period", {}), "period"),
        (terms("period", {**period, "micro_steps": 5}), "leaves open"), (drop("plans", 0, "problem", "period"), "period"),
        (terms("period", {**period, "reduce": "never"}), "cadence"), (put("plans", 0, "problem", value=3), "problem"),
        (drop("plans", 0, "strategies"), "strategies"), (put("plans", 0, "strategies", value=strategies[1:]), "strategies for"),
        (put("plans", 0, "strategies", value=strategies + ["dp"]), "strategies for"),
        (put("plans", 0, "strategies", 0, value="zero9"), "strategies[0]"),
        (put("plans", 0, "strategies", 0, value=0), "strategies[0]"), (put("plans", 0, "strategies", value="dp"), "strategies"),
        (put("plans", 0, "strategies", value=["dp"] * len(strategies)), "the strategies need"),
        (drop("plans", 0, "placements"), "placements"), (place([]), "placements; the strategies need"),
        (place(at[1:]), "placements; the strategies need"), (place(at + at[:1]), "placements; the strategies need"),
        (place([at[1]] + at[1:]), "placements["), (place(at[::-1]), "placements["), (swap, "placements["),
        (move(first, "item", len(items)), "there is no item"), (move(first, "item", -1), "item"),
        (move(first, "block", 999), "has no block"), (move(first, "launch", slots), "not in the period"),
        (move(first, "deadline", slots - 1), f"placements[{first}]"), (move(last, "launch", 0), f"placements[{last}]"),
        (move(last, "deadline", at[last]["launch"]), f"placements[{last}]"), (move(first, "launch", 1.5), "launch"),
        (drop("plans", 0, "placements", first, "deadline"), "deadline")]


@case
def wrong_files_are_refused_with_the_reason(weft):
    """50 changes, and a change of the second plan alone."""
    config = weft.write("run.json", tiny(**WORK, plan__blocks=3))
    plan = plan_of(weft, config, "--planner", "fsdp2")
    whole = rival_of(plan)
    changes = changes_of(plan)
    assert len(changes) == 50
    for number, (change, says) in enumerate(changes):
        rival = copy.deepcopy(whole)
        change(rival)
        assert rival != whole, number
        weft.write("wrong.json", rival)
        weft.expect(65, "simulate", "wrong.json", "--config", config, says=["wrong.json", says])
    rival = rival_of(plan, plan)
    rival["plans"][1]["placements"] = []
    weft.write("wrong.json", rival)
    weft.expect(65, "plan", config, "--rival", "wrong.json", "-o", "none.json", says="plans[1]")
    weft.expect(65, "sweep", config, "--rival", "wrong.json", "--planners", "greedy", "--csv", "none.csv", says="plans[1]")
    for name in ("none.json", "none.csv"):
        assert not (weft.directory / name).exists(), name
    weft.write("cut.json", json.dumps(whole)[:-20])
    weft.expect(65, "plan", config, "--rival", "cut.json", says="cut.json:1:")


@case
def flags_that_contradict_are_refused(weft):
    config = weft.write("run.json", tiny(**WORK))
    weft.write("mine.json", rival_of(plan_of(weft, config, "--planner", "fsdp2")))
    weft.write("same.json", rival_of(plan_of(weft, config, "--planner", "ddp")))
    for words, says in [(("plan", config, "--rival", "mine.json", "--planner", "ddp"), "--planner"),
                        (("plan", config, "--rival", "mine.json", "--start", "plan.json"), "--start"),
                        (("simulate", "mine.json"), "--config"),
                        (("simulate", "mine.json", "--config", config, "--as", "fsdp2"), "--as"),
                        (("sweep", config, "--split", "--rival", "mine.json"), "--split"),
                        (("sweep", config, "--rival", "mine.json,same.json"), "both named rival:mine"),
                        (("sweep", config, "--rival", "mine.json,"), "empty")]:
        weft.expect(64, *words, says=says)
    weft.expect(66, "plan", config, "--rival", "none.json", says="none.json")


main(sys.argv[1])
