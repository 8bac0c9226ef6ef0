#!/usr/bin/env python3
"""Adds up meson test logs: count_tests.py BROKEN NAME=testlog.json... [skipped=what:why]...

Prints what failed, what was skipped with its reason, and 'N passed, N failed, N skipped', where a
test is one meson test (a Criterion program counts once). BROKEN names stages that could not even run;
each counts as a failure. Exit 1 when anything failed or nothing ran.
"""
import json
import sys


def main():
    broken = sys.argv[1].split()
    passed, failed, skipped = 0, [f"{name} did not run" for name in broken], []
    for argument in sys.argv[2:]:
        stage, path = argument.split("=", 1)
        if stage == "skipped":
            skipped.append(path.replace(":", ": ").replace("-", " "))
            continue
        with open(path, encoding="utf-8") as log:
            for line in log:
                test = json.loads(line)
                name = f"{stage}: {test['name']}"
                if test["result"] in ("OK", "EXPECTEDFAIL"):
                    passed += 1
                elif test["result"] == "SKIP":
                    output = (test.get("stdout") or "").strip().splitlines()
                    skipped.append(f"{name}: {output[-1] if output else 'no reason given'}")
                else:
                    failed.append(f"{name}: {test['result']}")
    for line in failed:
        print("failed", line)
    for line in skipped:
        print("skipped", line)
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    sys.exit(1 if failed or passed == 0 else 0)


main()
