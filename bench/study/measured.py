#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a small study on this machine: bench/study/measured.py --build BUILD [--models A,B] [--hosts] [--out DIR]

Each model trains on 2 local ranks over its emulated link: plans of ilp, greedy, two-stage, fsdp2 and zero1 at four limits, and
all divisions of these limits. Every plan has three runs, in turns. With --hosts the ranks are started by MPI on two network
namespaces over a link of RATE, with a profile of the same launcher. That needs root, iproute2 and an MPI library;
otherwise it says so and exits with 77.

Each study is a folder of --out, and a stopped one goes on. Prints each report, and the largest spread of repeats next to the
goal of 2 %. Other programs make spreads larger, so use an idle machine.
"""
import argparse
import csv
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))

from namespaces import Namespaces, Unavailable, environment_of  # pylint: disable=wrong-import-position

MODELS = ["gpt-tiny", "llama-tiny", "mlp-tiny"]
PLANNERS = "ilp,greedy,two-stage,fsdp2,zero1"
RATE = "1gbit"


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--points", type=int, default=4)
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--hosts", action="store_true", help="over MPI on two network namespaces")
    parser.add_argument("--out", type=Path, default=ROOT / "build/study-measured")
    options = parser.parse_args()
    options.build, options.out = options.build.resolve(), options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    models = options.models.split(",")
    if not options.hosts:
        for model in models:
            study(options, model, model)
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
    return 0


if __name__ == "__main__":
    sys.exit(main())
