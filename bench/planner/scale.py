#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plans and simulates at 16 to 16,384 ranks of 8 a node: bench/planner/scale.py --build BUILD

Three tables of bench/results/scale.json, which --record writes:

- `plans`: plans by default settings, with the default policies and with hsdp alone. Latency between nodes is constant,
  or grows by `cluster.link.alpha_per_node` for each node. The planner's CPU time and memory are those of the process
  with weft-solve, by GNU time. Padding is elements that only round a unit up to whole slices of all ranks.
- `slices`: units that are not fused, so a rank's slice of a small unit is below the least slice and is padded.
- `jitter`: steps of ranks with random compute times (`weft simulate --jitter`), under fsdp, hsdp
  and `train.across.every`.

Plans and steps depend on no clock, so other programs change the CPU time alone.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from results import close  # pylint: disable=wrong-import-position

RANKS = [16, 128, 1024, 16384]
# A model, a cluster of which links and devices are taken, and the latency that each node after the second adds.
POINTS = [("gpt2-xl", "a100-16", "0s"), ("llama-3-8b", "a100-16", "1us"), ("gpt3-13b", "h100-64", "56us")]
POLICIES = {"default": "dp,zero1,sdp,fsdp", "hsdp": "hsdp"}
# Policies of the table of jitter. Nodes on their own gather and reduce within the node, and meet at averages.
WAITS = {"fsdp": ["plan.policies=fsdp"], "hsdp": ["plan.policies=hsdp"],
         "across.every": ["plan.policies=fsdp", "train.across.every=16"]}
LEAST_SLICE = 128  # elements: WEFT_SLICE_ALIGN_ELEMENTS
NO_PLAN = 78
STEPS = 48  # whole multiples of the steps between averages
DEVIATIONS = [0.05, 0.2]


def cluster_of(name, ranks, alpha_per_node):
    cluster = json.loads((ROOT / f"configs/clusters/{name}.json").read_text())
    cluster.pop("$comment", None)
    cluster["ranks"] = ranks
    cluster["link"]["alpha_per_node"] = alpha_per_node
    return f"cluster={json.dumps(cluster)}"


def ask(options, folder, *arguments):
    """Returns the program's JSON, its CPU seconds and its bytes; None instead of JSON if no plan fits."""
    used = f"{folder}/used"  # by GNU time, since a process forked from this one counts this one's memory too
    answer = subprocess.run(["/usr/bin/time", "-q", "-f", "%U %S %M", "-o", used, str(options.build / "cli/weft"),
                             *arguments, "--json", "-q"], capture_output=True, text=True, check=False)
    if answer.returncode not in (0, NO_PLAN):
        raise SystemExit(f"{' '.join(arguments)}: exit {answer.returncode}: {answer.stderr[-300:]}")
    user, system, most = map(float, Path(used).read_text().split())
    return json.loads(answer.stdout) if answer.returncode == 0 else None, user + system, 1024 * most


def plan(options, folder, model, cluster, *settings):
    """Returns the report, the file's content, CPU seconds and bytes of a plan; None for the first two without one."""
    path = f"{folder}/plan.json"
    sets = [part for setting in (cluster, *settings) for part in ("--set", setting)]
    said, seconds, most = ask(options, folder, "plan", str(ROOT / f"configs/runs/{model}.json"), *sets, "-o", path)
    return said, json.loads(Path(path).read_text()) if said else None, seconds, most


def units_of(made):
    return [one["elements"] for one in made["problem"]["decisions"] if "layer" not in one]


def parameters_of(options, folder, model, cluster):
    said, _, _ = ask(options, folder, "estimate", str(ROOT / f"configs/runs/{model}.json"), "--set", cluster)
    return said["parameters"]


def padding_of(made, parameters):
    return f"{100 * (sum(units_of(made)) / parameters - 1):.2f} %"


def table_of_plans(options, folder):
    rows, gaps, seconds_by_ranks = [], [], {}
    for model, name, alpha in POINTS:
        for kind, policies in POLICIES.items():
            for ranks in RANKS:
                cluster = cluster_of(name, ranks, alpha)
                said, made, seconds, most = plan(options, folder, model, cluster, f"plan.policies={policies}")
                start = [model, f"{name}, {alpha} a node", kind, f"{ranks:,}"]
                cost = [f"{seconds:.2f} s", f"{most / 1e6:.0f} MB"]
                if said is None:
                    rows.append([*start, "no plan fits", "-", *cost, "-", "-", "-"])
                else:
                    parameters = parameters_of(options, folder, model, cluster)
                    gaps.append(100 * (said["step_ns"] / said["least_bound_ns"] - 1))
                    rows.append([*start, f"{said['step_ns'] / 1e6:.1f} ms", f"{gaps[-1]:.3f} %", *cost,
                                 f"{len(made['placements']):,}", f"{said['total_bytes'] / 1e9:.1f} GB",
                                 padding_of(made, parameters)])
                seconds_by_ranks.setdefault(ranks, []).append(seconds)
                print("|", " | ".join(rows[-1]), "|", flush=True)
    most, least = sum(seconds_by_ranks[RANKS[-1]]), sum(seconds_by_ranks[RANKS[0]])
    return rows, {
        f"proven gap of {len(gaps)} plans, median": (f"{statistics.median(gaps):.3f} %",
                                                     statistics.median(gaps) <= 0.1),
        "proven gap, worst": (f"{max(gaps):.2f} %", max(gaps) <= 1),
        "CPU time of planning for 16,384 ranks, over that for 16": (f"{most / least:.2f}", most <= 2 * least)}


def table_of_slices(options, folder):
    rows = []
    for model in ("resnet-50", "gpt2-xl", "llama-3-8b"):
        for ranks in RANKS:
            cluster = cluster_of("a100-16", ranks, "0s")
            parameters = parameters_of(options, folder, model, cluster)
            _, fused, _, _ = plan(options, folder, model, cluster)
            _, made, _, _ = plan(options, folder, model, cluster, "plan.fuse=false")
            small = [one for one in units_of(made) if one == ranks * LEAST_SLICE]
            rows.append([model, f"{ranks:,}", f"{len(units_of(made))}", f"{len(small)}", padding_of(made, parameters),
                         f"{len(units_of(fused))}", padding_of(fused, parameters)])
            print("|", " | ".join(rows[-1]), "|", flush=True)
    return rows, {}


def table_of_jitter(options, folder):
    rows, same = [], True
    for model, name, alpha in POINTS[:2]:
        for policy, settings in WAITS.items():
            for ranks in RANKS:
                said, _, _, _ = plan(options, folder, model, cluster_of(name, ranks, alpha), *settings)
                if said is None:
                    continue
                path = f"{folder}/plan.json"
                plain, _, _ = ask(options, folder, "simulate", path, "--jitter", "0", "--jitter-steps", "16")
                same &= abs(plain["jitter"]["mean_ns"] - said["step_ns"]) <= 1
                cells = [f"{said['step_ns'] / 1e6:.1f} ms, waits {100 * plain['jitter']['waiting']:.1f} %"]
                for cv in DEVIATIONS:
                    of, _, _ = ask(options, folder, "simulate", path, "--jitter", str(cv), "--jitter-steps", str(options.steps))
                    of = of["jitter"]
                    cells += [f"{100 * (of['mean_ns'] / said['step_ns'] - 1):+.1f} %",
                              f"{100 * (of['p99_ns'] / said['step_ns'] - 1):+.1f} %", f"{100 * of['waiting']:.1f} %"]
                rows.append([model, policy, f"{ranks:,}", *cells])
                print("|", " | ".join(rows[-1]), "|", flush=True)
    return rows, {"steps without jitter": ("those of the plan" if same else "others", same)}


TABLES = {"plans": table_of_plans, "slices": table_of_slices, "jitter": table_of_jitter}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of jitter (default %(default)s)")
    parser.add_argument("--tables", default=",".join(TABLES), help="tables to make (default %(default)s)")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.tables.split(","):
            made[name] = TABLES[name](options, folder)
    for name, (rows, reached) in made.items():
        close("scale", name, rows, reached, options.record)


if __name__ == "__main__":
    main()
