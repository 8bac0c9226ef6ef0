# SPDX-License-Identifier: Apache-2.0
"""Starts scripts as ranks of PyTorch over gloo."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent
HANGS_AFTER = 300  # seconds without processor time


def processor_ticks(sessions):
    """Returns the processor time of all processes in the sessions, in ticks."""
    ticks = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) in sessions:
            ticks += int(fields[11]) + int(fields[12])
    return ticks


def wait_for(started):
    """Waits until all processes have ended, or one has failed. A slow machine may take any time, and a hang uses no
    processor time.
    """
    ticks, since = -1, time.monotonic()
    while any(process.poll() is None for process in started) and not any(process.poll() for process in started):
        now = processor_ticks({process.pid for process in started})
        if now != ticks:
            ticks, since = now, time.monotonic()
        if time.monotonic() - since > HANGS_AFTER:
            raise TimeoutError(f"no rank has used processor time for {HANGS_AFTER} s")
        time.sleep(0.2)


def run_all(commands):
    """Runs pairs of a command and its environment to their ends, and returns the output of the first."""
    started, files = [], []
    try:
        for words, env in commands:
            files.append((tempfile.TemporaryFile("w+"), tempfile.TemporaryFile("w+")))
            started.append(subprocess.Popen(words, stdout=files[-1][0], stderr=files[-1][1], env=env,
                                            start_new_session=True))
        wait_for(started)
    finally:
        for process in started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = []
    for pair in files:
        for file in pair:
            file.seek(0)
            said.append(file.read())
            file.close()
    failed = [rank for rank, process in enumerate(started) if process.returncode > 0]  # others were killed for it
    for rank in failed or range(len(started)):
        assert started[rank].returncode == 0, (rank, started[rank].returncode, said[2 * rank], said[2 * rank + 1][-3000:])
    return said[0]


def run_ranks(script, *words, ranks=2):
    """Runs a script as ranks; returns rank 0's JSON."""
    with tempfile.TemporaryDirectory() as directory:
        env = {**os.environ, "OMP_NUM_THREADS": "1",
               "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
        said = run_all([([sys.executable, str(TESTS / script), str(rank), f"{directory}/meet", *words], env)
                        for rank in range(ranks)])
        return json.loads(said.splitlines()[-1])


def run_tests():
    """Runs the script's tests. Exit code 77 with a line where PyTorch 2.15 is not installed."""
    try:
        import torch
        from torch.distributed.fsdp import FSDPModule
    except ImportError as error:
        print(f"skipped: {error}")
        sys.exit(77)
    if not hasattr(FSDPModule, "finalize_backward"):
        print(f"skipped: PyTorch {torch.__version__} is older than 2.15")
        sys.exit(77)
    unittest.main()
