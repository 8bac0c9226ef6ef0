#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time of a unit of work: bench/planner/work.py --weft WEFT [CONFIG...]

Plans configs of configs/runs (by default CONFIGS) near the least limit that fits and with a gap of almost zero, so
that searches, tree, solver and pages all work. Compares the units that `weft plan -v` reports with the user time of
weft and its solver. A unit should take about a nanosecond on the machine of the measured costs. It matters that it
takes much the same for all models. Plans below a tenth of a second are left out. Markdown on stdout.
"""
import argparse
import re
import resource
import statistics
import subprocess
from pathlib import Path

RUNS = Path(__file__).resolve().parents[2] / "configs" / "runs"
CONFIGS = ["gpt2", "gpt2-xl", "llama-3-8b", "gpt3-13b", "gpt3-175b", "llama-3.1-405b", "resnet-50",
           "vgg-19", "uneven-64", "mixtral-8x7b", "bert-large", "gpt-no-clip"]
TIMES = [1.002, 1.02, 1.1]
LEAST_S = 0.1


def run(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", nargs="*", default=CONFIGS)
    parser.add_argument("--weft", required=True)
    options = parser.parse_args()
    ratios = []
    print("| config | limit | units | user | ns a unit |\n| --- | --- | --- | --- | --- |")
    for name in options.configs:
        config = str(RUNS / f"{name}.json")
        refusal = run(options.weft, "plan", config, "--memory-limit", "1KiB")[0].stderr
        found = re.search(r"the least limit that fits is [^(]*\((\d+) bytes", refusal)
        for times in TIMES if found else []:
            limit = int(int(found.group(1)) * times)
            answer, user_s = run(options.weft, "plan", config, f"--memory-limit={limit}B", "-v",
                                 "--gap", "1e-6")
            spent = re.search(r"planning took ([0-9.]+) G units", answer.stderr)
            if answer.returncode != 0 or not spent or user_s < LEAST_S:
                continue
            units = float(spent.group(1))
            ratios.append(user_s / units)
            print(f"| {name} | {times} x the least | {units:.3f}G | {user_s:.2f} s | "
                  f"{ratios[-1]:.2f} |", flush=True)
    print(f"\n{len(ratios)} plans: median {statistics.median(ratios):.2f} ns a unit, "
          f"{min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
