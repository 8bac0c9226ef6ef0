#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults around a run: a rank, the launcher, a signal, memory."""
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from configs import tiny
from processes import finish, gone, long_run, ranks_of, shared_memory_names
from tap import case, main


@case
def streams_closed_from_the_start(weft):
    """Pipes to the solver must not take the numbers of closed standard streams."""
    config, plan = weft.write("run.json", tiny()), weft.path("plan.json")
    command = f'exec "{weft.program}" plan "{config}" -o "{plan}"'
    process = subprocess.run(["sh", "-c", command + " <&- >&- 2>&-"], check=False, timeout=60)
    assert process.returncode == 74, process.returncode
    with open(plan, encoding="utf-8") as file:
        assert "solver failed" not in json.load(file)["solver"]["stop"]


@case
def a_rank_killed_ends_the_job(weft):
    before = shared_memory_names()
    for victim in (0, 1):
        process, pids = long_run(weft)
        os.kill(pids[victim], signal.SIGKILL)
        code, err = finish(process, 3.0)
        assert code == 69, (code, err)
        assert "rank" in err and "signal 9" in err, err
        assert gone(pids), "a rank is left"
    assert shared_memory_names() == before


@case
def the_launcher_killed_ends_the_ranks(weft):
    process, pids = long_run(weft)
    process.kill()
    process.communicate(timeout=30)
    assert gone(pids), "a rank is left"


@case
def a_signal_stops_once(weft):
    for number in (signal.SIGTERM, signal.SIGINT):
        process, pids = long_run(weft)
        process.send_signal(number)
        code, err = finish(process, 5.0)
        assert code == 75, (code, err)
        assert gone(pids), "a rank is left"


@case
def ctrl_c_at_any_moment(weft):
    config = weft.write("run.json", tiny(train__steps=1000000))
    for tenths in range(1, 12):
        process = weft.start("train", config, "--run", f"run{tenths}", start_new_session=True)
        time.sleep(0.04 * tenths)
        pids = ranks_of(process.pid)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode in (75, -signal.SIGINT), (process.returncode, err)
        assert gone(pids), "a rank is left"


@case
def ctrl_c_stops_profile_and_demo(weft):
    config = weft.write("run.json", tiny(model__layers__1__repeat=40, train__micro_batch=8))
    for arguments, seconds in ((("profile", config), (0.05, 0.15)), (("demo",), (0.3, 3.5))):
        for delay in seconds:
            process = weft.start(*arguments, start_new_session=True)
            time.sleep(delay)
            if process.poll() is not None:
                continue
            pids = ranks_of(process.pid)
            os.killpg(process.pid, signal.SIGINT)
            code, err = finish(process, 3.0)
            assert code in (75, -signal.SIGINT), (arguments, delay, code, err)
            assert gone(pids), "a rank is left"


@case
def shared_memory_exhausted(weft):
    """The arena is a memory file, so a limit on file sizes simulates full memory."""
    config = weft.write("run.json", tiny())

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (256 << 10, 256 << 10))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    code, _, err = weft.run("train", config, "--run", "run", preexec_fn=limit)
    assert code == 71, (code, err)


@case
def a_stack_too_small_is_an_error_and_no_signal(weft):
    def limit(kib):
        hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
        return lambda: resource.setrlimit(resource.RLIMIT_STACK, (kib << 10, hard))

    config = weft.write("run.json", tiny())
    for verb in (["plan", config], ["train", config, "--run", "run"], ["profile", config]):
        weft.expect(71, *verb, preexec_fn=limit(64), says=["64 KiB", "ulimit -s"])
    assert not os.path.exists(weft.path("run")), "a run was begun"
    weft.expect(0, "train", config, "--run", "run", "-q", preexec_fn=limit(512))


@case
def memory_that_nobody_counted_is_held_to_the_limit(weft):
    """The plan has no base here, and the libraries alone need more than is left."""
    config = weft.write("run.json", tiny(cluster__memory_limit="2MiB"))
    weft.expect(0, "plan", config)
    weft.expect(78, "train", config, "--run", "run", says=["limit", "weft profile"])


@case
def run_directory_that_cannot_be_made(weft):
    weft.write("file", "in the way")
    config = weft.write("run.json", tiny())
    weft.expect(73, "train", config, "--run", "file/run", says="file/run")


@case
def every_fault_that_is_listed_has_its_test(_):
    tests = Path(__file__).resolve().parent.parent
    rows = [line for line in (tests.parent / "docs/faults.md").read_text().splitlines()
            if line.startswith("| ") and not line.startswith(("| fault |", "| --- "))]
    assert len(rows) > 25, rows
    for row in rows:
        names = re.findall("`([^`]+)`", row.split("|")[4])
        assert names, f"no test of {row}"
        for name in names:
            file, _, function = name.partition(": ")
            if function:
                source = (tests / f"cli/{file}.py").read_text()
                assert re.search(rf"@(drawn_)?case\ndef {function}\(", source), name
            else:
                assert (tests / name.removeprefix("tests/")).exists(), name


# A case of each exit code that runs in every check: none of the drawn ones.
PINNED = {
    1: ("doctor", "what_is_no_disk_is_missing"),
    64: ("bad_input", "unknown_verb_and_flag"), 65: ("bad_input", "duplicate_key"), 66: ("bad_input", "no_config_file"),
    69: ("faults", "a_rank_killed_ends_the_job"), 70: ("faults_ranks", "work_that_fails_ends_all_ranks_at_once"),
    71: ("faults", "shared_memory_exhausted"), 73: ("bad_input", "output_that_cannot_be_written"),
    74: ("bad_input", "a_full_standard_output_is_an_error"), 75: ("faults", "a_signal_stops_once"),
    76: ("faults_ranks", "ranks_with_different_configs_or_builds"), 77: ("bad_input", "a_config_that_may_not_be_read"),
    78: ("bad_input", "limit_too_small"), 79: ("two_nodes", "a_number_that_is_not_finite_has_its_step_and_rank"),
    80: ("faults_ranks", "a_stopped_rank_is_named"),
}


@case
def every_exit_code_has_a_case_that_always_runs(_):
    tests = Path(__file__).resolve().parent
    codes = re.findall(r"^    X\(E_\w+, (\d+), ", (tests.parents[1] / "include/weft.h").read_text(), re.M)
    assert sorted(PINNED) == sorted(map(int, codes)), codes
    for code, (file, function) in PINNED.items():
        source = (tests / f"{file}.py").read_text()
        body = re.search(rf"^@case\ndef {function}\(.*?(?=^@|^main\()", source, re.M | re.S)
        assert body and re.search(rf"\b{code}\b", body.group(0)), (code, file, function)


@case
def ranks_outside_a_job(weft):
    weft.expect(64, "rank", says="rank")


main(sys.argv[1])
