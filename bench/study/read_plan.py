#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads a plan file, and computes its rows and its step again: bench/study/read_plan.py PLAN...

It uses the file alone (docs/plan-file.md) and no code of weft. Exit 1 if a row exceeds its limit or a figure differs.
Plans in which compute and lanes slow each other are refused: read `weft verify` for these.
"""
import json
import sys

ONE = 1024  # a lane's rates are parts of it


def rows(plan):
    """Bytes by tier and slot."""
    problem = plan["problem"]
    n, tiers = len(problem["slots"]), [tier["name"] for tier in problem["tiers"]]
    out = {name: [0] * n for name in tiers}
    holds = list(problem["common"])
    for decision, name in zip(problem["decisions"], plan["strategies"]):
        holds += next(one for one in decision["strategies"] if one["name"] == name)["holds"]
    for at in plan["placements"]:
        item = problem["items"][at["item"]]
        first = at["launch"] if item["acquires"] else item["first"]
        if item["held_bytes"] and first < at["deadline"]:
            holds.append({**item, "first": first, "last": at["deadline"] - 1, "bytes": item["held_bytes"]})
    for hold in holds:
        first, last = hold["first"], hold["last"]
        slots = range(first, last + 1) if first <= last else [*range(first, n), *range(last + 1)]
        for slot in slots:
            out[hold.get("tier", tiers[0])][slot] += hold["bytes"]
    return out


def step(plan):
    """Time of a step in ns."""
    problem, ends, started, now = plan["problem"], {}, {}, 0
    times = [slot["time_ns"] for slot in problem["slots"]]
    for decision, name in zip(problem["decisions"], plan["strategies"]):
        for time in next(one for one in decision["strategies"] if one["name"] == name).get("times", []):
            times[time["slot"]] += time["time_ns"]
    left, free = list(plan["placements"]), [0] * len(problem["lanes"])
    for slot, time in enumerate(times):
        due = [at for at in plan["placements"] if at["deadline"] == slot and at["launch"] < slot]
        now = started[slot] = max([now] + [ends[at["item"], at["block"]] for at in due])
        while left and left[0]["launch"] <= slot or any(at["launch"] <= slot for at in left):
            held, rest = set(), []  # lanes are in order: one that waits holds up the blocks after it
            for at in left:
                item = problem["items"][at["item"]]
                before = (item["after"], at["block"])
                waits = at["launch"] > slot or any((one["item"], one["block"]) == before for one in rest)
                if waits or item["lane"] in held:
                    held.add(item["lane"])
                    rest.append(at)
                    continue
                begin = max(free[item["lane"]], started[at["launch"]], ends.get(before, 0))
                free[item["lane"]] = ends[at["item"], at["block"]] = begin + item["block_ns"]
            if len(rest) == len(left):
                break
            left = rest
        own = [at for at in plan["placements"] if at["deadline"] == slot == at["launch"]]
        now = max([now] + [ends[at["item"], at["block"]] for at in own]) + time
    updates = sum(one.get("update_slot", -1) >= 0 for one in problem["decisions"])
    agreements = 1 + (updates if problem["period"].get("agreed_updates") else 0)
    return max([now, *ends.values()]) + agreements * problem["agree_ns"]


def main(paths):
    faults = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            plan = json.load(file)
        if any(lane["rate"] != ONE or lane["compute_rate"] != ONE for lane in plan["problem"]["lanes"]):
            raise SystemExit(f"{path}: compute and lanes slow each other, which this reader does not model")
        held, said = rows(plan), plan["prediction"]
        tiers = plan["problem"]["tiers"]
        over = [tier["name"] for tier in tiers if tier["limit_bytes"] is not None
                and max(held[tier["name"]]) > tier["limit_bytes"]]
        same = (step(plan), max(held[tiers[0]["name"]])) == (said["step_ns"], said["peak_bytes"])
        faults += bool(over) or not same
        print(f"{path}: step {step(plan)} ns ({said['step_ns']}), largest row {max(held[tiers[0]['name']])} bytes "
              f"({said['peak_bytes']})" + "".join(f", {name} exceeds its limit" for name in over))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
