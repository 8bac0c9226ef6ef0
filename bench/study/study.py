#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The study's tables: bench/study/study.py planners|solvers --build BUILD [--models A,B] [--record]

`planners` plans models x networks x limits by ilp, greedy, two-stage, seed-ilp, fsdp2 and every rule of RULES. The
network of a config gets SPEEDS times its bandwidth. The limits are points of the config's own curve: next to the least,
a quarter, and a half of the way to the last that helps. `solvers` plans the shipped configs of WITHOUT at their own limit
and next to their least one, by ilp with weft-solve and without it.

Plans depend on counts of work alone, so other programs do not change them. Each plan is a file in --out and is not made
again, so an interrupted study goes on. Prints Markdown. --record writes bench/results/study.json.
"""
import argparse
import csv
import hashlib
import json
import os
import re
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench/results/study"
sys.path.insert(0, str(ROOT / "bench"))

from results import record  # pylint: disable=wrong-import-position

MODELS = ["vgg-19", "resnet-50", "uneven-64"]  # gpt2 takes 20 s of each seed-ilp
SPEEDS = [0.25, 1, 4]
POINTS, LIMITS = 9, {"least": 1, "quarter": 2, "half": 4}
RULES = ["ddp", "zero1", "zero2", "fairscale", "fsdp2", "fsdp2-mix", "deepspeed", "deepcompile", "latest-safe",
         "simple-overlap", "dear", "osdp", "fsdp-milp"]
OWN = ["greedy", "two-stage", "seed-ilp", "seed-ilp:ilp"]
WITHOUT = ["bert-large", "vit-l-16", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt3-1.3b", "gpt3-13b", "llama-2-7b",
           "llama-3-8b", "vgg-19", "resnet-50", "uneven-64"]
TIE = 1e-6


def scaled(link, speed):
    """The link with all bandwidths times `speed`."""
    if isinstance(link, dict):
        return {key: scaled(value, speed) if key != "bandwidth" else
                re.sub(r"^[0-9.]+", lambda number: f"{float(number[0]) * speed:g}", value)
                for key, value in link.items()}
    return link


def config_of(model, speed):
    path = ROOT / "configs/runs" / f"{model}.json"
    run = json.loads(path.read_text())
    cluster = json.loads((path.parent / run["cluster"]).read_text())
    cluster.pop("$comment", None)
    run["model"] = str((path.parent / run["model"]).resolve()) if isinstance(run["model"], str) else run["model"]
    run["cluster"] = {**cluster, "link": scaled(cluster["link"], speed)}
    return run


class Study:
    def __init__(self, options):
        self.weft, self.out, self.work = str(options.build / "cli/weft"), options.out, options.work
        self.out.mkdir(parents=True, exist_ok=True)

    def run(self, *arguments, solver=True):
        environment = dict(os.environ) if solver else {**os.environ, "WEFT_SOLVE": "/nonexistent"}
        return subprocess.run([self.weft, *arguments], capture_output=True, text=True, check=False, env=environment)

    def config(self, model, speed):
        path = self.out / f"{model}-{speed:g}.config"
        path.write_text(json.dumps(config_of(model, speed)))
        return str(path)

    def limits(self, model, speed):
        """Returns {name: bytes} of the config's own curve."""
        kept = self.out / f"{model}-{speed:g}.limits"
        if not kept.exists():
            answer = self.run("sweep", self.config(model, speed), "--points", str(POINTS), "--planners", "all-fsdp",
                              "--jobs", "1", "--csv", "-", "-q")
            rows = list(csv.DictReader(answer.stdout.splitlines()))
            at = [row["memory_limit_bytes"] for row in rows]
            kept.write_text(json.dumps({name: int(at[min(k, len(at) - 1)]) for name, k in LIMITS.items()}))
        return json.loads(kept.read_text())

    def plan(self, model, speed, limit, planner, solver=True, settings=()):
        """Returns the plan's report with its user time, "user_s"; {} without a plan."""
        name = "-".join([model, f"{speed:g}", str(limit), planner.replace(":", "+"), "" if solver else "alone"])
        if settings:
            name += hashlib.sha256(" ".join(settings).encode()).hexdigest()[:16]
        kept = self.out / f"{name}.json"
        if not kept.exists():
            flags = [f"--memory-limit={limit}B"] if limit else []
            flags += [part for setting in settings for part in ("--set", setting)]
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            answer = self.run("plan", self.config(model, speed), "--planner", planner, "--work-limit", self.work, "--json",
                              "-q", *flags, solver=solver)
            spent = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            if answer.returncode not in (0, 65, 78):
                raise SystemExit(f"{name}: exit {answer.returncode}: {answer.stderr[-300:]}")
            report = {**json.loads(answer.stdout), "user_s": spent} if answer.returncode == 0 else {}
            kept.write_text(json.dumps(report))
        return json.loads(kept.read_text())


def percent(value):
    return f"{100 * value:.2f} %"


def markdown(rows):
    lines = [rows[0], ["---"] * len(rows[0])] + rows[1:]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines) + "\n"


def write_table(name, fields, rows):
    """Writes RESULTS/name.csv, and its columns as a Table Schema in name.schema.json. `fields`: {column: text}."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    with open(RESULTS / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(fields), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    columns = [json.dumps({"name": key, "description": text}) for key, text in fields.items()]
    (RESULTS / f"{name}.schema.json").write_text('{\n  "fields": [\n    ' + ",\n    ".join(columns) + "\n  ]\n}\n")


def overlap(report):
    """Share of communication next to compute."""
    return 1 - report["exposed_ns"] / max(report["communication_ns"], 1)


def row_of(name, plans):
    """A planner's row: plans by point, as {point: (its report, ilp's)}."""
    slower = sorted(report["step_ns"] / best["step_ns"] - 1 for report, best in plans.values() if report)
    if not slower:
        return [name, 0, "-", "-", "-", "-", "-"]
    hidden = statistics.median(overlap(report) for report, _ in plans.values() if report)
    solved = sum("overlap solved" in report.get("solver_stop", "") for report, _ in plans.values())
    return [name, len(slower), sum(part < TIE for part in slower), percent(statistics.median(slower)),
            percent(slower[-1]), percent(hidden), solved if name.startswith("seed-ilp") else "-"]


def planners(study, models):
    """Rows of the table `planners`, and the points at which ilp is faster than every rule."""
    points = {}
    for model in models:
        for speed in SPEEDS:
            for limit in sorted(set(study.limits(model, speed).values())):
                best = study.plan(model, speed, limit, "ilp")
                if best:
                    points[model, speed, limit] = best
                    print(f"{model} {speed:g} {limit}", file=sys.stderr)
    plans = {name: {point: (study.plan(*point, name), best) for point, best in points.items()}
             for name in OWN + RULES}
    plans["best rule"] = {point: (min((plans[rule][point][0] for rule in RULES if plans[rule][point][0]),
                                      key=lambda report: report["step_ns"], default={}), best)
                          for point, best in points.items()}
    rows = [row_of(name, plans[name]) for name in OWN + ["fsdp2", "best rule"]]
    gains = [report["step_ns"] / best["step_ns"] - 1 for report, best in plans["best rule"].values() if report]
    gains += [float("inf")] * (len(points) - len(gains))
    return rows, {"points": len(points), "faster by 5 %": sum(gain >= 0.05 for gain in gains)}


def solvers(study, models):
    """Rows of the table `solvers`: with weft-solve and without it."""
    rows = []
    for model in models:
        for limit in (0, study.limits(model, 1)["least"]):
            one, other = study.plan(model, 1, limit, "ilp"), study.plan(model, 1, limit, "ilp", solver=False)
            if one and other:
                rows.append([model, f"{one['memory_limit_bytes'] / 2 ** 30:.2f} GiB",
                             f"{one['step_ns'] / 1e6:.4g} ms", percent(other["step_ns"] / one["step_ns"] - 1),
                             percent(one["step_ns"] / one["bound_ns"] - 1),
                             percent(other["step_ns"] / other["bound_ns"] - 1),
                             percent(one["bound_ns"] / other["bound_ns"] - 1)])
                print(*rows[-1], file=sys.stderr)
    return rows


COLUMNS = {"planners": ["planner", "points with a plan", "as fast as ilp", "slower than ilp, median", "worst",
                        "overlap, median", "programs solved"],
           "solvers": ["config", "limit", "step", "step without GLPK", "gap", "gap without GLPK",
                       "bound higher by GLPK"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=list(COLUMNS))
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--models", help="these, with commas between")
    parser.add_argument("--work", default="2G", help="work limit of a plan")
    parser.add_argument("--out", type=Path, default=ROOT / "build/study")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    study = Study(options)
    models = options.models.split(",") if options.models else WITHOUT if options.table == "solvers" else MODELS
    reached = {}
    if options.table == "solvers":
        rows = solvers(study, models)
    else:
        rows, said = planners(study, models)
        print(f"{said['points']} points; ilp is 5 % faster than every rule at {said['faster by 5 %']} of them\n")
    for line in [COLUMNS[options.table], ["---"] * len(COLUMNS[options.table])] + rows:
        print("| " + " | ".join(map(str, line)) + " |")
    if options.record:
        record("study", options.table, rows, reached)
    return 0


if __name__ == "__main__":
    sys.exit(main())
