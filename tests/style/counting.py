#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/count_tests.py counts tests that ran and passed, and nothing else: counting.py COUNT_TESTS."""
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from tap import case, main  # pylint: disable=wrong-import-position

GOOD = "TAP version 13\n1..3\n# Criterion\nok - a::b  (0.01s)\nok - a::c  (0.00s)\n" \
       "ok - a::d  # SKIP no such CPU\n"


def count(directory, tests, broken="", expected=None):
    """tests: name -> (protocol, result, exit code, stdout). Returns exit code and lines."""
    (directory / "meson-logs").mkdir()
    (directory / "meson-info").mkdir()
    names = list(tests) if expected is None else expected
    (directory / "tests-expected").write_text("".join(f"weft:unit / {name}\n" for name in names))
    (directory / "meson-info/intro-tests.json").write_text(json.dumps(
        [{"name": name, "protocol": test[0]} for name, test in tests.items()]
        + [{"name": name, "protocol": "tap"} for name in names if name not in tests]))
    (directory / "meson-logs/testlog.json").write_text("".join(json.dumps(
        {"name": f"weft:unit / {name}", "result": result, "returncode": code, "stdout": stdout, **more})
        + "\n" for name, (_, result, code, stdout, *rest) in tests.items() for more in rest or [{}]))
    done = subprocess.run([sys.executable, COUNT_TESTS, broken, f"plain={directory}"], check=False,
                          capture_output=True, text=True)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout.splitlines()


def one(weft, *test):
    return count(weft.directory, {"base": test})


@case
def cases_are_counted_and_skips_say_why(weft):
    code, lines = count(weft.directory, {"base": ("tap", "OK", 0, GOOD),
                                         "race": ("exitcode", "OK", 0, "")})
    assert code == 0, lines
    assert lines == ["skipped plain: base: a::d: no such CPU", "3 passed, 0 failed, 1 skipped"], lines


@case
def a_case_that_fails_is_named(weft):
    code, lines = one(weft, "tap", "FAIL", 1, GOOD.replace("ok - a::c  (0.00s)",
                                                          "not ok - a::c unexpected signal after x.c:6"))
    assert code == 1 and lines[-3] == "failed plain: base: a::c unexpected signal after x.c:6", lines
    assert lines[-1] == "1 passed, 1 failed, 1 skipped", lines


@case
def a_failed_case_has_its_last_line(weft):
    code, lines = one(weft, "tap", "FAIL", 1, GOOD.replace("ok - a::c  (0.00s)", "# AssertionError: 3 is not 4\nnot ok - a::c"))
    assert code == 1 and lines[-3] == "failed plain: base: a::c: AssertionError: 3 is not 4", lines


@case
def a_message_of_several_lines_has_its_first_and_last(weft):
    said = "# Traceback:\n#   x.py\n# AssertionError: exit 70, not 0: train\n# a step\n# weft: train: no memory\nnot ok - a::c"
    _, lines = one(weft, "tap", "FAIL", 1, GOOD.replace("ok - a::c  (0.00s)", said))
    assert lines[-3] == "failed plain: base: a::c: AssertionError: exit 70, not 0: train ... weft: train: no memory", lines


@case
def a_failed_check_of_criterion_has_its_place_and_message(weft):
    failed = "#\n# Running 5 tests from a\nnot ok - a::c  (0.00s)\n  ---\n  assertions: 1\n  failures:\n  - x.c:6: |+\n      Assertion failed: 3 are drawn\n  ..."
    code, lines = one(weft, "tap", "FAIL", 1, GOOD.replace("ok - a::c  (0.00s)", failed))
    assert code == 1 and lines[-3] == "failed plain: base: a::c: x.c:6: Assertion failed: 3 are drawn", lines
    assert lines[-1] == "1 passed, 1 failed, 1 skipped", lines


@case
def a_failed_program_has_the_line_of_its_first_check(weft):
    said = "a warning\nx.c:6: n > 0: 0 are drawn\ny.c:7: ok: a rank failed\n"
    code, lines = one(weft, "exitcode", "FAIL", 1, "runs\n", {"stderr": said})
    assert code == 1 and lines[-3] == "failed plain: base: FAIL, exit 1: x.c:6: n > 0: 0 are drawn", lines


@case
def a_program_without_a_known_line_has_its_last_one(weft):
    code, lines = one(weft, "exitcode", "TIMEOUT", -15, "seed 1\nseed 4\n", {"stderr": " \n"})
    assert code == 1 and lines[-3] == "failed plain: base: TIMEOUT, exit -15: seed 4", lines


@case
def a_case_that_a_sanitizer_ends_has_its_line(weft):
    code, lines = one(weft, "tap", "FAIL", 1, GOOD.replace("ok - a::c  (0.00s)", "not ok - a::c unexpected signal after x.c:6"),
                      {"stderr": "==1==ERROR: AddressSanitizer: stack-overflow\n  #0 in f x.c:7\n"})
    assert code == 1 and lines[-3] == "failed plain: base: a::c unexpected signal after x.c:6: " \
        "==1==ERROR: AddressSanitizer: stack-overflow", lines


@case
def a_failed_test_says_how_to_repeat_its_drawn_cases(weft):
    env = {"HOME": "/", "WEFT_TEST_SEED": "96", "ASAN_OPTIONS": "detect_leaks=1"}
    code, lines = count(weft.directory, {"base": ("exitcode", "FAIL", 1, "", {"env": env}),
                                         "race": ("exitcode", "OK", 0, "", {"env": env})}, expected=["base", "race"])
    assert code == 1 and lines[-3:] == [
        "failed plain: base: FAIL, exit 1",
        f"repeat: WEFT_TEST_SEED=96 ASAN_OPTIONS=detect_leaks=1 meson test -C {weft.directory} base",
        "1 passed, 1 failed, 0 skipped"], lines


@case
def a_program_that_dies_half_way_has_failed(weft):
    code, lines = one(weft, "tap", "ERROR", 137, "\n".join(GOOD.splitlines()[:4]))
    assert code == 1 and "1 of 3 cases reported; ERROR, exit 137" in lines[-3], lines
    assert lines[-1] == "1 passed, 1 failed, 0 skipped", lines


@case
def a_program_that_says_nothing_has_failed(weft):
    code, lines = one(weft, "tap", "SKIP", 0, "")
    assert code == 1 and lines[-1] == "0 passed, 1 failed, 0 skipped", lines


@case
def a_good_report_does_not_hide_a_bad_end(weft):
    code, lines = one(weft, "tap", "ERROR", -6, GOOD)
    assert code == 1 and "after a good report" in lines[-3], lines
    assert lines[-1] == "2 passed, 1 failed, 1 skipped", lines


@case
def a_sanitizer_that_ends_a_program_is_named(weft):
    """A leak is found after the last case, and other errors may end a program in between."""
    said = "==1==ERROR: LeakSanitizer: detected memory leaks"
    for output in (GOOD, "\n".join(GOOD.splitlines()[:4])):
        folder = weft.directory / str(len(output))
        folder.mkdir()
        code, lines = count(folder, {"base": ("tap", "ERROR", 23, output, {"stderr": f"\n{said}\n"})})
        assert code == 1 and lines[-3].endswith(": " + said), lines


@case
def a_test_that_did_not_run_has_failed(weft):
    code, lines = count(weft.directory, {"base": ("tap", "OK", 0, GOOD)}, expected=["base", "plan"])
    assert code == 1 and lines[-2] == "failed plain: plan: did not run", lines


@case
def a_skip_without_a_reason_has_failed(weft):
    code, lines = count(weft.directory, {"base": ("exitcode", "SKIP", 77, ""),
                                         "race": ("exitcode", "OK", 0, "")})
    assert code == 1 and lines[-3] == "failed plain: base: skipped without a reason", lines


@case
def a_stage_that_could_not_run_has_failed(weft):
    code, lines = count(weft.directory, {"base": ("tap", "OK", 0, GOOD)}, broken="tsan(build)")
    assert code == 1 and lines[-2] == "failed tsan(build) did not run", lines


@case
def the_ten_slowest_are_listed_first(weft):
    code, lines = count(weft.directory, {f"t{i}": ("exitcode", "OK", 0, "", {"duration": i + 0.4})
                                         for i in range(12)})
    assert code == 0 and lines[:11] == [*(f"slow {i} s plain: t{i}" for i in range(11, 1, -1)),
                                        "12 passed, 0 failed, 0 skipped"], lines


@case
def nothing_run_is_no_success(weft):
    code, lines = count(weft.directory, {}, expected=[])
    assert code == 1 and lines[-1].startswith("0 passed, 1 failed"), lines


COUNT_TESTS = sys.argv[1]
main(sys.executable)
