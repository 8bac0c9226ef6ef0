#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of planning for PyTorch's FSDP2: bench/planner/target.py --build BUILD [--first SEED]

A point is a random config and a memory limit of a rank: 1.05 and 1.5 times the least need that
`weft estimate --for fsdp2` prints. Each point is planned by ilp for FSDP2, with Weft's own plan within the same
limit next to it, and by the rule of planner fsdp2. `weft verify` proves each bound again, and `weft simulate --as
fsdp2` runs each plan. The cost is the step for FSDP2 over that of Weft's own plan. Where Weft's own plans do not fit,
since they hold other buffers, there is no cost.

Plans depend on counts of work alone, so other programs do not change them. --record writes the table `target` of
bench/results/planner-gap.json.
"""
import argparse
import concurrent.futures
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from results import record  # pylint: disable=wrong-import-position

SHARES = [1.05, 1.5]
NEVER = 65, 78  # exit codes: the target cannot run the config; no plan fits


class Refused(Exception):
    """The program has no plan."""


def ask(options, *arguments):
    answer = subprocess.run([str(options.build / "cli/weft"), *arguments, "--json", "-q"], capture_output=True,
                            text=True, check=False)
    if answer.returncode in NEVER:
        raise Refused(answer.stderr)
    if answer.returncode != 0:
        raise SystemExit(f"{' '.join(arguments)}: exit {answer.returncode}: {answer.stderr[-300:]}")
    return json.loads(answer.stdout)


def measure(options, folder, seed, share):
    """Returns the figures of a point; None: the target cannot run the config, or no plan fits."""
    config, plan = f"{folder}/{seed}.json", f"{folder}/{seed}-{share}.plan.json"
    drawn = subprocess.run([str(options.build / "bench/planner/random_config"), str(seed)], capture_output=True,
                           text=True, check=False)
    if drawn.returncode != 0:
        return None  # a few have too many blocks for any planner
    Path(config).write_text(drawn.stdout)
    target = [config, "--for", "fsdp2", "--set", 'plan.offload={"state":["device"],"activations":["device"]}',
              "--set", "plan.policies=dp,zero1,sdp,fsdp", "--set", "train.delay=0"]
    try:
        rows = ask(options, "estimate", *target)["rows"]
        need = min(row["needs_bytes"] for row in rows)
        target += ["--memory-limit", f"{int(share * need)}B"]
        said = ask(options, "plan", *target, "--work-limit", options.work, "-o", plan)
    except Refused:
        return None
    ask(options, "verify", plan)
    run = ask(options, "simulate", plan, "--as", "fsdp2")
    try:
        rule_ns = ask(options, "plan", *target, "--planner", "fsdp2")["step_ns"]
    except Refused:
        rule_ns = None
    return said, run, rule_ns


def at(values, share):
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--first", type=int, default=7001)
    parser.add_argument("--configs", type=int, default=100, help="that FSDP2 can run (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--work", default="1G")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    rows, above, slower, own_gap = [], 0, 0, []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for share in SHARES:
            seeds = iter(range(options.first, options.first + 4 * options.configs))
            found = []
            while len(found) < options.configs:
                some = [seed for seed, _ in zip(seeds, range(options.jobs))]
                if not some:
                    raise SystemExit("too few of these configs can be planned for FSDP2")
                found += [(seed, point) for seed, point in
                          zip(some, pool.map(lambda seed: measure(options, folder, seed, share), some)) if point]
            found = found[:options.configs]
            costs = [said["step_ns"] / said["free_step_ns"] - 1 for _, (said, _, _) in found if "free_step_ns" in said]
            bounds = [said["step_ns"] / said["free_bound_ns"] - 1
                      for _, (said, _, _) in found if "free_bound_ns" in said]
            own_gap += [said["step_ns"] / said["least_bound_ns"] - 1 for _, (said, _, _) in found]
            for seed, (said, run, rule_ns) in found:
                if run["peak_bytes"] > said["memory_limit_bytes"]:
                    above += 1
                    print(f"seed {seed}, {share}: {run['peak_bytes']} bytes as FSDP2 runs it")
                if rule_ns and rule_ns < said["step_ns"] and said["step_ns"] > 1.001 * said["least_bound_ns"]:
                    slower += 1
                    print(f"seed {seed}, {share}: ilp {said['step_ns']} ns, rule {rule_ns} ns")
            rows.append([f"{share}", f"{len(found)}", f"{len(costs)}",
                         *(f"{100 * at(values, place):.2f} %" if values else "-"
                           for values in (costs, bounds) for place in (0.5, 0.95))])
            print("|", " | ".join(rows[-1]), "|", flush=True)
    print(f"gap to the target's own bound: median {100 * statistics.median(own_gap):.3f} %, 95th percentile "
          f"{100 * at(own_gap, 0.95):.2f} %; {above} above the limit as FSDP2 runs them; {slower} slower than the rule")
    if options.record:
        record("planner-gap", "target", rows, {
            "above the limit as FSDP2 runs them": (f"{above}", above == 0),
            "slower than planner fsdp2": (f"{slower}", slower == 0),
            "gap to the target's own bound, median, 95th percentile": (
                f"{100 * statistics.median(own_gap):.3f}, {100 * at(own_gap, 0.95):.2f} %", True)})


if __name__ == "__main__":
    main()
