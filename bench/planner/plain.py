#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares Weft with the plain formulation: bench/planner/plain.py --build BUILD [LAYERS...]

The plain formulation has one binary per block and possible slot, and one per strategy of each decision. It is
written as an LP file from a plan's problem and given to `glpsol`, and to `cbc` if it is installed, for --seconds
each. The table shows rows, columns, time, objective and the solver's gap, and Weft's step, bound and time for the
same rows.

A blocking gather is a binary that costs its channel time and holds no memory. The formulation's channel may cut
blocks at slots' ends and reorder them, so its objective may be below every real step's. Markdown on stdout.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LAYERS = [4, 8, 16, 32, 64, 96]
SCALE_NS, SCALE_BYTES = 1e3, 1e6  # units of the file: microseconds, megabytes


def config_of(layers):
    return {
        "version": 1,
        "model": {"layers": [
            {"name": "wte", "type": "embedding", "vocab": 50257, "positions": 1024, "hidden": 1024},
            {"name": "h.{i}", "type": "transformer_block", "repeat": layers, "hidden": 1024,
             "heads": 16, "ffn": 4096},
            {"name": "head", "type": "lm_head", "vocab": 50257, "hidden": 1024, "bias": False}]},
        "cluster": {"ranks": 16, "ranks_per_node": 1, "memory_limit": "1PB",
                    "device": {"flops": {"f32": "8.1T"}, "memory_bandwidth": "320GB/s",
                               "efficiency": 0.5},
                    "link": {"inter": {"alpha": "50us", "bandwidth": "3GB/s"}}},
        "train": {"steps": 1, "micro_batch": 2, "seq_len": 512, "clip_norm": 1.0,
                  "optimizer": {"type": "adamw", "lr": 1e-4}},
        "plan": {"planner": "ilp", "work_limit": "10G", "gap": 0.0002}}


def held(hold, slot):
    first, last = hold["first"], hold["last"]
    return first <= slot <= last if first <= last else slot >= first or slot <= last


class Plain:
    """The formulation's rows and columns. A row is (terms, sense, right-hand side)."""

    def __init__(self, problem, limit):
        self.problem, self.limit = problem, limit
        self.cost, self.binaries, self.rows, self.fixed = {}, [], [], problem["agree_ns"]
        self.placed = {}  # (item, block): its columns by slot
        self.choose_strategies()
        for index, item in enumerate(problem["items"]):
            self.place(index, item)
        for slot in range(len(problem["slots"])):
            self.load(slot)
            self.memory(slot)

    def choose_strategies(self):
        for slot in self.problem["slots"]:
            self.fixed += slot["time_ns"]
        for d, decision in enumerate(self.problem["decisions"]):
            columns = [f"z_{d}_{strategy['name']}" for strategy in decision["strategies"]]
            self.binaries += columns
            self.rows.append(([(1, column) for column in columns], "=", 1))
            for strategy, column in zip(decision["strategies"], columns):
                self.cost[column] = sum(at["time_ns"] for at in strategy["times"]) / SCALE_NS

    def needs(self, item):
        return [f"z_{item['decision']}_{name}" for name in item["strategies"]]

    def place(self, index, item):
        for block in range(item["blocks"]):
            columns = {slot: f"y_{index}_{block}_{slot}"
                       for slot in range(item["first"], item["last"] + 1)}
            self.placed[index, block] = columns
            self.binaries += columns.values()
            terms = [(1, column) for column in columns.values()]
            if item["kind"] == "all_gather":
                terms.append((1, f"q_{index}_{block}"))
                self.binaries.append(f"q_{index}_{block}")
                self.cost[f"q_{index}_{block}"] = item["block_ns"] / SCALE_NS
            self.rows.append((terms + [(-1, z) for z in self.needs(item)], "=", 0))

    def load(self, slot):
        """Adds a row: a slot's moves fit into its time and the wait after it."""
        terms = [(self.problem["items"][index]["block_ns"] / SCALE_NS, columns[slot])
                 for (index, _), columns in self.placed.items() if slot in columns]
        free = self.problem["slots"][slot]["time_ns"] / SCALE_NS
        if not terms:
            return
        self.cost[f"w_{slot}"] = 1
        terms += [(-at["time_ns"] / SCALE_NS, f"z_{d}_{strategy['name']}")
                  for d, decision in enumerate(self.problem["decisions"])
                  for strategy in decision["strategies"]
                  for at in strategy["times"] if at["slot"] == slot]
        self.rows.append((terms + [(-1, f"w_{slot}")], "<=", free))

    def memory(self, slot):
        free = (self.limit - sum(hold["bytes"] for hold in self.problem["common"]
                                 if held(hold, slot))) / SCALE_BYTES
        terms = []
        for d, decision in enumerate(self.problem["decisions"]):
            for strategy in decision["strategies"]:
                total = sum(h["bytes"] for h in strategy["holds"] if held(h, slot))
                terms.append((total / SCALE_BYTES, f"z_{d}_{strategy['name']}"))
        for (index, _), columns in self.placed.items():
            item = self.problem["items"][index]
            if slot not in columns or not item["held_bytes"]:
                continue
            size = item["held_bytes"] / SCALE_BYTES
            if item["kind"] == "all_gather":
                terms += [(size, column) for at, column in columns.items() if at <= slot]
            else:
                terms += [(size, z) for z in self.needs(item)]
                terms += [(-size, column) for at, column in columns.items() if at < slot]
        self.rows.append((terms, "<=", free))

    def write(self, path):
        with open(path, "w", encoding="utf-8") as out:
            out.write("Minimize\n obj:")
            self.write_terms(out, [(cost, name) for name, cost in self.cost.items()])
            out.write("\nSubject To\n")
            for number, (terms, sense, right) in enumerate(self.rows):
                merged = {}
                for factor, name in terms:
                    merged[name] = merged.get(name, 0) + factor
                merged = [(factor, name) for name, factor in merged.items() if factor]
                if merged:
                    out.write(f" r{number}:")
                    self.write_terms(out, merged)
                    out.write(f" {sense} {right:.9g}\n")
            out.write("Binary\n" + "\n".join(f" {name}" for name in self.binaries) + "\nEnd\n")

    @staticmethod
    def write_terms(out, terms):
        for number, (factor, name) in enumerate(terms):
            out.write(("\n" if number % 8 == 7 else "") + f" {factor:+.9g} {name}")

    def columns(self):
        return len(self.binaries) + sum(name.startswith("w_") for name in self.cost)


def last(pattern, text):
    found = re.findall(pattern, text)
    return float(found[-1]) if found else None


def solve(program, path, seconds):
    """Returns objective and bound in the file's units (None if the solver has none), and the seconds."""
    from_s = time.monotonic()
    if program == "glpsol":
        said = subprocess.run([program, "--lp", path, "--tmlim", str(seconds)],
                              capture_output=True, text=True, check=False).stdout
        number = r"([-+.\de]+)"
        objective = last(rf"mip = +{number} ", said)
        bound = last(rf"(?:mip = +\S+|not found yet) >= +{number}", said)
        if "INTEGER OPTIMAL SOLUTION FOUND" in said:
            bound = objective
    else:
        said = subprocess.run([program, path, "sec", str(seconds), "solve"],
                              capture_output=True, text=True, check=False).stdout
        objective = last(r"Objective value: +([-+.\de]+)", said)
        bound = last(r"Lower bound: +([-+.\de]+)", said)
        if "Optimal solution found" in said:
            bound = objective
        if "No feasible solution found" in said:
            objective = None
    return objective, bound, time.monotonic() - from_s


def weft(options, config, limit):
    program = options.build / "bench" / "planner" / "planners"
    said = subprocess.run([program, config, "--planners", "ilp", "--at", str(limit)],
                          capture_output=True, text=True, check=True).stdout
    return json.loads(said)


def problem_of(options, directory, layers):
    """Returns the config's path, its problem, and 1.1 times the least limit."""
    config, plan = directory / "run.json", directory / "plan.json"
    config.write_text(json.dumps(config_of(layers)))
    program = options.build / "cli" / "weft"
    refusal = subprocess.run([program, "plan", config, "--memory-limit", "1B"],
                             capture_output=True, text=True, check=False).stderr
    found = re.search(r"the least limit that fits is [^(]*\((\d+) bytes", refusal)
    if not found:
        sys.exit(f"weft plan: {refusal}")
    subprocess.run([program, "plan", config, "--planner", "all-fsdp", "-o", plan, "-q"],
                   stdout=subprocess.DEVNULL, check=True)
    return config, json.loads(plan.read_text())["problem"], int(found[1]) * 11 // 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("layers", nargs="*", type=int, default=LAYERS)
    parser.add_argument("--build", default=Path(__file__).resolve().parents[2] / "build", type=Path)
    parser.add_argument("--seconds", default=60, type=int)
    options = parser.parse_args()
    options.build = options.build.resolve()
    solvers = [name for name in ("glpsol", "cbc") if shutil.which(name)]
    print("| layers | solver | rows | columns | time | objective | its bound | gap |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- |")
    for layers in options.layers:
        with tempfile.TemporaryDirectory() as name:
            config, problem, limit = problem_of(options, Path(name), layers)
            row = weft(options, config, limit)
            plain = Plain(problem, limit)
            path = Path(name) / "plain.lp"
            plain.write(path)
            print(f"| {layers} | weft | | | {row['took_ns'] / 1e9:.2f} s | "
                  f"{row['step_ns'] / 1e6:.3f} ms | {row['bound_ns'] / 1e6:.3f} ms | "
                  f"{100 * (row['step_ns'] / row['bound_ns'] - 1):.3f} % |", flush=True)
            for solver in solvers:
                objective, bound, took_s = solve(solver, path, options.seconds)
                figures = [None if value is None else (value * SCALE_NS + plain.fixed) / 1e6
                           for value in (objective, bound)]
                shown = ["none" if value is None else f"{value:.3f} ms" for value in figures]
                gap = "" if None in figures else f"{100 * (figures[0] / figures[1] - 1):.3f} %"
                print(f"| {layers} | {solver} | {len(plain.rows)} | {plain.columns()} | "
                      f"{took_s:.1f} s | {shown[0]} | {shown[1]} | {gap} |", flush=True)


main()
