#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans both orders of micro-steps on slow and fast networks: bench/planner/orders.py --build BUILD

The table `orders` of bench/results/scale.json, which --record writes. 64 nodes have one GPU of 24 GB each. A step has
micro-steps of 8,192 tokens (gpt3-13b: 4 samples of 2,048). All blocks recompute, and inputs of layers and state may be
on the host. Each cell is the step of Weft's plan, with its bound if that is more than 0.1 % lower. The order "step"
reduces once a step or a micro-step, as is faster. Plans depend on no clock, so other programs change nothing.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "bench/planner"))

from results import record  # pylint: disable=wrong-import-position
from scale import plan  # pylint: disable=wrong-import-position

GIGABITS = (10, 25, 100, 400)
ORDERS = ("step", "layer", "auto")
GOAL = "best gain of order layer over order step, on a slow network"
# A GPU such as an RTX 4090, at half of its published bf16 rate, on a node of its own.
CLUSTER = {"ranks": 64, "ranks_per_node": 1, "memory_limit": "24GB",
           "device": {"flops": {"bf16": "165T"}, "memory_bandwidth": "1TB/s", "efficiency": 0.5},
           "host": {"memory_limit": "128GB", "down": {"alpha": "10us", "bandwidth": "20GB/s"},
                    "up": {"alpha": "10us", "bandwidth": "20GB/s"}}}
SAMPLES = {"gpt3-13b": (2048, 4)}  # the length that its positions allow, and samples of a micro-step
SETTINGS = {"train.clip_norm": 1, "plan.recompute": "whole",
            "plan.offload": {"state": ["device", "host"], "activations": ["device"], "inputs": ["device", "host"],
                             "update": ["device"]}}


def cell_of(said):
    if said is None:
        return "no plan fits"
    step, bound = said["step_ns"] / 1e9, said["least_bound_ns"] / 1e9
    return f"{step:,.1f} s" + ("" if bound >= 0.999 * step else f" (bound {bound:,.1f})")


def row_of(options, folder, model, gigabits, micro_steps):
    cluster = {**CLUSTER, "link": {"inter": {"alpha": "50us", "bandwidth": f"{gigabits / 8}GB/s"}}}
    said = {}
    for order in ORDERS:
        seq_len, micro_batch = SAMPLES.get(model, (options.seq_len, 1))
        values = {**SETTINGS, "train.seq_len": seq_len, "train.micro_batch": micro_batch,
                  "train.grad_accum": micro_steps, "plan.micro_step_order": order,
                  "train.reduce": "step" if order == "layer" else "auto", "plan.work_limit": options.work}
        sets = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]
        said[order] = plan(options, folder, model, f"cluster={json.dumps(cluster)}", *sets)[0]
    both = said["step"] and said["layer"]
    gain = said["step"]["step_ns"] / said["layer"]["step_ns"] if both else 0
    cells = [cell_of(said[order]) for order in ORDERS]
    return [model, f"{gigabits}", f"{micro_steps}", *cells, f"{gain:.2f}" if gain else "-"], gain


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--models", default="llama-3-8b,gpt3-13b")
    parser.add_argument("--networks", default=",".join(map(str, GIGABITS)), help="Gbit/s (default %(default)s)")
    parser.add_argument("--micro-steps", default="8", help="numbers of them in a step (default %(default)s)")
    parser.add_argument("--seq-len", type=int, default=8192, help="of other models (default %(default)s)")
    parser.add_argument("--work", default="200M", help="plan.work_limit (default %(default)s)")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    rows, most = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for model in options.models.split(","):
            for gigabits in map(int, options.networks.split(",")):
                for micro_steps in map(int, options.micro_steps.split(",")):
                    row, gain = row_of(options, folder, model, gigabits, micro_steps)
                    rows.append(row)
                    most = max(most, gain)
                    print("|", " | ".join(row), "|", flush=True)
    if options.record:
        record("scale", "orders", rows, {GOAL: (f"{most:.2f}", most >= 1.5)})


if __name__ == "__main__":
    main()
