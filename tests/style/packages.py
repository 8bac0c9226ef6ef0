#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make test-packages` on machines that lack packages: packages.py SOURCE_ROOT. TAP."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cli"))

from tap import Skip, case, main  # pylint: disable=wrong-import-position

ROOT = Path(sys.argv[1])
NEEDED = {"meson", "ninja-build", "gcc", "pkg-config", "libglpk-dev", "libdnnl-dev", "libcriterion-dev",
          "libpcre2-dev", "python3"}
OPTIONAL = {"strace", "g++", "libcjson-dev", "zlib1g-dev", "libopenmpi-dev", "openmpi-bin", "libmpich-dev", "mpich", "iproute2"}


def make(weft, *lacking, apt="exit 100"):
    """Runs make where the packages are missing and apt-get does `apt`. Returns the exit code and its messages."""
    if not shutil.which("make"):
        raise Skip("make is not installed")
    tools = weft.directory / "tools"
    tools.mkdir()
    installed = "|".join(sorted((NEEDED | OPTIONAL) - set(lacking)))
    for name, text in (("dpkg-query", f'case "$4" in {installed}) echo "install ok installed";; esac'),
                       ("apt-get", f'echo "$@" >>{weft.path("asked")}; {apt}'), ("sudo", '"$@"')):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    done = subprocess.run(["make", "-C", ROOT, "--no-print-directory", "test-packages"], capture_output=True,
                          text=True, check=False, env={**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"})
    return done.returncode, done.stderr


@case
def nothing_is_asked_for_where_all_is_installed(weft):
    assert make(weft) == (0, "") and not (weft.directory / "asked").exists()


@case
def what_only_tests_need_may_be_missing(weft):
    code, told = make(weft, *OPTIONAL)
    assert code == 0, told
    for name in OPTIONAL:
        assert f" {name}" in told, told
    assert told.count("tests that need them are skipped") == 5, told


@case
def what_the_build_needs_ends_the_check(weft):
    code, told = make(weft, "libglpk-dev", "strace")
    assert code != 0 and "could not install: libglpk-dev (install them, then run make again)" in told, told
    assert "strace" not in told, told


@case
def missing_packages_are_installed(weft):
    assert make(weft, "strace", "mpich", apt="exit 0")[0] == 0
    asked = (weft.directory / "asked").read_text()
    assert "install -y -q --no-install-recommends strace\n" in asked, asked
    assert "--no-install-recommends mpich\n" in asked and "glpk" not in asked, asked


main(sys.executable)
