#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first hour of a newcomer, timed: a clone, `make demo`, and each command of docs/tutorial.md.

    bench/newcomer.py [--from REPOSITORY] [--record]            with a fresh HOME and without a compiler cache
    bench/newcomer.py --build BUILD [--first N] [--record]      the (first N) commands alone, by a program that is built

A step has seconds of the clock and of the CPU, its own and its children's. Other programs make only the clock longer.
`--record` writes a table of bench/results/newcomer.json.
"""
import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/cli")]
from pasted import pasted  # noqa: E402
from results import here, text_of  # noqa: E402

RESULTS = ROOT / "bench/results/newcomer.json"
MOST_MINUTES = 10
COLUMNS = ["step", "clock", "CPU"]
NOTE = "Seconds. The CPU time is of all processes of a step."
TUTORIAL = {"name": "tutorial", "title": "The commands of docs/tutorial.md, by a program that is built",
            "command": "python3 bench/newcomer.py --build build --record", "note": NOTE}
HOUR = {"name": "hour", "title": "From a clone to a report, by the commands of docs/tutorial.md",
        "command": "python3 bench/newcomer.py --record",
        "note": NOTE + " HOME is fresh, and there is no compiler cache; the packages of `make demo` were installed before."}
# The tutorial kills a rank of one command: the exit code of a lost rank.
LOST = 69


def fresh_environment(home, program):
    """Without settings of compilers, caches and Weft."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("CC", "CXX", "CFLAGS", "LDFLAGS", "WEFT_", "XDG_"))}
    return {**kept, "HOME": str(home), "CCACHE_DISABLE": "1", "PATH": f"{program.parent}:{os.environ['PATH']}"}


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Hour:
    """Steps so far: (command, seconds of the clock, seconds of the CPU)."""

    def __init__(self):
        self.steps, self.load = [], os.getloadavg()[0]

    def take(self, command, environment, folder, root=None):
        """Runs a shell command, below another root if one is given. Another exit code than expected ends the hour."""
        begun, used = time.monotonic(), cpu_s()
        words = ["sh", "-c", command] if root is None else ["chroot", root, "sh", "-c", f"cd {folder} && {command}"]
        done = subprocess.run(words, cwd=folder if root is None else "/", env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
        expected = LOST if command.startswith("WEFT_FAILPOINT=") else 0
        if done.returncode != expected:
            sys.exit(f"{command}: exit code {done.returncode}, not {expected}\n{done.stdout[-2000:]}")
        self.steps.append((command, time.monotonic() - begun, cpu_s() - used))
        print(f"{self.steps[-1][1]:7.1f} s {self.steps[-1][2]:7.1f} s of CPU  {command}", flush=True)

    def sums(self):
        return [sum(step[column] for step in self.steps) for column in (1, 2)]

    def show_sum(self):
        print("{:7.1f} s {:7.1f} s of CPU  in all".format(*self.sums()))

    def rows(self):
        """A clone's command has paths of this machine, so it is cut."""
        names = [f"`{'git clone' if command.startswith('git clone') else command}`" for command, *_ in self.steps]
        return [[name, f"{clock:.1f}", f"{used:.1f}"] for name, (_, clock, used) in zip(names, self.steps)] + [
            ["in all", *(f"{of:.1f}" for of in self.sums())]]

    def place(self):
        """Machine with its load before the first step, date and commit."""
        place = here()
        return {**place, "machine": f"{place['machine']}, load {self.load:.1f} before"}


def store(table, hour, asked=()):
    """Replaces or adds a table of the results, which keeps the order of its tables."""
    whole = json.loads(RESULTS.read_text()) if RESULTS.exists() else {
        "title": "A newcomer's hour, and installations", "tables": []}
    full = {"name": table["name"], "title": table["title"], **hour.place(), "command": table["command"],
            "note": table["note"], "asked": list(asked), "columns": COLUMNS, "rows": hour.rows()}
    names = [one["name"] for one in whole["tables"]]
    at = names.index(table["name"]) if table["name"] in names else len(names)
    whole["tables"][at:at + 1] = [full]
    RESULTS.write_text(text_of(whole) + "\n")


def take_hour(repository, program, first):
    """Clones and builds unless the program is there, then takes the tutorial's commands in an empty folder."""
    hour, source = Hour(), ROOT
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder, "home"), Path(folder, "work")
        home.mkdir()
        work.mkdir()
        if program is None:
            source = Path(folder, "weft")
            program = source / "build/cli/weft"
            environment = fresh_environment(home, program)
            hour.take(f"git clone --quiet {repository} {source}", environment, folder)
            hour.take("make demo", environment, source)
        commands = [command for _, command, _ in pasted(source / "docs/tutorial.md")]
        for command in commands[:first]:
            hour.take(command, fresh_environment(home, program), work)
        if first is None and not (work / "page.html").stat().st_size:
            sys.exit("the tutorial has left no report")
    return hour


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="repository", default=str(ROOT), help="the repository to clone; this one")
    parser.add_argument("--build", type=Path, help="a build folder, in place of a clone")
    parser.add_argument("--first", type=int, help="commands of the tutorial to take; all")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if options.record and options.first:
        parser.error("--record needs all commands: leave --first out")
    if options.first is not None and options.first < 1:
        parser.error("--first: at least 1")
    program = (options.build / "cli/weft").resolve() if options.build else None
    if program is not None and not program.exists():
        parser.error(f"--build {options.build}: there is no cli/weft")
    local = Path(options.repository)
    hour = take_hour(str(local.resolve()) if local.exists() else options.repository, program, options.first)
    hour.show_sum()
    if options.record and options.build:
        store(TUTORIAL, hour)
    elif options.record:
        clock_s, used_s = hour.sums()
        reached = f"{clock_s / 60:.1f} min, {used_s / 60:.1f} min of CPU"
        store(HOUR, hour, [{"what": "clone to report, two cores", "asked": f"at most {MOST_MINUTES} min", "reached": reached,
                            "met": clock_s <= 60 * MOST_MINUTES}])


if __name__ == "__main__":
    main()
