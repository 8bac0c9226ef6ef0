#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes problem files with the best known plan and bound: bench/study/points.py --build BUILD --out DIR [--work 2G]

A point is a model of the study at one of its limits. DIR/MODEL-xNETWORK-LIMIT.json is a plan file (docs/plan-file.md): its
`problem` is the problem, `prediction` the best known step, and `bound` the proven bound with its certificate. Answer with a
rival (docs/rivals.md). Prints a line for each point. Points are spread over those of
bench/results/study/points.csv.
"""
import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

from study import ROOT, config_of

MOST = 20


def points():
    """Returns (model, network, limit) in the order of the study."""
    with open(ROOT / "bench/results/study/points.csv", encoding="utf-8", newline="") as file:
        found = [(point["model"], float(point["network"]), int(point["memory_limit_bytes"])) for point in csv.DictReader(file)
                 if point["planner"] == "ilp" and point["fits"] == "1"]
    return found[::max(1, len(found) // MOST)][:MOST]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", default="2G", help="work limit of a plan")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for model, network, limit in points():
        path = options.out / f"{model}-x{network:g}-{limit}.json"
        config = options.out / f"{model}-x{network:g}.config"
        config.write_text(json.dumps(config_of(model, network)))
        if not path.exists():
            subprocess.run([options.build / "cli/weft", "plan", config, "--memory-limit", f"{limit}B", "--work-limit",
                            options.work, "-q", "-o", path], check=True, stdout=subprocess.DEVNULL)
        plan = json.loads(path.read_text())
        step, bound = plan["prediction"]["step_ns"], plan["bound"]["bound_ns"]
        print(f"{path.name}: step {step} ns, bound {bound} ns, gap {100 * (step / bound - 1):.3f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
