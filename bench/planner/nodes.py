#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans models for 16 and 64 ranks of 8 a node on slow and fast networks: bench/planner/nodes.py --build BUILD

The table `nodes` of bench/results/scale.json, which --record writes: the best plan with one policy alone (fsdp, hsdp,
nodes), with nodes whose parameters may be cached in host memory, the plan of planner fcdp, the best plan of all
policies but nodes, the best one of all with caches, and its bound. Rates are of a node's port, which its 8 ranks share.
Plans depend on no clock, so other programs change nothing. --part FILE keeps rows in a file and adds those of other
calls, so that a table may be made in parts.
"""
import argparse
import itertools
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
sys.path.insert(0, str(ROOT / "bench/planner"))

from results import record  # pylint: disable=wrong-import-position
from scale import plan  # pylint: disable=wrong-import-position

MODELS = ("llama-3-8b", "gpt3-13b")
RANKS = (16, 64)
GIGABITS = (10, 25, 100, 400)
GOAL = "step of all policies over the best of the row's others"
OTHERS = "dp,zero1,sdp,fsdp,hsdp"
# Host memory and links of a rank of 8 with PCIe 4.0 x16, for parameters alone.
HOST = {"memory_limit": "64GB", "down": {"bandwidth": "25GB/s"}, "up": {"bandwidth": "25GB/s"}}
CACHE = 'plan.offload={"state":["device"],"activations":["device"],"parameters":["device","host"]}'
# Column: policies, whether parameters may be on the host, planner.
PLANS = {"fsdp": ("fsdp", False, "ilp"), "hsdp": ("hsdp", False, "ilp"), "nodes": ("nodes", False, "ilp"),
         "cached": ("nodes", True, "ilp"), "fcdp": ("nodes", True, "fcdp"), "all but nodes": (OTHERS, False, "ilp"),
         "all": (f"{OTHERS},nodes", True, "ilp")}


def cluster_of(ranks, gigabits, limit, cache):
    cluster = json.loads((ROOT / "configs/clusters/a100-16.json").read_text())
    cluster.pop("$comment", None)
    cluster["ranks"], cluster["memory_limit"] = ranks, limit
    cluster["link"]["inter"]["bandwidth"] = f"{gigabits / 8}GB/s"
    if cache:
        cluster["host"] = HOST
    return f"cluster={json.dumps(cluster)}"


def row_of(options, folder, model, ranks, gigabits, limit):
    steps, said = [], None
    for name, (policies, cache, planner) in PLANS.items():
        if planner == "fcdp" and limit != options.limits.split(",")[0]:
            steps.append(0)  # a rule holds more than it needs, and a search for a limit that it meets takes long
            continue
        work = options.most_work if name.startswith("all") else options.work
        settings = [*options.set, f"plan.work_limit={work}", f"plan.policies={policies}",
                    f"plan.planner={planner}", *([CACHE] if cache else [])]
        said, _, _, _ = plan(options, folder, model, cluster_of(ranks, gigabits, limit, cache), *settings)
        steps.append(said and said["step_ns"])
    cells = [f"{ns / 1e6:,.0f} ms" if ns else "-" if ns == 0 else "no plan fits" for ns in steps]
    bound = f"{said['least_bound_ns'] / 1e6:,.0f} ms" if said else "-"
    return [model, f"{ranks}", limit, f"{gigabits}", *cells, bound], steps


def merge(path, made):
    """Adds rows to the file's, by model, ranks, limit and network, and returns all in order."""
    kept = {tuple(row[:4]): (row, steps) for row, steps in (json.loads(path.read_text()) if path.exists() else [])}
    kept.update({tuple(row[:4]): (row, steps) for row, steps in made})
    found = sorted(kept.values(), key=lambda one: (one[0][0] == MODELS[-1], one[0][2], int(one[0][1]), int(one[0][3])))
    path.write_text(json.dumps(found))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--limits", default="80GB", help="memory limits of a rank (default %(default)s)")
    parser.add_argument("--networks", default=",".join(map(str, GIGABITS)), help="Gbit/s (default %(default)s)")
    parser.add_argument("--work", default="200M", help="plan.work_limit with one policy (default %(default)s)")
    parser.add_argument("--most-work", default="1G", help="the same with several (default %(default)s)")
    parser.add_argument("--set", action="append", default=[], help="one setting more")
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)), help="numbers of ranks (default %(default)s)")
    parser.add_argument("--part", type=Path, help="file with rows of other calls")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for model, limit, ranks, gigabits in itertools.product(
                options.models.split(","), options.limits.split(","), map(int, options.ranks.split(",")),
                filter(None, options.networks.split(","))):
            made.append(row_of(options, folder, model, ranks, int(gigabits), limit))
            print("|", " | ".join(made[-1][0]), "|", flush=True)
            if options.part:
                merge(options.part, made[-1:])
    if options.part:
        made = merge(options.part, [])
    rows = [row for row, _ in made]
    found = [[ns or float("inf") for ns in steps] for _, steps in made if any(steps)]
    slower = max((100 * (steps[-1] / min(steps) - 1) for steps in found), default=0)
    if options.record:
        record("scale", "nodes", rows, {GOAL: (f"{slower:.2f} %", slower <= 0.1)})


if __name__ == "__main__":
    main()
