#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The price of an addition in existing files, by git: additions.py check|write [SOURCE_ROOT]. Counts the product sources
that the commits of each addition below modified. `write` sets the table of docs/extending.md; `check` compares."""
import re
import subprocess
import sys
from pathlib import Path

PRODUCT = re.compile(r"(base|cli|include|layers|library|memory_model|offload|plan|problem|program|proof|report|runtime|"
                     r"scheduler|shard|spec|text)/.*\.(c|h|cu)$")
PAGE = "docs/extending.md"
BEGIN, END = "| addition | files |\n| --- | --- |\n", "\n\n"

# Additions in order of time, each with the commits that brought its capability.
ADDITIONS = (
    ("updates on the host", "9ff0b62e"),
    ("parameters on the host", "e2b742b7"),
    ("delayed reductions", "adfa338f"),
    ("policy `hsdp`", "c112662f"),
    ("averages across nodes", "01d232a6 292299a6 637fe156"),
    ("policy `central`", "87e095ca"),
    ("staging of communicators, a common row of memory", "551aa14b"),
    ("policy `nodes`", "61a9f011 7472e783"),
    ("offloaded inputs of layers", "a829e39a"),
    ("order of micro-steps", "eba0dd4b"),
    ("parameters of a node, cached on the host", "0a8a73a5"),
    ("planner `fcdp`", "16f293f8"),
    ("Adam-mini, state that is not of a parameter's shape", "24e4029c"),
    ("averages as moves of a period", "af8e5f97 9147ffe4"),
    ("averages of a part of the model at a time", "bbcf6e74"),
    ("averages with one neighbour at a time (gossip)", "77809d8e"),
    ("updates on the host under policy `nodes`", "c8f02f04"),
    ("policies `hsdp` and `nodes` on GPUs", "4c78a605"),
    ("averages across nodes on GPUs", "72b9b0d6 0d7590f2"),
    ("planners `breadth-first` and `greedysnake`", "cc3f2a62 58db991b"),
    ("times of a layer's passes in a profile", "627401c5"),
    ("updates in backward", "0f478e25"),
    ("files of ViT", "a779baa7"),
    ("data of samples with labels", "1335de97"),
)


def git(root, *arguments):
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)


def changed_files(root, commits):
    """Returns the existing product sources that the commits modified; None without one of the commits."""
    changed = set()
    for commit in commits.split():
        listed = git(root, "diff-tree", "--no-commit-id", "-r", "--name-only", "--diff-filter=M", commit)
        if listed.returncode != 0:
            return None
        changed.update(name for name in listed.stdout.splitlines() if PRODUCT.match(name))
    return changed


def table(root):
    rows = []
    for name, commits in ADDITIONS:
        changed = changed_files(root, commits)
        if changed is None:
            print(f"not a checkout with the commits of {name}: its files are not counted")
            sys.exit(77)
        rows.append(f"| {name} | {len(changed)} |")
    return "\n".join(rows)


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in ("check", "write"):
        sys.exit(__doc__)
    root = Path(sys.argv[2] if len(sys.argv) == 3 else ".")
    page = root / PAGE
    text = page.read_text(encoding="utf-8")
    begin = text.index(BEGIN) + len(BEGIN)
    counted = text[:begin] + table(root) + text[text.index(END, begin):]
    if sys.argv[1] == "write":
        page.write_text(counted, encoding="utf-8")
    elif counted != text:
        sys.exit(f"{PAGE}: its table of additions is not of git: run python3 scripts/additions.py write")


if __name__ == "__main__":
    main()
