#!/usr/bin/env python3
"""Do two builds of weft plan alike? same_plans.py OLD NEW [--configs PATTERN...] [--random N]
[--generator PROGRAM] [--first NUMBER] [--jobs N] [--set KEY=VALUE...]

OLD and NEW are programs (BUILD/cli/weft), each with its weft-solve beside it. Every run that Weft
ships, and N random configs (`PROGRAM NUMBER` prints one, by default NEW's bench/planner/random_config),
are planned by both: plans with their predictions, bounds and certificates, the instructions that they
are lowered to, and refusals must be the same to the byte, but for the version of weft and hashes. A plan of version 5 is compared as what it is in
version 6: a unit is a decision, and the policies that it may have are its strategies. What limits
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


POLICIES = ["dp", "zero1", "sdp", "fsdp"]


class Translation:
    """A problem of version 5 and what refers to it, in the words of version 6."""

    def __init__(self, problem):
        self.names = [[p for p in POLICIES if p in unit["policies"]] for unit in problem["units"]]
        kept = [i for i, item in enumerate(problem["items"]) if self.of_item(item)]
        self.items = {before: now for now, before in enumerate(kept)}
        self.problem = {key: problem[key] for key in problem if key not in ("units", "items")}
        self.problem["kinds"] = [p for p in POLICIES if any(p in names for names in self.names)]
        self.problem["decisions"] = [self.decision(*pair) for pair in zip(problem["units"], self.names)]
        self.problem["items"] = [self.item(problem["items"][i]) for i in kept]

    def of_item(self, item):
        return [p for p in self.names[item["unit"]] if p in item["policies"]]

    @staticmethod
    def decision(unit, names):
        trains = unit["update_slot"] >= 0
        return {"name": unit["name"], "update_slot": unit["update_slot"],
                "elements": unit["elements"],
                "strategies": [{"name": p, "holds": unit["holds"][p],
                                "times": [{"slot": unit["update_slot"],
                                           "time_ns": unit["update_ns"][p]}] if trains else []}
                               for p in names]}

    def item(self, item):
        left = {key: value for key, value in item.items() if key not in ("unit", "policies")}
        return {**left, "decision": item["unit"], "strategies": self.of_item(item)}

    def some(self, unit, mask):
        return [p for p in self.names[unit] if mask >> POLICIES.index(p) & 1]

    def node(self, node):
        node = dict(node)
        if "policies" in node:
            unit = node.pop("unit")
            return {"decision": unit, "strategies": self.some(unit, node["policies"])}
        if "group" in node:
            node["decisions"] = node.pop("units")
        if "item" in node:
            node["item"] = self.items[node["item"]]
        return node

    def whole(self, row):
        reference = [names.index(POLICIES[p]) for names, p in zip(self.names, row["reference"])]
        return {**row, "reference": reference}

    def certificate(self, certificate):
        if certificate is None:
            return None
        return {"groups": [{"decisions": group["units"],
                            "strategies": self.some(group["units"][0], group["policies"])}
                           for group in certificate["groups"]],
                "prices": [{**prices, "whole": [self.whole(row) for row in prices["whole"]]}
                           for prices in certificate["prices"]],
                "tree": [self.node(node) for node in certificate["tree"]]}


def comparable(plan):
    """A plan in the words of the newest version, without hashes."""
    for key in ("weft", "decision_hash"):
        del plan[key]
    for part in [plan, *plan["other_periods"]]:
        if plan["version"] == 5:
            words = Translation(part["problem"])
            part["problem"] = words.problem
            part["certificate"] = words.certificate(part["certificate"])
            for placement in part.get("placements", []):
                placement["item"] = words.items[placement["item"]]
        if part["certificate"]:
            part["certificate"].pop("problem", None)
    if plan["version"] == 5:
        plan["strategies"] = plan.pop("policies")
        plan["version"] = 6
    return plan


def planned(program, config, settings, directory):
    """What one build makes of a config: exit status, words, plan, program."""
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
    """Paths at which two documents differ, with what is there."""
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
