#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a small study on this machine: bench/study/measured.py --build BUILD [--models A,B] [--hosts] [--out DIR]

Each model trains on 2 local ranks over its emulated link: plans of ilp, greedy, two-stage, fsdp2 and zero1 at four limits, and
all divisions of these limits. Every plan has three runs, in turns. With --hosts the ranks are started by MPI on two network
namespaces over a link of RATE, with a profile of the same launcher. That needs root, iproute2 and an MPI library;
otherwise it says so and exits with 77.

Each study is a folder of --out, and a stopped one goes on. Prints each report, and the largest spread of repeats next to the
goal of 2 %. Other programs make spreads larger, so use an idle machine. --record writes all studies of --out to
bench/results/study/measured.csv with its schema. document.py makes a section of docs/study.md from them.
"""
import argparse
import csv
import os
import re
import subprocess
import sys
import time
from pathlib import Path

from study import RESULTS, ROOT, markdown, percent, write_table

sys.path.insert(0, str(ROOT / "tests/cli"))

from namespaces import Namespaces, Unavailable, environment_of  # pylint: disable=wrong-import-position

MODELS = ["gpt-tiny", "llama-tiny", "mlp-tiny"]
PLANNERS = "ilp,greedy,two-stage,fsdp2,zero1"
RATE = "1gbit"
GOAL = 0.02
FIELDS = {"model": "name of the config", "ranks": "local: 2 processes over an emulated link; hosts: over MPI on two namespaces",
          "planner": "planner or rule", "memory_limit_bytes": "memory limit of a rank",
          "policy_limit_bytes": "part within which policies were chosen; empty: no division", "step_ns": "simulated step",
          "measured_step_ns": "median of repeated runs", "measured_spread_ns": "longest step of all runs less the shortest",
          "measured_exposed_ns": "compute waits for communication in that run",
          "layers_drift_percent": "growth of the layers' time over all runs of the model",
          "collectives_drift_percent": "growth of the collectives' time over all runs of the model"}
VERDICTS = {"holds": "holds", "hidden": "hidden by the spread", "refuted": "refuted"}
SECTION = """
## Measured steps

`bench/study/measured.py` trains small models, with three runs of each plan in turns:

    python3 bench/study/measured.py --build build --record
    python3 bench/study/measured.py --build build --record --hosts      # over MPI on two network namespaces

The machine is virtual and has two cores. The spread of repeats is within the goal of 2 % at {good} of {points} points, so
the goal is missed. Drift is the growth of the machine's own times from before the runs until after them. A large drift means
that the machine changed, and not the plans.

"""
LINES = """
Hypothesis 3 holds beyond the spread on {holds} of {lines} measured lines, is refuted on {refuted}, and the spread hides the
answer on {hidden}. A line has one limit. It is refuted if the best division between is the same plan as an end, or an end is
faster by more than the spread of both.

"""
NOT_MEASURED = """
Not measured are the models of the simulated sections, links of other speeds, more than two ranks, and GPUs.
"""


def flags_of(options):
    return ["--measure", "--repeat", "3", "--points", str(options.points), "--planners", PLANNERS, "--work-limit", "200M",
            "--set", f"train.steps={options.steps}", "--set", "train.checkpoint.at_end=false"]


def run(command, library=None):
    environment = {**os.environ, **(environment_of(library) if library else {})}
    subprocess.run(list(map(str, command)), check=True, env=environment, stdout=subprocess.DEVNULL)


def study(options, model, name, launcher=(), library=None, more=()):
    """Runs a study unless its files are there. Prints the report, and the spread of repeats."""
    out, begun = options.out / name, time.monotonic()
    weft, config = options.build / "cli/weft", ROOT / "configs/runs" / f"{model}.json"
    if not (out / "study.csv").exists():
        if launcher:
            profile = options.out / f"{name}.profile.json"
            if not profile.exists():
                run([*launcher, weft, "profile", config, *more, "-q", "-o", profile], library)
            more = [*more, "--profile", profile]
        run([*launcher, weft, "study", config, *flags_of(options), *more, "-o", out], library)
    print(f"## {name}\n\n{(out / 'study.txt').read_text()}")
    with open(out / "study.csv", encoding="utf-8", newline="") as file:
        spreads = sorted(int(point["measured_spread_ns"]) / int(point["measured_step_ns"])
                         for point in csv.DictReader(file) if point["measured_step_ns"])
    if spreads:
        print(f"{len(spreads)} points, spread of repeats {100 * spreads[len(spreads) // 2]:.2f} % in the median and "
              f"{100 * spreads[-1]:.2f} % at most (asked: 2 %); {time.monotonic() - begun:.0f} s\n", flush=True)


def rows_of(folder):
    """Rows of FIELDS of a measured study."""
    text = (folder / "study.txt").read_text()
    drift = re.search(r"layers\s+took\s+([+-][\d.]+)\s+%,\s+collectives\s+([+-][\d.]+)\s+%", text)
    more = {"ranks": "hosts" if folder.name.endswith("-hosts") else "local",
            "layers_drift_percent": drift[1] if drift else "", "collectives_drift_percent": drift[2] if drift else ""}
    with open(folder / "study.csv", encoding="utf-8", newline="") as file:
        measured = [{**point, **more} for point in csv.DictReader(file) if point["measured_step_ns"]]
    return [{key: point[key] for key in FIELDS} for point in measured]


def spread_of(row):
    return int(row["measured_spread_ns"]) / int(row["measured_step_ns"])


def divisions_of(rows):
    """Returns rows of hypothesis 3: for each limit with three divisions or more, the ends and the best between."""
    found, lines = [], {}
    for row in rows:
        if row["planner"] == "two-stage" and row["policy_limit_bytes"]:
            lines.setdefault(int(row["memory_limit_bytes"]), {})[int(row["policy_limit_bytes"])] = row
    for limit, line in sorted(lines.items()):
        if len(line) < 3:
            continue
        first, *inner, last = (line[at] for at in sorted(line))
        best = min(inner, key=lambda row: int(row["measured_step_ns"]))
        # Each end is longer than the best between (1), is not (-1), or the spread hides the answer (0).
        ends = []
        for end in (first, last):
            gain = int(end["measured_step_ns"]) / int(best["measured_step_ns"]) - 1
            spread = max(spread_of(end), spread_of(best))
            ends.append((1 if gain > spread else -1 if gain == 0 or gain < -spread else 0, spread))
        verdict = [VERDICTS[name] for name in ("refuted", "hidden", "holds")][1 + min(end for end, _ in ends)]
        found.append([f"{limit / 2 ** 20:.1f} MiB",
                      *(f"{int(row['measured_step_ns']) / 1e6:.2f} ms" for row in (first, best, last)),
                      percent(max(spread for _, spread in ends)), verdict])
    return found


def section():
    """The section about measured steps of docs/study.md, from measured.csv; "" without that file."""
    if not (RESULTS / "measured.csv").exists():
        return ""
    with open(RESULTS / "measured.csv", encoding="utf-8", newline="") as file:
        every = list(csv.DictReader(file))
    studies, spreads, lines = {}, [], []
    for row in every:
        studies.setdefault((row["model"], row["ranks"]), []).append(row)
    for (model, ranks), rows in studies.items():
        own = sorted(map(spread_of, rows))
        off = sorted(abs(int(row["measured_step_ns"]) / int(row["step_ns"]) - 1) for row in rows)
        drifts = [rows[0][key] for key in ("layers_drift_percent", "collectives_drift_percent")]
        spreads.append([model, ranks, len(rows), sum(one <= GOAL for one in own), percent(own[len(own) // 2]), percent(own[-1]),
                        *(f"{drift} %" if drift else "-" for drift in drifts),
                        percent(off[len(off) // 2])])
        lines += [[model, ranks, *line] for line in divisions_of(rows)]
    good, verdicts = sum(line[3] for line in spreads), [line[-1] for line in lines]
    text = SECTION.format(good=good, points=len(every))
    text += markdown([["model", "ranks", "points", "spread within 2 %", "spread, median", "most", "drift of layers",
                       "of collectives", "prediction off, median"], *spreads])
    text += LINES.format(lines=len(lines), **{name: verdicts.count(verdict) for name, verdict in VERDICTS.items()})
    text += markdown([["model", "ranks", "limit", "least for policies", "best between", "all for policies", "spread",
                       "hypothesis 3"], *lines])
    return text + NOT_MEASURED


def record(options):
    if options.record:
        folders = [path.parent for path in sorted(options.out.glob("*/study.csv"))]
        write_table("measured", FIELDS, [row for folder in folders for row in rows_of(folder)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--points", type=int, default=4)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--hosts", action="store_true", help="over MPI on two network namespaces")
    parser.add_argument("--out", type=Path, default=ROOT / "build/study-measured")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    options.build, options.out = options.build.resolve(), options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    models = options.models.split(",")
    if not options.hosts:
        for model in models:
            study(options, model, model)
        record(options)
        return 0
    weft = options.build / "cli/weft"
    try:
        with Namespaces(2, rate=RATE) as hosts:
            launcher = hosts.command(str(weft), "openmpi", 1)
            for model in models:
                study(options, model, f"{model}-hosts", launcher, "openmpi",
                      ["--set", "cluster.ranks_per_node=1", "--set", "cluster.emulate=false"])
    except Unavailable as why:
        print(f"not measured: {why}")
        return 77
    record(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
