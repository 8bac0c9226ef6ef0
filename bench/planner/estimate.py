#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the estimate's figures: bench/planner/estimate.py --build BUILD [RUN...]

For each run in configs/runs, or the named ones, it compares the need of a published rule in `weft estimate` with the
rule's plan without a limit. The goal is at most 2 % between the estimate and the fullest slot of the simulated
program. It also shows a rank's total in whole pages, which an estimate does not compute. Only the seconds depend on
the machine. Markdown on stdout; exit 1 if the goal is missed. --record writes bench/results/estimate.json.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import results  # pylint: disable=wrong-import-position

RULES = ["ddp", "zero1", "fsdp2:kept", "fsdp2", "deepspeed"]
CANNOT = 65  # exit code: the rule does not apply
ASKED = 0.02


class Weft:
    def __init__(self, build):
        self.program = str(Path(build) / "cli" / "weft")

    def run(self, *arguments):
        """Runs weft and returns its JSON; None if a rule does not apply."""
        done = subprocess.run([self.program, *arguments, "--json", "-q"], capture_output=True,
                              text=True, check=False)
        if done.returncode == CANNOT:
            return None
        if done.returncode != 0:
            sys.exit(f"weft {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def simulated(weft, config, rule, scratch):
    """Returns the bytes of the rule's plan (fullest slot, in pages); None if the rule makes no plan."""
    plan = str(Path(scratch) / "plan.json")
    if weft.run("plan", config, "--planner", rule, "--memory-limit", "1PB", "-o", plan) is None:
        return None
    replayed = weft.run("simulate", plan, "--config", config, "--memory-limit", "1PB")
    return replayed["peak_bytes"], replayed["total_bytes"]


def compare(weft, run, scratch):
    """Returns the needs of each rule of a run, {rule: (estimated, fullest slot, in pages)}, and the estimate's seconds.
    """
    config = str(ROOT / "configs" / "runs" / f"{run}.json")
    begun = time.monotonic()
    rows = weft.run("estimate", config)["rows"]
    took = time.monotonic() - begun
    told = {row["rule"]: row["needs_bytes"] for row in rows if "rule" in row}
    made = {rule: simulated(weft, config, rule, scratch) for rule in RULES}
    if {rule for rule in RULES if made[rule]} != set(told):
        sys.exit(f"{run}: told of {sorted(told)}, but {made}")
    return {rule: (told[rule], *made[rule]) for rule in told}, took


def summary(rule, needs):
    """Returns the largest distance of the simulated peaks from the estimates, and a table row."""
    apart = [abs(simulated - told) / simulated for told, simulated, _ in needs.values()]
    paged = {run: (total - told) / total for run, (told, _, total) in needs.items()}
    worst = max(paged, key=paged.get)
    return max(apart), [rule, len(needs), f"{100 * max(apart):.3f} %",
                        f"{100 * statistics.median(paged.values()):.3f} %",
                        f"{100 * paged[worst]:.2f} % ({worst})"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("runs", nargs="*")
    options = parser.parse_args()
    if options.record and options.runs:
        parser.error("--record is of all runs")
    weft = Weft(options.build)
    runs = options.runs or sorted(path.stem for path in (ROOT / "configs" / "runs").glob("*.json"))
    with tempfile.TemporaryDirectory() as scratch:
        answers = {run: compare(weft, run, scratch) for run in runs}
    print("| rule | runs | from the simulated peak, worst | pages more, median | worst |")
    print("| --- | --- | --- | --- | --- |")
    told = [summary(rule, {run: needs[rule] for run, (needs, _) in answers.items() if rule in needs})
            for rule in RULES]
    worst, rows = max(apart for apart, _ in told), [row for _, row in told]
    print("\n".join(results.cells(*row) for row in rows))
    slowest = max(runs, key=lambda run: answers[run][1])
    print(f"\n{len(runs)} runs; the slowest estimate took {answers[slowest][1]:.2f} s ({slowest}).")
    if options.record:
        reached = {"from the simulated peak, worst": (f"{100 * worst:.3f} %", worst <= ASKED)}
        results.record("estimate", "estimate", rows, reached)
    return 0 if worst <= ASKED else 1


if __name__ == "__main__":
    sys.exit(main())
