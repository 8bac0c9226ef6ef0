#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints what tests need of a build, as ninja's targets: test_programs.py BUILD < NAMES.

NAMES is the output of `meson test --list`. A test needs its program, the outputs among its arguments, and its
dependencies. A build with a sanitizer makes these alone.
"""
import json
import os
import sys
from pathlib import Path


def main():
    build = os.path.abspath(sys.argv[1])
    told = [json.loads((Path(build) / f"meson-info/intro-{what}.json").read_text(encoding="utf-8"))
            for what in ("tests", "targets")]
    tests = {test["name"]: test for test in told[0]}
    outputs = {target["id"]: target["filename"] for target in told[1]}
    known = {name for names in outputs.values() for name in names}
    needed = set()
    for line in sys.stdin.read().splitlines():
        if " / " not in line:
            continue
        test = tests[line.split(" / ", 1)[1]]
        needed |= {name for name in test["cmd"] if name in known}
        needed |= {name for target in test["depends"] for name in outputs.get(target, [])}
    if not needed:
        sys.exit(f"{build}: no test has a program")
    print(*sorted(os.path.relpath(name, build) for name in needed))


main()
