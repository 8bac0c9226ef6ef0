#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Results are data: bench/results.py makes RESULTS.md of them, and refuses other files:
results.py RESULTS_PY."""
import copy
import importlib.util
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "cli"))

from tap import case, main  # pylint: disable=wrong-import-position

SPEC = importlib.util.spec_from_file_location("results", sys.argv[1])
results = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(results)


def mistakes_with(change):
    """Mistakes that are found in the executor's results after a change of their first table."""
    changed = {"executor": copy.deepcopy(results.read(ROOT)["executor"])}
    change(changed["executor"]["tables"][0])
    return results.mistakes(ROOT, changed)


@case
def every_file_is_a_result(_):
    assert results.mistakes(ROOT, results.read(ROOT)) == []


@case
def the_page_is_what_the_figures_make(_):
    assert (ROOT / "RESULTS.md").read_text() == results.page(results.read(ROOT)), "run bench/results.py"


@case
def files_are_written_as_a_bench_writes_them(_):
    for path in (ROOT / "bench/results").glob("*.json"):
        assert path.read_text() == results.text_of(results.read(ROOT)[path.stem]) + "\n", path


@case
def a_header_names_an_entry_that_is_there(_):
    entries = {f"{subject}/{table['name']}" for subject, whole in results.read(ROOT).items()
               for table in whole["tables"]}
    named = {(path.relative_to(ROOT), entry) for folder in ("proof", "scheduler")
             for path in (ROOT / folder).rglob("*.h")
             for entry in re.findall(r"RESULTS\.md: ([\w/-]+)", path.read_text())}
    assert len(named) >= 10, named
    assert {entry for _, entry in named} <= entries, named


@case
def each_key_is_wanted_and_no_other(_):
    for key in results.KEYS:
        bad = mistakes_with(lambda table, key=key: table.pop(key))
        assert any(f"no {key} that is" in line for line in bad), (key, bad)
    bad = mistakes_with(lambda table: table.update(remark="fast"))
    assert bad == ["executor/executor: remark is not a key"], bad
    bad = mistakes_with(lambda table: table.update(date="today", commit="HEAD"))
    assert bad == ["executor/executor: date is today", "executor/executor: commit is HEAD"], bad
    bad = mistakes_with(lambda table: table["asked"][0].update(met="yes"))
    assert bad == ["executor/executor: no met that is a bool"], bad


@case
def what_a_command_starts_is_in_the_tree(_):
    for command, lacks in (("build/bench/slow", "build/bench/slow"), ("weft fly run.json", "weft fly run.json"),
                           ("python3 bench/figure.py", "bench/figure.py"), ("guess", "guess"),
                           ("build/bench/exec && bench/no.sh", "bench/no.sh")):
        bad = mistakes_with(lambda table, command=command: table.update(command=command))
        assert bad == [f"executor/executor: there is no {lacks}"], bad


@case
def a_source_that_is_named_is_in_the_tree(_):
    bad = mistakes_with(lambda table: table.update(title="Cost by `runtime/exec/fast.h`"))
    assert bad == ["executor/executor: there is no runtime/exec/fast.h"], bad


@case
def a_row_has_a_cell_a_column(_):
    bad = mistakes_with(lambda table: table["rows"][0].pop())
    assert bad == ["executor/executor: a row of 1 cells, 2 columns"], bad
    bad = mistakes_with(lambda table: table["rows"].clear())
    assert bad == ["executor/executor: no figures"], bad


@case
def no_two_tables_have_a_name(_):
    twice = {"executor": copy.deepcopy(results.read(ROOT)["executor"])}
    twice["executor"]["tables"] *= 2
    assert results.mistakes(ROOT, twice) == ["executor: two tables are called executor"]


@case
def a_bench_writes_its_own_rows(scratch):
    folder = scratch.directory / "bench/results"
    folder.mkdir(parents=True)
    text = (ROOT / "bench/results/executor.json").read_text()
    (folder / "executor.json").write_text(text)
    asked = "an instruction of the executor"
    machine = {"machine": "a toy", "date": "2026-11-23", "commit": "0123456"}
    results.record("executor", "executor", [["a row", "1 us"]], {asked: ("3 us", False)}, machine,
                   scratch.directory)
    table = results.read(scratch.directory)["executor"]["tables"][0]
    assert table["rows"] == [["a row", "1 us"]] and table["machine"] == "a toy", table
    assert table["asked"][0]["reached"] == "3 us" and not table["asked"][0]["met"], table
    assert results.mistakes(ROOT, results.read(scratch.directory)) == []


main(sys.executable)
