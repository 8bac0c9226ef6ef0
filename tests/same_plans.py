#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do two builds of weft plan alike? same_plans.py OLD NEW [--configs PATTERN...] [--random N]
[--generator PROGRAM] [--first NUMBER] [--jobs N] [--set KEY=VALUE...]

OLD and NEW are programs (BUILD/cli/weft), each with its weft-solve beside it. Every run that Weft
ships, and N random configs (`PROGRAM NUMBER` prints one, by default NEW's bench/planner/random_config),
are planned by both: plans with their predictions, bounds and certificates, the instructions that they
are lowered to, and refusals must be the same to the byte, but for the version of weft and hashes. A plan of versions 6 to 10 is compared as
what it is in version 11: channels are lanes of the network, its limit is that of its one tier, and it has no bound in pages. What limits
planning is a count of work, so neither load nor --jobs changes a plan; an alarm that rings would, and
is set to a day. Says each config that differs and where; exit 1 when one does."""
import argparse
import concurrent.futures
import glob
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST_TOLD = 5


def arguments():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--configs", nargs="*", default=[str(ROOT / "configs/runs/*.json")])
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--generator")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--set", nargs="*", default=[])
    return parser.parse_args()


def lanes(problem):
    """A problem of version 6, which knows channels of a network, in the words of version 8."""
    problem = dict(problem)
    rates = {"compute_rate": problem.pop("compute_rate"), "rate": problem.pop("channel_rate")}
    names = ["network", "network 2"][:problem.pop("channels")]
    problem["lanes"] = [{"name": "compute", "kind": "compute", "compute_rate": 1024, "rate": 1024}]
    problem["lanes"] += [{"name": name, "kind": "network", **rates} for name in names]
    for item in problem["items"]:
        acquires = item["kind"] == "all_gather"
        item.update({"lane": 1 if acquires else len(names), "after": -1, "acquires": acquires,
                     "may_block": acquires})
    return problem


def tiers(problem):
    """A problem of version 9, which knows one memory, in the words of version 10."""
    problem = dict(problem)
    limit = problem.pop("memory_limit_bytes")
    problem["tiers"] = [{"name": "device", "kind": "device", "limit_bytes": limit}]
    return problem


def comparable(plan):
    """A plan in the words of the newest version, without hashes."""
    for key in ("weft", "decision_hash"):
        del plan[key]
    for part in [plan, *plan["other_periods"]]:
        if plan["version"] == 6:
            part["problem"] = lanes(part["problem"])
        if plan["version"] <= 9:
            part["problem"] = tiers(part["problem"])
        if part is not plan:
            part["problem"] = {key: value for key, value in part["problem"].items()
                               if key in ("micro_batch", "blocks", "period")}
            part.pop("ring_bytes", None)
        if part["certificate"]:
            part["certificate"].pop("problem", None)
    if plan["version"] <= 10:
        plan["bound"]["paged_bound_ns"], plan["paged_certificate"] = 0, None
    if plan["paged_certificate"]:
        plan["paged_certificate"].pop("problem", None)
    plan.pop("periods_open", None)
    plan["version"] = max(plan["version"], 13)
    return plan


def planned(program, config, settings, directory):
    """The output of one build for a config: exit status, words, plan, program."""
    out = os.path.join(directory, "plan.json")
    flags = [flag for setting in settings for flag in ("--set", setting)]
    done = subprocess.run(
        [program, "plan", config, "-o", out, "--program", "--time-limit", "86400s",
         "--progress", "none", "--color", "never", *flags], capture_output=True, text=True)
    plan = None
    if os.path.exists(out):
        with open(out, encoding="utf-8") as file:
            plan = comparable(json.load(file))
        os.remove(out)
    return {"exit": done.returncode, "said": done.stderr.replace(out, "PLAN").splitlines(),
            "program": done.stdout.replace(out, "PLAN").splitlines(), "plan": plan}


def differences(old, new, where=""):
    """Paths at which two documents differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), f"{where}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for i, pair in enumerate(zip(old, new)):
            yield from differences(*pair, f"{where}[{i}]")
    elif old != new:
        yield f"{where}: {str(old)[:100]} | {str(new)[:100]}"


def compare(name, config, asked):
    with tempfile.TemporaryDirectory() as directory:
        if isinstance(config, int):
            path = os.path.join(directory, "config.json")
            with open(path, "w", encoding="utf-8") as file:
                subprocess.run([asked.generator, str(config)], stdout=file, check=True)
            config = path
        old = planned(asked.old, config, asked.set, directory)
        new = planned(asked.new, config, asked.set, directory)
    return name, old, list(differences(old, new))


def main():
    asked = arguments()
    asked.generator = asked.generator or str(
        Path(asked.new).resolve().parent.parent / "bench/planner/random_config")
    cases = [(os.path.relpath(path, ROOT), path)
             for pattern in asked.configs for path in sorted(glob.glob(pattern))]
    cases += [(f"random {n}", n) for n in range(asked.first, asked.first + asked.random)]
    n_plans = n_proven = n_different = 0
    with concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        for name, old, found in pool.map(lambda c: compare(*c, asked), cases):
            n_plans += old["plan"] is not None
            n_proven += old["plan"] is not None and old["plan"]["bound"]["bound_ns"] > 0
            n_different += bool(found)
            what = f"{old['plan']['prediction']['step_ns']} ns" if old["plan"] else f"refused {old['exit']}"
            print(f"{'DIFFERS' if found else 'same'} {name}: {what}", flush=True)
            for line in found[:MOST_TOLD]:
                print(f"    {line}", flush=True)
    print(f"{len(cases)} configs, {n_plans} plans, {n_proven} with a bound: {n_different} differ")
    if not cases or n_plans == 0:
        sys.exit("nothing was planned")
    sys.exit(1 if n_different else 0)


main()
