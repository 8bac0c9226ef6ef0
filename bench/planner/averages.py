#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Averages over nodes every 1, 4 and 16 steps: bench/planner/averages.py --build BUILD

Two tables of bench/results/scale.json, which --record writes:

- `averages`: plans of 16 nodes of 8 GPUs on networks of 10 to 100 Gbit/s, with all parts of the model averaged in one
  step or in as many steps as there are. Next to the step: the bytes that a rank sends to other nodes in a step, and the
  same step if an average came after it. Plans depend on no clock.
- `averages-loss`: losses of a tiny model that 4 nodes of one rank train, of all nodes over the last 16 steps. Runs are
  exact, so other programs change nothing.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "bench/planner"))
sys.path.insert(0, str(ROOT / "tests/cli"))

from configs import tiny  # pylint: disable=wrong-import-position
from results import record  # pylint: disable=wrong-import-position
from scale import ask, plan  # pylint: disable=wrong-import-position

RANKS, PER_NODE = 128, 8
EVERY = (1, 4, 16)
GIGABITS = (10, 25, 100)
OUTER = {"momentum": 0.9, "lr": 0.7}
LAST = 16
GOAL = "most of an average's time that a step hides, at 10 Gbit/s"


def cluster_of(gigabits):
    cluster = json.loads((ROOT / "configs/clusters/a100-16.json").read_text())
    cluster.pop("$comment", None)
    cluster.update(ranks=RANKS, ranks_per_node=PER_NODE)
    cluster["link"]["inter"] = {"alpha": "50us", "bandwidth": f"{gigabits / 8}GB/s"}
    return f"cluster={json.dumps(cluster)}"


def show_ms(ns):
    return f"{ns / 1e6:,.0f} ms"


def row_of(options, folder, model, gigabits, every, fragments):
    """Returns the row, and the hidden share of an average's time."""
    across = {"every": every, "fragments": fragments}
    said, _, _, _ = plan(options, folder, model, cluster_of(gigabits), f"train.across={json.dumps(across)}",
                         f"plan.work_limit={options.work}")
    if said is None:
        return [model, f"{gigabits}", f"{every}", f"{fragments}", "no plan fits", "-", "-", "-", "-"], 0
    average = said["average"]
    after = average["usual_step_ns"] + average["ns"] / every
    jitter = "-"
    if options.jitter:
        of, _, _ = ask(options, folder, "simulate", f"{folder}/plan.json", "--jitter", "0.2", "--jitter-steps", "48")
        jitter = f"{100 * (of['jitter']['mean_ns'] / said['step_ns'] - 1):+.1f} %"
    return [model, f"{gigabits}", f"{every}", f"{fragments}", f"{average['sent_bytes'] / every / 1e6:,.1f} MB",
            show_ms(average["longest_step_ns"]), show_ms(said["step_ns"]), show_ms(after), jitter], \
        1 - (said["step_ns"] - average["usual_step_ns"]) / max(after - average["usual_step_ns"], 1)


def table_of_plans(options, folder):
    rows, hidden = [], 0
    for model in options.models.split(","):
        for gigabits in map(int, options.networks.split(",")):
            for every in EVERY:
                for fragments in sorted({1, every}):
                    row, share = row_of(options, folder, model, gigabits, every, fragments)
                    rows.append(row)
                    hidden = max(hidden, share if gigabits == GIGABITS[0] and every > 1 else 0)
                    print("|", " | ".join(row), "|", flush=True)
    return rows, {GOAL: (f"{100 * hidden:.0f} %", hidden >= 0.9)}


def losses_of(options, folder, across):
    config = tiny(cluster__ranks=4, cluster__ranks_per_node=1, cluster__threads=1, train__steps=options.steps,
                  cluster__link__inter={"alpha": "100us", "bandwidth": "100MB/s"},
                  cluster__device__flops={"f32": "50G", "bf16": "50G"}, train__across=across)
    path, run = Path(folder) / "run.json", f"{folder}/run-{'-'.join(map(str, across.values()))}"
    path.write_text(json.dumps(config))
    subprocess.run([options.build / "cli/weft", "train", path, "-q", "--run", run], check=True, stderr=subprocess.DEVNULL)
    lines = [json.loads(line) for line in Path(run, "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step" and line["step"] > options.steps - LAST]
    if not across:
        return sum(line["loss"] for line in steps) / LAST
    return sum(line["nodes_loss"] * line["nodes_steps"] for line in steps if "nodes_steps" in line) / LAST


def table_of_losses(options, folder):
    rows = []
    kinds = {"mean": {}, "outer optimizer": OUTER, "fragments": None, "gossip": {"rule": "gossip"}}
    rows.append(["all ranks together", "-", f"{losses_of(options, folder, {}):.3f}"])
    for every in EVERY:
        for name, more in kinds.items():
            if name == "fragments" and every == 1:
                continue
            across = {"every": every, **(more if more is not None else {"fragments": every})}
            rows.append([f"{every}", name, f"{losses_of(options, folder, across):.3f}"])
            print("|", " | ".join(rows[-1]), "|", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--models", default="gpt2-xl,llama-3-8b")
    parser.add_argument("--networks", default=",".join(map(str, GIGABITS)), help="Gbit/s (default %(default)s)")
    parser.add_argument("--work", default="200M", help="plan.work_limit (default %(default)s)")
    parser.add_argument("--steps", type=int, default=96, help="of the tiny model (default %(default)s)")
    parser.add_argument("--no-jitter", dest="jitter", action="store_false")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plans, reached = table_of_plans(options, folder)
        losses = table_of_losses(options, folder)
    if options.record:
        record("scale", "averages", plans, reached)
        record("scale", "averages-loss", losses, {})


if __name__ == "__main__":
    main()
