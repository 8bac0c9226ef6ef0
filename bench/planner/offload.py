#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows the gain of memory outside the device:

    bench/planner/offload.py --build BUILD [ways] [limits] [inputs]

    ways    a Llama-3-8B shape that one rank with 80 GB trains: ilp with state streamed through the
            device, with state that is also updated on the host, with offloaded activations, with both;
            and every rule that offloads
    limits  four models (--models) on 8 ranks, --points limits each from the least that fits to the last
            that matters: ilp, the fastest of these rules, and ilp's proven gap
    inputs  the least limit of llama-3-8b with 8,192 tokens, all layers recomputed whole, with inputs of
            layers on the device and on the host; 1 and --micro-steps micro-steps

The default is all. The simulator judges plans; times are analytic. --record writes bench/results/offload.json. Work
ends planning and nothing is measured, so the machine may be busy.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import results  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
MODELS = ["llama-3-8b", "gpt2-xl", "gpt3-13b", "llama-3-70b"]
RULES = ["zero-offload", "twin-flow", "fsdp2-cpu-offload", "offload-stream", "offload-greedy",
         "deepcompile-offload"]
WIDE = {"alpha": "10us", "bandwidth": "64GB/s"}
# The share of one rank of eight: they share their node's memory and cores.
SHARED = {"memory_limit": "512GB", "down": {"alpha": "10us", "bandwidth": "50GB/s"},
          "up": {"alpha": "10us", "bandwidth": "50GB/s"}, "update": "40GB/s"}
SHAPE_8B = {
    "version": 1, "model": str(ROOT / "configs/models/llama-3-8b.json"),
    "cluster": {"ranks": 1, "memory_limit": "80GB",
                "device": {"flops": {"bf16": "989T"}, "memory_bandwidth": "3.35TB/s", "efficiency": 0.5},
                "link": {"intra": {"alpha": "10us", "bandwidth": "450GB/s"}},
                "host": {"memory_limit": "512GB", "down": WIDE, "up": WIDE, "update": "200GB/s"}},
    "train": {"micro_batch": 2, "seq_len": 4096, "clip_norm": 1.0,
              "precision": {"compute": "bf16", "reduce": "bf16", "accumulate": "bf16"},
              "optimizer": {"type": "adamw"}},
}
WAYS = {
    "state, updated on the device": {"activations": ["device"], "update": ["device"]},
    "state, updated there too": {"activations": ["device"]},
    "activations": {"state": ["device"]},
    "both": {},
}


def weft(build, *arguments):
    """Runs weft and returns its JSON; None if nothing fits or a rule has no plan."""
    run = subprocess.run([build / "cli/weft", *arguments, "-q"], capture_output=True, text=True)
    if run.returncode in (65, 78):
        return None
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {run.stderr}")
    return json.loads(run.stdout)


def ms(ns):
    return "-" if ns is None else f"{ns / 1e6:,.0f} ms"


def ways(build):
    """Returns the table's rows, and zero-offload's step over ilp's."""
    steps = {}
    with tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "run.json"
        config.write_text(json.dumps(SHAPE_8B))
        for way, offload in WAYS.items():
            said = weft(build, "plan", config, "--json", "--set", f"plan.offload={json.dumps(offload)}")
            steps[f"ilp: {way}"] = said and (said["step_ns"], said["bound_ns"])
        for rule in RULES:
            said = weft(build, "plan", config, "--json", "--planner", rule)
            steps[rule] = said and (said["step_ns"], None)
    best = steps["ilp: both"][0]
    rows = [[way, ms(it and it[0]), "-" if not it else f"{it[0] / best:.2f}",
             "-" if not it or not it[1] else f"{it[0] / it[1] - 1:.2%}"] for way, it in steps.items()]
    return rows, steps["zero-offload"][0] / best


def limits(build, models, points):
    rows, gaps, slower = [], [], 0
    for model in models:
        said = weft(build, "sweep", str(ROOT / f"configs/runs/{model}.json"), "--json", "--points",
                    str(points), "--planners", ",".join(["ilp", *RULES]),
                    "--set", f"cluster.host={json.dumps(SHARED)}")
        curves = {curve["planner"]: curve["points"] for curve in said["curves"]}
        for at, point in enumerate(curves["ilp"]):
            rivals = {rule: curves[rule][at]["step_ns"] for rule in RULES
                      if rule in curves and curves[rule][at]["fits"]}
            rule = min(rivals, key=rivals.get, default=None)
            gaps.append(point["gap"])
            slower += rule is not None and rivals[rule] < point["step_ns"]
            rows.append([model, f"{point['memory_limit_bytes'] / 2**30:.2f} GiB", ms(point["step_ns"]),
                         f"{point['gap']:.2%}", rule or "-", ms(rivals.get(rule)),
                         f"{rivals[rule] / point['step_ns']:.2f}" if rule else "-"])
    return rows, gaps, slower


def least_bytes(build, micro_steps, inputs):
    """Returns {location of all state: the least device memory of a plan}, from weft estimate."""
    said = weft(build, "estimate", str(ROOT / "configs/runs/llama-3-8b.json"), "--json", "--set", "train.seq_len=8192",
                "--set", f"train.grad_accum={micro_steps}", "--set", "plan.recompute=whole", "--set",
                f"cluster.host={json.dumps(SHARED)}", "--set",
                f"plan.offload={json.dumps({'activations': ['device'], 'inputs': inputs})}")
    return {home: found["device_needs_bytes"] for home, found in said["state_homes"].items()}


def inputs_of_layers(build, most):
    """Returns the table's rows, and the bytes that inputs on the host free with the most micro-steps."""
    rows, freed = [], 0
    for micro_steps in sorted({1, most}):
        here = least_bytes(build, micro_steps, ["device"])
        there = least_bytes(build, micro_steps, ["device", "host"])
        for home, least in here.items():
            freed = least - there[home]
            rows.append([str(micro_steps), home, f"{least / 1e9:.2f} GB", f"{there[home] / 1e9:.2f} GB",
                         f"{freed / 1e9:.2f} GB"])
    return rows, freed


def show(title, columns, rows):
    print(f"## {title}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
    print(flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("parts", nargs="*", choices=["ways", "limits", "inputs", []], default=[])
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--points", type=int, default=8)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--micro-steps", type=int, default=8)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    parts = arguments.parts or ["ways", "limits", "inputs"]
    if "ways" in parts:
        rows, gain = ways(arguments.build)
        show("ways", ["way", "step", "of both", "proven gap"], rows)
        if arguments.record:
            results.record("offload", "ways", rows,
                           {"steps of zero-offload over ilp's": (f"{gain:.2f}", gain >= 1.4)})
    if "limits" in parts:
        rows, gaps, slower = limits(arguments.build, arguments.models.split(","), arguments.points)
        show("limits", ["model", "limit", "ilp", "gap", "best rule", "its step", "over ilp's"], rows)
        if arguments.record:
            results.record("offload", "limits", rows, {
                "points at which a rule is faster": (str(slower), slower == 0),
                "largest proven gap": (f"{max(gaps):.2%}", max(gaps) <= 0.01)})
    if "inputs" in parts:
        rows, freed = inputs_of_layers(arguments.build, arguments.micro_steps)
        show("inputs", ["micro-steps", "state on the", "inputs on the device", "inputs on the host", "less"], rows)
        if arguments.record:
            results.record("offload", "inputs", rows,
                           {"memory that inputs on the host free": (f"{freed / 1e9:.2f} GB", freed > 0)})


main()
