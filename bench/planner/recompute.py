#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the joint choice with rules that choose recomputation: bench/planner/recompute.py --build BUILD

A point is a config, a network and a memory limit of a rank. Its global batch is fixed, and each planner splits it anew.
The joint choice is `ilp` with plan.recompute=auto. Rivals are ilp without recomputation (none), ilp with selective
recomputation in every layer that may, and every rule of RULES with its own best setting. The simulator judges all
plans. A point without a plan of the joint choice is left out.

Plans depend on counts of work alone, so other programs do not change them. --out keeps the plans of an interrupted run.
--record writes the tables `recompute` and `recompute-gain` of bench/results/rivals.json.
"""
import argparse
import concurrent.futures
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from results import record  # pylint: disable=wrong-import-position

# Model, samples of a step, limits of a rank.
MODELS = {"llama-3-8b": (64, ["24GB", "40GB"]), "gpt3-13b": (64, ["40GB", "80GB"]),
          "gpt2-xl": (128, ["8GB", "16GB"])}
NETWORKS = [100, 400, 3200]  # Gbit/s of a node of 8 ranks
RULES = ["recompute-all", "recompute-selective", "checkmate-budget", "auto-perf-maxing", "sac-ilp",
         "galvatron", "auto-micro-batch", "fsdp2-mix"]
SETTINGS = {"recompute-all": ["1", "kept"], "recompute-selective": ["1", "kept"],
            "auto-perf-maxing": ["1", "kept"]}
OWN = {"none": ("ilp", "none"), "selective": ("ilp", "selective"), "joint": ("ilp", "auto")}
TIE = 1e-6


def config_of(model, network, limit):
    run = json.loads((ROOT / "configs/runs" / f"{model}.json").read_text())
    cluster = json.loads((ROOT / "configs/clusters/h100-16.json").read_text())
    cluster.pop("$comment", None)
    cluster["link"]["inter"] = {"alpha": "50us", "bandwidth": f"{network / 8}GB/s"}
    cluster["memory_limit"] = limit
    run["model"] = str(ROOT / "configs" / "models" / f"{model}.json")
    run["cluster"] = cluster
    run["train"].pop("grad_accum", None)
    run["train"].update(batch=MODELS[model][0], micro_batch="auto")
    return run


def plan(options, point, name, planner, recompute):
    """Returns the step in ns, or None without a plan."""
    done = options.out / f"{'-'.join(map(str, point))}-{name.replace(':', '-')}.json"
    if not done.exists():
        source = options.out / f"{'-'.join(map(str, point))}.config"
        source.write_text(json.dumps(config_of(*point)))
        answer = subprocess.run(
            [str(options.build / "cli/weft"), "plan", str(source), "--planner", planner, "--set",
             f"plan.recompute={recompute}", "--work-limit", options.work, "--json", "-q"],
            capture_output=True, text=True, check=False)
        if answer.returncode not in (0, 65, 78):
            raise SystemExit(f"{done.stem}: exit {answer.returncode}: {answer.stderr[-300:]}")
        done.write_text(answer.stdout if answer.returncode == 0 else "{}")
    report = json.loads(done.read_text())
    return report.get("step_ns")


def judge(options, point):
    """Returns the steps of a point: {name: ns}."""
    steps = {name: plan(options, point, name, *how) for name, how in OWN.items()}
    for rule in RULES:
        rows = [plan(options, point, f"{rule}:{setting}", f"{rule}:{setting}", "auto")
                for setting in SETTINGS[rule]] if rule in SETTINGS else \
            [plan(options, point, rule, rule, "auto")]
        steps[rule] = min((row for row in rows if row), default=None)
    return {name: ns for name, ns in steps.items() if ns}


def compare(name, points):
    """Returns a row: points where the rival has a plan, wins, ties and losses of the joint choice, gains."""
    gains = [steps[name] / steps["joint"] - 1 for steps in points.values() if name in steps]
    if not gains:
        return [name, 0, 0, 0, 0, "-", "-"]
    wins = sum(gain > TIE for gain in gains)
    losses = sum(gain < -TIE for gain in gains)
    return [name, len(gains), wins, len(gains) - wins - losses, losses,
            f"{100 * statistics.median(gains):.2f} %", f"{100 * max(gains):.1f} %"]


def gain_rows(points):
    """Returns a row for each model and network: gain over the better of none and selective, by limit."""
    rows = []
    for model, (_, limits) in MODELS.items():
        for network in NETWORKS:
            row = [model, network]
            for limit in limits:
                steps = points.get((model, network, limit), {})
                hand = [steps[name] for name in ("none", "selective") if name in steps]
                row.append(f"{limit}: no plan" if not steps else f"{limit}: only it fits" if not hand else
                           f"{limit}: {100 * (min(hand) / steps['joint'] - 1):.2f} %")
            if any((model, network, limit) in points for limit in limits):
                rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("recompute-plans"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--work", default="1G")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    todo = [(model, network, limit) for model in options.models for network in NETWORKS
            for limit in MODELS[model][1]]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        points = dict(zip(todo, pool.map(lambda point: judge(options, point), todo)))
    points = {point: steps for point, steps in points.items() if "joint" in steps}
    rivals = [compare(name, points) for name in ["none", "selective", *RULES]]
    gains = [min(steps[name] for name in ("none", "selective") if name in steps) / steps["joint"] - 1
             for steps in points.values() if "none" in steps or "selective" in steps]
    auto = [steps["auto-perf-maxing"] / steps["joint"] - 1 for steps in points.values()
            if "auto-perf-maxing" in steps]
    losses = sum(row[4] for row in rivals)
    print(f"{len(points)} of {len(todo)} points have a plan; joint over the better of none and selective: "
          f"median {100 * statistics.median(gains):.2f} %, best {100 * max(gains):.1f} %; "
          f"over auto-perf-maxing: best {100 * max(auto):.1f} %")
    for row in rivals + gain_rows(points):
        print("|", " | ".join(map(str, row)), "|")
    if options.record:
        record("rivals", "recompute", rivals, {
            "points at which the joint choice is slower than a rival":
                (f"{losses} of {len(points)}", losses == 0),
            "best gain over auto-perf-maxing": (f"{100 * max(auto):.1f} %", max(auto) >= 0.06)})
        record("rivals", "recompute-gain", gain_rows(points), {})


if __name__ == "__main__":
    main()
