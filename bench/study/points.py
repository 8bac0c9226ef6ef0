#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes problem files with the best known plan and bound: bench/study/points.py --build BUILD [--out DIR] [--work 2G]

A problem is a model of the study over one network, at a limit with a gap to the proven bound. Each case has the widest gap
first; further limits follow until 20 problems are there. A problem that the larger work limit closes is left out. DIR/NAME.json.gz is a plan file (docs/plan-file.md): its `problem` is the problem, `prediction` the best known
step, and `bound` the proven bound with its certificate. DIR/CONFIG.json is its config, with the memory limit apart.
DIR/index.csv lists them. Answer with a rival (docs/rivals.md). The points are those of bench/results/study/points.csv. A file
that is there is not planned again.
"""
import argparse
import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

from study import RESULTS, ROOT, config_of

MOST = 20
COLUMNS = ["problem", "config", "memory_limit_bytes", "slots", "decisions", "blocks", "step_ns", "bound_ns", "gap_percent"]


def points():
    """Returns (model, network, limit): the widest gap of each case first, then the second of each, and so on."""
    cases = {}
    with open(RESULTS / "points.csv", encoding="utf-8", newline="") as file:
        for point in csv.DictReader(file):
            if point["planner"] == "ilp" and point["fits"] == "1" and point["bound_ns"]:
                gap, case = int(point["step_ns"]) / int(point["bound_ns"]), (point["model"], float(point["network"]))
                cases.setdefault(case, []).append((-gap, int(point["memory_limit_bytes"])))
    ranked = [(rank, gap, *case, limit) for case, gaps in cases.items() for rank, (gap, limit) in enumerate(sorted(gaps))]
    return [one[2:] for one in sorted(ranked) if one[1] < -1]


def whole_config(model, network):
    """The config of a case in one file."""
    config = config_of(model, network)
    config["model"] = json.loads(Path(config["model"]).read_text()) if isinstance(config["model"], str) else config["model"]
    config["cluster"].pop("memory_limit", None)
    for part in (config, config["model"]):
        part.pop("$comment", None)
    return config


def make(options, model, network, limit):
    """Writes a problem unless it is there; returns its row. None, and no file, if the plan is as fast as its bound."""
    name, config = f"{model}-x{network:g}-{limit}", options.out / f"{model}-x{network:g}.json"
    path, plain = options.out / f"{name}.json.gz", options.out / f"{name}.json"
    config.write_text(json.dumps(whole_config(model, network), indent=1) + "\n")
    if not path.exists():
        subprocess.run([options.build / "cli/weft", "plan", config, "--memory-limit", f"{limit}B", "--work-limit", options.work,
                        "-q", "-o", plain], check=True, stdout=subprocess.DEVNULL)
        text = json.dumps(json.loads(plain.read_text()), separators=(",", ":"))
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
        plain.unlink()
    plan = json.loads(gzip.decompress(path.read_bytes()))
    step, bound, problem = plan["prediction"]["step_ns"], plan["bound"]["bound_ns"], plan["problem"]
    if step == bound:
        path.unlink()
        if not any(options.out.glob(f"{model}-x{network:g}-*.json.gz")):
            config.unlink()
        return None
    return [path.name, config.name, limit, len(problem["slots"]), len(problem["decisions"]), len(plan["placements"]), step,
            bound, f"{100 * (step / bound - 1):.3f}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--out", type=Path, default=RESULTS / "problems")
    parser.add_argument("--work", default="2G", help="work limit of a plan")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rows = []
    for point in points():
        row = make(options, *point) if len(rows) < MOST else None
        if row:
            rows.append(row)
            print(*row, flush=True)
    with open(options.out / "index.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
