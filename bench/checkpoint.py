#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of saves for training, in one run that saves in the background every few steps.

Compares the steps just after a save with the other steps of the same run. The clock is that of this program, which
reads the run's lines.

    bench/checkpoint.py --weft build/cli/weft [--config C] [--every 8] [--saves 20]
"""
import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BESIDE = 3  # steps after a save that it may delay: snapshot and writing, commit, retention


def intervals(arguments, steps):
    """Returns the seconds from each step's line to the next, from step 2 on, and the lines of the saves."""
    directory = tempfile.mkdtemp(prefix="weft-bench-", dir=arguments.directory)
    command = [arguments.weft, "train", arguments.config, "--json", "--run", f"{directory}/run",
               "--set", f"train.steps={steps}", "--set", f"train.checkpoint.every={arguments.every}"]
    seconds, saves, before = [], [], None
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                now, said = time.monotonic(), json.loads(line)
                if said["kind"] == "checkpoint":
                    saves.append(said)
                elif said["kind"] == "step":
                    seconds += [] if before is None else [now - before]
                    before = now
        if process.returncode != 0:
            sys.exit(f"train: exit {process.returncode}")
    finally:
        shutil.rmtree(directory)
    return seconds, saves


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weft", default="build/cli/weft")
    parser.add_argument("--config", default="configs/runs/gpt-10m.json")
    parser.add_argument("--directory", default=".", help="where the run's directory is made")
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--saves", type=int, default=20)
    arguments = parser.parse_args()
    if arguments.every < BESIDE + 3:
        parser.error(f"--every must be {BESIDE + 3} at least, or no step is apart from saves")
    every = arguments.every
    seconds, saves = intervals(arguments, every * (arguments.saves + 1) - 1)
    # seconds[i] belongs to step i + 2. Step k is `k % every` steps after a save; 0 is the saved step.
    quiet, costs = [], []
    for first in range(every, len(seconds) + 2 - every + 1, every):
        steps = [seconds[step - 2] for step in range(first + 1, first + every)]
        rest = statistics.median(steps[BESIDE:])
        quiet.append(rest)
        costs.append(sum(steps[:BESIDE]) - BESIDE * rest)
    cost = statistics.median(costs)
    print(json.dumps({
        "config": arguments.config, "saves": len(costs), "bytes": saves[0]["saved_bytes"],
        "step_s": round(statistics.median(quiet), 4), "save_costs_s": round(cost, 4),
        "least_s": round(min(costs), 4), "most_s": round(max(costs), 4),
        "training_stood_still_s": round(statistics.median(s["save_ns"] for s in saves) * 1e-9, 4),
        "percent_of_30_s": round(100 * cost / 30, 2),
    }))


main()
