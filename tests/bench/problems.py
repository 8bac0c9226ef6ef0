#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The problems of bench/results/study/problems are what docs/rivals.md says: problems.py BUILD SOURCE. TAP."""
import csv
import gzip
import json
import subprocess
import sys
from pathlib import Path

BUILD, SOURCE = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
sys.path.insert(0, str(SOURCE / "tests/cli"))
from tap import case, main, some  # noqa: E402

PROBLEMS = SOURCE / "bench/results/study/problems"
MOST_BYTES = 1 << 20


def index():
    with open(PROBLEMS / "index.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def plan_of(row):
    return json.loads(gzip.decompress((PROBLEMS / row["problem"]).read_bytes()))


def reads(*paths):
    command = [sys.executable, SOURCE / "bench/study/read_plan.py", *paths]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@case
def the_index_has_every_file_and_its_figures(_):
    rows = index()
    named = {row[key] for row in rows for key in ("problem", "config")}
    assert len({row["problem"] for row in rows}) == 20 and named | {"index.csv"} == {path.name for path in PROBLEMS.iterdir()}
    assert sum(path.stat().st_size for path in PROBLEMS.iterdir()) <= MOST_BYTES
    for row in rows:
        plan = plan_of(row)
        problem, step, bound = plan["problem"], int(row["step_ns"]), int(row["bound_ns"])
        assert (step, bound) == (plan["prediction"]["step_ns"], plan["bound"]["bound_ns"]), row
        assert 0 < bound <= step and row["gap_percent"] == f"{100 * (step / bound - 1):.3f}", row
        assert problem["tiers"][0]["limit_bytes"] == int(row["memory_limit_bytes"]), row
        assert [len(problem["slots"]), len(problem["decisions"]), len(plan["placements"])] == \
            [int(row[key]) for key in ("slots", "decisions", "blocks")], row


@case
def the_short_reader_computes_every_row_and_step(weft):
    done = reads(*sorted(PROBLEMS.glob("*.json.gz")))
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 20, (done.stdout, done.stderr)
    plan = plan_of(index()[0])
    plan["prediction"]["step_ns"] -= 1
    done = reads(weft.write("edited.json", plan))
    assert done.returncode == 1 and "a figure differs" in done.stderr, (done.stdout, done.stderr)


@case
def a_problem_is_its_configs_and_takes_rivals(weft):
    """The known plan as a rival has its step. With a policy less it is refused."""
    for row in some(index(), 1):
        plan, limit = plan_of(row), f"{row['memory_limit_bytes']}B"
        where = "--config", str(PROBLEMS / row["config"]), "--memory-limit", limit
        weft.expect(0, "verify", weft.write("plan.json", plan), *where, "-q")
        period = {key: plan["problem"][key] for key in ("micro_batch", "blocks", "period") if key in plan["problem"]}
        known = {"problem": period, "strategies": plan["strategies"], "placements": plan["placements"]}
        rival = {"format": "weft-rival", "version": 1, "name": "known", "plans": [known]}
        told = json.loads(weft.expect(0, "simulate", weft.write("rival.json", rival), *where, "--json"))
        assert told["step_ns"] == int(row["step_ns"]), (row, told)
        known["strategies"] = known["strategies"][1:]
        weft.expect(65, "simulate", weft.write("wrong.json", rival), *where, says="strategies")


main(str(BUILD / "cli/weft"))
