#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times an installation, up to the first result.

    bench/installs.py FOLDER --root ROOT [--record]    Debian packages in a fresh Debian 12, as root
    bench/installs.py FOLDER --wheels [--record]       wheels in an empty environment of Python

FOLDER has the packages of dpkg-buildpackage, or the wheels of scripts/wheels.sh. `debootstrap --variant=minbase bookworm
ROOT` makes the Debian. pip gets no index, so wheels that need a package of another place end here. `--record` writes the
table `deb` or `wheel` of bench/results/newcomer.json.
"""
import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from newcomer import NOTE, Hour, fresh_environment, store  # noqa: E402

DEB = {"name": "deb", "title": "Packages in a fresh Debian 12, up to a training",
       "command": "python3 bench/installs.py debs --root ROOT --record",
       "note": NOTE + " debootstrap --variant=minbase made the Debian before, and apt-get downloads what is missing."}
WHEEL = {"name": "wheel", "title": "Wheels in an empty environment of Python, up to a plan",
         "command": "python3 bench/installs.py wheels --wheels --record",
         "note": NOTE + " The wheels were on the disk, and pip had no index."}


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


def install_wheels(folder):
    """Makes an environment, installs both wheels in it, and plans with a proof by the solver."""
    wheels = find(folder, ["weft-*.whl", "weft_solve-*.whl"])
    hour = Hour()
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch, "home")
        home.mkdir()
        environment = fresh_environment(home, Path(scratch, "venv/bin/weft"))
        for wheel in wheels:
            shutil.copy(wheel, scratch)
        names = " ".join(f"./{wheel.name}" for wheel in wheels)
        for command in (f"{sys.executable} -m venv venv", f"venv/bin/pip install --no-index -q {names}",
                        "weft plan gpt-tiny -o plan.json -q", "weft verify plan.json", "weft best gpt-tiny -q",
                        "weft report plan.json -o plan.html"):
            hour.take(command, environment, scratch)
    # The interpreter has a path of this machine.
    hour.steps[0] = ("python3 -m venv venv", *hour.steps[0][1:])
    return hour


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="with the packages")
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--root", type=Path, help="a fresh Debian 12")
    way.add_argument("--wheels", action="store_true", help="in an empty environment of Python")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    hour = install_wheels(folder) if options.wheels else install(folder, options.root.resolve())
    hour.show_sum()
    if options.record:
        store(WHEEL if options.wheels else DEB, hour)


if __name__ == "__main__":
    main()
