# SPDX-License-Identifier: Apache-2.0
"""Runs the examples as two ranks. Exit code 77 with a line where PyTorch 2.15 is not installed."""
import importlib.util
import os
import socket
import sys
import unittest
from pathlib import Path

from starts import PACKAGE, run_all, run_tests

EXAMPLES = PACKAGE / "examples"


def run_example(name):
    """Returns the output of rank 0, after a check that both ranks end with 0."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    commands = []
    for rank in range(2):
        env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2",
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
               "PYTHONPATH": os.pathsep.join([str(PACKAGE), os.environ.get("PYTHONPATH", "")])}
        commands.append(([sys.executable, str(EXAMPLES / f"{name}.py")], env))
    return run_all(commands)


class Examples(unittest.TestCase):
    def check(self, name):
        for module in ("accelerate", "transformers"):
            if f"import {module}\n" in Path(EXAMPLES / f"{name}.py").read_text() or f"from {module} " in Path(
                    EXAMPLES / f"{name}.py").read_text():
                if importlib.util.find_spec(module) is None:
                    self.skipTest(f"{module} is not installed")
        lines = run_example(name).splitlines()
        self.assertEqual(lines[-1], "as planned")
        rows = [line.split() for line in lines[-5:-1]]
        self.assertEqual([row[0] for row in rows], ["step", "default", "plan", "measured"])
        self.assertNotIn("-", rows[2][:2])

    def test_plain(self):
        self.check("plain")

    def test_accelerate(self):
        self.check("with_accelerate")

    def test_parallelize(self):
        self.check("parallelize")

    def test_trainer(self):
        self.check("with_trainer")


if __name__ == "__main__":
    run_tests()
