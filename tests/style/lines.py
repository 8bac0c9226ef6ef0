#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ratchet of lines of code by folder: lines.py check|show ROOT, lines.py write ROOT [CAPABILITY].

lines.txt has a row for each folder: its lines, and the capability for which they rose last. `check` fails if a
folder has more lines than its row, an allowance of 1 % (at least 40 lines) included, if a row is over 5 % too high, and
if a figure rose in a commit that names no new capability. `write` lowers the figures to the tree's. With CAPABILITY,
a few words such as "average over nodes", it also raises them, and the raised rows name it.
"""
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tree import list_files

STORED = Path(__file__).with_name("lines.txt")
CODE = (".c", ".h", ".cu", ".cc", ".py", ".sh")
LEAST_ALLOWED, LEAST_SLACK = 40, 200
HEAD = """# Lines of code by folder, and the capability for which they rose last. tests/style/lines.py write . lowers them;
# tests/style/lines.py write . "CAPABILITY" raises them too, in the commit of that capability.
"""


def run_git(root, *words):
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)


def folder_of(relative):
    parts = relative.parts
    if len(parts) == 1:
        return "."
    return "/".join(parts[:2]) if parts[0] == "runtime" and len(parts) > 2 else parts[0]


def count_lines(root):
    """{folder: lines} of the tree."""
    lines = Counter()
    for path in list_files(root):
        if path.suffix in CODE:
            lines[folder_of(path.relative_to(root))] += path.read_bytes().count(b"\n")
    return dict(sorted(lines.items()))


def parse_rows(text):
    """{folder: (lines, capability)}"""
    rows = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            folder, lines, *capability = line.split(None, 2)
            rows[folder] = (int(lines), capability[0] if capability else "-")
    return rows


def unnamed_rises(before, after, where):
    """Rows that rose without a new capability. A new folder is a capability."""
    return [f"{where}: {folder} rose from {before[folder][0]} to {lines} lines and names no capability"
            for folder, (lines, capability) in after.items()
            if folder in before and lines > before[folder][0] and capability in ("-", before[folder][1])]


def check_history(root):
    """The latest change of the file, committed or not."""
    name = STORED.relative_to(root).as_posix()
    now = parse_rows(STORED.read_text(encoding="utf-8"))
    bad, versions = [], []
    for commit in run_git(root, "log", "-2", "--format=%h", "--", name).stdout.split():
        shown = run_git(root, "show", f"{commit}:{name}")
        versions += [(commit, parse_rows(shown.stdout))] if shown.returncode == 0 else []
    if versions:
        bad += unnamed_rises(versions[0][1], now, name)
    if len(versions) > 1:
        bad += unnamed_rises(versions[1][1], versions[0][1], f"commit {versions[0][0]}")
    return bad


def check_figures(now, rows):
    bad = []
    for folder in sorted(now.keys() | rows.keys()):
        lines, stored = now.get(folder, 0), rows.get(folder, (0, "-"))[0]
        if lines > stored + max(LEAST_ALLOWED, stored // 100):
            bad.append(f"{folder}: {lines} lines, and {stored} are stored: make it smaller, or name the capability: "
                       'tests/style/lines.py write . "CAPABILITY"')
        if lines < stored - max(LEAST_SLACK, stored // 20):
            bad.append(f"{folder}: {lines} lines, and {stored} are stored: tests/style/lines.py write . lowers them")
    return bad


def write_rows(now, rows, capability):
    text = HEAD
    for folder, lines in now.items():
        stored, named = rows.get(folder, (0 if rows else lines, "-"))
        if lines > stored and capability:
            stored, named = lines, capability
        text += f"{folder:20} {min(lines, stored):7} {named}\n"
    STORED.write_text(text, encoding="utf-8")


def main():
    what, root = sys.argv[1], Path(sys.argv[2]).resolve()
    now = count_lines(root)
    rows = parse_rows(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    if what == "write":
        write_rows(now, rows, " ".join(" ".join(sys.argv[3:]).split()))
    elif what == "show":
        print("\n".join(f"{folder:20} {lines:7} {lines - rows.get(folder, (0, ''))[0]:+7}" for folder, lines in now.items()))
    else:
        bad = check_figures(now, rows) + check_history(root)
        print("\n".join(bad))
        sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
