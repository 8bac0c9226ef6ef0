#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what each part of the planner buys: bench/study/parts.py --build BUILD [--models A,B] [--record]

A point is a model of the study over one network, at a limit next to its least one or half of the way to the last that helps.
A part is there in one plan, and not in another plan of the same point. It buys the share by which the step is longer
without it. Plans depend on counts of work alone. Each plan is a file in --out and is not made again, so an interrupted run
goes on. Prints Markdown. --record writes the table `parts` of bench/results/study.json.
"""
import argparse
import sys
from pathlib import Path

from document import MODELS, MORE
from study import ROOT, Study, percent

sys.path.insert(0, str(ROOT / "bench"))

from results import record  # pylint: disable=wrong-import-position,wrong-import-order

NETWORKS, LIMITS = [0.25, 1, 4], ["least", "half"]
HOST = ('cluster.host={"memory_limit":"64GB","down":{"bandwidth":"25GB/s"},"up":{"bandwidth":"25GB/s"},'
        '"update":"100GB/s"}')
OFFLOAD = 'plan.offload={"state":["device","host"],"activations":["device","host"]}'
BASE, RECOMPUTES = ("plan.recompute=none",), ("plan.recompute=auto",)
# Name, and alternatives without the part and with it: planner and settings. The fastest plan counts.
ALONE = [("ilp", BASE)]
ALIKE = [("greedy:alike", BASE)]  # equal units have one policy
PARTS = [
    ("deciding together, over policies first and blocks after", [("two-stage", BASE)], ALONE),
    ("policies by unit, over one policy for all units",
     [("ilp", (*BASE, f"plan.policies={policy}")) for policy in ("dp", "zero1", "sdp", "fsdp")], ALONE),
    ("choices by layer, over equal layers alike", ALIKE, ALONE),
    ("choices by layer, both placed as greedy places", ALIKE, [("greedy", BASE)]),
    ("choices by layer with recomputation, over equal layers alike", [("greedy:alike", RECOMPUTES)], [("ilp", RECOMPUTES)]),
    ("search, over greedy", [("greedy", BASE)], ALONE),
    ("blocks, over whole units", [("ilp", (*BASE, "plan.block_scale=whole"))], ALONE),
    ("the size of blocks left open", ALONE, [("ilp", (*BASE, "plan.block_scale=auto"))]),
    ("recomputation by layer", ALONE, [("ilp", RECOMPUTES)]),
    ("offload to a host of 64 GB at 25 GB/s", ALONE, [("ilp", (*BASE, HOST, OFFLOAD))]),
]
COLUMNS = ["part", "points", "plan only with it", "matters at", "buys, median", "most", "most at"]
MATTERS = 5e-4


def fastest(study, point, alternatives):
    steps = [study.plan(*point, planner, settings=settings).get("step_ns") for planner, settings in alternatives]
    return min((step for step in steps if step), default=None)


def row_of(study, name, points, without, with_it):
    """`points`: {(model, speed, limit): shown name}."""
    gains, alone, n = [], 0, 0
    for point, shown in points.items():
        short, long = fastest(study, point, with_it), fastest(study, point, without)
        n += short is not None
        alone += short is not None and long is None
        if short and long:
            gains.append((long / short - 1, shown))
        print(f"{name}: {shown}: {long} without it, {short}", file=sys.stderr)
    gains.sort()
    if not gains:
        return [name, n, alone, 0, "-", "-", "-"]
    return [name, n, alone, sum(gain > MATTERS for gain, _ in gains), percent(gains[(len(gains) - 1) // 2][0]),
            percent(gains[-1][0]), gains[-1][1]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--models", default=",".join(MODELS), help="these, with commas between; all: twelve models")
    parser.add_argument("--networks", default=",".join(map(str, NETWORKS)), help="factors of the bandwidths")
    parser.add_argument("--work", default="200M", help="work limit of a plan")
    parser.add_argument("--out", type=Path, default=ROOT / "build/study-parts")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    study, points = Study(options), {}
    for model in MODELS + MORE if options.models == "all" else options.models.split(","):
        for speed in map(float, options.networks.split(",")):
            limits = study.limits(model, speed)
            for name in LIMITS:
                points[model, speed, limits[name]] = f"{model} x{speed:g}, {limits[name] / 2 ** 30:.2f} GiB"
    rows = [row_of(study, name, points, without, with_it) for name, without, with_it in PARTS]
    for line in [COLUMNS, ["---"] * len(COLUMNS)] + rows:
        print("| " + " | ".join(map(str, line)) + " |")
    if options.record:
        record("study", "parts", rows, {})
    return 0


if __name__ == "__main__":
    sys.exit(main())
