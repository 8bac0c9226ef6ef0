#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Progress of long work: one redrawn line, or plain lines."""
import json
import os
import re
import sys
import time

from configs import tiny
from screen import show
from tap import case, main

# Local steps sleep about 20 ms, so fast machines do not shorten them and load changes little.
SLOW_LINK = {"cluster__emulate": True,
             "cluster__link": {"intra": {"alpha": "1ms", "bandwidth": "1GB/s"}}}

# A busy machine may take minutes for the first step.
TIME = r"[\d.]+ (?:s|min|h) (?:left|so far)"


@case
def progress_is_one_line_that_is_drawn_again(weft):
    """The line appears after half a second, at most ten times a second, and disappears at the end."""
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
    """A solver that sleeps makes planning long on any machine."""
    weft.write("run.json", tiny(train__steps=40, cluster__base="256MiB", **SLOW_LINK))
    weft.write("tight.json", tiny(cluster__link={"intra": {"alpha": "20us",
                                                           "bandwidth": "200MB/s"}}))
    os.chmod(weft.write("solver", "#!/bin/sh\nsleep 1\nexit 1\n"), 0o755)
    limit = "640KiB"
    for arguments, line in (
            (("profile", "run.json"), r"weft: profile: (step|operation) \d of \d.*"),
            (("plan", "tight.json", "--memory-limit", limit),
             rf"weft: plan: best [\d.]+ ms, bound [\d.]+ ms, gap [\d.]+ %, budget \d+ %, {TIME}"),
            (("sweep", "run.json", "--limits", "1GiB", "--planners", "greedy,all-fsdp",
              "--measure"), rf"weft: sweep: run [12] of 2, step \d+ of 40, {TIME}"),
            (("sweep", "tight.json", "--limits", limit, "--planners", "ilp,greedy"),
             rf"weft: sweep: plan [01] of 2, {TIME}")):
        code, screen = show(weft, *arguments, env={"WEFT_SOLVE": weft.path("solver")})
        assert code == 0, screen.text
        assert any(re.fullmatch(line, drawn) for drawn in screen.drawn), (line, screen.drawn)
        assert not re.search(TIME, screen.text), "it was not erased"


@case
def elsewhere_progress_is_plain_lines(weft):
    """Plain lines come without a terminal, in CI, on a dumb terminal, and with --progress=plain. Lines of steps replace
    them.
    """
    # A rule plans without a search. On a busy machine a search could reach the time limit and print a warning despite
    # -q.
    weft.write("run.json", tiny(train__steps=100, plan__planner="all-fsdp", **SLOW_LINK))
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
    _, screen = show(weft, "train", "run.json", "--run", "e", "-q", "--progress=plain")
    assert not screen.drawn and plain.search(screen.text), screen.text


main(sys.argv[1])
