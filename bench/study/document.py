#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the study again: bench/study/document.py --build BUILD [--out DIR]

Runs `weft study` over MODELS x NETWORKS, and writes docs/study.md with its figures docs/study.svg and study.gains.svg, and the
points with their schema as bench/results/study/points.csv and points.schema.json. A stopped study goes on from --out. All figures
follow from counts of work, so the same commit writes the same bytes, except the line with the user time.
"""
import argparse
import csv
import os
import resource
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODELS = ["gpt2", "llama-3-8b", "gpt3-13b", "vgg-19", "uneven-64", "mixtral-8x7b"]
MORE = ["bert-large", "vit-l-16", "resnet-50", "gpt2-xl", "gpt3-1.3b", "llama-2-7b"]  # with --all: twelve models
NETWORKS, WORK, POINTS = "0.25,1,4", "200M", "7"
PLANNERS = ["ilp", "greedy", "two-stage", "ddp", "zero1", "zero2", "fairscale", "fsdp2", "fsdp2-mix", "deepspeed",
            "deepcompile", "dear", "osdp"]
OWN = PLANNERS[:3]
CLEAR, TIE = 0.05, 1e-6

HEAD = """# The study: memory for policies, memory for scheduling

`bench/study/document.py` writes this page. It runs

    {command}

Each model runs with its shipped config. gpt2, llama-3-8b and gpt3-13b are transformers. vgg-19 is a convolution
network, uneven-64 has 64 units of uneven sizes, and mixtral-8x7b is a mixture of experts. A network has 0.25, 1 or 4 times
the bandwidths of the config. A case is one model over one network, with seven limits of equal distance: from the least with a
plan to the last that shortens greedy's step. All steps are simulated. `bench/results/study/points.csv` has every point, and
`points.schema.json` its columns.
"""

GAINS = """
![Gain over the best rule, and shares of policies, by the memory limit](study.gains.svg)

A line of the figure ends where no rule has a plan. The bands are the shares of parameters by policy in ilp's plans.
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
program of `seed-ilp`. A scheduler that uses memory badly would leave more for policies.

![Step and overlap by the memory for policies](study.svg)

The figure has one limit of each case, in the middle. Its lines begin with the least memory for policies and end with all.
`bench/study/measured.py` measures a smaller study on local ranks; this page has no measured step.
"""


def percent(value):
    return f"{100 * value:.2f} %"


def markdown(rows):
    lines = [rows[0], ["---"] * len(rows[0])] + rows[1:]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines) + "\n"


def cases_of(points):
    """Returns {(model, network): {limit: {planner: step or None}}} of the points that divide no limit."""
    cases = {}
    for point in points:
        if not point["policy_limit_bytes"]:
            limits = cases.setdefault((point["model"], point["network"]), {})
            step = int(point["step_ns"]) if point["fits"] == "1" else None
            limits.setdefault(int(point["memory_limit_bytes"]), {})[point["planner"]] = step
    return cases


def comparison(points):
    """The section about ilp and the rules."""
    rows = [["model", "network", "points", "5 % faster", "no rule fits", "least and most gain over the best rule"]]
    clear = total = 0
    where, not_where, best_rules = [], [], {}
    for (model, network), limits in cases_of(points).items():
        gains, alone = [], 0
        for steps in limits.values():
            rules = {name: step for name, step in steps.items() if name not in OWN and step}
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
    text = f"\n## Where deciding together pays\n\nAt {clear} of {total} points ilp is at least 5 % faster than every rule "
    text += f"that has a plan ({percent(clear / total)}). "
    text += f"These points are in {', '.join(where)}. " if where else ""
    text += f"No point of {', '.join(not_where)} is among them. " if not_where else ""
    names = sorted(best_rules, key=lambda name: (-best_rules[name], name))
    text += "The fastest rule is " + ", ".join(f"{name} at {best_rules[name]}" for name in names[:4]) + " points.\n\n"
    return textwrap.fill(text.split("\n\n")[1], 120).join([text.split("\n\n")[0] + "\n\n", "\n\n"]) + markdown(rows)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--out", type=Path, default=ROOT / "build/whole-study")
    parser.add_argument("--all", action="store_true", help="twelve models in place of six")
    options = parser.parse_args()
    models = MODELS + (MORE if options.all else [])
    words = ["study", *(f"configs/runs/{model}.json" for model in models), "--networks", NETWORKS, "--points", POINTS,
             "--planners", ",".join(PLANNERS), "--work-limit", WORK]
    begun, spent = (options.out / "study.sweep").exists(), options.out / "user_seconds"
    if not (options.out / "study.csv").exists():
        subprocess.run([options.build / "cli/weft", *words, "-o", options.out], check=True, cwd=ROOT,
                       stdout=subprocess.DEVNULL)
        if not begun:
            spent.write_text(f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime:.0f}\n")
    with open(options.out / "study.csv", encoding="utf-8", newline="") as file:
        points = list(csv.DictReader(file))
    text = (options.out / "study.txt").read_text()
    page = HEAD.format(command=show_command(words))
    page += comparison(points) + GAINS + planners(points) + METHOD + hypotheses(text)
    if spent.exists():
        page += f"\nThe {len(points)} plans took {spent.read_text().strip()} s of user time on {os.cpu_count()} cores.\n"
    (ROOT / "docs/study.md").write_text(page)
    for name in ("study.svg", "study.gains.svg"):
        shutil.copy(options.out / name, ROOT / "docs" / name)
    folder = ROOT / "bench/results/study"
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(options.out / "study.csv", folder / "points.csv")
    shutil.copy(options.out / "study.schema.json", folder / "points.schema.json")
    print(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
