#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads plan files, and computes their rows and steps again: read_plan.py PLAN... (or PLAN.gz). Exit 1 if a figure differs."""
import gzip
import json
import sys


def rows(problem, plan, chosen):
    """Bytes by tier and slot."""
    n, out = len(problem["slots"]), {tier["name"]: [0] * len(problem["slots"]) for tier in problem["tiers"]}
    holds = problem["common"] + [hold for strategy in chosen for hold in strategy["holds"]]
    for at in plan["placements"]:
        item = problem["items"][at["item"]]
        first = at["launch"] if item["acquires"] else item["first"]
        if item["held_bytes"] and first < at["deadline"]:
            holds.append({**item, "first": first, "last": at["deadline"] - 1, "bytes": item["held_bytes"]})
    for hold in holds:
        first, last = hold["first"], hold["last"]
        for slot in range(first, last + 1) if first <= last else [*range(first, n), *range(last + 1)]:
            out[hold.get("tier", problem["tiers"][0]["name"])][slot] += hold["bytes"]
    return out


def step(problem, plan, chosen):
    """Time of a step in ns. A lane is in order: a block that waits holds up the blocks after it."""
    ends, started, now, left, free = {}, {}, 0, plan["placements"], [0] * len(problem["lanes"])
    more = [(time["slot"], time["time_ns"]) for strategy in chosen for time in strategy.get("times", [])]
    for slot, own in enumerate(problem["slots"]):
        due = [(at["item"], at["block"]) for at in plan["placements"] if at["deadline"] == slot]
        now = started[slot] = max([now] + [ends[block] for block in due if block in ends])
        rest = None
        while rest is None or len(rest) < len(left):
            left, rest = left if rest is None else rest, []
            for at in left:
                item, before = problem["items"][at["item"]], (problem["items"][at["item"]]["after"], at["block"])
                if at["launch"] > slot or any((other["item"], other["block"]) == before or
                                              problem["items"][other["item"]]["lane"] == item["lane"] for other in rest):
                    rest.append(at)
                    continue
                end = max(free[item["lane"]], started[at["launch"]], ends.get(before, 0)) + item["block_ns"]
                free[item["lane"]] = ends[at["item"], at["block"]] = end
        now = max([now] + [ends[block] for block in due]) + own["time_ns"] + sum(time for at, time in more if at == slot)
    updates = sum(one.get("update_slot", -1) >= 0 for one in problem["decisions"])
    return max([now, *ends.values()]) + (1 + updates * problem["period"].get("agreed_updates", 0)) * problem["agree_ns"]


for path in sys.argv[1:]:
    PLAN = json.load((gzip.open if path.endswith(".gz") else open)(path, "rb"))
    PROBLEM, SAID = PLAN["problem"], PLAN["prediction"]
    if any(lane["rate"] != 1024 or lane["compute_rate"] != 1024 for lane in PROBLEM["lanes"]):
        sys.exit(f"{path}: compute and lanes slow each other, which only `weft verify` computes")
    CHOSEN = [{one["name"]: one for one in decision["strategies"]}[name]
              for decision, name in zip(PROBLEM["decisions"], PLAN["strategies"])]
    HELD, TOOK = rows(PROBLEM, PLAN, CHOSEN), step(PROBLEM, PLAN, CHOSEN)
    print(f"{path}: step {TOOK} ns, {SAID['step_ns']} in the file; largest rows {[max(held) for held in HELD.values()]} bytes")
    OVER = [tier["name"] for tier in PROBLEM["tiers"] if tier["limit_bytes"] is not None
            and max(HELD[tier["name"]]) > tier["limit_bytes"]]
    if OVER or (TOOK, max(next(iter(HELD.values())))) != (SAID["step_ns"], SAID["peak_bytes"]):
        sys.exit(f"{path}: a figure differs, or rows exceed a limit: {OVER}")
