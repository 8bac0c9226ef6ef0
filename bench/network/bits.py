#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bits of hosts against those of local ranks: bench/network/bits.py BUILD

Trains a tiny model for 20 steps over MPI, on 3 hosts of one rank and on 2 hosts of two, which are network namespaces:
every policy, f32 and bf16, delayed updates and averages over nodes. Each run must end in the parameters of local ranks.
Prints one line for each run and exits with 1 if one differs. Also for builds with sanitizers. Needs root and iproute2;
without them, or without an MPI library, it says so and exits with 77. --record stores the figures.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
sys.path.insert(0, str(ROOT / "bench"))
from configs import tiny  # noqa: E402
from namespaces import LIBRARIES, Namespaces, Unavailable, environment_of  # noqa: E402

import results  # noqa: E402

STEPS = 20
BF16 = {"train__precision": {"compute": "bf16", "reduce": "bf16"}, "cluster__device__flops__bf16": "50G"}
PRECISIONS = {"f32": {}, "bf16": BF16}
POLICIES = ("dp", "zero1", "sdp", "fsdp", "hsdp", "central")
# Further settings, with the policies that they allow.
SETTINGS = {"": {}, "delay 1": {"train__delay": 1}, "micro-steps": {"train__grad_accum": 2},
            "every 4": {"train__across": {"every": 4}}}
LEAST_HOSTS_OF_TWO = ("hsdp", "every 4")


def run_weft(command, library=None, directory=None):
    """Returns exit code and error. Leaks of an MPI library are not Weft's."""
    env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""),
           **(environment_of(library) if library else {})}
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=directory, timeout=300, check=False)
    return done.returncode, done.stderr


def parameters_of(place):
    return json.loads((Path(place) / "result.json").read_text())["fingerprint"]


def cases_of(policies, per_host):
    for precision, changes in PRECISIONS.items():
        for policy in policies:
            for name, more in SETTINGS.items():
                if per_host == 1 and (policy in LEAST_HOSTS_OF_TWO or name in LEAST_HOSTS_OF_TWO):
                    continue
                yield policy, precision, name, {**changes, **more, "plan__policies": policy}


def bench_layout(weft, options, directory, n, per_host):
    """Yields a row for each run. A setting that a policy excludes is refused with exit code 65 by the local run."""
    link = {"alpha": "100us", "bandwidth": "100MB/s"}
    with Namespaces(n, directory=directory) as hosts:
        for policy, precision, name, changes in cases_of(options.policies.split(","), per_host):
            config = Path(directory) / "run.json"
            config.write_text(json.dumps(tiny(
                cluster__threads=1, cluster__ranks=n * per_host, cluster__ranks_per_node=per_host,
                cluster__link__inter=link, plan__work_limit="20M", train__steps=STEPS, **changes)))
            local = Path(tempfile.mkdtemp(dir=directory)) / "run"
            code, error = run_weft([weft, "train", str(config), "--quiet", "--run", str(local)])
            if code in (64, 65):
                print(f"{n}x{per_host} {policy} {precision} {name} refused: {error.splitlines()[0][-120:]}", flush=True)
                continue
            if code != 0:
                raise AssertionError(f"local ranks, {changes}: exit {code}\n{error[-1500:]}")
            for library in options.libraries.split(","):
                place = local.parent / library
                command = [*hosts.command(weft, library, per_host), weft, "train", str(config), "--quiet", "--run",
                           str(place)]
                code, error = run_weft(command, library, directory)
                same = (place / "result.json").exists() and parameters_of(place) == parameters_of(local)
                told = "same" if same else f"OTHER, exit {code}: {error[-600:]}"
                print(f"{library} {n}x{per_host} {policy} {precision} {name} {told}", flush=True)
                yield library, f"{n} x {per_host}", policy, f"{precision}{', ' if name else ''}{name}", same


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--libraries", default=",".join(LIBRARIES))
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--layouts", default="3x1,2x2", help="hosts and ranks of a host")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    weft = str((Path(options.build) / "cli/weft").resolve())
    runs, table = [], {}
    with tempfile.TemporaryDirectory() as directory:
        try:
            for layout in (map(int, words.split("x")) for words in options.layouts.split(",")):
                for library, shape, policy, what, same in bench_layout(weft, options, directory, *layout):
                    runs.append(same)
                    table.setdefault((library, shape, what), []).append((policy, same))
        except Unavailable as why:
            print(f"skipped: {why}")
            return 77
    rows = [[*key, ", ".join(policy for policy, _ in told), f"{sum(same for _, same in told)} of {len(told)}"]
            for key, told in table.items()]
    text = f"{sum(runs)} of {len(runs)} runs"
    print(f"parameters of local ranks after {STEPS} steps: {text}")
    if options.record:
        results.record("network", "bits", rows, {"parameters of local ranks after 20 steps": (text, all(runs))})
    return 0 if runs and all(runs) else 1


if __name__ == "__main__":
    sys.exit(main())
