#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the tests of stages: count_tests.py BROKEN NAME=BUILD... [skipped=NAME:REASON]...

Prints the ten slowest tests, the skipped ones with the reason, the failed ones with the last line before them, and last
'N passed, N failed, N skipped'. The failures come late because a CI system may show only the end of a log. A test is a
case. In a TAP report (Criterion's programs and the Python ones) each line is a case; a plain program is one case.

Each of these is one failure: a program without a report, with fewer cases than announced, or with a bad exit code
after a good report; a test that BUILD/tests-expected (`meson test --list`) names and meson's log lacks; a skip
without a reason; a stage that could not run, named in BROKEN. Exits with 1 if anything failed or nothing passed.
"""
import json
import re
import sys
from pathlib import Path

POINT = re.compile(r"(not )?ok\b(?: \d+)?(?: -)? *(.*?)(?: *# *(SKIP)\b *(.*))?$", re.I)
PLAN = re.compile(r"1\.\.(\d+)")
TIMES = re.compile(r" +\(\d+\.\d+s\)$")
SAID = 300  # characters of a failed case's last line
GOOD = ("OK", "EXPECTEDFAIL")


class Count:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.took = 0, [], [], []

    def skip(self, name, reason):
        if reason:
            self.skipped.append(f"{name}: {reason}")
        else:
            self.failed.append(f"{name}: skipped without a reason")

    def plain(self, name, test, output):
        if test["result"] in GOOD:
            self.passed += 1
        elif test["result"] == "SKIP":
            self.skip(name, output[-1] if output else "")
        else:
            self.failed.append(f"{name}: {test['result']}, exit {test['returncode']}")

    def report(self, name, test, output):
        """Counts the cases of a TAP report, and fails a report with fewer or more cases than announced."""
        announced, points, bad, said = None, 0, 0, ""
        for line in output:
            plan, point = PLAN.match(line), POINT.match(line)
            if plan:
                announced = int(plan.group(1))
            elif point:
                points += 1
                what = f"{name}: {TIMES.sub('', point.group(2))}"
                if point.group(3):
                    self.skip(what, point.group(4))
                elif point.group(1):
                    bad += 1
                    self.failed.append(f"{what}: {said}" if said else what)
                else:
                    self.passed += 1
            said = line.lstrip("# ")[:SAID] if line.startswith("#") else ""
        if points == 0 or points != announced:
            self.failed.append(f"{name}: {points} of {announced or 'an unknown number of'} cases "
                               f"reported; {test['result']}, exit {test['returncode']}")
        elif test["result"] not in (*GOOD, "SKIP") and bad == 0:
            self.failed.append(f"{name}: {test['result']}, exit {test['returncode']}, "
                               "after a good report")

    def stage(self, stage, build, protocols):
        expected = (build / "tests-expected").read_text(encoding="utf-8").splitlines()
        expected = [name for name in expected if " / " in name]
        log = (build / "meson-logs/testlog.json").read_text(encoding="utf-8")
        ran = {test["name"]: test for test in map(json.loads, log.splitlines())}
        for full in expected:
            short = full.split(" / ", 1)[1]
            test, name = ran.get(full), f"{stage}: {short}"
            if test is None:
                self.failed.append(f"{name}: did not run")
                continue
            if "duration" in test:
                self.took.append((test["duration"], name))
            output = (test.get("stdout") or "").strip().splitlines()
            if protocols[short] == "tap":
                self.report(name, test, output)
            else:
                self.plain(name, test, output)
        if not expected:
            self.failed.append(f"{stage}: there are no tests")


def protocols_of(build):
    """Returns {test: protocol}, from the file that `meson introspect --tests` reads."""
    told = json.loads((build / "meson-info/intro-tests.json").read_text(encoding="utf-8"))
    return {test["name"]: test["protocol"] for test in told}


def main():
    count = Count()
    count.failed += [f"{name} did not run" for name in sys.argv[1].split()]
    for argument in sys.argv[2:]:
        stage, value = argument.split("=", 1)
        if stage == "skipped":
            what, why = value.split(":", 1)
            count.skip(what, why.replace("-", " "))
        else:
            count.stage(stage, Path(value), protocols_of(Path(value)))
    for seconds, name in sorted(count.took, reverse=True)[:10]:
        print(f"slow {seconds:.0f} s {name}")
    for line in count.skipped:
        print("skipped", line)
    for line in count.failed:
        print("failed", line)
    print(f"{count.passed} passed, {len(count.failed)} failed, {len(count.skipped)} skipped")
    sys.exit(1 if count.failed or count.passed == 0 else 0)


main()
