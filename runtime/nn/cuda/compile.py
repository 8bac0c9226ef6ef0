#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles one .cu file: compile.py LOG PTX nvcc arguments... Writes all output, with ptxas's report of registers, to LOG,
and the text of the newest PTX that the object has to PTX. Prints the remaining lines. Returns nvcc's exit code."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOLD = re.compile(r"ptxas info|^\s+\d+ bytes stack frame|^\s*$|^\w+\.cu$")


def architecture(path):
    """Of name.compute_90.ptx. With a single architecture the name has none."""
    found = re.search(r"compute_(\d+)", path.name)
    return int(found[1]) if found else 0


def main(log, ptx, *command):
    # nvcc's files on the way have the source's name, so each source has a folder of its own.
    with tempfile.TemporaryDirectory(dir=Path(ptx).parent) as kept:
        done = subprocess.run([*command, "--keep", "--keep-dir", kept], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
        if done.returncode == 0:
            shutil.copy(max(Path(kept).glob("*.ptx"), key=architecture), ptx)
    Path(log).write_text(done.stdout, encoding="utf-8")
    for line in done.stdout.splitlines():
        if not TOLD.search(line):
            print(line)
    sys.exit(done.returncode)


main(*sys.argv[1:])
