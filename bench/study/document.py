#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the study again: bench/study/document.py --build BUILD [--out DIR]

Runs `weft study` over MODELS x NETWORKS with POINTS limits and over MORE models with FEW limits. Then it plans each of the
twelve models at FEW limits once more, planner by planner, for the user time of a plan (TIMED). It writes docs/study.md with its
figures docs/study.svg and study.gains.svg, and to bench/results/study the points with their schema (points.csv,
points.schema.json) and planners.csv. The section of measured steps is from measured.csv, which measured.py records.

A stopped study goes on from --out. All figures follow from counts of work, so the same commit writes the same bytes, except
user times.
"""
import argparse
import csv
import os
import resource
import shutil
import statistics
import subprocess
import sys
import textwrap
from pathlib import Path

from measured import section as measured_section
from study import RESULTS, ROOT, Study, markdown, overlap, percent, write_table

MODELS = ["gpt2", "llama-3-8b", "gpt3-13b", "vgg-19", "uneven-64", "mixtral-8x7b"]
MORE = ["bert-large", "vit-l-16", "resnet-50", "gpt2-xl", "gpt3-1.3b", "llama-2-7b"]
NETWORKS, WORK, POINTS, FEW = "0.25,1,4", "200M", 7, 3
PLANNERS = ["ilp", "greedy", "two-stage", "ddp", "zero1", "zero2", "fairscale", "fsdp2", "fsdp2-mix", "deepspeed",
            "deepcompile", "dear", "osdp"]
OWN = PLANNERS[:3]
SEEDED = ["gpt2", "vgg-19", "resnet-50", "bert-large", "vit-l-16"]  # a plan of seed-ilp takes others minutes
TIMED = ["seed-ilp", "greedy", "two-stage", "fsdp2", "best rule", "ilp"]
CLEAR, TIE = 0.05, 1e-6
FIELDS = {"model": "name of the config", "network": "factor of the config's bandwidths",
          "memory_limit_bytes": "memory limit of a rank",
          "planner": "planner, or the fastest rule at the point", "rule": "name of that rule",
          "step_ns": "simulated step; empty: the planner has no plan", "overlap": "1 - exposed / communication",
          "bound_ns": "proven by ilp: no plan is faster; 0: nothing is proven",
          "solved": "1: GLPK solved the program of seed-ilp; 0: it did not",
          "user_ms": "user time of one process with its solver; differs from run to run"}

HEAD = """# The study: memory for policies, memory for scheduling

`bench/study/document.py` writes this page. It runs

    {command}

    {more}

Each model runs with its shipped config. bert-large, gpt2, gpt2-xl, gpt3-1.3b, gpt3-13b, llama-2-7b, llama-3-8b and
vit-l-16 are transformers. vgg-19 and resnet-50 are convolution networks, uneven-64 has 64 units of uneven sizes, and
mixtral-8x7b is a mixture of experts. A network has 0.25, 1 or 4 times the bandwidths of the config. A case is one model over
one network. Its limits, {points} or {few}, have equal distances: from the least with a plan to the last that shortens greedy's
step. Steps are simulated, except in the section about measured steps. `bench/results/study/points.csv` has every point,
and `points.schema.json` its columns. bert-large and vit-l-16 are of the configs before their blocks were encoders.
"""

GAINS = """
![Gain over the best rule, and shares of policies, by the memory limit](study.gains.svg)

The figure has the cases with {points} limits. A line ends where no rule has a plan. The bands are the shares of parameters by
policy in ilp's plans.
"""

METHOD = """
## Three hypotheses

two-stage chooses policies within a part of the limit, and then schedules every block within the whole limit. So a division
has two numbers: the memory for policies and the limit. A *line* is a row of divisions of one case with one of these fixed:

1. With the same memory for policies, more memory for scheduling shortens the step and saturates. It saturates if the second
   half of the memory gives at most half of the gain of the first half.
2. With the same memory for scheduling, less memory for policies lengthens the step.
3. With the same limit, the best division lies in between. The least memory for policies and all of it are both slower.

Steps within 0.05 % count as equal. Two-stage is Weft's own list scheduling, which is near its optimum, and not the integer
program of `seed-ilp`. A scheduler that uses memory badly would leave more for policies. The six models with {points} limits
have these lines.

![Step and overlap by the memory for policies](study.svg)

The figure has one limit of each case, in the middle. Its lines begin with the least memory for policies and end with all.
"""

OTHERS = """
## More

RESULTS.md has the share of a step that each part of the planner buys (`study-parts`), planners with ten times the work
(`study-planners`), and plans without GLPK (`study-solvers`). `docs/rivals.md` has 20 problems of this study, with the best
known plan and its bound: can you beat it?
"""


def fill(text):
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def points_of(folder):
    with open(folder / "study.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def cases_of(points):
    """Returns {(model, network): {limit: {planner: step or None}}} of the points that divide no limit."""
    cases = {}
    for point in points:
        if not point["policy_limit_bytes"]:
            limits = cases.setdefault((point["model"], point["network"]), {})
            step = int(point["step_ns"]) if point["fits"] == "1" else None
            limits.setdefault(int(point["memory_limit_bytes"]), {})[point["planner"]] = step
    return cases


def rules_of(steps):
    """Returns {rule: step} of the rules that have a plan."""
    return {name: step for name, step in steps.items() if name not in OWN and step}


def comparison(points):
    """The section about ilp and the rules."""
    rows = [["model", "network", "points", "5 % faster", "no rule fits", "least and most gain over the best rule"]]
    clear = total = 0
    where, not_where, best_rules = [], [], {}
    for (model, network), limits in cases_of(points).items():
        gains, alone = [], 0
        for steps in limits.values():
            rules = rules_of(steps)
            if not steps["ilp"]:
                continue
            if not rules:
                alone += 1
                continue
            best = min(rules, key=rules.get)
            best_rules[best] = best_rules.get(best, 0) + 1
            gains.append(rules[best] / steps["ilp"] - 1)
        fast = sum(gain >= CLEAR for gain in gains)
        total += len(gains) + alone
        clear += fast
        (where if fast else not_where).append(f"{model} x{network}")
        rows.append([model, f"x{network}", len(gains) + alone, fast, alone,
                     f"{percent(min(gains))} to {percent(max(gains))}" if gains else "-"])
    text = f"At {clear} of {total} points ilp is at least 5 % faster than every rule that has a plan "
    text += f"({percent(clear / total)}). The goal of 20 % is {'met' if clear >= total / 5 else 'missed'}. "
    text += f"These points are in {', '.join(where)}. " if where else ""
    text += f"The other {len(not_where)} cases have none. " if not_where else ""
    names = sorted(best_rules, key=lambda name: (-best_rules[name], name))
    text += "The fastest rule is " + ", ".join(f"{name} at {best_rules[name]}" for name in names[:4]) + " points."
    return "\n## Where deciding together pays\n\n" + fill(text) + "\n" + markdown(rows)


def planners(points):
    rows = [["planner", "points with a plan", "as fast as ilp", "slower than ilp, median", "worst"]]
    for name in PLANNERS:
        slower = sorted(steps[name] / steps["ilp"] - 1 for limits in cases_of(points).values()
                        for steps in limits.values() if steps.get(name) and steps["ilp"])
        rows.append([name, len(slower), sum(one < TIE for one in slower)] +
                    ([percent(slower[(len(slower) - 1) // 2]), percent(slower[-1])] if slower else ["-", "-"]))
    greedy = rows[2]
    _, model, network, limit = max((steps["greedy"] / steps["ilp"], *case, limit) for case, limits in cases_of(points).items()
                                   for limit, steps in limits.items() if steps.get("greedy") and steps["ilp"])
    text = f"\n## Where search pays\n\nGreedy finds ilp's step at {greedy[2]} of {greedy[1]} points. It is at worst "
    text += f"{greedy[4]} slower, for {model} x{network} within {limit / 2 ** 30:.2f} GiB.\n"
    return text + f"ilp searches with {WORK} of work a plan.\n\n" + markdown(rows)


def timed(options, points):
    """Plans each case at FEW limits by each planner of TIMED; returns rows of planners.csv."""
    study, rows = Study(argparse.Namespace(build=options.build, out=options.out / "timed", work=WORK)), []
    for (model, network), limits in cases_of(points).items():
        every = sorted(limits)
        for limit in every[::max(1, (len(every) - 1) // (FEW - 1))]:
            rules = rules_of(limits[limit])
            best = min(rules, key=rules.get) if rules else None
            bound = study.plan(model, float(network), limit, "ilp").get("bound_ns", 0)
            for name in TIMED:
                planner = best if name == "best rule" else name
                if name == "seed-ilp" and model not in SEEDED:
                    continue
                if name in PLANNERS and not limits[limit][name]:
                    planner = None  # no plan fits, as the study found
                report = study.plan(model, float(network), limit, planner) if planner else {}
                row = {"model": model, "network": network, "memory_limit_bytes": limit, "planner": name,
                       "rule": best or "" if name == "best rule" else "", "step_ns": report.get("step_ns", ""),
                       "overlap": f"{overlap(report):.6f}" if report else "",
                       "bound_ns": bound if report else "", "solved": "",
                       "user_ms": round(1000 * report["user_s"]) if report else ""}
                if name == "seed-ilp" and report:
                    row["solved"] = int("overlap solved" in report.get("solver_stop", ""))
                rows.append(row)
        print(f"timed {model} x{network}", file=sys.stderr)
    return rows


def middle(values):
    return statistics.median_low(sorted(values))


def twelve(rows):
    """The section about planners of twelve models, from the rows of planners.csv."""
    table = [["planner", "plans", "as fast as ilp", "slower than ilp, median", "worst", "overlap, median", "gap, median",
              "worst", "user time, median", "most"]]
    best = {(row["model"], row["network"], row["memory_limit_bytes"]): row for row in rows if row["planner"] == "ilp"}
    most = {}
    for name in TIMED:
        plans = [row for row in rows if row["planner"] == name and row["step_ns"]]
        pairs = [(row, best[row["model"], row["network"], row["memory_limit_bytes"]]) for row in plans]
        slower = [int(row["step_ns"]) / int(other["step_ns"]) - 1 for row, other in pairs if other["step_ns"]]
        gaps = [int(row["step_ns"]) / int(row["bound_ns"]) - 1 for row in plans if row["bound_ns"]]
        times = [int(row["user_ms"]) for row in plans]
        most[name] = sum(times) / 1000
        table.append([name, len(plans), sum(abs(one) < TIE for one in slower), percent(middle(slower)), percent(max(slower)),
                      percent(middle(float(row["overlap"]) for row in plans)), percent(middle(gaps)), percent(max(gaps)),
                      f"{middle(times)} ms", f"{max(times) / 1000:.1f} s"])
    seeds = [row for row in rows if row["planner"] == "seed-ilp" and row["step_ns"]]
    faster = [row for row in rows if row["step_ns"] and row["planner"] != "ilp" and int(row["step_ns"]) <
              (1 - TIE) * int(best[row["model"], row["network"], row["memory_limit_bytes"]]["step_ns"] or 0)]
    text = f"This table has {FEW} limits of each of {len({row['model'] for row in rows})} models over three networks, "
    text += f"{len(best)} points: the least limit, the middle and the last that helps. Each plan has {WORK} of work. "
    text += "The gap is the distance to ilp's proven bound. The best rule is the fastest of the rules above at each point. "
    text += f"seed-ilp has only {', '.join(SEEDED)}, since its program takes GLPK minutes for the others. "
    text += f"GLPK solved {sum(row['solved'] in (1, '1') for row in seeds)} of {len(seeds)} programs of seed-ilp within its "
    text += "share of this work. "
    text += (f"{len(faster)} plans are faster than ilp's: " + ", ".join(
        f"{row['planner']} for {row['model']} x{row['network']}" for row in faster) + ". ") if faster else \
        "No plan is faster than ilp's. "
    text += "`bench/results/study/planners.csv` has every plan. User time is of one process with its solver."
    return "\n## The first integer program next to today's planners\n\n" + fill(text) + "\n" + markdown(table)


def hypotheses(text):
    """The lines of study.txt from the first hypothesis on, as a block."""
    lines = text[text.index("lines of divisions between"):].rstrip().splitlines()
    return "\n" + "\n".join("    " + line if line else "" for line in lines) + "\n"


def show_command(words):
    """The command on lines of at most 120 columns, except a list of planners."""
    lines = [["weft"]]
    for word in [*words, "-o", "DIR"]:
        if len(" ".join([*lines[-1], word])) > 112:
            lines.append([])
        lines[-1].append(word)
    return " \\\n        ".join(" ".join(line) for line in lines)


def words_of(models, n_points):
    return ["study", *(f"configs/runs/{model}.json" for model in models), "--networks", NETWORKS, "--points", str(n_points),
            "--planners", ",".join(PLANNERS), "--work-limit", WORK]


def run_study(options, words, out):
    """Runs a study unless its files are there. Its user time is kept if it ran in one go."""
    begun = (out / "study.sweep").exists()
    if (out / "study.csv").exists():
        return
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([options.build / "cli/weft", *words, "-o", out], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    if not begun:
        (out / "user_seconds").write_text(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before:.0f}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--out", type=Path, default=ROOT / "build/whole-study")
    options = parser.parse_args()
    options.build, options.out = options.build.resolve(), options.out.resolve()
    first, more = options.out / "first", options.out / "more"
    commands = [words_of(MODELS, POINTS), words_of(MORE, FEW)]
    for words, out in zip(commands, (first, more)):
        run_study(options, words, out)
    points = points_of(first) + points_of(more)
    rows = timed(options, points)
    page = HEAD.format(command=show_command(commands[0]), more=show_command(commands[1]), points=POINTS, few=FEW)
    page += comparison(points) + GAINS.format(points=POINTS) + planners(points) + twelve(rows)
    page += METHOD.format(points=POINTS) + hypotheses((first / "study.txt").read_text()) + measured_section()
    page += OTHERS
    spent = [out / "user_seconds" for out in (first, more)]
    if all(path.exists() for path in spent):
        seconds = sum(int(path.read_text()) for path in spent)
        page += f"\nThe {len(points)} plans of both commands took {seconds} s of user time on {os.cpu_count()} cores.\n"
    (ROOT / "docs/study.md").write_text(page)
    for name in ("study.svg", "study.gains.svg"):
        shutil.copy(first / name, ROOT / "docs" / name)
    write_table("points", dict.fromkeys(points[0], ""), points)
    shutil.copy(first / "study.schema.json", RESULTS / "points.schema.json")
    write_table("planners", FIELDS, rows)
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
