#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives over MPI between hosts that are network namespaces with shaped links: bench/network/collectives.py BUILD

Section `collectives`: ReduceScatter and AllGather of 16 and 32 MiB at several rates, on 2 and 3 hosts of one rank,
next to the library's own; and the reduction and broadcast of policy central. Section `levels`: hosts of two ranks, flat and on two levels: bytes that leave a host
against the formula, and time against bytes. Needs root and iproute2; without them, or without an MPI library, it says
so and exits with 77. --record stores the figures. All of it takes about five minutes.
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
from namespaces import LIBRARIES, Namespaces, Unavailable, environment_of  # noqa: E402

import results  # noqa: E402

HEADERS = 66  # Ethernet, IP and TCP with time stamps; the interface counts them once for a packet of up to 64 KiB
ON_THE_LINK = 1514 / 1448  # a link's rate counts them for every segment
SIDES = 7  # of the bench's table
OWNED = ("reduce", "broadcast")  # of policy central
WIDE = {"f32": 1, "bf16": 2}  # partial sums cross the network in fp32


def measure(build, hosts, library, per_host, per_node, rate, sizes):
    """Returns the lines of the bench: dicts. MPICH's launcher fails at times after its ranks have ended."""
    rounds = max(2, rate // 250)
    program = Path(build) / f"bench/network/collectives-{library}"
    command = [*hosts.command(Path(build) / "cli/weft", library, per_host), str(program.resolve()), str(per_node), sizes,
               str(rounds)]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False,
                              env={**os.environ, **environment_of(library)})
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if len(rows) == SIDES * len(sizes.split(",")):
            return [{**row, "rounds": rounds, "rate": rate, "per_host": per_host} for row in rows]
    sys.exit(f"collectives.py: {library}: exit {done.returncode}, {len(rows)} rows\n{done.stderr[-2000:]}")


def payload(row, per_node):
    """Bytes that leave a host for one collective, by formula."""
    ranks, per_host = len(row["ranks"]), row["per_host"]
    hosts = ranks // per_host
    if row["kind"] in OWNED:  # of the owner's host
        return (ranks - per_host) * row["bytes"]
    if per_node > 1 and row["side"] == "weft":
        return row["bytes"] * (hosts - 1) / hosts * (WIDE[row["dtype"]] if row["kind"] == "reduce_scatter" else 1)
    return per_host * (ranks - per_host) / ranks * row["bytes"]


def share(row, per_node):
    """Bytes a second as a share of the shaped rate."""
    return payload(row, per_node) * 8 / (row["ns"] * 1e-9) / (row["rate"] * 1e6)


def cpu(row, key):
    """CPU time of a rank as a share of the time of its collectives."""
    return sum(one[key] for one in row["ranks"]) / len(row["ranks"]) * 1e3 / (row["ns"] * row["rounds"])


def pair_of(row):
    return f"{100 * cpu(row, 'user_us'):.0f} + {100 * cpu(row, 'system_us'):.0f} %"


def bench_collectives(options, directory):
    rows, shares = [], []
    for n in (int(n) for n in options.hosts.split(",")):
        for rate in (int(rate) for rate in options.rates.split(",")):
            with Namespaces(n, rate=f"{rate}mbit", directory=directory) as hosts:
                for library in options.libraries.split(","):
                    told = measure(options.build, hosts, library, 1, 1, rate, "16,32")
                    for own in (row for row in told if row["side"] == "weft"):
                        other = next((row for row in told if row["side"] == "library" and
                                      all(row[key] == own[key] for key in ("kind", "dtype", "bytes"))), None)
                        if own["kind"] not in OWNED:
                            shares.append(share(own, 1))
                        rows.append([library, n, f"{rate} Mbit/s", f"{own['kind']}, {own['dtype']}",
                                     f"{own['bytes'] / 2**20:.0f} MiB", f"{share(own, 1):.2f}",
                                     f"{share(other, 1):.2f}" if other else "-", pair_of(own),
                                     pair_of(other) if other else "-", sum(one["repeated"] for one in own["ranks"])])
                        print("  ".join(str(cell) for cell in rows[-1]), flush=True)
    good = sum(one >= 0.9 for one in shares)
    return rows, {"share of the shaped rate, 16 MiB and more": (
        f"{good} of {len(shares)}, least {min(shares):.2f}", min(shares) >= 0.9)}


def bench_levels(options, directory):
    rows, excesses, ratios = [], [], []
    for n, per_host in ((2, 2), (3, 2)):
        rate = options.level_rate
        with Namespaces(n, rate=f"{rate}mbit", directory=directory) as hosts:
            for library in options.libraries.split(","):
                for name, per_node in (("flat", 0), ("two levels", per_host)):
                    for own in measure(options.build, hosts, library, per_host, per_node, rate, "48"):
                        if own["side"] != "weft" or own["kind"] in OWNED:
                            continue
                        by_formula = payload(own, per_node)
                        leaders = own["ranks"][::per_host]
                        sent = sum(one["bytes"] for one in leaders) / len(leaders) / own["rounds"]
                        packets = sum(one["packets"] for one in leaders) / len(leaders) / own["rounds"]
                        excess, framing = sent / by_formula - 1, HEADERS * packets / by_formula
                        ratio = own["ns"] * 1e-9 / (by_formula * ON_THE_LINK * 8 / (rate * 1e6))
                        excesses.append(excess)
                        ratios.append(ratio)
                        rows.append([library, f"{n} x {per_host}", name, f"{own['kind']}, {own['dtype']}",
                                     f"{by_formula / 1e6:.2f} MB", f"{100 * excess:+.2f} %", f"{100 * framing:.2f} %",
                                     f"{own['ns'] / 1e6:.0f} ms", f"{ratio:.2f}",
                                     sum(one["repeated"] for one in leaders)])
                        print("  ".join(str(cell) for cell in rows[-1]), flush=True)
    inside = sum(abs(ratio - 1) <= 0.15 for ratio in ratios)
    return rows, {
        "bytes that leave a host over the formula": (f"at most {100 * max(excesses):.2f} %", max(map(abs, excesses)) <= 0.02),
        "time over the formula's bytes at the link's rate": (
            f"{inside} of {len(ratios)} within 15 %, worst {max(ratios):.2f}", inside == len(ratios)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--sections", default="collectives,levels")
    parser.add_argument("--libraries", default=",".join(LIBRARIES))
    parser.add_argument("--rates", default="500,1000,2500", help="of a host's link, in Mbit/s")
    parser.add_argument("--level-rate", type=int, default=500)
    parser.add_argument("--hosts", default="2,3")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    sections = {"collectives": bench_collectives, "levels": bench_levels}
    with tempfile.TemporaryDirectory() as directory:
        for name in options.sections.split(","):
            try:
                rows, reached = sections[name](options, directory)
            except Unavailable as why:
                print(f"skipped: {why}")
                return 77
            results.close("network", name, rows, reached, options.record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
