#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No line wraps on a terminal of any width, and other outputs have at most 80 columns. Colours only add to words."""
import json
import re
import shutil
import sys

from configs import tiny
from screen import show
from tap import Skip, case, drawn_case, main, some


def prepare(weft):
    """Writes files with short names for all verbs."""
    weft.write("run.json", tiny(cluster__base="256MiB", train__checkpoint={"at_end": True}))
    weft.write("wide.json", tiny(model__layers__1__repeat=40, train__clip_norm=0))
    weft.write("bad.json", {"version": 1, "model": {"layers": [
        {"name": "a", "typ": "x"}, {"type": "nothing"}]}, "cluster": {"ranks": 0}, "trian": {}})
    weft.expect(0, "plan", "run.json", "-o", "p.json")
    weft.expect(0, "plan", "wide.json", "--planner", "fsdp2", "-o", "w.json")
    weft.expect(0, "train", "run.json", "--run", "done")


# Verbs with their exit codes. JSON and generated text are not prose, so they are not wrapped.
VERBS = (
    (0, "help"), (0, "version"), (None, "doctor"),
    (0, "check", "run.json"), (65, "check", "bad.json"),
    (0, "estimate", "run.json"), (0, "estimate", "run.json", "--sweep", "train.micro_batch=1,2"),
    (0, "estimate", "wide.json", "--sweep", "train.micro_batch=1,2,4,8,16,32", "--sweep",
     "cluster.ranks=1,2,4,8,16,32,64", "--memory-limit", "10MiB"),
    (0, "estimate", "run.json", "--largest", "train.micro_batch"),
    (0, "estimate", "run.json", "--least", "cluster.ranks", "--memory-limit", "440KiB"),
    (0, "profile", "run.json", "-o", "t.json"),
    (0, "data", "info", "/usr/share/common-licenses/GPL-3"),
    (0, "data", "pack", "/usr/share/common-licenses/GPL-3", "-o", "tokens.bin"),
    (0, "plan", "run.json"), (0, "plan", "wide.json", "--planner", "fsdp2"),
    (0, "plan", "run.json", "--program"), (78, "plan", "run.json", "--memory-limit", "1MiB"),
    (0, "explain", "p.json"), (0, "explain", "w.json", "--all"),
    (0, "verify", "p.json"), (0, "verify", "w.json", "--config", "wide.json"),
    (0, "simulate", "p.json"), (0, "best", "run.json"),
    (0, "train", "run.json", "--run", "new", "--set", "train.steps=8", "--set",
     'train.validation={"share": 0.5, "every": 4, "samples": 4}'),
    (65, "train", "run.json", "--run", "done", "--resume", "--set", "model.layers.0.hidden=64"),
    (0, "replay", "done"), (0, "audit", "done", "--part", "50"), (0, "report", "done"), (0, "compare", "done", "done"),
    (0, "generate", "done", "--tokens", "2"), (0, "launch", "-n", "2", "true"),
    (0, "sweep", "run.json", "--points", "9", "--planners", "ilp,all-fsdp,ddp,bytescheduler,dear"),
    (0, "sweep", "run.json", "--points", "2", "--planners", "ilp,greedy", "--measure"),
    (0, "sweep", "run.json", "--split", "--points", "3"),
    (0, "study", "run.json", "--points", "2", "--planners", "ilp,greedy", "-o", "new"),
    (None, "demo", "--set", "train.steps=3", "--set", "train.seq_len=16", "--set",
     "train.micro_batch=1"),
    (0, "init", "--list"), (73, "init", "run.json"),
    (64, "plam"), (64, "plan", "run.json", "--planner", "ipl"), (66, "explain", "none.json"),
    (64, "export", "p.json"), (65, "export", "p.json", "--to", "fsdp2"),
    (0, "export", "done", "--to", "hf", "-o", "new"), (66, "import", "done", "-o", "new"),
)


def long_words(text, columns):
    """Returns lines that are too long because of one unbreakable word, such as a path."""
    return [line for line in text.splitlines() if len(line) > columns and
            (max(map(len, line.split())) > columns - 4 or len(line.split()) == 1)]


def names_of(weft):
    """Returns the verbs and topics of `weft help`."""
    verbs, _, rest = weft.expect(0, "help").partition("`weft help")
    return [re.findall(r"^  ([a-z-]+)  ", part, re.M) for part in (verbs, rest.split("Common")[0])]


@drawn_case
def no_line_of_any_verb_wraps_on_a_terminal(weft):
    prepare(weft)
    names, topics = names_of(weft)
    assert len(names) > 10 and len(topics) > 5, (names, topics)
    assert set(names) - {arguments[0] for _, *arguments in VERBS} == {"schema", "completion"}
    width_of_demo = some((80, 40), 1)[0]
    for columns, rows in ((80, 24), (40, 10)):
        for code, *arguments in VERBS + tuple((0, "help", name) for name in names + topics):
            if arguments[0] == "demo" and columns != width_of_demo:
                continue  # it measures for seconds
            shutil.rmtree(weft.path("new"), ignore_errors=True)
            got, screen = show(weft, *arguments, columns=columns, rows=rows)
            assert code in (None, got), (arguments, got, screen.text)
            words = long_words("\n".join(screen.wrapped), columns)
            wrapped = [line for line in screen.wrapped if line not in words]
            assert not wrapped, (columns, arguments, wrapped)
            assert not words or arguments[0] == "doctor", (columns, arguments, words)
            assert screen.text.strip() or arguments[0] == "launch", arguments


@drawn_case
def twenty_columns_show_every_column_of_an_answer(weft):
    prepare(weft)
    for code, *arguments in ((0, "best", "run.json"), (0, "plan", "run.json"), (0, "init", "--list"),
                             (78, "plan", "run.json", "--memory-limit", "1MiB")):
        got, screen = show(weft, *arguments, "-q", columns=20, rows=10)
        assert got == code, (arguments, got, screen.text)
        wrapped = [line for line in screen.wrapped if line not in long_words("\n".join(screen.wrapped), 20)]
        assert not wrapped, (arguments, wrapped)
        heads = {"best": ("policy", "recompute", "tokens/s", "memory", "gap")}.get(arguments[0], ())
        assert all(head in screen.text for head in heads), (arguments, screen.text)


@drawn_case
def elsewhere_no_report_is_wider_than_80_columns(weft):
    prepare(weft)
    for code, *arguments in VERBS:
        if arguments[0] == "demo":
            continue  # slow, and covered above
        shutil.rmtree(weft.path("new"), ignore_errors=True)
        got, out, err = weft.run(*arguments)
        assert code in (None, got), (arguments, got, err)
        long = [line for line in out.splitlines() if len(line) > 80]
        assert len(long) == len(long_words(out, 80)), (arguments, long)
        # A message stays one line, so that a search finds it.
        assert arguments[0] == "check" or "\n  " not in err, (arguments, err)


@case
def colours_add_to_words_where_they_are_wanted(weft):
    weft.write("run.json", tiny())
    sweep = ("sweep", "run.json", "--limits", "600KiB,1GiB", "--planners", "greedy,all-dp", "-q")
    plain = weft.expect(0, *sweep)
    assert "\x1b" not in plain
    painted = weft.expect(0, *sweep, "--color=always")
    assert "\x1b[32m" in painted and re.sub(r"\x1b\[\d*m", "", painted) == plain, painted
    for flags, env, wanted in (((), {}, True), (("--color=never",), {}, False),
                               ((), {"NO_COLOR": "1"}, False), ((), {"TERM": "dumb"}, False),
                               (("--color=always",), {"NO_COLOR": "1"}, True)):
        for arguments in (sweep, ("plan", "none.json")):
            _, screen = show(weft, *arguments, *flags, env=env)
            assert bool(screen.colours) == wanted, (arguments, flags, env, screen.colours)


@drawn_case
def a_narrow_terminal_loses_no_column_of_a_table(weft):
    prepare(weft)
    _, screen = show(weft, "sweep", "run.json", "--points", "9", "--planners", "ilp,greedy", "-q",
                     "--json")
    points = json.loads(screen.text)["curves"][0]["points"]
    if not all(point["fits"] for point in points):
        raise Skip("ilp has no plan at some limit")
    _, screen = show(weft, "sweep", "run.json", "--points", "9", "--planners", "ilp,greedy", "-q",
                     columns=40)
    rows = [line.split("  ") for line in screen.lines if line.startswith("  ilp ")]
    parts = [len([cell for cell in row if cell.strip()]) - 1 for row in rows]
    assert sum(parts) == 9 and max(parts) - min(parts) <= 1, parts


main(sys.argv[1])
