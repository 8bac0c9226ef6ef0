#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans updates before the next use and in backward: bench/planner/updates.py --build BUILD

Two tables of bench/results/scale.json, which --record writes:

- `disk`: steps of a model of GPT-65B's shape on one node of 4 A100 with a disk of 1.6 GB/s read and 0.8 GB/s write a GPU,
  by turns. A step has 32 sequences of 2,048 tokens. All blocks recompute, and reduced gradients are bf16. A row is Weft's
  plan in an order of micro-steps with a place of updates (`plan.update_in`), or a published rule. zero-infinity gets
  100 GB a GPU, since its plan exceeds 80 GB.
- `updates`: the least device memory of any policy without offloading or clipping, just in time, by place of updates.

Plans depend on no clock, so other programs change nothing.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from results import record  # pylint: disable=wrong-import-position

# Name: planner, order of micro-steps, place of updates, memory of a GPU. The first one is the base of gains.
PLANS = {"zero-infinity": ("zero-infinity", "step", "forward", "100GB"),
         "greedysnake": ("greedysnake", "layer", "forward", "80GB"),
         **{f"Weft, {order}, {update_in}": ("ilp", order, update_in, "80GB")
            for order in ("step", "layer") for update_in in ("forward", 4)}}
RUNS = [(model, ranks, recompute) for model in ("gpt2-xl", "llama-3-8b") for ranks in (1, 8) for recompute in ("none", "whole")]
PLACES = ("forward", "backward")
GAIN = "step of zero-infinity over the best one of Weft with updates in backward, with a disk"
IN_BACKWARD = [name for name, plan in PLANS.items() if plan[2] == 4]
SAVED = "most device memory that updates in backward save, without offloading"
HIDDEN = 8192


def config_of(planner, order, update_in, limit, host, layers, work):
    link = {"alpha": "10us", "bandwidth": "20GB/s"}
    model = [{"name": "wte", "type": "embedding", "vocab": 50257, "positions": 2048, "hidden": HIDDEN},
             {"name": "h.{i}", "type": "transformer_block", "repeat": layers, "hidden": HIDDEN, "heads": 64, "ffn": 4 * HIDDEN},
             {"name": "ln_f", "type": "layer_norm", "hidden": HIDDEN},
             {"name": "head", "type": "lm_head", "vocab": 50257, "hidden": HIDDEN, "bias": False}]
    cluster = {"ranks": 4, "ranks_per_node": 4, "memory_limit": limit,
               "device": {"flops": {"bf16": "312T"}, "memory_bandwidth": "2TB/s", "efficiency": 0.5},
               "link": {"intra": {"alpha": "12.5us", "bandwidth": "254GB/s"}},
               "host": {"memory_limit": host, "down": link, "up": link},
               "disk": {"path": "/var/tmp", "limit": "1TB",
                        "read": {"alpha": "100us", "bandwidth": "1.6GB/s"},
                        "write": {"alpha": "100us", "bandwidth": "0.8GB/s"}}}
    train = {"steps": 1000, "micro_batch": 2, "grad_accum": 4, "seq_len": 2048, "clip_norm": 0,
             "precision": {"compute": "bf16", "reduce": "f32", "accumulate": "bf16"},
             "optimizer": {"type": "adamw", "lr": 1e-4}}
    plan = {"planner": planner, "work_limit": work, "blocks": 1, "recompute": "whole", "micro_step_order": order,
            "update_in": update_in, "offload": {"state": ["device", "host", "disk"], "activations": ["device"],
                                                "inputs": ["device", "host"], "update": ["device"]}}
    return {"version": 1, "model": {"layers": model}, "cluster": cluster, "train": train, "plan": plan}


def ask(options, *arguments):
    answer = subprocess.run([str(options.build / "cli/weft"), *arguments, "--json", "-q"], capture_output=True, text=True,
                            check=False)
    if answer.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit {answer.returncode}: {answer.stderr[-300:]}")
    return json.loads(answer.stdout)


def rows_of_disk(options, folder):
    """Returns rows, and the best gain of updates in backward over the first plan."""
    rows, most = [], 0
    for host in options.hosts:
        base = None
        for name, (planner, order, update_in, limit) in PLANS.items():
            path = Path(folder) / "config.json"
            path.write_text(json.dumps(config_of(planner, order, update_in, limit, host, options.layers, options.work)))
            said = ask(options, "plan", str(path), "-o", f"{folder}/plan.json")
            base = base or said["step_ns"]
            gain = base / said["step_ns"]
            most = max(most, gain if name in IN_BACKWARD else 0)
            rows.append([host, name, limit, options.work, f"{said['total_bytes'] / 2**30:.1f} GiB",
                         f"{said['step_ns'] / 6e10:.2f} min", f"{gain:.2f}"])
            print("|", " | ".join(rows[-1]), "|", flush=True)
    return rows, most


def least_bytes(options, model, ranks, recompute, update_in):
    """Returns the least need of all policies, and the slot of its peak."""
    sets = ["train.clip_norm=0", f"plan.update_in={update_in}", f"cluster.ranks={ranks}", f"cluster.ranks_per_node={ranks}",
            "cluster.memory_limit=1TB", "train.micro_batch=1", "train.grad_accum=1", f"plan.recompute={recompute}"]
    said = ask(options, "estimate", str(ROOT / f"configs/runs/{model}.json"),
               *(part for one in sets for part in ("--set", one)))
    return min((row["needs_bytes"], row["policy"], row["peak_slot"]) for row in said["rows"])


def rows_of_updates(options):
    rows, most = [], 0
    for model, ranks, recompute in RUNS:
        if model not in options.models:
            continue
        needs = [least_bytes(options, model, ranks, recompute, place) for place in PLACES]
        saved = 1 - needs[1][0] / needs[0][0]
        most = max(most, saved)
        cells = [f"{need / 2**30:.2f} GiB ({policy}, {slot})" for need, policy, slot in needs]
        rows.append([model, str(ranks), recompute, *cells, f"{100 * saved:.0f} %"])
        print("|", " | ".join(rows[-1]), "|", flush=True)
    return rows, most


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--work", default="3G", help="plan.work_limit of `disk` (default %(default)s)")
    parser.add_argument("--layers", type=int, default=80, help="blocks of `disk` (default %(default)s)")
    parser.add_argument("--hosts", default="50GB,100GB", help="host memory a GPU of `disk` (default %(default)s)")
    parser.add_argument("--models", default="gpt2-xl,llama-3-8b", help="of `updates` (default %(default)s)")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    options.models, options.hosts = options.models.split(","), options.hosts.split(",")
    memory, most = rows_of_updates(options)
    with tempfile.TemporaryDirectory() as folder:
        disk, gain = rows_of_disk(options, folder)
    if options.record:
        record("scale", "updates", memory, {SAVED: (f"{100 * most:.0f} %", most >= 0.15)})
        record("scale", "disk", disk, {GAIN: (f"{gain:.2f}", gain >= 1.9)})


if __name__ == "__main__":
    main()
