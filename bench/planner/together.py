#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the proven gap with every choice open: bench/planner/together.py --build BUILD

A point is a shipped config and a memory limit of a rank. The planner chooses policies, placement, recomputation,
offloading of state and of saved activations to a host of 64 GB a rank (25 GB/s each way), the split of the batch and
the size of blocks. The batch is twice the config's. Limits are 0.7 and 1.2 times the need of fsdp just in time, as
`weft estimate` prints it. The gap is that to the least bound of all variants.

Plans depend on counts of work alone, so other programs do not change them. --out keeps the plans of an interrupted run.
--record writes the table `together` of bench/results/planner-gap.json.
"""
import argparse
import concurrent.futures
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from results import record  # pylint: disable=wrong-import-position

MODELS = ["gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt3-1.3b", "gpt3-2.7b", "gpt3-6.7b", "gpt3-13b",
          "bert-large", "vit-l-16", "llama-2-7b", "llama-3-8b", "resnet-50", "vgg-19", "uneven-64", "mixtral-8x7b"]
SHARES = [0.7, 1.2]
OPEN = ["plan.recompute=auto", "train.micro_batch=auto", "plan.block_scale=auto",
        'plan.offload={"state":["device","host"],"activations":["device","host"]}',
        'cluster.host={"memory_limit":"64GB","down":{"bandwidth":"25GB/s"},"up":{"bandwidth":"25GB/s"},'
        '"update":"100GB/s"}']


def ask(options, *arguments):
    """Returns the program's JSON, or None if no plan fits."""
    answer = subprocess.run([str(options.build / "cli/weft"), *arguments, "--json", "-q"], capture_output=True,
                            text=True, check=False)
    if answer.returncode not in (0, 78):
        raise SystemExit(f"{' '.join(arguments)}: exit {answer.returncode}: {answer.stderr[-300:]}")
    return json.loads(answer.stdout) if answer.returncode == 0 else None


def plan(options, model, share):
    done = options.out / f"{model}-{share}-{options.work}.json"
    if not done.exists():
        source = str(ROOT / "configs/runs" / f"{model}.json")
        run = json.loads(Path(source).read_text())["train"]
        estimate = ask(options, "estimate", source)
        need = next(row["needs_bytes"] for row in estimate["rows"]
                    if row["policy"] == "fsdp" and row["way"] == "just in time")
        batch = 2 * run["micro_batch"] * run.get("grad_accum", 1) * estimate["ranks"]
        settings = [part for text in [*OPEN, f"train.batch={batch}"] for part in ("--set", text)]
        said = ask(options, "plan", source, *settings, "--memory-limit", f"{int(share * need)}B",
                   "--work-limit", options.work)
        done.write_text(json.dumps(said))
    return json.loads(done.read_text())


def gap_of(said):
    return 100 * (said["step_ns"] / said["least_bound_ns"] - 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("together-plans"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--work", default="30G")
    parser.add_argument("--models", nargs="*", default=MODELS)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    todo = [(model, share) for model in options.models for share in SHARES]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        plans = dict(zip(todo, pool.map(lambda point: plan(options, *point), todo)))
    gaps = {point: gap_of(said) for point, said in plans.items() if said}
    rows = [[model, *(f"{gaps[model, share]:.3f} %" if (model, share) in gaps else "no plan" for share in SHARES)]
            for model in options.models]
    median, worst = statistics.median(gaps.values()), max(gaps.values())
    print(f"{len(gaps)} of {len(todo)} points have a plan; gap: median {median:.3f} %, worst {worst:.3f} %")
    for row in rows:
        print("|", " | ".join(row), "|")
    if options.record:
        record("planner-gap", "together", rows, {
            f"median of {len(gaps)} plans": (f"{median:.3f} %", median <= 0.05),
            "worst": (f"{worst:.3f} %", worst <= 0.5)})


if __name__ == "__main__":
    main()
