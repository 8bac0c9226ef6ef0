#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of smaller groups (train.group) by the simulator: bench/planner/groups.py --build BUILD [--record]

GPT-2 on 16 ranks, 4 micro-steps of 4 samples, on three networks. A group of F micro-steps is reduced once, so a smaller F
costs more reductions, and lets a run go on with more ranks. The planner is ilp. Prints a step, and the bytes of all
blocks that a step gathers and reduces. The figures do not depend on the machine.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import results  # pylint: disable=wrong-import-position

NETWORKS = {"10GbE": "t4-16-10gbe", "25GbE": "t4-16-25gbe", "100GbE": "t4-16-100gbe"}
MICRO_STEPS = 4
GROUPS = (4, 2, 1)
COLLECTIVES = ("all_gather", "reduce_scatter", "all_reduce")


def block_bytes(plan):
    """Bytes of all blocks that a step gathers or reduces under the chosen strategies."""
    total = 0
    for item in plan["problem"]["items"]:
        chosen = plan["strategies"][item["decision"]]
        if item["kind"] in COLLECTIVES and chosen in item.get("strategies", [chosen]):
            total += item["blocks"] * item["block_bytes"]
    return total


def measure(weft, cluster, group, scratch):
    path = str(Path(scratch) / "plan.json")
    done = subprocess.run([weft, "plan", "gpt2", "--cluster", cluster, "--set", f"train.grad_accum={MICRO_STEPS}",
                           "--set", f"train.group={group}", "-o", path, "--json", "-q"],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{cluster}, group {group}: {done.stderr.strip()}")
    with open(path, encoding="utf-8") as file:
        return json.loads(done.stdout), block_bytes(json.load(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default=str(ROOT / "build"))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    weft, rows = str(Path(options.build) / "cli" / "weft"), []
    with tempfile.TemporaryDirectory() as scratch:
        for network, cluster in NETWORKS.items():
            steps = {}
            for group in GROUPS:
                said, of_blocks = measure(weft, cluster, group, scratch)
                steps[group] = said["step_ns"]
                more = 100 * (steps[group] / steps[GROUPS[0]] - 1)
                rows.append([network, str(group), str(MICRO_STEPS // group), f"{of_blocks / 1e9:.2f} GB",
                             f"{steps[group] / 1e6:.0f} ms", f"{said['bound_ns'] / 1e6:.0f} ms", f"+{more:.1f} %"])
                print(" | ".join(rows[-1]), flush=True)
    if options.record:
        results.record("groups", "networks", rows, {})


if __name__ == "__main__":
    main()
