#!/usr/bin/env python3
"""Compiles one .cu file: compile.py LOG nvcc arguments... Writes all output, with ptxas's report of registers, to LOG.
Prints the remaining lines. Returns nvcc's exit code."""
import re
import subprocess
import sys

TOLD = re.compile(r"ptxas info|^\s+\d+ bytes stack frame|^\s*$|^\w+\.cu$")

done = subprocess.run(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
with open(sys.argv[1], "w", encoding="utf-8") as log:
    log.write(done.stdout)
for line in done.stdout.splitlines():
    if not TOLD.search(line):
        print(line)
sys.exit(done.returncode)
