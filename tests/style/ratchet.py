#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ratchet of lines (lines.py) on a tree of its own: ratchet.py."""
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from tap import case, main  # pylint: disable=wrong-import-position


def run_git(root, *words):
    subprocess.run(["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=e@e.org", *words], check=True,
                   capture_output=True)


def run_tool(root, *words):
    done = subprocess.run([sys.executable, root / "tests/style/lines.py", *words], check=False, capture_output=True,
                          text=True)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def make_tree(root, lines=1000):
    """A committed tree with one folder and its figure."""
    (root / "tests/style").mkdir(parents=True)
    for name in ("lines.py", "tree.py"):
        shutil.copy(HERE / name, root / "tests/style")
    put_lines(root, lines)
    run_git(root, "init", "-q")
    run_tool(root, "write", str(root))
    commit(root)
    return root


def put_lines(root, lines):
    (root / "base").mkdir(exist_ok=True)
    (root / "base" / "a.c").write_text("int a;\n" * lines, encoding="utf-8")


def commit(root):
    run_git(root, "add", "-A")
    run_git(root, "commit", "-qm", "tree: change")


def fails_with(root, word):
    code, told = run_tool(root, "check", str(root))
    assert code == 1 and word in told, (code, told)


def holds(root):
    code, told = run_tool(root, "check", str(root))
    assert code == 0, told


@case
def a_folder_may_grow_by_its_allowance_alone(weft):
    root = make_tree(weft.directory)
    put_lines(root, 1040)
    holds(root)
    put_lines(root, 1041)
    fails_with(root, "base: 1041 lines, and 1000 are stored")


@case
def figures_only_fall_without_a_capability(weft):
    root = make_tree(weft.directory)
    put_lines(root, 1100)
    run_tool(root, "write", str(root))
    fails_with(root, "base: 1100 lines")
    put_lines(root, 700)
    fails_with(root, "lowers them")
    run_tool(root, "write", str(root))
    holds(root)
    put_lines(root, 741)
    fails_with(root, "base: 741 lines, and 700 are stored")


@case
def a_capability_raises_its_folders(weft):
    root = make_tree(weft.directory)
    put_lines(root, 1100)
    run_tool(root, "write", str(root), "a new thing")
    holds(root)
    assert "1100 a new thing" in (root / "tests/style/lines.txt").read_text(encoding="utf-8")
    commit(root)
    holds(root)


@case
def a_figure_that_was_raised_by_hand_is_found(weft):
    root = make_tree(weft.directory)
    file = root / "tests/style/lines.txt"
    file.write_text(file.read_text(encoding="utf-8").replace("1000", "1100"), encoding="utf-8")
    put_lines(root, 1100)
    fails_with(root, "names no capability")
    commit(root)
    fails_with(root, "commit ")


@case
def a_new_folder_needs_a_capability(weft):
    root = make_tree(weft.directory)
    (root / "extra").mkdir()
    (root / "extra/b.py").write_text("b = 1\n" * 50, encoding="utf-8")
    run_tool(root, "write", str(root))
    fails_with(root, "extra: 50 lines, and 0 are stored")
    run_tool(root, "write", str(root), "an extra folder")
    holds(root)


@case
def an_unpacked_archive_counts_no_build_folder(weft):
    """Without git, under any name of the folder. With git .gitignore names it."""
    root = make_tree(weft.directory)
    (root / ".gitignore").write_text("/build*\n__pycache__/\n", encoding="utf-8")
    for folder in ("build-check", "base/__pycache__", "made", ".cache"):
        (root / folder).mkdir()
        (root / folder / "made.c").write_text("int a;\n" * 5000, encoding="utf-8")
    (root / "made/build.ninja").write_text("", encoding="utf-8")
    shutil.rmtree(root / ".git")
    holds(root)
    assert "made" not in run_tool(root, "show", str(root))[1]
    (root / "made/build.ninja").unlink()
    fails_with(root, "made: 5000 lines")


main(sys.executable)
