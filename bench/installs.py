#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the installation of Debian packages in a fresh Debian 12, up to the first result, as root.

    bench/installs.py FOLDER --root ROOT [--record]

FOLDER has the packages of dpkg-buildpackage, and `debootstrap --variant=minbase bookworm ROOT` makes the Debian.
`--record` writes the table `deb` of bench/results/newcomer.json.
"""
import argparse
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from newcomer import NOTE, Hour, store  # noqa: E402

DEB = {"name": "deb", "title": "Packages in a fresh Debian 12, up to a training",
       "command": "python3 bench/installs.py debs --root ROOT --record",
       "note": NOTE + " debootstrap --variant=minbase made the Debian before, and apt-get downloads what is missing."}


def find(folder, patterns):
    """The newest file of each pattern."""
    found = [sorted(folder.glob(pattern), key=lambda path: path.stat().st_mtime) for pattern in patterns]
    lacking = [pattern for pattern, paths in zip(patterns, found) if not paths]
    if lacking:
        sys.exit(f"skipped: {folder} has no {' and no '.join(lacking)}")
    return [paths[-1] for paths in found]


def install(folder, root):
    packages = find(folder, ["weft_*.deb", "weft-solve_*.deb"])
    if not (root / "usr/bin/apt-get").exists():
        sys.exit(f"{root}: no Debian; make one: debootstrap --variant=minbase bookworm {root}")
    for package in packages:
        shutil.copy(package, root / "root")
    names = " ".join(f"./{path.name}" for path in packages)
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
    hour = Hour()
    subprocess.run(["mount", "-t", "proc", "proc", root / "proc"], check=True)
    try:
        for command in ("apt-get update -q", f"apt-get install -y -q --no-install-recommends {names}",
                        "weft plan gpt-tiny -o plan.json -q",
                        "weft train mlp-tiny -n 2 --set train.steps=10 --run run -q"):
            hour.take(command, environment, "/root", root)
    finally:
        subprocess.run(["umount", root / "proc"], check=True)
    return hour


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with the packages")
    parser.add_argument("--root", type=Path, required=True, help="a fresh Debian 12")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    hour = install(options.folder.resolve(), options.root.resolve())
    hour.show_sum()
    if options.record:
        store(DEB, hour)


if __name__ == "__main__":
    main()
