#!/usr/bin/env python3
"""The first quarter of an hour of a newcomer: a text, a config, the best setting, a run, a stop, a resumption, a text."""
import os
import signal
import sys
import time

from tap import case, main

PROSE = "It was the best of times, it was the worst of times, it was the age of wisdom. " * 60


def wait_for_steps(process, metrics, n):
    """Waits until the run has done n steps, or has ended."""
    end = time.monotonic() + 90
    while process.poll() is None and time.monotonic() < end:
        if os.path.exists(metrics):
            with open(metrics, encoding="utf-8") as file:
                if sum(1 for _ in file) > n:
                    return
        time.sleep(0.02)


@case
def a_text_of_ones_own_becomes_a_model(weft):
    weft.write("book.txt", PROSE)
    weft.expect(0, "init", "--data", "book.txt", "--model", "gpt-tiny", "-n", "2", "--memory-limit", "1GiB")
    told = weft.expect(0, "best", "run.json", "--work-limit", "200M", "-o", "won")
    train = next(line for line in told.splitlines() if "weft train " in line).split()[1:]
    process = weft.start(*train, "--run", "run", "--set", "train.steps=100000", "-q")
    wait_for_steps(process, weft.path("run/metrics.jsonl"), 3)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 75, (process.returncode, out, err)
    step = max(int(name.removeprefix("step-")) for name in os.listdir(weft.path("run/checkpoints")))
    weft.expect(0, "train", "--resume", "--run", "run", "--set", f"train.steps={step + 5}", "-q")
    assert len(weft.expect(0, "generate", "run", "--prompt", "It was", "--tokens", "8")) > len("It was")


main(sys.argv[1])
