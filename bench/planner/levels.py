#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares plans with three and with all levels of recomputation: bench/planner/levels.py --build BUILD

A point is a model and a memory limit of a rank. Both plans are of `ilp`: one with the levels none, selective and whole,
the other with plan.recompute=auto. The simulator judges both. Effort is the user time of the program and its solver, so
other programs change it little.

--before BUILD also runs `weft profile` of an older build and of this one, in turns, and prints the user time of each.
--record writes the table `levels` of bench/results/rivals.json.
"""
import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from results import record  # pylint: disable=wrong-import-position

# Model: settings, limits of a rank.
MODELS = {
    "gpt2-xl": (["cluster.device.type=cuda"], ["8GiB", "10GiB", "12GiB", "16GiB", "20GiB"]),
    "llama-3-8b": (["train.seq_len=8192", "train.micro_batch=1"], ["30GiB", "32GiB", "38GiB", "44GiB", "50GiB"]),
}
LEVELS = ["none,selective,whole", "auto"]
PROFILED = "configs/runs/llama-10m.json"


def effort_of(command):
    """Returns the answer and the user time in seconds of a command with its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    return answer, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def plan(options, model, limit, levels):
    """Returns the step, the bound, and the user time; the step is None without a plan."""
    settings = [word for setting in MODELS[model][0] + [f"plan.recompute={levels}"] for word in ("--set", setting)]
    answer, user = effort_of([str(options.build / "cli/weft"), "plan", f"configs/runs/{model}.json", *settings,
                              "--memory-limit", limit, "--work-limit", options.work, "--json", "-q"])
    if answer.returncode == 78:
        return None, None, user
    if answer.returncode != 0:
        raise SystemExit(f"{model} {limit} {levels}: exit {answer.returncode}: {answer.stderr[-300:]}")
    report = json.loads(answer.stdout)
    return report["step_ns"], report["bound_ns"], user


def row_of(options, model, limit):
    """Returns the table's row of a point, its gain and its two efforts."""
    (three, _, three_user), (every, bound, user) = (plan(options, model, limit, levels) for levels in LEVELS)
    if every is None:
        return [model, limit, "no plan", "no plan", "-", "-", f"{user / three_user:.2f}"], None, (three_user, user)
    if three is None:
        return [model, limit, "no plan", f"{every / 1e6:.2f} ms", "only it fits", f"{100 * (every / bound - 1):.2f} %",
                f"{user / three_user:.2f}"], None, (three_user, user)
    gain = three / every - 1
    return [model, limit, f"{three / 1e6:.2f} ms", f"{every / 1e6:.2f} ms", f"{100 * gain:.2f} %",
            f"{100 * (every / bound - 1):.2f} %", f"{user / three_user:.2f}"], gain, (three_user, user)


def profile(options):
    """Prints the user time of `weft profile` of both builds, the least of some turns."""
    builds = {"before": options.before, "after": options.build}
    users = {name: [] for name in builds}
    for _ in range(options.turns):
        for name, build in builds.items():
            with tempfile.TemporaryDirectory() as folder:
                answer, user = effort_of([str(build / "cli/weft"), "profile", PROFILED, "-o", f"{folder}/p.json", "-q"])
            if answer.returncode != 0:
                raise SystemExit(f"{name}: exit {answer.returncode}: {answer.stderr[-300:]}")
            users[name].append(user)
    print("weft profile: " + ", ".join(f"{name} {min(of):.1f} s of user time" for name, of in users.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--work", default="1G")
    parser.add_argument("--models", nargs="*", default=list(MODELS))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    options.build = options.build.resolve()
    if options.before:
        options.before = options.before.resolve()
        profile(options)
    rows, gains, users = [], {}, [0, 0]
    for model in options.models:
        for limit in MODELS[model][1]:
            row, gain, both = row_of(options, model, limit)
            print("|", " | ".join(row), "|", flush=True)
            rows.append(row)
            users = [sum(pair) for pair in zip(users, both)]
            if gain is not None:
                gains.setdefault(model, []).append(gain)
    effort = users[1] / users[0]
    for model, of in gains.items():
        print(f"{model}: {100 * min(of):.2f} to {100 * max(of):.2f} % faster")
    print(f"effort of planning: {effort:.2f} of three levels'")
    if options.record:
        llama = gains.get("llama-3-8b", [0])
        record("rivals", "levels", rows, {
            "gain of llama-3-8b at 8,192 tokens": (f"{100 * min(llama):.2f} to {100 * max(llama):.2f} %",
                                                   max(llama) >= 0.005),
            "effort of planning next to three levels": (f"{effort:.2f}", effort <= 1.1)})


if __name__ == "__main__":
    main()
