#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Policies of nodes between hosts that are network namespaces with shaped links: bench/network/nodes.py BUILD

Trains gpt-10m in bf16 on two and three hosts of two ranks, under fsdp, hsdp, nodes, and nodes with parameters cached in
host memory. Shows the bytes that leave a host in a step against those of the plan's collectives, the measured step
against the predicted one, and whether the parameters are those of local ranks. Needs root and iproute2; without them, or
without an MPI library, it says so and exits with 77. --record stores the figures.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/cli"))
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "bench/network"))  # its hosts.py, and not that of tests/cli
from hosts import Case, Failed, profile_hosts, train_hosts  # noqa: E402
from namespaces import Namespaces, Unavailable  # noqa: E402

import results  # noqa: E402

PER_HOST, STEPS = 2, 5
KEPT = '{"state":["device"],"activations":["device"],"parameters":["device"]}'
CACHE = KEPT.replace('"parameters":["device"]', '"parameters":["device","host"]')
WAYS = {"fsdp": ("fsdp", KEPT, "ilp"), "hsdp": ("hsdp", KEPT, "ilp"), "nodes": ("nodes", KEPT, "ilp"),
        "cached": ("nodes", CACHE, "fcdp")}


def settings_of(way):
    policies, offload, planner = WAYS[way]
    pairs = {"plan.policies": policies, "plan.offload": offload, "plan.planner": planner}
    return [word for key, value in pairs.items() for word in ("--set", f"{key}={value}")]


def leaving_bytes(plan, hosts, kinds=None):
    """Bytes of these kinds that leave a host in a step: its part of each block, to each other host. Sums are in fp32."""
    items = plan["problem"]["items"]
    lanes = [lane["name"] for lane in plan["problem"]["lanes"]]
    crossing = "across" if "across" in lanes else "network"
    sent = 0
    for placed in plan["placements"]:
        item = items[placed["item"]]
        if lanes[item["lane"]] != crossing or (kinds and item["kind"] not in kinds):
            continue
        times = {"across_reduce": 2 * PER_HOST, "across_scatter": PER_HOST, "across_gather": PER_HOST}
        sent += times.get(item["kind"], 1) * item["block_bytes"]
    return sent * (hosts - 1) / hosts


def bench_hosts(weft, directory, options, n):
    """Yields a row, the bytes over the plan's, the error of the prediction, and whether the bits are local ranks'."""
    case = Case(weft, directory, options.model, options.library, n, PER_HOST)
    case.change(**{"train.steps": STEPS, "train.precision": '{"compute":"bf16","reduce":"f32"}',
                   "cluster.host": '{"memory_limit":"2GiB"}'})
    with Namespaces(n, rate=f"{options.rate}mbit", directory=directory) as hosts:
        launch = hosts.command(weft, options.library, PER_HOST)
        profile = profile_hosts(case, launch, options.rate)
        local = None
        for way in options.ways.split(","):
            settings = settings_of(way)
            told, sent, _ = train_hosts(case, hosts, launch, profile, settings)
            plan = json.loads(case.path("plan.json").read_text())
            wanted = leaving_bytes(plan, n)
            if way == "cached":  # the end of a run fills the cache once more
                wanted += leaving_bytes(plan, n, ["across_gather"]) / STEPS
            local = local or case.local_fingerprint(settings)
            more, error = sent / STEPS / wanted - 1, told["predicted_step_ns"] / told["step_ns"] - 1
            same = told["fingerprint"] == local
            row = [f"{n} x {PER_HOST}", f"{options.rate} Mbit/s", way, f"{sent / STEPS / 1e6:.1f} MB", f"{100 * more:+.1f} %",
                   f"{told['step_ns'] / 1e6:.0f} ms", f"{told['predicted_step_ns'] / 1e6:.0f} ms", f"{100 * error:+.1f} %",
                   "same" if same else "OTHER"]
            print("  ".join(row), flush=True)
            yield row, more, error, same


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--model", default="gpt-10m")
    parser.add_argument("--hosts", default="2,3", help="numbers of hosts")
    parser.add_argument("--rate", type=int, default=1000, help="of a host's link, in Mbit/s")
    parser.add_argument("--library", default="openmpi")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    weft = str((Path(options.build) / "cli/weft").resolve())
    found = []
    with tempfile.TemporaryDirectory() as directory:
        try:
            for n in map(int, options.hosts.split(",")):
                found += bench_hosts(weft, directory, options, n)
        except Unavailable as why:
            print(f"skipped: {why}")
            return 77
    rows, excess, errors, alike = map(list, zip(*found))
    most, worst = max(map(abs, excess)), max(map(abs, errors))
    reached = {
        "bytes that leave a host over those of the plan": (f"at most {100 * most:.1f} %", most <= 0.05),
        "predicted step over the measured one": (f"worst {100 * worst:.1f} %", worst <= 0.1),
        "parameters of local ranks": ("all runs" if all(alike) else "not all", all(alike)),
    }
    results.close("network", "nodes", rows, reached, options.record)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"nodes.py: {failure}")
