#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Licences of files, by SPDX: spdx.py check|write SOURCE_ROOT. `write` adds the line that a file lacks, and `check` names
each file without it. The line is the first one, or the second after #!."""
import subprocess
import sys
from pathlib import Path

SLASHES = {".c", ".h", ".cu", ".cc", ".cuh"}
HASHES = {".py", ".sh"}
GPL = {"scheduler/solver/weft_solve.c"}


def files(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        print("not a git checkout: the licences of its files are not checked")
        sys.exit(77)
    for name in listed.stdout.splitlines():
        path = root / name
        if path.suffix in SLASHES | HASHES or path.name in ("meson.build", "meson_options.txt", ".ci/run"):
            yield name, path


def line_of(name, path):
    text = f"SPDX-License-Identifier: {'GPL-3.0-or-later' if name in GPL else 'Apache-2.0'}"
    return f"/* {text} */" if path.suffix in SLASHES else f"# {text}"


def has_line(name, path):
    head = path.read_text(encoding="utf-8").split("\n", 4)[:4]
    return any(line_of(name, path).strip("/*# ") in line for line in head)


def main(action, root):
    lacking = [(name, path) for name, path in files(Path(root)) if not has_line(name, path)]
    for name, path in lacking:
        if action == "check":
            print(f"{name}: lacks its SPDX line: python3 scripts/spdx.py write .")
            continue
        lines = path.read_text(encoding="utf-8").split("\n")
        lines.insert(1 if lines[0].startswith("#!") else 0, line_of(name, path))
        path.write_text("\n".join(lines), encoding="utf-8")
    sys.exit(1 if lacking and action == "check" else 0)


main(*sys.argv[1:])
