#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the planner's figures: bench/planner/figures.py --build BUILD [gap] [random] [rivals]
[deepcompile]

    gap          proven gap and time of ilp: models x ratio x ranks x limits, and with blocks halved
    random       proven gap of `weft plan` for --configs random configs from number --first on, in pages,
                 and of plans held to rows alone (tests/scheduler/random_whole.h); each with at most
                 --work units of planning
    rivals       ilp against every published rule at the same limit, each with its own best setting
    deepcompile  Llama-3-70B and Mixtral on 32 ranks, 1 to 16 micro-steps: gain over `deepspeed`

The default is all of them. Two processes run at a time (--jobs). Each instance is a file in --out and is not planned
again, so an interrupted run can continue. --quick does a small part of each, in a minute.

The simulator judges plans. They are held to rows alone, except for `random`. The ratio is channel time over compute
time of a step in which every unit is fsdp. Times are those of this machine, so run nothing else on it. Gaps do not
depend on the machine. Markdown on stdout.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LARGE = ["gpt2", "gpt2-xl", "llama-3-8b", "gpt3-175b", "llama-3.1-405b"]
UNEVEN = ["resnet-50", "vgg-19", "uneven-64", "mixtral-8x7b"]
MIDDLE = ["gpt2", "gpt2-xl", "llama-3-8b", "gpt3-13b", "bert-large", "resnet-50", "vgg-19",
          "uneven-64", "mixtral-8x7b"]
# In a network with small messages the uneven models keep many units. Large models belong on fast nodes.
CLUSTERS = {"resnet-50": "t4-16-25gbe", "vgg-19": "t4-16-25gbe", "uneven-64": "t4-16-25gbe",
            "bert-large": "t4-16-25gbe", "gpt2": "t4-16-25gbe"}
RATIOS = [0.5, 1, 2]
# Shares of the best bandwidth. A block has e / (1 - e) x alpha x beta bytes, so the second share halves the blocks.
EFFICIENCIES = [0.9, 0.8182]
PUBLISHED = {"deepcompile-llama-3-70b": "1.18 to 1.28", "deepcompile-mixtral-8x7b": "1.30 to 1.54"}
OWN = {"ilp", "greedy", "random", "two-stage", "seed-ilp", "all-fsdp", "all-sdp", "all-zero1", "all-dp"}
TIE = 1e-6


def read(path):
    return json.loads((ROOT / "configs" / path).read_text())


def config_of(model, ranks, accumulation):
    """Returns the model's run config for `ranks` ranks of its cluster's devices, at most eight per node."""
    run = read(f"runs/{model}.json")
    cluster = read(f"clusters/{CLUSTERS.get(model, 'h100-64')}.json")
    cluster.pop("$comment", None)
    cluster["ranks"] = ranks
    if cluster.get("ranks_per_node", ranks) > 1:
        cluster["ranks_per_node"] = min(ranks, 8)
    cluster["memory_limit"] = "1PB"
    run["model"] = str(ROOT / "configs" / "models" / f"{model}.json")
    run["cluster"] = cluster
    run["train"]["precision"]["compute"] = next(iter(cluster["device"]["flops"]))
    run["train"]["grad_accum"] = accumulation
    return run


class Instance:
    """One run of the program `planners`: a config, its arguments, and its output lines."""

    def __init__(self, name, config, arguments):
        self.name, self.config, self.arguments = name, config, arguments
        self.rows, self.error = [], None

    def plan(self, options):
        done = options.out / f"{self.name}.json"
        if not done.exists():
            source = options.out / f"{self.name}.config"
            source.write_text(json.dumps(self.config))
            program = options.build / "bench" / "planner" / "planners"
            environment = {"WEFT_SOLVE": str(options.build / "scheduler" / "weft-solve")}
            answer = subprocess.run([str(program), str(source), *self.arguments],
                                    capture_output=True, text=True, check=False,
                                    env={**environment, **dict(os.environ)})
            rows = [json.loads(line) for line in answer.stdout.splitlines()]
            error = None
            if answer.returncode != 0:
                error = answer.stderr.strip()[-300:] or f"exit {answer.returncode}"
            if error:
                self.error = error  # not stored: the next run tries again
                return
            half = done.with_suffix(".half")
            half.write_text(json.dumps(rows))
            half.rename(done)
        self.rows = json.loads(done.read_text())


def plan_all(instances, options):
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(instance.plan, options) for instance in instances]
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            future.result()
            print(f"{number} of {len(instances)} instances", file=sys.stderr)
    for instance in instances:
        if instance.error:
            print(f"- {instance.name}: refused: {instance.error}")


def gap_of(row):
    return 100 * (row["step_ns"] - row["bound_ns"]) / row["bound_ns"] if row["bound_ns"] else 100.0


def percent(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def gap(options):
    models = ["gpt2", "uneven-64"] if options.quick else LARGE + UNEVEN
    ratios = [1] if options.quick else RATIOS
    ranks = [8] if options.quick else [8, 1024]
    limits = "3" if options.quick else "5"
    instances = [Instance(f"gap-{model}-{ratio}-{n}-{limits}-{efficiency}", config_of(model, n, 1),
                          ["--planners", "ilp", "--ratio", str(ratio), "--limits", limits,
                           "--set", "plan.work_limit=10G", "--set", "plan.gap=0.0002",
                           "--set", f"plan.block_efficiency={efficiency}"])
                 for efficiency in EFFICIENCIES for model in models for ratio in ratios
                 for n in ranks]
    print("\n## Proven gap and time of ilp\n")
    plan_all(instances, options)
    print("| model | plans | gap median | worst | within 0.02 % | within 0.1 % | time median | worst | "
          "first plan median | worst | plans with blocks of half the size | gap median | worst |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for model in models + ["all"]:
        show_gap(model, *([row for instance in instances for row in instance.rows
                           if instance.name.endswith(f"-{efficiency}") and row["fits"]
                           and (model == "all" or instance.name.startswith(f"gap-{model}-"))]
                          for efficiency in EFFICIENCIES))


def show_gap(model, plans, halves):
    if not plans:
        return
    gaps, times, firsts, half_gaps = ([value(row) for row in rows] for value, rows in [
        (gap_of, plans), (lambda row: row["took_ns"] / 1e9, plans),
        (lambda row: row["first_work"] / 1e9, plans), (gap_of, halves)])
    cells = [model, len(plans), f"{statistics.median(gaps):.4f} %", f"{max(gaps):.3f} %",
             sum(gap <= 0.02 for gap in gaps), sum(gap <= 0.1 for gap in gaps),
             f"{statistics.median(times):.2f} s", f"{max(times):.1f} s",
             f"{statistics.median(firsts):.4f} s", f"{max(firsts):.3f} s", len(halves)]
    if halves:
        cells += [f"{statistics.median(half_gaps):.4f} %", f"{max(half_gaps):.3f} %"]
    print("| " + " | ".join(map(str, cells)) + " |")


class Whole(Instance):
    """A random config: the result of `weft plan` in pages, and ilp's plan held to rows alone."""

    def __init__(self, number, work):
        # The time limit is never reached, so work alone ends planning.
        self.limits = ["--set", "plan.time_limit=4h", "--set", f"plan.work_limit={work}"]
        super().__init__(f"random-{number}-{work}", None,
                         ["--planners", "ilp", "--share", *self.limits])
        self.number = number

    def ask(self, *command):
        answer = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                                check=False)
        if answer.returncode != 0:
            self.error = answer.stderr.strip()[-300:] or f"exit {answer.returncode}"
        return None if self.error else json.loads(answer.stdout)

    def plan(self, options):
        source, done = (options.out / f"{self.name}{end}" for end in (".weft.json", ".whole"))
        if not done.exists():
            self.config = self.ask(options.build / "bench/planner/random_config", self.number)
            if self.error:
                return
            source.write_text(json.dumps(self.config))
            said = self.ask(options.build / "cli/weft", "plan", source, "--json", "--quiet",
                            *self.limits)
            if self.error:
                return
            self.arguments += ["--at", self.config["cluster"]["memory_limit"].rstrip("B")]
            super().plan(options)
            if self.error:
                return
            row = {**self.rows[0], "shape": self.config["$comment"].split(": ")[1],
                   "ranks": self.config["cluster"]["ranks"],
                   "paged": {"step_ns": said["step_ns"], "bound_ns": said["least_bound_ns"]}}
            done.write_text(json.dumps(row))
        row = json.loads(done.read_text())
        self.rows = [dict(row, paged_gap=gap_of(row["paged"]), gap=gap_of(row))]


def random_gaps(options):
    numbers = range(options.first, options.first + (6 if options.quick else options.configs))
    instances = [Whole(number, options.work) for number in numbers]
    print(f"\n## Proven gap of random configs {numbers[0]} to {numbers[-1]}, work {options.work}\n")
    plan_all(instances, options)
    found = [(instance.number, row) for instance in instances for row in instance.rows]
    print("| plans | configs | gap median | 95th percentile | worst | within 0.1 % | within 1 % |\n"
          "| --- | --- | --- | --- | --- | --- | --- |")
    for name, key in (("in pages", "paged_gap"), ("rows alone", "gap")) if found else ():
        gaps = [row[key] for _, row in found]
        print(f"| {name} | {len(gaps)} | {statistics.median(gaps):.3f} % | "
              f"{percent(gaps, 0.95):.2f} % | {max(gaps):.1f} % | {sum(g <= 0.1 for g in gaps)} | "
              f"{sum(g <= 1 for g in gaps)} |")
    print("\n| the ten worst | shape | layers | ranks | gap in pages | rows alone |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for number, row in sorted(found, key=lambda one: -one[1]["paged_gap"])[:10]:
        print(f"| random_config {number} | {row['shape']} | {row['layers']} | {row['ranks']} | "
              f"{row['paged_gap']:.2f} % | {row['gap']:.2f} % |")


def points(instances):
    """Yields (place, {planner: row}) for each limit of each instance with a row of ilp."""
    for instance in instances:
        for limit in sorted({row["limit"] for row in instance.rows}):
            rows = {row["planner"]: row for row in instance.rows if row["limit"] == limit}
            if "ilp" in rows:
                yield f"{instance.name}, limit {limit}", rows


def gain(row, over):
    """Returns the gain of `row` over another plan; -1 if `row` does not fit."""
    return over["step_ns"] / row["step_ns"] - 1 if row["fits"] else -1.0


def show_rivals(instances):
    rivals, losses = {}, []
    for where, rows in points(instances):
        for name, row in rows.items():
            found = rivals.setdefault(name, {"of": 0, "alone": [], "given": []})
            found["of"] += 1
            if row["fits"]:
                found["alone"].append(gain(rows["ilp"], row))
                found["given"].append(gain(rows["ilp+starts"], row))
                if found["alone"][-1] < -TIE:
                    losses.append((found["alone"][-1], name, where))
    print("| rule | it fits | strict wins of ilp | ties | losses | median gain | best gain | "
          "losses when given all plans |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, found in sorted(rivals.items(), key=lambda rival: rival[0] in OWN):
        gains = found["alone"]
        if not gains or name in ("ilp", "ilp+starts"):
            continue
        wins, lost = sum(gain > TIE for gain in gains), sum(gain < -TIE for gain in gains)
        print(f"| {name} | {len(gains)} of {found['of']} | {wins} | {len(gains) - wins - lost} | "
              f"{lost} | {100 * statistics.median(gains):.2f} % | {100 * max(gains):.1f} % | "
              f"{sum(gain < -TIE for gain in found['given'])} |")
    for lost, name, where in sorted(losses)[:20]:
        print(f"- slower than {name} by {-100 * lost:.3f} %: {where}")
    show_best(instances)


def show_best(instances):
    """Compares ilp with the best published rule at each point, and with ilp that starts from all plans."""
    best, nothing, proven, near, helped, n = [], 0, 0, [], [], 0
    for _, rows in points(instances):
        ilp, n = rows["ilp"], n + 1
        helped.append(gain(rows["ilp+starts"], ilp))
        published = [row for name, row in rows.items()
                     if row["fits"] and name not in OWN and name != "ilp+starts"]
        if not published or not ilp["fits"]:
            continue
        best.append(gain(ilp, min(published, key=lambda row: row["step_ns"])))
        if best[-1] <= TIE:
            nothing += 1
            proven += gap_of(ilp) <= 100 * TIE
            near += [gap_of(ilp)] if gap_of(ilp) > 100 * TIE else []
    if not best:
        return
    print(f"\n{n} points, {len(best)} of them with a plan of some published rule: over the best of "
          f"these ilp gains {100 * statistics.median(best):.2f} % at the median, "
          f"{100 * max(best):.1f} % at most. At {nothing} there is nothing gained: at {proven} "
          f"because the step equals the proven bound, at {len(near)} the proven gap leaves "
          f"{max(near, default=0):.3f} % at most. Given the plans of all others ilp is faster at "
          f"{sum(more > TIE for more in helped)} points, by {100 * max(helped):.3f} % at most.")


def rivals(options):
    models = ["gpt2", "resnet-50"] if options.quick else MIDDLE
    ratios = [1] if options.quick else RATIOS
    ranks = [8] if options.quick else [8, 64, 512]
    accumulations = [1] if options.quick else [1, 4]
    limits = "3" if options.quick else "5"
    instances = [Instance(f"rivals-{model}-{ratio}-{n}-{m}-{limits}", config_of(model, n, m),
                          ["--planners", "all", "--settings", "--starts", "--ratio", str(ratio),
                           "--needs", limits, "--set", "plan.work_limit=5G",
                           "--set", "plan.gap=0.0001"])
                 for model in models for ratio in ratios for n in ranks for m in accumulations]
    print("\n## Every rule at the same limit and its own best setting\n")
    plan_all(instances, options)
    show_rivals(instances)


def deepcompile(options):
    """32 H100 on 4 nodes, the device's 80 GB whole, sequences of 1024, one sample per micro-step, no recomputation,
    every rule as published.
    """
    accumulations = [1] if options.quick else [1, 2, 4, 8, 16]
    instances = []
    for name in PUBLISHED:
        for m in accumulations:
            run = read(f"runs/{name}.json")
            run["model"] = str(ROOT / "configs" / "runs" / run["model"])
            run["cluster"] = str(ROOT / "configs" / "runs" / run["cluster"])
            run["train"]["grad_accum"] = m
            planners = "ilp,greedy,deepspeed,deepcompile,fsdp2"
            instances.append(Instance(f"{name}-{m}", run, ["--planners", planners, "--at",
                                                           "80000000000"]))
    print("\n## DeepCompile's setting\n\nAssumed: " + " ".join(deepcompile.__doc__.split()) + "\n")
    plan_all(instances, options)
    print("| setting | micro-steps | ilp | deepspeed | gain over it | deepcompile's rule over it | "
          "published |\n| --- | --- | --- | --- | --- | --- | --- |")
    for instance in instances:
        rows = {row["planner"]: row for row in instance.rows if row["fits"]}
        name, m = instance.name.rsplit("-", 1)
        if "ilp" not in rows:
            continue
        cells = [name, m, f"{rows['ilp']['step_ns'] / 1e9:.3f} s"]
        if "deepspeed" in rows:
            base = rows["deepspeed"]["step_ns"]
            cells += [f"{base / 1e9:.3f} s", f"{base / rows['ilp']['step_ns']:.2f} x"]
            cells.append(f"{base / rows['deepcompile']['step_ns']:.2f} x" if "deepcompile" in rows
                         else "no plan")
        else:
            cells += ["no plan", "", ""]
        print("| " + " | ".join(cells + [PUBLISHED[name] + " x"]) + " |")


FIGURES = {"gap": gap, "random": random_gaps, "rivals": rivals, "deepcompile": deepcompile}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("figures", nargs="*", choices=[*FIGURES, []], default=[])
    parser.add_argument("--build", default=ROOT / "build", type=Path)
    parser.add_argument("--out", default=None, type=Path)
    parser.add_argument("--jobs", default=2, type=int)
    parser.add_argument("--configs", default=100, type=int)
    parser.add_argument("--first", default=1, type=int)
    parser.add_argument("--work", default="30G")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    options.build = options.build.resolve()
    options.out = (options.out or options.build / "bench" / "planner-figures").resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.figures or FIGURES:
        FIGURES[name](options)


if __name__ == "__main__":
    main()
