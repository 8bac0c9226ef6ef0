#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans both orders of micro-steps on slow and fast networks: bench/planner/orders.py --build BUILD

The table `orders` of bench/results/scale.json, which --record writes. 64 nodes have one GPU each. A step has
micro-steps of 8,192 tokens (gpt3-13b: 4 samples of 2,048). All blocks recompute, and inputs of layers and state may be
on the host. A column is Weft's plan in an order, in both (`auto`), or a published rule in its published setting. The
order "step" reduces once a micro-step, since whole gradients of a step exceed a GPU here. A cell of Weft has its bound
if that is more than 0.1 % lower. A point that exceeds its GPU on the slowest network is not planned on faster ones:
"-". Nor are FSDP2 and breadth-first, which are far slower there. Rows "least" have the least limit of an order,
without pages. Plans depend on no clock, so other programs change nothing. All rows take about 40 minutes of one core.
--part FILE keeps rows in a file and adds those of other calls, so that a table may be made in parts. The recorded
columns are the default ones.
"""
import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "bench/planner"))

from results import record  # pylint: disable=wrong-import-position
from scale import plan  # pylint: disable=wrong-import-position

ALL = (10, 25, 100, 400)
# Model: networks of its rows by micro-steps of a step and memory of a GPU: tight, middle, ample.
POINTS = {"llama-3-8b": {(8, "24GB"): ALL}, "gpt3-13b": {(8, "24GB"): ALL}}
LEAST = ("llama-3-8b",)  # a refusal of larger models takes minutes
SLOWEST = ("breadth-first", "fsdp2")  # are planned on the slowest network alone
# Column: planner, order, reductions.
PLANS = {"step": ("ilp", "step", "micro_step"), "layer": ("ilp", "layer", "step"), "auto": ("ilp", "auto", "auto"),
         "breadth-first": ("breadth-first", "layer", "step"),
         "greedysnake": ("greedysnake", "layer", "step"), "fsdp2": ("fsdp2", "step", "micro_step")}
RECORDED = "step,layer,greedysnake,fsdp2"
OWN = ("step", "layer", "auto")
NONE = "exceeds it"
GOAL = "best gain of order layer over order step, on a slow network"
# A GPU such as an RTX 4090, at half of its published bf16 rate, on a node of its own.
CLUSTER = {"ranks": 64, "ranks_per_node": 1,
           "device": {"flops": {"bf16": "165T"}, "memory_bandwidth": "1TB/s", "efficiency": 0.5},
           "host": {"memory_limit": "128GB", "down": {"alpha": "10us", "bandwidth": "20GB/s"},
                    "up": {"alpha": "10us", "bandwidth": "20GB/s"}}}
SAMPLES = {"gpt3-13b": (2048, 4)}  # the length that its positions allow, and samples of a micro-step
SETTINGS = {"train.clip_norm": 1, "plan.recompute": "whole",
            "plan.offload": {"state": ["device", "host"], "activations": ["device"], "inputs": ["device", "host"],
                             "update": ["device"]}}


def some(text, known):
    return text.split(",") if text else known


def points_of(options):
    """Lists (model, micro-steps, memory limit, Gbit/s): those of POINTS, or the ones that options name."""
    points = []
    for model in some(options.models, POINTS):
        kinds = POINTS.get(model, {(8, "24GB"): (25,)})
        if options.micro_steps or options.limits:
            limits = some(options.limits, [next(iter(kinds))[1]])
            kinds = {(int(count), limit): next(iter(kinds.values()))
                     for count in some(options.micro_steps, ["8"]) for limit in limits}
        points += [(model, count, limit, int(network)) for (count, limit), networks in kinds.items()
                   for network in some(options.networks, networks)]
    return points


def cell_of(said, own):
    if said is None:
        return NONE
    step, bound = said["step_ns"] / 1e9, said["least_bound_ns"] / 1e9
    return f"{step:,.1f} s" + (f" (bound {bound:,.1f})" if own and bound < 0.999 * step else "")


def settings_of(options, name, model, micro_steps):
    planner, order, reduce = PLANS[name]
    seq_len, micro_batch = SAMPLES.get(model, (options.seq_len, 1))
    values = {**SETTINGS, "train.seq_len": seq_len, "train.micro_batch": micro_batch,
              "train.grad_accum": micro_steps, "plan.micro_step_order": order, "train.reduce": reduce,
              "plan.planner": planner, "plan.work_limit": options.work}
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]


def cluster_of(limit, gigabits):
    link = {"inter": {"alpha": "50us", "bandwidth": f"{gigabits / 8}GB/s"}}
    return f"cluster={json.dumps({**CLUSTER, 'memory_limit': limit, 'link': link})}"


def row_of(options, folder, model, micro_steps, limit, gigabits, exceeds):
    """Returns a row. `exceeds` has the columns that exceeded the limit on a slower network, and gets more of them."""
    said, cells = {}, []
    for name in options.columns.split(","):
        if (model, micro_steps, limit, name) in exceeds or name in SLOWEST and gigabits > ALL[0]:
            cells.append("-")
            continue
        said[name] = plan(options, folder, model, cluster_of(limit, gigabits),
                          *settings_of(options, name, model, micro_steps))[0]
        if said[name] is None:
            exceeds.add((model, micro_steps, limit, name))
        cells.append(cell_of(said[name], name in OWN))
    both = said.get("step") and said.get("layer")
    gain = f"{said['step']['step_ns'] / said['layer']['step_ns']:.2f}" if both else "-"
    return [model, limit, f"{gigabits}", f"{micro_steps}", options.work, *cells, gain]


def least_of(options, model, micro_steps):
    """Returns the row with the least limits of both orders, which a refusal of 1 MB tells."""
    cells = []
    for name in options.columns.split(","):
        text = "-"
        if name in ("step", "layer"):
            sets = [part for one in (cluster_of("1MB", 10), *settings_of(options, name, model, micro_steps), "plan.for=weft")
                    for part in ("--set", one)]
            said = subprocess.run([str(options.build / "cli/weft"), "plan", str(ROOT / f"configs/runs/{model}.json"), *sets,
                                   "-q"], capture_output=True, text=True, check=False).stderr
            found = re.search(r"tier device \(.*?\) would have to have at least ([0-9.]+ [A-Za-z]+)", said)
            text = found[1] if found else "none"
        cells.append(text)
    return [model, "least", "10", f"{micro_steps}", options.work, *cells, "-"]


def merge(path, made):
    """Adds rows to the file's, by model, limit, network, micro-steps and work, and returns all in order."""
    kept = {tuple(row[:5]): row for row in (json.loads(path.read_text()) if path.exists() else [])}
    kept.update({tuple(row[:5]): row for row in made})
    models = list(POINTS)
    found = sorted(kept.values(), key=lambda row: ((models + [row[0]]).index(row[0]), int(row[3]), row[1], int(row[2])))
    path.write_text(json.dumps(found))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--models", help="instead of all")
    parser.add_argument("--networks", help="Gbit/s, instead of each model's")
    parser.add_argument("--micro-steps", help="numbers of them in a step, instead of each model's")
    parser.add_argument("--limits", help="memory of a GPU, instead of each model's")
    parser.add_argument("--columns", default=RECORDED, help=f"plans of {','.join(PLANS)} (default %(default)s)")
    parser.add_argument("--seq-len", type=int, default=8192, help="of models but gpt3-13b (default %(default)s)")
    parser.add_argument("--work", default="30G", help="plan.work_limit (default %(default)s)")
    parser.add_argument("--least", action="store_true", help="least limits of both orders too")
    parser.add_argument("--rows", action="store_true", help="plans nothing: takes the rows of --part")
    parser.add_argument("--part", type=Path, help="file with rows of other calls")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        exceeds = set()
        points = [] if options.rows else points_of(options)
        for point in points:
            rows.append(row_of(options, folder, *point, exceeds))
            print("|", " | ".join(rows[-1]), "|", flush=True)
            if options.part:
                merge(options.part, rows[-1:])
        for model, micro_steps in dict.fromkeys(point[:2] for point in points if options.least and point[0] in LEAST):
            rows.append(least_of(options, model, micro_steps))
            print("|", " | ".join(rows[-1]), "|", flush=True)
            if options.part:
                merge(options.part, rows[-1:])
    rows = merge(options.part, []) if options.part else rows
    most = max((float(row[-1]) for row in rows if row[-1] != "-"), default=0)
    if options.record:
        record("scale", "orders", rows, {GOAL: (f"{most:.2f}", most >= 1.5)})


if __name__ == "__main__":
    main()
