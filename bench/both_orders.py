#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the orders of micro-steps on this machine: bench/both_orders.py --build BUILD

The table `orders` of bench/results/prediction.json, which --record writes. gpt-10m runs on 2 local ranks over an emulated
link. A step has 8 micro-steps, and all units are fsdp. The orders are by step, by groups of 4 and 2 of its 9 layers, and by
layer. The last point also has a host tier with the optimizer's state, within a limit at which inputs of layers move too.

A point has a profile, a plan of each order, runs of all plans in turns, and a second profile. A prediction is the mean of
the plan's steps under both profiles, and a measurement the median of all runs' steps. If the profiles differ by more than
2 %, the point is measured once more, and the repetition with the smaller difference counts. It takes about 10 minutes of
2 cores. Run nothing else meanwhile.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from figures import ROOT, Weft, compute_ns
from results import record

ORDERS = ("step", "4", "2", "layer")  # a number: layers of a group
RATES = ("200MB/s", "500MB/s", "2GB/s")
HOST = {"memory_limit": "4GB", "down": {"alpha": "20us", "bandwidth": "2GB/s"},
        "up": {"alpha": "20us", "bandwidth": "2GB/s"}, "update": "4GB/s"}
OFFLOAD = {"state": ["host"], "activations": ["device"], "inputs": ["device", "host"]}
HOST_RATE = "500MB/s"
BASE = "34MB"  # of a rank outside its arena; a run holds up to 1 MB more than a profile measures
GOAL = "largest error of a prediction"
MOST_ERROR, MOST_DRIFT, TRIES = 5, 0.02, 2
NO_PLAN = 78


def config_of(rate, host, steps):
    config = json.loads((ROOT / "configs/runs/gpt-10m.json").read_text())
    config["model"] = json.loads((ROOT / "configs/models/gpt-10m.json").read_text())
    config["cluster"] = {"ranks": 2, "threads": 1, "emulate": True,
                         "link": {"intra": {"alpha": "100us", "bandwidth": rate}}}
    config["train"].update(steps=steps, micro_batch=1, grad_accum=8, seq_len=64, reduce="step",
                           checkpoint={"at_end": False})
    config["plan"].update(policies="fsdp", work_limit="300M")
    if host:
        config["cluster"].update(host=HOST, base=BASE)
        config["plan"].update(offload=OFFLOAD, recompute="whole")
    return config


def drop_base(profile):
    """Leaves base memory to the config: a profile's own would count, and a run may hold more."""
    path = Path(profile)
    said = json.loads(path.read_text())
    path.write_text(json.dumps({key: value for key, value in said.items() if key not in ("base_bytes", "bases")}))


def least_limit(weft, config, profile, order):
    """Returns the least device limit of an order, in bytes, as a refusal has it."""
    done = subprocess.run([weft.program, "plan", config, "--profile", profile, "--set", f"plan.micro_step_order={order}",
                           "--memory-limit", "1B", "--json", "-q", "-o", "none"], cwd=weft.directory, capture_output=True,
                          text=True, check=False)
    if done.returncode != NO_PLAN:
        sys.exit(f"weft plan --memory-limit 1B: exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)["error"]["needs_bytes"]


def plans_of(weft, config, profile, limit, orders):
    """Returns {order: path of its plan} and their predicted steps."""
    plans, steps = {}, {}
    for order in orders:
        plans[order] = weft.directory / f"{order}.plan.json"
        said = weft.call("plan", config, "--profile", profile, "--set", f"plan.micro_step_order={order}", *limit, "-o",
                         plans[order], "--json", "-q")
        steps[order] = json.loads(said)["step_ns"]
    return plans, steps


def measure_runs(weft, config, profile, plans, limit, repeats):
    """Runs the plans in turns. Returns {order: median step of all its runs, in ns}."""
    steps = {order: [] for order in plans}
    for _ in range(repeats):
        for order in plans:
            run = Path(tempfile.mkdtemp(prefix=order, dir=weft.directory)) / "run"
            weft.call("train", config, "--profile", profile, "--set", f"plan.micro_step_order={order}", *limit, "--plan",
                      plans[order], "--run", run, "-q")
            lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
            steps[order] += [line["step_ns"] for line in lines if line["kind"] == "step"][2:]
    return {order: statistics.median(taken) for order, taken in steps.items()}


def measure_point(weft, rate, host, options):
    """Returns the drift, and {order: (predicted, measured)} in ns."""
    config = weft.write(config_of(rate, host, options.steps))
    before = weft.profile(config, "before.json")
    if host:
        drop_base(before)
    limit = ()
    if host:  # all orders fit with inputs of layers on the host, and a little more than that
        least = max(least_limit(weft, config, before, order) for order in options.orders)
        limit = ("--memory-limit", f"{least + least // 20}B")
    plans, first = plans_of(weft, config, before, limit, options.orders)
    measured = measure_runs(weft, config, before, plans, limit, options.repeats)
    after = weft.profile(config, "after.json")
    if host:
        drop_base(after)
    _, last = plans_of(weft, config, after, limit, options.orders)
    drift = compute_ns(after) / compute_ns(before) - 1
    return drift, {order: ((first[order] + last[order]) / 2, measured[order]) for order in options.orders}


def measure_again(weft, rate, host, options):
    """Measures a point until its profiles agree, at most TRIES times, and returns the repetition with the least drift."""
    found = []
    for _ in range(options.tries):
        found.append(measure_point(weft, rate, host, options))
        if abs(found[-1][0]) <= MOST_DRIFT:
            break
    return min(found, key=lambda one: abs(one[0]))


def rows_of(rate, host, drift, steps):
    """Returns a row of each order, and the largest error in percent."""
    rows, errors = [], []
    for order, (predicted, measured) in steps.items():
        errors.append(100 * (measured / predicted - 1))
        gains = [f"{steps['step'][i] / steps[order][i]:.2f}" for i in range(2)] if "step" in steps else ["", ""]
        rows.append([rate + (", host tier" if host else ""), order, f"{100 * drift:+.1f} %", f"{predicted / 1e6:.0f} ms",
                     f"{measured / 1e6:.0f} ms", f"{errors[-1]:+.1f} %", *gains])
    return rows, max(map(abs, errors))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--rates", default=",".join(RATES), help="of the link (default %(default)s)")
    parser.add_argument("--orders", type=lambda text: text.split(","), default=ORDERS,
                        help=f"of micro-steps (default {','.join(ORDERS)})")
    parser.add_argument("--steps", type=int, default=7, help="of a run; the first two do not count (default %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each plan (default %(default)s)")
    parser.add_argument("--tries", type=int, default=TRIES, help="of a point whose profiles differ (default %(default)s)")
    parser.add_argument("--no-host", action="store_true", help="leave out the point with a host tier")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    points = [(rate, False) for rate in options.rates.split(",")] + ([] if options.no_host else [(HOST_RATE, True)])
    rows, most, begun = [], 0, time.monotonic()
    for rate, host in points:
        with tempfile.TemporaryDirectory() as directory:
            weft = Weft(os.path.abspath(options.build / "cli/weft"), directory)
            found, error = rows_of(rate, host, *measure_again(weft, rate, host, options))
        rows += found
        most = max(most, error)
        for row in found:
            print("|", " | ".join(row), "|", flush=True)
    print(f"{len(points)} points in {time.monotonic() - begun:.0f} s, largest error {most:.1f} %")
    if options.record:
        record("prediction", "orders", rows, {GOAL: (f"{most:.1f} %", most <= MOST_ERROR)})


if __name__ == "__main__":
    main()
