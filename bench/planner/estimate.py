#!/usr/bin/env python3
"""Re-creates the estimate's figures: bench/planner/estimate.py --build BUILD [RUN...]

For every run in configs/runs, or those named, what `weft estimate` says that a published rule needs
against the plan that the rule makes without a limit: the fullest slot of the program as it is
simulated, asked: at most 2 % apart; and all that a rank holds in whole pages,
which an estimate does not look for. Nothing depends on the machine but the seconds. Markdown on
stdout; exit 1 where it is missed. With --record it writes bench/results/estimate.json.
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
CANNOT = 65  # exit code: the rule cannot be applied
ASKED = 0.02


class Weft:
    def __init__(self, build):
        self.program = str(Path(build) / "cli" / "weft")

    def run(self, *arguments):
        """Its JSON; None where a rule cannot be applied."""
        done = subprocess.run([self.program, *arguments, "--json", "-q"], capture_output=True,
                              text=True, check=False)
        if done.returncode == CANNOT:
            return None
        if done.returncode != 0:
            sys.exit(f"weft {' '.join(arguments)}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def simulated(weft, config, rule, scratch):
    """(fullest slot, in pages) of the plan that the rule makes; None where it makes none."""
    plan = str(Path(scratch) / "plan.json")
    if weft.run("plan", config, "--planner", rule, "--memory-limit", "1PB", "-o", plan) is None:
        return None
    replayed = weft.run("simulate", plan, "--config", config, "--memory-limit", "1PB")
    return replayed["peak_bytes"], replayed["total_bytes"]


def compare(weft, run, scratch):
    """What each rule of a run needs: {rule: (estimated, fullest slot, in pages)}."""
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
    """How far the simulated peaks and the pages are from what was told, and a line of it."""
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
