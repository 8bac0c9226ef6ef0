#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the store with fio in turns: the same file system, block and depth, O_DIRECT.

    bench/offload/store.py --build build --directory DIR [--rounds 7] [--seconds 2] [--record]

A round runs each side once, in an order that rotates. The figure is the median over rounds of a round's quotients.
--record writes bench/results/offload_store.json. fio must be installed.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import results  # pylint: disable=wrong-import-position

MODES = {"read": 0.95, "write": 0.95, "both": 0.90}  # goal for the store without checksums, as a share of fio
CHECKED = 0.90  # goal with checksums
FILE = "fio-of-a-bench"
# fio's buffers lie in large pages, as a tier's do. A request with small pages has more segments than a disk takes at
# once.
LARGE_PAGES = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def run_fio(arguments, parts, *more):
    command = ["fio", "--output-format=json", f"--directory={arguments.directory}",
               f"--filename={FILE}", f"--bs={arguments.block}k", "--direct=1", "--ioengine=libaio",
               f"--iodepth={arguments.depth}", "--overwrite=1", *more]
    for rw, offset, size in parts:
        command += [f"--name={rw}", f"--rw={rw}", f"--offset={offset}m", f"--size={size}m"]
    done = subprocess.run(command, check=True, capture_output=True, text=True,
                          env=LARGE_PAGES).stdout
    jobs = json.loads(done[done.index("{"):])["jobs"]
    return sum(job[rw]["bw_bytes"] for job in jobs for rw in ("read", "write"))


def fio(arguments, mode):
    """Returns bytes per second. Writes the whole file first, as the store's bench does, because the disk may still be
    busy with earlier writes.
    """
    half = arguments.mib // 2
    parts = {"read": [("read", 0, arguments.mib)], "write": [("write", 0, arguments.mib)],
             "both": [("read", 0, half), ("write", half, half)]}[mode]
    run_fio(arguments, [("write", 0, arguments.mib)])
    return run_fio(arguments, parts, "--time_based", f"--runtime={arguments.seconds}")


def store(arguments, mode, *more):
    command = [f"{arguments.build}/bench/offload/store", arguments.directory, mode,
               str(arguments.block), str(arguments.depth), str(arguments.mib),
               str(arguments.seconds), *more]
    said = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    if not said["direct"]:
        sys.exit(f"{arguments.directory}: the store goes through the page cache here")
    return said["bytes_per_s"]


SIDES = {"fio": fio, "plain": lambda a, mode: store(a, mode, "unverified"), "checked": store}


def measure(arguments, mode):
    """Returns {side: bytes per second of each round}."""
    rates = {side: [] for side in SIDES}
    for number in range(arguments.rounds):
        order = list(SIDES)[number % len(SIDES):] + list(SIDES)[:number % len(SIDES)]
        for side in order:
            rates[side].append(SIDES[side](arguments, mode))
    return rates


def spread(rates):
    """Formats least, most and median in GB/s."""
    return f"{min(rates) / 1e9:.2f} to {max(rates) / 1e9:.2f}, {statistics.median(rates) / 1e9:.2f}"


def quotient(rates, side):
    return statistics.median(a / b for a, b in zip(rates[side], rates["fio"]))


def copies(arguments):
    """Compares the copier with memcpy: returns table rows and the reached share."""
    done = subprocess.run([f"{arguments.build}/bench/offload/copy", "16", "31"], check=True,
                          capture_output=True, text=True)
    said = json.loads(done.stdout)
    names = [name for name in ("memcpy", "sse2", "avx2", "avx512", "copier") if name in said]
    rows = [[name, "{0:.1f} to {2:.1f}, {1:.1f}".format(*said[name]),
             f"{said[name][1] / said['memcpy'][1]:.2f}"] for name in names]
    share = said["copier"][1] / said["memcpy"][1]
    return rows, {"copier against memcpy": (f"{share:.2f}", share >= 0.95)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    parser.add_argument("--directory", default=".", help="on the disk that is measured")
    parser.add_argument("--block", type=int, default=4096, help="KiB")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--mib", type=int, default=1024, help="of the file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    rows, reached = [], {}
    try:
        fio(arguments, "write")  # writes every block once and makes the file
        for mode, asked in MODES.items():
            rates = measure(arguments, mode)
            plain, checked = quotient(rates, "plain"), quotient(rates, "checked")
            rows.append([mode, *(spread(rates[side]) for side in SIDES), f"{plain:.2f}",
                         f"{checked:.2f}"])
            reached[f"{mode}, share of fio"] = (f"{plain:.2f}", plain >= asked)
            reached[f"{mode} with checksums, share of fio"] = (f"{checked:.2f}", checked >= CHECKED)
    finally:
        Path(arguments.directory, FILE).unlink(missing_ok=True)
    copied, copies_reached = copies(arguments)
    for row in rows + copied:
        print("  ".join(row))
    if arguments.record:
        print(f"load of the machine: {os.getloadavg()[0]:.1f}")
        results.record("offload_store", "store", rows, reached)
        results.record("offload_store", "copy", copied, copies_reached)


if __name__ == "__main__":
    main()
