#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Averages over nodes every 1, 4 and 16 steps: bench/planner/averages.py --build BUILD

Two tables of bench/results/scale.json, which --record writes:

- `averages`: plans of 16 nodes of 8 GPUs on networks of 10 to 100 Gbit/s. Each average is of all nodes (mean), of all
  nodes in as many fragments as steps (fragments), or of two neighbours (gossip). Rows show the bytes that a rank sends to
  other nodes in a step, and the step. An average after the step would add its time, over H, to a step without averages.
  The first row of a network is hsdp, with gradients of all nodes. Plans depend on no clock.
- `averages-loss`: losses of a tiny model on 4 nodes of one rank, over all nodes and the last 16 steps. Two nodes would
  have one pair, and gossip would be the mean. Runs are exact, so other programs change nothing.
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
KINDS = {"mean": lambda every: {"every": every}, "fragments": lambda every: {"every": every, "fragments": every},
         "gossip": lambda every: {"every": every, "rule": "gossip"}}
GOAL = "step of averages over a step with the average after it, worst"


def cluster_of(gigabits):
    cluster = json.loads((ROOT / "configs/clusters/a100-16.json").read_text())
    cluster.pop("$comment", None)
    cluster.update(ranks=RANKS, ranks_per_node=PER_NODE)
    cluster["link"]["inter"] = {"alpha": "50us", "bandwidth": f"{gigabits / 8}GB/s"}
    return f"cluster={json.dumps(cluster)}"


def show_ms(ns):
    return f"{ns / 1e6:,.0f} ms"


def wait_of(options, folder, step_ns):
    """Returns how much random compute times lengthen the step of the folder's plan."""
    if not options.jitter:
        return "-"
    of, _, _ = ask(options, folder, "simulate", f"{folder}/plan.json", "--jitter", "0.2", "--jitter-steps", "48")
    return f"{100 * (of['jitter']['mean_ns'] / step_ns - 1):+.1f} %"


def plan_of(options, folder, model, gigabits, *settings):
    said, _, _, _ = plan(options, folder, model, cluster_of(gigabits), *settings, f"plan.work_limit={options.work}")
    if said is None:
        raise SystemExit(f"{model} at {gigabits} Gbit/s: no plan fits with {' '.join(settings)}")
    return said


def across(of):
    return f"train.across={json.dumps(of)}"


def rows_of(options, folder, model, gigabits):
    """Returns the rows of a network, and the largest step over a step with the average after it."""
    start, worst = [model, f"{gigabits}"], 0
    usual = plan_of(options, folder, model, gigabits, across({"every": max(EVERY)}))["average"]["usual_step_ns"]
    step_ns = plan_of(options, folder, model, gigabits, "plan.policies=hsdp")["step_ns"]
    rows = [[*start, "-", "hsdp", "-", "-", show_ms(step_ns), "-", wait_of(options, folder, step_ns)]]
    for every in EVERY:
        for kind, settings in KINDS.items():
            if kind == "fragments" and every == 1:
                continue
            said = plan_of(options, folder, model, gigabits, across(settings(every)))
            average, step_ns = said["average"], said["step_ns"]
            after = usual + average["ns"] / every
            worst = max(worst, step_ns / after)
            rows.append([*start, f"{every}", kind, f"{average['sent_bytes'] / every / 1e6:,.1f} MB",
                         show_ms(average["longest_step_ns"]), show_ms(step_ns), show_ms(after),
                         wait_of(options, folder, step_ns)])
    return rows, worst


def table_of_plans(options, folder):
    rows, worst = [], 0
    for model in options.models.split(","):
        for gigabits in options.networks.split(","):
            new, ratio = rows_of(options, folder, model, int(gigabits))
            rows += new
            worst = max(worst, ratio)
            print("\n".join("| " + " | ".join(row) + " |" for row in new), flush=True)
    print(f"{GOAL}: {worst:.3f}")
    return rows, {GOAL: (f"{worst:.3f}", worst <= 1)}


def loss_of(options, folder, name, of):
    config = tiny(cluster__ranks=4, cluster__ranks_per_node=1, cluster__threads=1, train__steps=options.steps,
                  cluster__link__inter={"alpha": "100us", "bandwidth": "100MB/s"}, train__across=of)
    path, run = Path(folder) / "run.json", Path(folder) / name
    path.write_text(json.dumps(config))
    subprocess.run([options.build / "cli/weft", "train", path, "-q", "--run", run], check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step" and line["step"] > options.steps - LAST]
    if not of:
        return f"{sum(line['loss'] for line in steps) / len(steps):.3f}"
    met = [line for line in steps if "nodes_steps" in line]
    if sum(line["nodes_steps"] for line in met) != LAST:
        raise SystemExit(f"{name}: nodes did not meet at the first and the last of {LAST} steps")
    return f"{sum(line['nodes_loss'] * line['nodes_steps'] for line in met) / LAST:.3f}"


def table_of_losses(options, folder):
    kinds = {**KINDS, "outer optimizer": lambda every: {"every": every, **OUTER}}
    rows = [["-", "all ranks together", loss_of(options, folder, "together", {})]]
    for every in EVERY:
        rows += [[f"{every}", kind, loss_of(options, folder, f"{kind}-{every}", settings(every))]
                 for kind, settings in kinds.items() if kind != "fragments" or every > 1]
    print("\n".join("| " + " | ".join(row) + " |" for row in rows), flush=True)
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
