#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A run that is asked to stop loses no step, for any signals, receivers and repetitions.

stops.py WEFT [SEQUENCES [SEED]]: random sequences of signals; the default is few.
"""
import os
import pty
import random
import re
import resource
import select
import shutil
import signal
import sys
import threading
import time

from configs import tiny
from processes import finish, gone, long_run, ranks_of
from saved import metrics, steps
from tap import case, drawn_case, main

SEQUENCES = int(sys.argv[2]) if len(sys.argv) > 2 else 6
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else 1
NUMBERS = [signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP, signal.SIGXCPU, signal.SIGINT]
SAVES = {"train__checkpoint": {"every": 0}}


def last_step(weft, run="run"):
    return max((line["step"] for line in metrics(weft, run) if "loss" in line), default=0)


def nothing_is_lost(weft, run="run"):
    kept = steps(weft, run) if os.path.isdir(weft.path(f"{run}/checkpoints")) else []
    assert f"step-{last_step(weft, run)}" in kept, (kept, last_step(weft, run))
    assert not [name for name in kept if ".tmp-" in name], kept


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def stopped(weft, process, pids, told="which is saved. Go on with: "):
    code, err = finish(process, 30)
    assert code == 75 and told in err, (code, err)
    assert gone(pids), "a rank is left"
    nothing_is_lost(weft)
    shutil.rmtree(weft.path("run"))


def drawn(draw, processes):
    """Yields random pauses, processes and signals."""
    for place in range(draw.randint(1, 4)):
        pause = draw.choice([0, 0.001, 0.01, 0.1, 0.85, 2]) * draw.random() if place else 0
        some = draw.sample(processes, draw.randint(1, len(processes)))
        yield pause, some, draw.choice(NUMBERS)


# Signals arrive during background saves, evaluations, updates that wait for the next step, and the last step.
RUNS = [SAVES, {"train__checkpoint": {"every": 20}},
        {"train__validation": {"share": 0.2, "every": 5, "batches": 8}, **SAVES},
        {"train__clip_norm": 0, "train__grad_accum": 2, **SAVES}, {"train__steps": 1000, **SAVES}]


@drawn_case
def random_sequences_lose_nothing(weft):
    """1 to 4 signals, 0 to 2 s apart, each to any of launcher and ranks."""
    for at in range(SEQUENCES):
        draw = random.Random(f"{SEED} {at}")
        process, pids = long_run(weft, ranks=draw.randint(1, 3), **draw.choice(RUNS))
        reader = threading.Thread(target=process.stdout.read, daemon=True)
        reader.start()
        time.sleep(draw.random() * 0.2)
        sent = []
        everyone = [process.pid, *pids]
        for pause, some, number in drawn(draw, everyone):
            time.sleep(pause)
            if process.poll() is not None:
                break
            for pid in some:
                send(pid, number)
            sent.append((round(pause, 3), [everyone.index(pid) for pid in some], number.name))
        err, code = process.stderr.read(), process.wait(timeout=30)
        reader.join()
        try:
            assert code == 75 and "stopped by a signal" in err or code == 0, (code, err)
            assert gone(pids), "a rank is left"
            nothing_is_lost(weft)
        except AssertionError as error:
            raise AssertionError(f"sequence {at} of seed {SEED}: {sent}: {error}") from error
        shutil.rmtree(weft.path("run"))


@drawn_case
def signals_before_the_first_step_leave_nothing_half_begun(weft):
    """The signals arrive at any moment of the start: either no step was done, or the last one is saved."""
    config = weft.write("run.json", tiny(train__steps=1000000, **SAVES))
    for at in range(SEQUENCES):
        draw = random.Random(f"{SEED} early {at}")
        process = weft.start("train", config, "--run", "run", "-q")
        time.sleep(draw.random() * 0.6)
        pids = ranks_of(process.pid)
        for pause, some, number in drawn(draw, [process.pid, *pids]):
            time.sleep(pause * 0.1)
            for pid in some:
                send(pid, number)
        process.send_signal(signal.SIGTERM)
        code, err = finish(process, 30)
        assert code == 75 or code < 0, (at, code, err)
        assert gone([*pids, *ranks_of(process.pid)]), "a rank is left"
        if os.path.exists(weft.path("run/metrics.jsonl")) and last_step(weft) > 0:
            nothing_is_lost(weft)
        shutil.rmtree(weft.path("run"), ignore_errors=True)


@case
def every_process_gets_every_signal_at_once(weft):
    """scancel and service managers signal all processes."""
    process, pids = long_run(weft, ranks=3, **SAVES)
    for number in NUMBERS:
        for pid in [process.pid, *pids]:
            send(pid, number)
    stopped(weft, process, pids)


@drawn_case
def each_signal_stops(weft):
    for number in NUMBERS:
        process, pids = long_run(weft, **SAVES)
        process.send_signal(number)
        stopped(weft, process, pids)


@case
def a_signal_to_one_rank_stops_all(weft):
    for number in NUMBERS[:3]:
        process, pids = long_run(weft, **SAVES)
        for _ in range(5):
            send(pids[1], number)
            time.sleep(0.01)
        stopped(weft, process, pids)


SLOW = {"cluster__emulate": True, "plan__planner": "all-fsdp", **SAVES,
        "cluster__link": {"intra": {"alpha": "60ms", "bandwidth": "1GB/s"}}}


@case
def the_same_signal_again_waits_for_the_step(weft):
    """A step takes at least a second here. timeout(1) signals twice, and Slurm sends USR1 first."""
    for numbers in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGUSR1, signal.SIGTERM)):
        process, pids = long_run(weft, **SLOW)
        process.send_signal(numbers[0])
        time.sleep(0.3)
        assert process.poll() is None, "the step was not finished"
        process.send_signal(numbers[1])
        stopped(weft, process, pids)


@case
def a_short_timeout_does_not_end_a_slow_stop(weft):
    """cluster.timeout limits a hang, not the time of a stop."""
    link = {"intra": {"alpha": "120ms", "bandwidth": "1GB/s"}}  # a busy machine may start a rank half a second late
    process, pids = long_run(weft, **{**SLOW, "cluster__link": link, "cluster__timeout": "1s"})
    process.send_signal(signal.SIGTERM)
    stopped(weft, process, pids)


@case
def a_group_that_is_hung_up_saves(weft):
    config = weft.write("run.json", tiny(train__steps=1000000, **SAVES))
    process = weft.start("train", config, "--run", "run", start_new_session=True)
    while not re.match(r"step +\d+/", process.stdout.readline()):
        assert process.poll() is None, process.stderr.read()
    pids = ranks_of(process.pid)
    for _ in range(3):
        os.killpg(process.pid, signal.SIGHUP)
    stopped(weft, process, pids)


@case
def a_signal_after_the_last_step_keeps_the_result(weft):
    """A pipe without a reader holds the launcher while it writes the result."""
    os.mkdir(weft.path("run"))
    weft.write("run/weft-run", "weft run 1\n")
    os.mkfifo(weft.path("run/result.json"))
    config = weft.write("run.json", tiny(**SAVES))
    process = weft.start("train", config, "--run", "run", "-q")
    deadline = time.monotonic() + 60
    while not os.path.isdir(weft.path("run/checkpoints/step-3")) or ranks_of(process.pid):
        assert process.poll() is None and time.monotonic() < deadline, process.poll()
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.2)
    assert process.poll() is None, "the signal ended it"
    with open(weft.path("run/result.json"), encoding="utf-8") as pipe:
        assert '"steps_done": 3' in pipe.read()
    assert process.wait(30) == 0
    process.communicate()


@case
def a_long_evaluation_does_not_hold_up_a_stop(weft):
    """The signal arrives during the evaluation. The run is saved, and the evaluation is left out."""
    validation = {"share": 0.2, "every": 2, "samples": 10 ** 9}
    config = weft.write("run.json", tiny(train__steps=4, train__validation=validation, **SAVES))
    for pause in (0.5, 5, 25):  # a busy machine comes to the second step later
        shutil.rmtree(weft.path("run"), ignore_errors=True)
        process = weft.start("train", config, "--run", "run", "--progress=none")
        while not process.stdout.readline().startswith("step "):
            assert process.poll() is None, process.stderr.read()
        time.sleep(pause)
        process.send_signal(signal.SIGTERM)
        code, err = finish(process, 30)
        if "after step 2 of 4" in err:
            break
    assert code == 75 and "after step 2 of 4, which is saved" in err, (code, err)
    assert "step-2" in steps(weft, "run")


@drawn_case
def a_limit_of_cpu_time_stops(weft):
    """The kernel sends SIGXCPU every second, to each process separately."""
    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (1, 60))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    config = weft.write("run.json", tiny(train__steps=10000000, **SAVES))
    process = weft.start("train", config, "--run", "run", "-q", preexec_fn=limit)
    stopped(weft, process, [])


@case
def a_reader_that_gets_the_signal_too_leaves_a_stop(weft):
    """Ctrl-C reaches each process of `weft train | tee`, so the reader ends before the run."""
    process, pids = long_run(weft, **SAVES)
    for pid in pids:
        send(pid, signal.SIGINT)
    process.stdout.close()
    code = process.wait(timeout=30)
    err = process.stderr.read()
    assert code == 75 and "which is saved" in err, (code, err)
    assert gone(pids), "a rank is left"
    nothing_is_lost(weft)


class Terminal:
    """A run on its own terminal, and the terminal's text."""

    def __init__(self, weft, **changes):
        config = weft.write("run.json", tiny(train__steps=1000000, **changes))
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.chdir(weft.directory)
            os.execv(weft.program, [weft.program, "train", config, "--run", "run",
                                    "--progress=none", "-v"])
        self.text, self.closes = "", False
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.wait_for(r"step +\d+/")
        self.ranks = ranks_of(self.pid)

    def read(self):
        try:
            while not self.closes:
                if select.select([self.master], [], [], 0.02)[0]:
                    self.text += os.read(self.master, 65536).decode("utf-8", "replace")
        except OSError:  # no process has the terminal open
            pass
        os.close(self.master)

    def wait_for(self, pattern):
        end = time.monotonic() + 30
        while not re.search(pattern, self.text):
            assert time.monotonic() < end, self.text
            time.sleep(0.01)

    def interrupt(self):
        os.write(self.master, b"\x03")

    def close(self):
        self.closes = True
        self.reader.join()

    def finish(self):
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        assert gone(self.ranks), "a rank is left"
        return code


@case
def a_second_interrupt_on_a_terminal_ends_at_once(weft):
    """The message names the lost steps."""
    terminal = Terminal(weft, **SLOW)
    terminal.interrupt()
    time.sleep(0.3)
    terminal.interrupt()
    begun = time.monotonic()
    code = terminal.finish()
    assert code == 75 and time.monotonic() - begun < 5, code
    terminal.close()
    text = " ".join(terminal.text.split())
    told = re.search(r"ended at once by a second request to stop \(Interrupt\)\. Steps? ([\d to]+?) "
                     r"(?:is|are) not saved", text)
    assert told and told[1].split()[-1] == str(last_step(weft)), text
    assert not os.path.isdir(weft.path("run/checkpoints")) or not steps(weft, "run"), "it was saved"


@case
def one_interrupt_on_a_terminal_saves(weft):
    """Signals from other processes in between change nothing."""
    terminal = Terminal(weft, **SLOW)
    terminal.interrupt()
    for pid in (terminal.pid, *terminal.ranks, terminal.pid):
        time.sleep(0.05)
        send(pid, signal.SIGINT)
    assert terminal.finish() == 75, terminal.text
    nothing_is_lost(weft)


@case
def a_terminal_that_is_closed_saves(weft):
    for changes in (SAVES, SLOW):
        terminal = Terminal(weft, **changes)
        terminal.close()
        send(terminal.pid, signal.SIGHUP)  # the shell sends it in addition to the kernel
        code = terminal.finish()
        assert code == 75, code
        nothing_is_lost(weft)
        shutil.rmtree(weft.path("run"))


if __name__ == "__main__":
    main(sys.argv[1])
