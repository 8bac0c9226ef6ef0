#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps that are planned for 8 A100 at limits of memory: bench/planner/on_gpu.py --build BUILD [--before BUILD]

Plans gpt2-xl for GPUs at each limit, with plan.recompute=auto. --before names a build to compare with. Plans depend on
counts of work alone, so other programs do not change them. --record writes the table `on-gpu` of
bench/results/memory.json; the steps of --before are then needed.
"""
import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from results import record  # pylint: disable=wrong-import-position

LIMITS = [8, 10, 12, 16, 20]  # GiB of a rank
GOAL = "step falls at these limits"
GOALS = [7.3, 8.4, 9.6, 7.0, 2.7]  # per cent


def plan(build, limit, work):
    """Returns the plan's report."""
    build = Path(build).resolve()
    command = [build / "cli/weft", "plan", ROOT / "configs/runs/gpt2-xl.json", "--set", "cluster.device.type=cuda",
               "--set", "plan.recompute=auto", "--memory-limit", f"{limit}GiB", "--work-limit", work, "-q", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "WEFT_SOLVE": str(build / "scheduler/weft-solve")})
    if done.returncode != 0:
        sys.exit(f"{limit} GiB: {done.stderr}")
    return json.loads(done.stdout)


def row_of(limit, before, after):
    """Limit, both steps, the fall, and the proven gap of the new plan."""
    fall = f"{100 * (1 - after['step_ns'] / before['step_ns']):.1f} %" if before else "-"
    return [f"{limit} GiB", f"{before['step_ns'] / 1e6:.1f} ms" if before else "-",
            f"{after['step_ns'] / 1e6:.1f} ms", fall, f"{100 * after['gap']:.3f} %"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True)
    parser.add_argument("--before")
    parser.add_argument("--work", default="1G", help="plan.work_limit of each plan")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    rows = []
    for limit in LIMITS:
        before = plan(options.before, limit, options.work) if options.before else None
        rows.append(row_of(limit, before, plan(options.build, limit, options.work)))
        print(" | ".join(rows[-1]), flush=True)
    if options.record:
        falls = [row[3] for row in rows]
        met = all(float(fall.split()[0]) >= goal for fall, goal in zip(falls, GOALS))
        record("memory", "on-gpu", rows, {GOAL: (", ".join(falls), met)})


if __name__ == "__main__":
    main()
