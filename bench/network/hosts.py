#!/usr/bin/env python3
"""Training over MPI between hosts that are network namespaces with shaped links: bench/network/hosts.py BUILD

For each MPI library, number of hosts and rate: profiles all hosts, plans with that profile, and trains. Shows the
rate that ReduceScatter and AllGather reach of the shaped rate, the bytes that leave a host against the formula, the
measured step against the predicted one, and whether the parameters are those of local ranks. Needs root and iproute2;
without them, or without an MPI library, it says so and exits with 77. --record stores the figures.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
sys.path.insert(0, str(ROOT / "bench"))
from namespaces import LIBRARIES, Namespaces, Unavailable, environment_of  # noqa: E402

import results  # noqa: E402

CONFIG = ROOT / "configs/runs/gpt-10m.json"
STEPS = 6


class Failed(Exception):
    """A run of weft failed."""


def run(command, library=None, cwd=None):
    env = {**os.environ, "WEFT_GEMM": "onednn", **(environment_of(library) if library else {})}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=cwd, timeout=600, check=False)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command[-12:])}: exit {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def settings(ranks):
    """zero1: a step reduces every gradient and gathers every parameter once, so the formula is exact."""
    values = ["cluster.emulate=false", "cluster.threads=1", "cluster.memory_limit=4GiB", f"train.steps={STEPS}",
              "train.seq_len=64", "train.micro_batch=4", "plan.policies=zero1", "train.checkpoint.at_end=false"]
    return ["-n", str(ranks)] + [word for value in values for word in ("--set", value)]


def rate_of(curve, ranks, rate):
    """Share of the shaped rate that the largest collective reaches; a rank sends (N - 1)/N of its bytes."""
    largest, ns = curve["bytes"][-1], curve["ns"][-1]
    return largest * (ranks - 1) / ranks / (ns * 1e-9) / (rate * 1e6 / 8), largest


def measure_hosts(weft, library, n, rate, directory):
    flags = settings(n) + ["--set", "cluster.ranks_per_node=1"]
    with Namespaces(n, rate=f"{rate}mbit", directory=directory) as hosts:
        launch = hosts.command(weft, library, 1)
        profile = Path(directory) / f"{library}-{n}-{rate}.json"
        run([*launch, weft, "profile", str(CONFIG), *flags, "-o", str(profile)], library, directory)
        plan = Path(directory) / f"{library}-{n}-{rate}.plan.json"
        run([weft, "plan", str(CONFIG), *flags, "--profile", str(profile), "-o", str(plan)])
        before = hosts.sent_bytes()
        place = Path(directory) / f"run-{library}-{n}-{rate}"
        run([*launch, weft, "train", str(CONFIG), *flags, "--profile", str(profile), "--plan", str(plan),
             "--quiet", "--run", str(place)],
            library, directory)
        sent = [after - was for was, after in zip(before, hosts.sent_bytes())]
    told = json.loads((place / "result.json").read_text())
    curves = json.loads(profile.read_text())["collectives"]
    return told, sent, {kind: rate_of(curves[kind], n, rate) for kind in ("all_gather", "reduce_scatter")}


def formula(weft, n):
    """Bytes that a rank sends in the run: every padded parameter reduced and gathered once a step, in f32."""
    told = json.loads(run([weft, "estimate", str(CONFIG), *settings(n), "--json"]))
    whole = next(row for row in told["rows"] if row["policy"] == "dp")
    return STEPS * 2 * whole["peak_memory_bytes"]["gathered_parameters"] * (n - 1) / n


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--rates", default="500,1000,2500", help="of a host's link, in Mbit/s")
    parser.add_argument("--hosts", default="2,3")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    weft = str((Path(options.build) / "cli/weft").resolve())
    rows, errors, shares, excess, alike = [], [], [], [], True
    with tempfile.TemporaryDirectory() as directory:
        for n in (int(n) for n in options.hosts.split(",")):
            local = Path(directory) / f"local-{n}"
            run([weft, "train", str(CONFIG), *settings(n), "--quiet", "--run", str(local)])
            expected = json.loads((local / "result.json").read_text())["fingerprint"]
            bytes_sent = formula(weft, n)
            for library in LIBRARIES:
                for rate in (int(rate) for rate in options.rates.split(",")):
                    try:
                        told, sent, reached = measure_hosts(weft, library, n, rate, directory)
                    except Unavailable as why:
                        print(f"skipped: {why}")
                        return 77
                    same = told["fingerprint"] == expected
                    error = told["predicted_step_ns"] / told["step_ns"] - 1
                    more = statistics.mean(sent) / bytes_sent - 1
                    alike, errors, excess = alike and same, errors + [error], excess + [more]
                    shares += [share for share, _ in reached.values()]
                    rows.append([library, n, f"{rate} Mbit/s", f"{reached['reduce_scatter'][0]:.2f}",
                                 f"{reached['all_gather'][0]:.2f}", f"{100 * more:+.1f} %",
                                 f"{told['step_ns'] / 1e6:.0f} ms", f"{told['predicted_step_ns'] / 1e6:.0f} ms",
                                 f"{100 * error:+.1f} %", "same" if same else "OTHER"])
                    print("  ".join(str(cell) for cell in rows[-1]), flush=True)
    inside = sum(abs(error) <= 0.05 for error in errors)
    worst = max(abs(error) for error in errors)
    reached = {
        "share of the shaped rate, ReduceScatter and AllGather": (f"least {min(shares):.2f}", min(shares) >= 0.9),
        "bytes that leave a host over the formula": (f"at most {100 * max(excess):.1f} %", max(excess) <= 0.02),
        "predicted step within 5 % of the measured one": (
            f"{inside} of {len(errors)}, worst {100 * worst:.1f} %", inside >= 0.9 * len(errors) and worst <= 0.1),
        "parameters of local ranks": ("all runs" if alike else "not all", alike),
    }
    for goal, (text, met) in reached.items():
        print(f"{goal}: {text}{'' if met else ' (missed)'}")
    if options.record:
        results.record("network", "hosts", rows, reached)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"hosts.py: {failure}")
