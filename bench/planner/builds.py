#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the plans of two builds: bench/planner/builds.py --before WEFT --after WEFT [CONFIG...]

WEFT is a program `weft` with its weft-solve. CONFIG is a name in configs/runs; the default is all of them. Each
config is planned at its own limit, and at a sixth and a half of the way from the least limit that fits to the last
that helps. The builds take turns, one process at a time.

Compared are the step, the proven gap and the user time of weft and its solver. User time shows the cost of a plan on
a busy machine too. Each plan is a line in --out and is not made again, so an interrupted run can continue. With
--after alone each plan is made `--times` times, to check that all have the same bytes. --set is for both. Markdown
on stdout.
"""
import argparse
import csv
import hashlib
import json
import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "configs" / "runs"
POINTS, AT = 7, {"sixth": 1, "half": 3}


def user_s():
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime


class Build:
    def __init__(self, weft, side, environment):
        self.weft, self.side = weft, side
        self.environment = {**os.environ, **dict(pair.split("=", 1) for pair in environment)}

    def run(self, *arguments):
        return subprocess.run([self.weft, *arguments], capture_output=True, text=True, check=False,
                              env=self.environment)

    def limits(self, config):
        """Returns {name: limit in bytes}; the config's own limit is None."""
        said = self.run("sweep", str(config), "--points", str(POINTS), "--planners", "all-fsdp",
                        "--jobs", "1", "--csv", "-", "--quiet").stdout
        rows = list(csv.DictReader(said.splitlines()))
        at = {name: int(rows[k]["memory_limit_bytes"]) for name, k in AT.items() if rows}
        return {"own": None, **at}

    def plan(self, config, limit, options):
        plan = options.out / f"plan-{os.getpid()}.json"
        flags = [f"--memory-limit={limit}B"] if limit else []
        for override in options.set:
            flags += ["--set", override]
        plan.unlink(missing_ok=True)
        before = user_s()
        answer = self.run("plan", str(config), "-o", str(plan), "--quiet", *flags)
        row = {"code": answer.returncode, "user_s": round(user_s() - before, 3)}
        if answer.returncode != 0:
            return {**row, "error": answer.stderr.strip()[-200:]}
        read = json.loads(plan.read_text())
        bounds = [one.get("bound", {}).get("bound_ns", 0) for one in [read, *read["other_periods"]]]
        return {**row, "step_ns": read["prediction"]["step_ns"], "bound_ns": min(bounds),
                "stop": read.get("solver", {}).get("stop"), "decision": read["decision_hash"],
                "bytes": hashlib.sha256(plan.read_bytes()).hexdigest()[:16]}


def gap_of(row):
    return 100 * (row["step_ns"] / row["bound_ns"] - 1) if row["bound_ns"] else 100.0


def show(name, values, form):
    values = sorted(values)
    print(f"| {name} | {form % statistics.median(values)} | {form % values[0]} | "
          f"{form % values[-1]} | {form % statistics.mean(values)} |")


def report(rows, sides):
    pairs = {}
    for row in rows:
        pairs.setdefault((row["config"], row["limit"]), {}).setdefault(row["side"], []).append(row)
    print(f"\n| config, limit | {' | '.join(f'step {s} | gap | user' for s in sides)} |\n"
          f"| --- |{' --- |' * 3 * len(sides)}")
    both = []
    for (config, limit), by_side in pairs.items():
        cells = []
        for side in sides:
            row = by_side.get(side, [{"code": -1}])[0]
            cells.append(f"{row['step_ns'] / 1e6:.3f} ms | {gap_of(row):.4f} % | {row['user_s']:.2f} s"
                         if row["code"] == 0 else f"exit {row['code']} | - | -")
        print(f"| {config}, {limit} | {' | '.join(cells)} |")
        if all(by_side.get(side, [{"code": -1}])[0]["code"] == 0 for side in sides):
            both.append([by_side[side][0] for side in sides])
        for side in sides:
            if len({row.get("bytes", row["code"]) for row in by_side.get(side, [])}) > 1:
                print(f"\n**{config}, {limit}: {side} made different plans**\n")
    if len(sides) < 2 or not both:
        return
    print(f"\n{len(both)} plans of both\n\n| | median | least | most | mean |\n"
          "| --- | --- | --- | --- | --- |")
    show("step, after / before", [100 * (b["step_ns"] / a["step_ns"] - 1) for a, b in both],
         "%+.4f %%")
    show("gap before", [gap_of(a) for a, _ in both], "%.4f %%")
    show("gap after", [gap_of(b) for _, b in both], "%.4f %%")
    show("gap, after - before", [gap_of(b) - gap_of(a) for a, b in both], "%+.4f %%")
    show("user time before", [a["user_s"] for a, _ in both], "%.2f s")
    show("user time after", [b["user_s"] for _, b in both], "%.2f s")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("configs", nargs="*")
    parser.add_argument("--before", metavar="WEFT")
    parser.add_argument("--after", metavar="WEFT", required=True)
    parser.add_argument("--before-environment", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--after-environment", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("builds-plans"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    builds = [Build(options.after, "after", options.after_environment)]
    if options.before:
        builds.insert(0, Build(options.before, "before", options.before_environment))
    known = options.out / "rows.json"
    rows = [json.loads(line) for line in known.read_text().splitlines()] if known.exists() else []
    done = {(row["config"], row["limit"], row["side"], row["time"]) for row in rows}
    with known.open("a") as kept:
        for name in options.configs or sorted(path.stem for path in RUNS.glob("*.json")):
            config = RUNS / f"{name}.json"
            for limit, size in builds[0].limits(config).items():
                for time in range(options.times):
                    for build in builds:
                        if (name, limit, build.side, time) in done:
                            continue
                        row = {"config": name, "limit": limit, "side": build.side, "time": time,
                               **build.plan(config, size, options)}
                        print(json.dumps(row), file=kept, flush=True)
                        rows.append(row)
                        print(f"{name}, {limit}: {build.side} {row['user_s']} s", file=sys.stderr)
    report(rows, [build.side for build in builds])


if __name__ == "__main__":
    main()
