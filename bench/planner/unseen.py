#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures proven gaps on configs that nobody has seen: bench/planner/unseen.py --build BUILD [--draw NUMBER]

A draw gives --configs random configs of each kind, with numbers between 10^6 and 10^9. Without --draw the clock gives
it, so no two runs measure the same configs by chance; the draw is printed. Kinds (--kinds):

    plain   as bench/planner/random_config prints it
    tiers   with a host's memory, state and activations that may be there, and a limit below the config's own
    all     also with recomputation, the split of the batch and the size of blocks open
    fsdp2   for PyTorch's FSDP2, at 1.05 to 1.5 times the least need that `weft estimate` prints

A config is left out if it has no form of a kind, or if its least limit takes over LEAST_S seconds of CPU. The gap is the step over the weakest bound of all planned periods. Of each it takes the better one, which may be of pages
no larger than the plan's. --against names a second program: both plan each config with equal work, and the table also has the
plans that are faster and slower by the first. A slower one is named. Work alone ends planning, so load changes nothing
but the CPU seconds. --record writes the table `unseen` of bench/results/planner-gap.json.
"""
import argparse
import concurrent.futures
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from results import record  # pylint: disable=wrong-import-position

KINDS = {"plain": "without tiers", "tiers": "with tiers", "all": "all choices", "fsdp2": "FSDP2 target"}
LEAST_S = 3
FSDP2 = ["--for", "fsdp2", "--set", 'plan.offload={"state":["device"],"activations":["device"]}', "--set",
         "plan.policies=dp,zero1,sdp,fsdp", "--set", "train.delay=0"]
OFFLOAD = {"state": ["device", "host"], "activations": ["device", "host"]}
SAME = 1.0001  # steps this close are equal


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--weft", type=Path, help="the program; by default the build's")
    parser.add_argument("--against", type=Path, help="another program, with its weft-solve next to it")
    parser.add_argument("--draw", type=int, default=None)
    parser.add_argument("--configs", type=int, default=20)
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--work", default="1G")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    return parser.parse_args()


def least_limit(program, path):
    """The least limit in bytes that a refusal names; None without one within LEAST_S."""
    said = subprocess.run([program, "plan", path, "--memory-limit", "1B", "--quiet", "--work-limit", "1M"], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LEAST_S, LEAST_S)), check=False).stderr
    found = re.search(r"(?:least limit that fits is|have to have at least) [^(]*\((\d+) bytes", said)
    return int(found[1]) if found else None


def least_need(program, path):
    """The least need in bytes of a rule for FSDP2; None if FSDP2 cannot run the config."""
    said = subprocess.run([program, "estimate", path, *FSDP2, "--json", "-q"], capture_output=True, text=True, check=False)
    return min(row["needs_bytes"] for row in json.loads(said.stdout)["rows"]) if said.returncode == 0 else None


def config_of(options, kind, number, path):
    """Writes the config of a kind and number. False if it has no form of that kind."""
    drawn = random.Random(number)
    config = json.loads(subprocess.run([options.build / "bench/planner/random_config", str(number)],
                                       capture_output=True, text=True, check=True).stdout)
    if kind in ("tiers", "all"):
        link = {"alpha": f"{drawn.choice([1, 5, 20])}us", "bandwidth": f"{drawn.choice([6, 12, 25, 50])}GB/s"}
        config["cluster"]["host"] = {"memory_limit": "1TB", "down": link, "up": link,
                                     "update": f"{drawn.choice([20, 50, 100])}GB/s"}
        config.setdefault("plan", {})["offload"] = OFFLOAD
    if kind == "all":
        train, ranks = config["train"], config["cluster"]["ranks"]
        config["plan"].update(recompute="auto", block_scale="auto")
        train["batch"] = 2 * train.get("micro_batch", 1) * train.pop("grad_accum", 1) * ranks
        train["micro_batch"] = "auto"
        train.pop("reduce", None)
    path.write_text(json.dumps(config), encoding="utf-8")
    if kind == "plain":
        return True
    least = least_need(options.weft, path) if kind == "fsdp2" else least_limit(options.weft, path)
    if least is None:
        return False
    if kind == "fsdp2":
        config["cluster"]["memory_limit"] = f"{int(drawn.uniform(1.05, 1.5) * least)}B"
        path.write_text(json.dumps(config), encoding="utf-8")
        return True
    own = max(int(config["cluster"]["memory_limit"].rstrip("B")), least)
    config["cluster"]["memory_limit"] = f"{least + int(drawn.uniform(0.02, 0.9) * (own - least))}B"
    path.write_text(json.dumps(config), encoding="utf-8")
    return True


def plan(program, options, kind, path):
    """The step, the gap in percent, and the CPU seconds of one program's plan; None without a plan."""
    out = path.with_suffix(f".{'old' if program == options.against else 'new'}")
    begun = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = subprocess.run([program, "plan", path, "-o", out, "--quiet", "--work-limit", options.work,
                          *(FSDP2 if kind == "fsdp2" else [])], capture_output=True, text=True, check=False)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = ended.ru_utime - begun.ru_utime
    if run.returncode != 0:
        return {"error": run.stderr.strip()[-160:], "code": run.returncode, "cpu_s": cpu_s}
    made = json.loads(out.read_text(encoding="utf-8"))
    bound = made["bound"]
    own_ns = max(bound["bound_ns"], bound.get("paged_bound_ns", 0))
    page_bytes = made["pages"]["page_bytes"]
    least_ns = min([own_ns, *(other["paged_bound_ns"] if other.get("page_bytes", page_bytes + 1) <= page_bytes
                              else other["bound_ns"] for other in made["other_periods"])])
    step_ns = made["prediction"]["step_ns"]
    return {"step_ns": step_ns, "gap": 100 * (step_ns / least_ns - 1), "own_gap": 100 * (step_ns / own_ns - 1),
            "cpu_s": cpu_s}


def measure(options, directory, kind, number):
    path = Path(directory) / f"{kind}-{number}.json"
    if not config_of(options, kind, number, path):
        return None
    new = plan(options.weft, options, kind, path)
    return number, new, plan(options.against, options, kind, path) if options.against else None


def at(sorted_gaps, part):
    return sorted_gaps[min(len(sorted_gaps) - 1, int(part * len(sorted_gaps)))]


def row(name, plans):
    """The cells of a kind: plans, gaps, the gap of the own period, and CPU seconds."""
    found = [one for one in plans if "gap" in one]
    if not found:
        return [name, 0, "-", "-", "-", "-", 0]
    gaps, own = sorted(one["gap"] for one in found), sorted(one["own_gap"] for one in found)
    return [name, len(found), f"{at(gaps, 0.5):.3f} %", f"{at(gaps, 0.95):.2f} %", f"{gaps[-1]:.2f} %",
            f"{at(own, 0.95):.2f} %", round(sum(one["cpu_s"] for one in plans))]


def compare(kind, measured):
    """Names the plans that are slower by the first program, or that only one of both has."""
    faster = slower = 0
    for number, new, old in measured:
        if ("gap" in new) != ("gap" in old):
            print(f"{kind} {number}: new {new.get('error', 'has a plan')}; old {old.get('error', 'has a plan')}")
        elif "gap" in new and new["step_ns"] > old["step_ns"] * SAME:
            slower += 1
            print(f"{kind} {number}: slower by {100 * (new['step_ns'] / old['step_ns'] - 1):.3f} %")
        elif "gap" in new:
            faster += old["step_ns"] > new["step_ns"] * SAME
    print(f"{kind}: {faster} faster, {slower} slower of {len(measured)}", flush=True)


def main():
    options = arguments()
    options.build = options.build.resolve()
    options.weft = (options.weft or options.build / "cli/weft").resolve()
    options.against = options.against and options.against.resolve()
    options.draw = time.time_ns() if options.draw is None else options.draw
    print(f"draw {options.draw}, {options.configs} configs a kind, work {options.work}")
    numbers = random.Random(options.draw).sample(range(10**6, 10**9), options.configs)
    rows = []
    with tempfile.TemporaryDirectory() as directory, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for kind in options.kinds:
            measured = [one for one in pool.map(lambda n, k=kind: measure(options, directory, k, n), numbers) if one]
            rows.append(row(KINDS[kind], [new for _, new, _ in measured]))
            if options.against:
                rows.append(row(f"{KINDS[kind]}, against", [old for _, _, old in measured]))
                compare(kind, measured)
            worst = sorted((one for one in measured if "gap" in one[1]), key=lambda one: -one[1]["gap"])[:4]
            shown = [f"{number} {new['gap']:.2f} %" for number, new, _ in worst]
            print(f"{kind}, widest: {', '.join(shown)}", flush=True)
            for number, new, _ in measured:
                if "error" in new and new["code"] != 78:
                    sys.exit(f"{kind} {number}: exit {new['code']}: {new['error']}")
    print("\n| kind | plans | gap median | 95th percentile | worst | own period's 95th | CPU s |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    print("\n".join("| " + " | ".join(map(str, cells)) + " |" for cells in rows))
    if options.record:
        record("planner-gap", "unseen", rows, {})


if __name__ == "__main__":
    main()
