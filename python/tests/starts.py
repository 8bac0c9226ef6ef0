# SPDX-License-Identifier: Apache-2.0
"""Starts scripts as ranks of PyTorch over gloo."""
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).parent
PACKAGE = TESTS.parent


def run_ranks(script, *words, ranks=2, timeout=600):
    """Runs a script as ranks; returns rank 0's JSON."""
    with tempfile.TemporaryDirectory() as directory:
        env = {**os.environ, "OMP_NUM_THREADS": "1",
               "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
        started = [subprocess.Popen([sys.executable, str(TESTS / script), str(rank), f"{directory}/meet", *words],
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
                   for rank in range(ranks)]
        try:
            ends = [process.communicate(timeout=timeout) for process in started]
        finally:
            for process in started:
                process.kill()
        for process, (_, err) in zip(started, ends):
            assert process.returncode == 0, err[-3000:]
        return json.loads(ends[0][0].splitlines()[-1])


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
