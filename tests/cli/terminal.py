#!/usr/bin/env python3
"""What a person sees: on a terminal of any width no line wraps, elsewhere none has more than 80
columns; progress is one line that is drawn again, or plain lines; colours only add to words."""
import json
import re
import shutil
import sys
import time

from configs import tiny
from screen import show
from tap import Skip, case, main

# Local steps that take about 20 ms, by sleeping: no machine is faster, and load changes little.
SLOW_LINK = {"cluster__emulate": True,
             "cluster__link": {"intra": {"alpha": "1ms", "bandwidth": "1GB/s"}}}

# A busy machine may take minutes for the first step.
TIME = r"[\d.]+ (?:s|min|h) (?:left|so far)"


def prepare(weft):
    """Files with short names, for all verbs."""
    weft.write("run.json", tiny(cluster__base="256MiB", train__checkpoint={"at_end": True}))
    weft.write("wide.json", tiny(model__layers__1__repeat=40, train__clip_norm=0))
    weft.write("bad.json", {"version": 1, "model": {"layers": [
        {"name": "a", "typ": "x"}, {"type": "nothing"}]}, "cluster": {"ranks": 0}, "trian": {}})
    weft.expect(0, "plan", "run.json", "-o", "p.json")
    weft.expect(0, "plan", "wide.json", "--planner", "fsdp2", "-o", "w.json")
    weft.expect(0, "train", "run.json", "--run", "done")


# Each with its exit code. JSON and what is generated are no prose, and are not broken.
VERBS = (
    (0, "help"), (0, "help", "plan"), (0, "help", "sweep"), (0, "version"), (None, "doctor"),
    (0, "check", "run.json"), (65, "check", "bad.json"),
    (0, "estimate", "run.json"), (0, "estimate", "run.json", "--sweep", "train.micro_batch=1,2"),
    (0, "profile", "run.json", "-o", "t.json"),
    (0, "plan", "run.json"), (0, "plan", "wide.json", "--planner", "fsdp2"),
    (0, "plan", "run.json", "--program"), (78, "plan", "run.json", "--memory-limit", "1MiB"),
    (0, "explain", "p.json"), (0, "explain", "w.json", "--all"),
    (0, "verify", "p.json"), (0, "verify", "w.json", "--config", "wide.json"),
    (0, "simulate", "p.json"),
    (0, "train", "run.json", "--run", "new", "--set", "train.steps=8", "--set",
     'train.validation={"share": 0.5, "every": 4, "batches": 1}'),
    (65, "train", "run.json", "--run", "done", "--resume", "--set", "model.layers.0.hidden=64"),
    (0, "generate", "done", "--tokens", "2"), (0, "launch", "-n", "2", "true"),
    (0, "sweep", "run.json", "--points", "9", "--planners", "ilp,all-fsdp,ddp,bytescheduler,dear"),
    (0, "sweep", "run.json", "--points", "2", "--planners", "ilp,greedy", "--measure"),
    (0, "sweep", "run.json", "--split", "--points", "3"),
    (None, "demo", "--set", "train.steps=3", "--set", "train.seq_len=16", "--set",
     "train.micro_batch=1"),
    (64, "plam"), (64, "plan", "run.json", "--planner", "ipl"), (66, "explain", "none.json"),
)


def long_words(text, columns):
    """Lines that are long for a single word, which is a path or a name that nothing breaks."""
    return [line for line in text.splitlines()
            if len(line) > columns and max(map(len, line.split())) > columns - 4]


@case
def no_line_of_any_verb_wraps_on_a_terminal(weft):
    prepare(weft)
    for columns, rows in ((80, 24), (40, 10)):
        for code, *arguments in VERBS:
            shutil.rmtree(weft.path("new"), ignore_errors=True)
            got, screen = show(weft, *arguments, columns=columns, rows=rows)
            assert code in (None, got), (arguments, got, screen.text)
            words = long_words("\n".join(screen.wrapped), columns)
            wrapped = [line for line in screen.wrapped if line not in words]
            assert not wrapped, (columns, arguments, wrapped)
            assert not words or arguments[0] == "doctor", (columns, arguments, words)
            assert screen.text.strip() or arguments[0] == "launch", arguments


@case
def elsewhere_no_report_is_wider_than_80_columns(weft):
    prepare(weft)
    for code, *arguments in VERBS:
        if arguments[0] == "demo":
            continue  # it takes longest, and has been seen
        got, out, err = weft.run(*arguments)
        assert code in (None, got), (arguments, got, err)
        long = [line for line in out.splitlines() if len(line) > 80]
        assert len(long) == len(long_words(out, 80)), (arguments, long)
        # A message is one line, for whoever searches in it.
        assert arguments[0] == "check" or "\n  " not in err, (arguments, err)


@case
def progress_is_one_line_that_is_drawn_again(weft):
    """Of no work that takes less than half a second; at most ten times a second; and it is gone
    when the work is done."""
    weft.write("run.json", tiny(train__steps=100, **SLOW_LINK))
    for quiet, flags in ((True, ("--json",)), (False, ())):
        begun = time.monotonic()
        code, screen = show(weft, "train", "run.json", "--run", f"run-{quiet}", *flags)
        took = time.monotonic() - begun
        assert code == 0 and took > 1, (code, took, screen.text)
        drawn = [line for line in screen.drawn if line.startswith("weft: train: step ")]
        assert 3 <= len(drawn) <= 10 * took + 1, (len(drawn), took)
        assert all(re.fullmatch(rf"weft: train: step \d+ of 100, {TIME}", line)
                   for line in drawn), drawn
        assert not re.search(TIME, screen.text), "it was not erased"
    for arguments in (("check", "run.json"), ("version",)):
        _, screen = show(weft, *arguments)
        assert not screen.drawn, screen.drawn


@case
def progress_goes_on_while_a_step_takes_long_and_ends_with_a_rank(weft):
    link = {"cluster__emulate": True,
            "cluster__link": {"intra": {"alpha": "100ms", "bandwidth": "1GB/s"}}}
    weft.write("run.json", tiny(train__steps=2, **link))
    _, screen = show(weft, "train", "run.json", "--run", "a")
    begun = [line for line in screen.drawn
             if re.fullmatch(rf"weft: train: (step 0 of 2, )?{TIME}", line)]
    assert len(begun) >= 3, (screen.drawn, "no step is done in the first second")
    assert not re.search(TIME, screen.text), screen.text
    code, screen = show(weft, "train", "run.json", "--run", "b",
                        env={"WEFT_FAILPOINT": "backward:rank=0:step=2:do=kill"})
    assert code == 69 and screen.drawn, (code, screen.text)
    assert not re.search(TIME, screen.text), "it was not erased"


@case
def progress_tells_of_every_long_verb(weft):
    weft.write("run.json", tiny(train__steps=40, cluster__base="256MiB", **SLOW_LINK))
    for arguments, line in (
            (("profile", "run.json"), r"weft: profile: (step|operation) \d of \d.*"),
            (("sweep", "run.json", "--limits", "1GiB", "--planners", "greedy,all-fsdp",
              "--measure"), rf"weft: sweep: run [12] of 2, step \d+ of 40, {TIME}"),
            (("sweep", "run.json", "--points", "10", "--jobs", "1"),
             rf"weft: sweep: plan \d+ of 200, {TIME}")):
        code, screen = show(weft, *arguments)
        assert code == 0, screen.text
        assert any(re.fullmatch(line, drawn) for drawn in screen.drawn), (line, screen.drawn)
        assert not re.search(line, screen.text), "it was not erased"


@case
def elsewhere_progress_is_plain_lines(weft):
    """Off a terminal, in CI, on a dumb one, and where it is asked for; lines of steps are such lines
    themselves."""
    weft.write("run.json", tiny(train__steps=100, **SLOW_LINK))
    plain = re.compile(rf"^weft: train: step (\d+) of 100, {TIME}$", re.M)
    begun = time.monotonic()
    _, out, err = weft.run("train", "run.json", "--run", "a", "--json")
    took = time.monotonic() - begun
    steps = [int(step) for step in plain.findall(err)]
    assert 1 <= len(steps) <= 11 + took / 10 and steps == sorted(set(steps)), err
    assert "\x1b" not in err and "\r" not in err, err
    assert all(json.loads(line) for line in out.splitlines())
    _, out, err = weft.run("train", "run.json", "--run", "b")
    assert not plain.search(err) and out.count("\nstep ") >= 100, err
    for number, (env, flags) in enumerate((({"CI": "true"}, ()), ({"TERM": "dumb"}, ()),
                                           ({}, ("--progress=plain",)))):
        _, screen = show(weft, "train", "run.json", "--run", f"c{number}", "--json", *flags, env=env)
        assert not screen.drawn and plain.search(screen.text), (env, flags, screen.text)
    for number, flags in enumerate((("--progress=none",), ("-q",))):
        _, screen = show(weft, "train", "run.json", "--run", f"d{number}", "--json", *flags)
        assert not screen.drawn and "weft: " not in screen.text, (flags, screen.text)


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


@case
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
