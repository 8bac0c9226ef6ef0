#!/usr/bin/env python3
"""Prints the programs of one suite's tests, as ninja's targets: test_programs.py BUILD SUITE."""
import json
import os
import subprocess
import sys

build, suite = sys.argv[1:]
tests = json.loads(subprocess.run(["meson", "introspect", "--tests", build], check=True,
                                  capture_output=True, text=True).stdout)
programs = {os.path.relpath(test["cmd"][0], os.path.abspath(build)) for test in tests
            if f"weft:{suite}" in test["suite"]}
if not programs:
    sys.exit(f"{build}: no test in a suite {suite}")
print(*sorted(programs))
