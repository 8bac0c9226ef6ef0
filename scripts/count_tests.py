#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the tests of stages: count_tests.py BROKEN NAME=BUILD... [skipped=NAME:REASON]...

Prints the ten slowest tests, the skipped ones with the reason, the failed ones with the line of the failed check and a
command that repeats them, and last 'N passed, N failed, N skipped'. The failures come late because a CI system may show
only the end of a log. A test is a case. In a TAP report (Criterion's programs and the Python ones) each line is a case;
a plain program is one case.

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
PLACE = re.compile(r" +- (\S+:\d+): \|")  # Criterion writes it after the failed case, with the message in the next line
# Lines that say why a program failed: a check in C, a sanitizer, an exception of Python.
REASON = re.compile(r"\.[ch]:\d+:|Sanitizer: |^[\w.]*(Error|Exception|Expired)\b")
RAISED = re.compile(r"[\w.]*(Error|Exception|Expired)\b")
HEAD = re.compile(r"#$|# (Criterion|Running \d+ tests)\b")
DRAWS = ("WEFT_TEST_SEED", "WEFT_TEST_ALL", "ASAN_OPTIONS")  # they choose the cases of a test
SAID = 300  # characters of a failed case's line
GOOD = ("OK", "EXPECTEDFAIL")


def lines_of(text):
    return [line.rstrip() for line in (text or "").splitlines() if line.strip()]


def reason_in(lines):
    """Returns the first line that says why. Later ones often follow from it, such as 'a rank failed'."""
    return next((line.strip()[:SAID] for line in lines if REASON.search(line)), "")


def end_of(comments):
    """Returns the last exception of a TAP report's comments and, of a message with several lines, the last one."""
    raised = next((line for line in reversed(comments) if RAISED.match(line)), "")
    last = comments[-1] if comments else ""
    return " ... ".join(line[:SAID] for line in dict.fromkeys((raised, last)) if line)


def repeat_of(build, short, test):
    env = test.get("env") or {}
    return " ".join([*(f"{key}={env[key]}" for key in DRAWS if key in env), f"meson test -C {build} {short}"])


class Count:
    def __init__(self):
        self.passed, self.failed, self.skipped, self.took = 0, [], [], []
        self.repeats = {}  # command by the index of a test's last failure

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
            errors = lines_of(test.get("stderr"))
            why = reason_in(errors + output) or (errors or output or [""])[-1].strip()[:SAID]
            self.failed.append(f"{name}: {test['result']}, exit {test['returncode']}" + (f": {why}" if why else ""))

    def report(self, name, test, output):
        """Counts the cases of a TAP report, and fails a report with fewer or more cases than announced."""
        announced, points, bad, said, place = None, 0, 0, [], None
        sanitizer = next((line for line in lines_of(test.get("stderr")) if "Sanitizer: " in line), "")[:SAID]
        for line in output:
            plan, point = PLAN.match(line), POINT.match(line)
            if place and bad:
                self.failed[-1] += f": {place}: {line.strip()[:SAID]}"
            place = PLACE.match(line)
            place = place.group(1) if place else None
            if plan:
                announced = int(plan.group(1))
            elif point:
                points += 1
                what = f"{name}: {TIMES.sub('', point.group(2))}"
                if point.group(3):
                    self.skip(what, point.group(4))
                elif point.group(1):
                    bad += 1
                    self.failed.append(": ".join(filter(None, (what, end_of(said) or sanitizer))))
                else:
                    self.passed += 1
            said = [*said, line.lstrip("# ").rstrip()] if line.startswith("#") and not HEAD.match(line) else []
        if points == 0 or points != announced:
            self.failed.append(": ".join(filter(None, (
                f"{name}: {points} of {announced or 'an unknown number of'} cases reported; "
                f"{test['result']}, exit {test['returncode']}", sanitizer))))
        elif test["result"] not in (*GOOD, "SKIP") and bad == 0:
            self.failed.append(": ".join(filter(None, (
                f"{name}: {test['result']}, exit {test['returncode']}, after a good report", sanitizer))))

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
            output, before = (test.get("stdout") or "").strip().splitlines(), len(self.failed)
            if protocols[short] == "tap":
                self.report(name, test, output)
            else:
                self.plain(name, test, output)
            if len(self.failed) > before:
                self.repeats[len(self.failed) - 1] = repeat_of(build, short, test)
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
    for index, line in enumerate(count.failed):
        print("failed", line)
        if index in count.repeats:
            print("repeat:", count.repeats[index])
    print(f"{count.passed} passed, {len(count.failed)} failed, {len(count.skipped)} skipped")
    sys.exit(1 if count.failed or count.passed == 0 else 0)


main()
