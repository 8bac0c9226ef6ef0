#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The first quarter of an hour of a newcomer, after clone and demo: a text, a config, the best setting,
a run, a stop, a kill, resumptions, a text."""
import os
import re
import signal
import sys
import time

from tap import case, main

PROSE = "It was the best of times, it was the worst of times, it was the age of wisdom. " * 60


def end_after_steps(weft, process, n, number):
    """Sends a signal once the run's metrics have n more steps, and returns the end of the process."""
    metrics = weft.path("run/metrics.jsonl")
    begun, end = count_lines(metrics), time.monotonic() + 90
    while process.poll() is None and time.monotonic() < end and count_lines(metrics) <= begun + n:
        time.sleep(0.02)
    process.send_signal(number)
    return process.communicate(timeout=60)


def count_lines(path):
    if not os.path.exists(path):
        return 0
    with open(path, encoding="utf-8") as file:
        return sum(1 for _ in file)


def last_step(weft):
    names = os.listdir(weft.path("run/checkpoints"))  # a kill may leave step-N.tmp-R
    return max(int(name.removeprefix("step-")) for name in names if re.fullmatch(r"step-\d+", name))


@case
def a_text_of_ones_own_becomes_a_model(weft):
    weft.write("book.txt", PROSE)
    weft.expect(0, "init", "--data", "book.txt", "--model", "gpt-tiny", "-n", "2", "--memory-limit", "1GiB")
    told = weft.expect(0, "best", "run.json", "--work-limit", "200M", "-o", "won")
    train = next(line for line in told.splitlines() if "weft train " in line).split()[1:]
    process = weft.start(*train, "--run", "run", "--set", "train.steps=100000", "-q")
    out, err = end_after_steps(weft, process, 3, signal.SIGTERM)
    assert process.returncode == 75, (process.returncode, out, err)
    resume = ("train", "--resume", "--run", "run", "-q")
    process = weft.start(*resume, "--set", "train.checkpoint.every=2")
    stopped = last_step(weft)
    out, err = end_after_steps(weft, process, 4, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL and last_step(weft) > stopped, (process.returncode, out, err)
    weft.expect(0, *resume, "--set", f"train.steps={last_step(weft) + 5}")
    assert len(weft.expect(0, "generate", "run", "--prompt", "It was", "--tokens", "8")) > len("It was")


main(sys.argv[1])
