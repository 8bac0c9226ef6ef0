#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random kills of ranks on hosts that are network namespaces: bench/network/kills.py BUILD

For each MPI library: starts a run on three hosts, kills one of its ranks at a random moment (SIGKILL), and takes the
time until no process of the run is left. Counts how often Weft named the rank and its host, exactly once. Needs root
and iproute2; without them, or without an MPI library, it says so and exits with 77. --record stores the figures.
"""
import argparse
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
sys.path.insert(0, str(ROOT / "bench"))
from namespaces import LIBRARIES, Namespaces, Unavailable, environment_of  # noqa: E402

import results  # noqa: E402

CONFIG = ROOT / "configs/runs/gpt-tiny.json"
HOSTS = 3
FLAGS = ["--run", "run", "-n", str(HOSTS), "--set", "cluster.emulate=false", "--set", "cluster.threads=1",
         "--set", "cluster.ranks_per_node=1", "--set", "train.steps=1000000", "--set", "train.checkpoint.at_end=false",
         "--set", "cluster.link.inter.alpha=100us", "--set", "cluster.link.inter.bandwidth=100MB/s",
         "--set", "plan.work_limit=20M"]
RANK = {"openmpi": "OMPI_COMM_WORLD_RANK", "mpich": "PMI_RANK"}


def ranks_of(library, weft):
    """Process of each rank, by the launcher's variable."""
    found = {}
    for process in Path("/proc").iterdir():
        try:
            if not process.name.isdigit() or os.readlink(process / "exe") != weft:
                continue
            environment = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        for variable in environment:
            name, _, value = variable.partition(b"=")
            if name.decode(errors="replace") == RANK[library]:
                found[int(value)] = int(process.name)
    return found


def kill_once(hosts, library, weft, directory, dice):
    """Returns milliseconds to the end of all, whether the rank was named once, and the launcher's exit code."""
    subprocess.run(["rm", "-rf", "run"], cwd=directory, check=True)
    process = subprocess.Popen([*hosts.command(weft, library, 1), weft, "train", str(CONFIG), *FLAGS], cwd=directory,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "WEFT_GEMM": "onednn", **environment_of(library)})
    for line in process.stdout:
        if re.match(r"step +\d+/", line):
            break
    time.sleep(dice.uniform(0, 0.5))
    ranks = ranks_of(library, weft)
    victim = dice.choice(sorted(ranks))
    os.kill(ranks[victim], signal.SIGKILL)
    begun = time.monotonic()
    while ranks_of(library, weft) and time.monotonic() < begun + 60:
        time.sleep(0.005)
    ended = time.monotonic()
    _, err = process.communicate(timeout=60)
    told = [line for line in err.splitlines() if line.startswith("weft: ")]
    named = len(told) == 1 and f"rank {victim} (host weft-host-{victim})" in told[0]
    return (ended - begun) * 1e3, named, process.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--kills", type=int, default=100, help="under each launcher")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    weft = str((Path(options.build) / "cli/weft").resolve())
    dice, rows, worst = random.Random(options.seed), [], 0
    print(f"--seed {options.seed}")
    with tempfile.TemporaryDirectory() as directory:
        for library in LIBRARIES:
            try:
                with Namespaces(HOSTS, directory=directory) as hosts:
                    kills = [kill_once(hosts, library, weft, directory, dice) for _ in range(options.kills)]
            except Unavailable as why:
                print(f"skipped: {why}")
                return 77
            times = [took for took, _, _ in kills]
            worst = max(worst, *times)
            codes = ", ".join(str(code) for code in sorted({code for _, _, code in kills}))
            rows.append([library, len(kills), f"{statistics.median(times):.0f} ms", f"{max(times):.0f} ms",
                         sum(named for _, named, _ in kills), codes])
            print("  ".join(str(cell) for cell in rows[-1]), flush=True)
    reached = {"from a kill to the end of all ranks": (f"at most {worst / 1e3:.2f} s", worst <= 2000)}
    results.close("network", "kills", rows, reached, options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
