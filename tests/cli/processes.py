# SPDX-License-Identifier: Apache-2.0
"""Background runs, their ranks, and the remains of both."""
import os
import re
import time

from configs import tiny
from tap import Skip


def ranks_of(pid):
    """Returns the pids of a launcher's ranks. It reads /proc, because a small system has no ps."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8") as stat:
                parent = int(stat.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{entry}/cmdline", "rb") as cmdline:
                words = cmdline.read().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == pid and b"rank" in words:
            found.append(int(entry))
    return sorted(found)


def gone(pids, seconds=3.0):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(alive(pid) for pid in pids):
            return True
        time.sleep(0.02)
    return False


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def long_run(weft, ranks=2, env=None, **changes):
    """Starts a run; returns it and its ranks' pids after the first step."""
    changes = {"train__steps": 1000000, **changes}
    config = weft.write("run.json", tiny(cluster__ranks=ranks, **changes))
    process = weft.start("train", config, "--run", weft.fresh("run"), env=env)
    first_lines = []
    while len(first_lines) < 40:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        first_lines.append(line)
        if line.startswith("step ") and "/" in line.split("loss")[0]:
            break
    pids = ranks_of(process.pid)
    # With `env` a rank may have failed already.
    assert len(pids) == ranks or env, pids
    return process, pids


def finish(process, seconds):
    start = time.monotonic()
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - start < seconds, "took too long"
    return process.returncode, err


def shared_memory_names():
    if not os.path.isdir("/dev/shm"):
        raise Skip("no /dev/shm to look into")
    # Other programs come and go, including this suite's unit tests.
    return {name for name in os.listdir("/dev/shm") if not re.match("sem|bxf|criterion", name)}
