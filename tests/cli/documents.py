# SPDX-License-Identifier: Apache-2.0
"""Outputs pasted in README and docs are compared with the program's: documents.py WEFT [slow|tutorial]. TAP.

White space does not count, because lines are folded for reading. A line `...` stands for lines left out.
Analytic plans are the same bytes everywhere, so their blocks are compared word by word. Outputs with measured times
or losses differ from machine to machine, so only the first words of their lines are compared. Commands of the tutorial
need the files of the commands before, so they run in a run of this test of their own.
"""
import re
import shlex
import sys
from pathlib import Path

from pasted import pasted
from tap import case, main

SOURCE = Path(__file__).resolve().parents[2]
DOCUMENTS = [SOURCE / "README.md", *sorted((SOURCE / "docs").glob("*.md"))]
TUTORIAL = Path("docs/tutorial.md")
# First words of a command, and the reason to compare only the labels of its output.
MEASURED = {"weft plan configs/runs/gpt-10m.json": "its layer times are measured",
            "weft train": "losses hang on the processor",
            "weft profile": "its times are measured", "weft best run.json": "its times are measured",
            "weft report": "its run is measured", "weft generate": "it has a measured run's letters",
            "WEFT_FAILPOINT=forward:rank=1:step=15:do=kill": "a process has a number"}
# First words of commands that fail as the page says, with their exit codes. Their output is that of stderr.
FAILS = {"WEFT_FAILPOINT=forward:rank=1:step=15:do=kill": 69}
# First words of commands that are not run, and the reason.
NOT_RUN = {"make": "`make demo` measures this machine for half a minute; cli-demo runs weft demo",
           "apt-get": "installs packages and trains for minutes",
           "cc": "library-install builds and runs the example", "git": "fetches the project",
           "weft launch": "library-launch runs the example", "weft train gate.json": "library-launch runs the example"}
# Planned for half a minute or more: compared only with `slow`.
SLOW = ("weft plan configs/runs/gpt2-xl.json", "weft sweep configs/runs/gpt-tiny-host.json", "weft train",
        "weft plan configs/runs/gpt-10m.json")


def blocks():
    """Yields (document, line number, command, output lines) of every block."""
    for document in DOCUMENTS:
        for block in pasted(document):
            yield document.relative_to(SOURCE), *block


def first_with(table, command):
    return next((key for key in table if command == key or command.startswith(key + " ")), None)


def run(weft, command):
    words, env = shlex.split(command), {}
    while "=" in words[0]:
        name, env[name] = words.pop(0).split("=", 1)
    assert words[0] == "weft", command
    code, out, err = weft.run(*words[1:], "--progress=none", env=env, timeout=1200)
    failure = first_with(FAILS, command)
    assert code == FAILS.get(failure, 0), f"exit {code}\n{err}{out[-500:]}"
    return err if failure else out


def words_of(text):
    return re.sub(r"\s+", " ", text).strip()


def compare_words(told, shown):
    """Checks that each run of lines between two `...` is in the output, in order, from its first word to its last."""
    parts = [words_of(part) for part in re.split(r"(?m)^\s*\.\.\.\s*$", "\n".join(shown))]
    rest = words_of(told)
    for number, part in enumerate(parts):
        place = rest.find(part)
        assert place >= 0 and (number > 0 or place == 0), f"is not printed: {part}\nprinted: {told}"
        rest = rest[place + len(part):]
    assert parts[-1] == "" or rest == "", f"more is printed: {rest}"


def compare_labels(told, shown):
    def labels(lines):
        return [line.split()[0] for line in lines if line and not line.startswith((" ", "..."))]
    printed = labels(told.splitlines())
    missing = [label for label in labels(shown) if label not in printed]
    assert labels(shown) and not missing, f"not printed: {missing}\nprinted: {told}"


@case
def pasted_outputs_are_printed(weft):
    slow, tutorial = sys.argv[2:] == ["slow"], sys.argv[2:] == ["tutorial"]
    (weft.directory / "configs").symlink_to(SOURCE / "configs")
    bad, compared = [], 0
    for document, number, command, output in blocks():
        if first_with(NOT_RUN, command) or (document == TUTORIAL) != tutorial:
            continue
        if not tutorial and bool(first_with(SLOW, command)) != slow:
            continue
        try:
            told = run(weft, command)
            if not output:  # a later command needs its files
                continue
            (compare_labels if first_with(MEASURED, command) else compare_words)(told, output)
            compared += 1
        except AssertionError as fault:
            bad.append(f"{document}:{number}: {command}\n{fault}")
    assert not bad, "\n\n".join(bad)
    assert compared >= (len(SLOW) if slow else 4), compared


@case
def a_changed_word_is_found(weft):
    told = "plan  by ilp\nstep  351 ms predicted\nmore\n"
    compare_words(told, ["plan by ilp", "step  351 ms", "   predicted", "..."])
    for shown in (["plan  by ilp", "step  352 ms predicted", "..."], ["step  351 ms predicted", "..."],
                  ["plan  by ilp", "step  351 ms predicted"]):
        try:
            compare_words(told, shown)
        except AssertionError:
            continue
        raise AssertionError(f"accepted: {shown}")


@case
def commands_that_are_not_run_say_why(weft):
    for document, number, command, _ in blocks():
        assert re.match(r"(?:\w+=\S+ )*weft ", command) or first_with(NOT_RUN, command), f"{document}:{number}: {command}"


main(sys.argv[1])
