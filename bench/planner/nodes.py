#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans a model for 16 and 64 ranks of 8 a node on slow and fast networks: bench/planner/nodes.py --build BUILD

The table `nodes` of bench/results/scale.json, which --record writes: the best plan with one policy alone (fsdp, hsdp,
nodes), the best plan of all policies but nodes, the best one of all, and its bound. Rates are of a node's port, which
its 8 ranks share. Plans depend on no clock, so other programs change nothing.
"""
import argparse
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "bench/planner"))

from results import record  # pylint: disable=wrong-import-position
from scale import plan  # pylint: disable=wrong-import-position

RANKS = (16, 64)
GIGABITS = (10, 25, 100, 400)
OTHERS = "dp,zero1,sdp,fsdp,hsdp"
POLICIES = ("fsdp", "hsdp", "nodes", OTHERS, f"{OTHERS},nodes")


def cluster_of(ranks, gigabits, limit):
    cluster = json.loads((ROOT / "configs/clusters/a100-16.json").read_text())
    cluster.pop("$comment", None)
    cluster["ranks"], cluster["memory_limit"] = ranks, limit
    cluster["link"]["inter"]["bandwidth"] = f"{gigabits / 8}GB/s"
    return f"cluster={json.dumps(cluster)}"


def row_of(options, folder, ranks, gigabits, limit):
    steps, said = [], None
    settings = [*options.set, f"plan.work_limit={options.work}"]
    for policies in POLICIES:
        said, _, _, _ = plan(options, folder, options.model, cluster_of(ranks, gigabits, limit), *settings,
                             f"plan.policies={policies}")
        steps.append(said and said["step_ns"])
    cells = [f"{ns / 1e6:,.0f} ms" if ns else "no plan fits" for ns in steps]
    bound = f"{said['least_bound_ns'] / 1e6:,.0f} ms" if said else "-"
    return [f"{ranks}", limit, f"{gigabits}", *cells, bound], steps


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--model", default="llama-3-8b")
    parser.add_argument("--limits", default="80GB", help="memory limits of a rank (default %(default)s)")
    parser.add_argument("--networks", default=",".join(map(str, GIGABITS)), help="Gbit/s (default %(default)s)")
    parser.add_argument("--work", default="1G", help="plan.work_limit (default %(default)s)")
    parser.add_argument("--set", action="append", default=[], help="one setting more")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    rows, best = [], True
    with tempfile.TemporaryDirectory() as folder:
        for limit in options.limits.split(","):
            for ranks in RANKS:
                for gigabits in map(int, options.networks.split(",")):
                    row, steps = row_of(options, folder, ranks, gigabits, limit)
                    best &= all(not ns or steps[-1] <= ns for ns in steps[:-1])
                    rows.append(row)
                    print("|", " | ".join(row), "|", flush=True)
    if options.record:
        reached = "no slower than of one" if best else "slower"
        record("scale", "nodes", rows, {"the best plan of all policies": (reached, best)})


if __name__ == "__main__":
    main()
