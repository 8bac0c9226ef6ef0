#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutants.py judges mutants in the build of a tree and restores its files: tool.py MUTANTS_PY. TAP."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from tap import Skip, case, main  # pylint: disable=wrong-import-position

TOOL = Path(sys.argv[1]).resolve()
MESON = """project('toy', 'c', default_options: ['werror=true', 'warning_level=3'])
lib = static_library('sum', 'sum.c')
test('sum', executable('test-sum', 'test.c', link_with: lib))
test('slow', find_program('slow.sh'))
"""
SUM = "int sum(int a, int b)\n{\n    int unused = 1;\n    (void)unused;\n    return a + b;\n}\n"
TEST = "int sum(int a, int b);\nint main(void)\n{\n    return sum(2, 3) == 5 ? 0 : 1;\n}\n"
LIST = """file sum.c

minus: sum
- return a + b;
+ return a - b;

"""
ALIVE = """two_is_unused: sum
- int unused = 1;
+ int unused = 2;

"""
WARNED = """warned: sum
- (void)unused;
+ int other;

"""
SLOW = """never_run: slow
- (void)unused;
+ ;
"""


def toy(weft, mutants):
    """Makes a tree with a build and the log of its tests. Returns the folder and its tool."""
    for tool in ("meson", "ninja", "cc"):
        if not shutil.which(tool):
            raise Skip(f"{tool} is not installed")
    tree = weft.directory
    (tree / "tests/mutants").mkdir(parents=True)
    tool = shutil.copy(TOOL, tree / "tests/mutants")
    names = [line.split(":")[0] for line in mutants.splitlines() if re.match(r"\w+: ", line)]
    (tree / "tests/mutants/judged.txt").write_text("\n".join(["# Killed once.", *names]) + "\n")
    for name, text in (("meson.build", MESON), ("sum.c", SUM), ("test.c", TEST), ("slow.sh", "#!/bin/sh\nsleep 5.1\n"),
                       ("tests/mutants/mutants.txt", mutants)):
        (tree / name).write_text(text)
    (tree / "slow.sh").chmod(0o755)
    for command in (["meson", "setup", "build"], ["ninja", "-C", "build"], ["meson", "test", "-C", "build"]):
        subprocess.run(command, cwd=tree, check=True, capture_output=True)
    return tree, [sys.executable, tool]


def judge(tree, tool, *arguments):
    done = subprocess.run([*tool, "--build", tree / "build", *arguments], capture_output=True, text=True, check=False)
    assert (tree / "sum.c").read_text() == SUM and not (tree / "build/mutant-changed").exists()
    return done.returncode, done.stdout.splitlines()


@case
def quick_mutants_of_a_build_are_judged(weft):
    tree, tool = toy(weft, LIST + ALIVE + SLOW)
    code, said = judge(tree, tool, "--seconds", "60", "--seed", "3")
    assert code == 1 and said[-1] == "2 mutants of 2 judged quick and 3 in all, 1 killed, 1 alive", said
    assert {line.split(":")[0].split()[1]: line.split()[0] for line in said[:-1]} == {
        "minus": "killed", "two_is_unused": "alive"}, said
    assert judge(tree, tool, "minus")[0] == 0
    # The time is over at once: a run without a killed mutant proves nothing.
    code, said = judge(tree, tool, "--seconds", "0")
    assert code == 2 and said[-1].startswith("0 mutants of 2 judged quick"), said


@case
def only_judged_mutants_are_drawn(weft):
    tree, tool = toy(weft, LIST + ALIVE + WARNED)
    judged = tree / "tests/mutants/judged.txt"
    judged.write_text("# Killed once.\ntwo_is_unused\n")
    # Verdicts replace what was recorded.
    code, said = judge(tree, tool, "--record")
    assert code == 2 and said[-1] == "3 mutants, 1 killed, 1 alive, 1 wrong", said
    assert judged.read_text() == "# Killed once.\nminus\n"
    code, said = judge(tree, tool, "--seconds", "60")
    assert code == 0 and said[-1] == "1 mutants of 1 judged quick and 3 in all, 1 killed, 0 alive", said
    # Another compiler judged it, and this one refuses its warning.
    judged.write_text("minus\nwarned\n")
    code, said = judge(tree, tool, "--seconds", "60")
    assert code == 0 and said[-1].endswith("1 killed, 0 alive, 1 not applicable"), said
    judged.write_text("minus\ngone\n")
    done = subprocess.run([*tool, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "judged.txt: mutants.txt has no mutant gone" in done.stdout, done.stdout


@case
def a_killed_run_leaves_what_restores_the_file(weft):
    tree, tool = toy(weft, LIST)
    (tree / "test.c").write_text(TEST.replace("return sum(2, 3) == 5 ? 0 : 1;",
                                              "if (sum(2, 3) == 5) return 0;\n    for (;;) ;"))
    process = subprocess.Popen([*tool, "--build", tree / "build"], start_new_session=True, stdout=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while (tree / "sum.c").read_text() == SUM:
        assert time.monotonic() < deadline and process.poll() is None, "nothing was changed"
        time.sleep(0.01)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    children = subprocess.run(["pgrep", "-f", str(tree / "build/test-sum")], capture_output=True, text=True, check=False)
    for child in children.stdout.split():  # the test has a session of its own
        os.kill(int(child), signal.SIGKILL)
    kept = json.loads((tree / "build/mutant-changed").read_text())
    assert kept["file"] == "sum.c" and (tree / "sum.c").read_text() == kept["changed"] != SUM
    said = subprocess.run([*tool, "--restore", tree / "build"], check=True, capture_output=True, text=True).stdout
    assert said == "restored sum.c from minus\n" and (tree / "sum.c").read_text() == SUM, said
    # A file that somebody has changed since is left alone.
    (tree / "build/mutant-changed").write_text(json.dumps({**kept, "changed": "other"}))
    subprocess.run([*tool, "--restore", tree / "build"], check=True)
    assert (tree / "sum.c").read_text() == SUM and not (tree / "build/mutant-changed").exists()


main(sys.executable)
