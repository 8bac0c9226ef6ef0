#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Without /proc, as in a chroot, verbs that need it say so and the others work."""
import os
import subprocess
import sys

from configs import tiny
from tap import Skip, case, main


def without_proc(weft, *arguments):
    """Runs weft in its own mount namespace without /proc; returns exit code, stdout and stderr."""
    done = subprocess.run(["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh", weft.program,
                           *arguments], cwd=weft.directory, capture_output=True, text=True, timeout=60,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def needs_namespaces():
    probe = ["unshare", "-m", "sh", "-c", "umount -l /proc && test ! -e /proc/self"]
    try:
        if subprocess.run(probe, capture_output=True, check=False).returncode != 0:
            raise Skip("a mount namespace without /proc needs root")
    except FileNotFoundError as missing:
        raise Skip("unshare is not installed") from missing


@case
def what_starts_processes_names_it(weft):
    needs_namespaces()
    weft.write("run.json", tiny())
    for verb in (["train", "run.json", "--run", "run"], ["profile", "run.json"], ["demo"],
                 ["sweep", "run.json", "--points", "2"], ["sweep", "run.json", "--measure"]):
        code, _, err = without_proc(weft, *verb)
        assert code == 1 and "mount -t proc proc /proc" in err, (verb, code, err)
        assert "/proc/self/exe cannot be read (No such file or directory)" in err, (verb, err)
    assert not os.path.exists(weft.path("run")), "a run was begun"


@case
def doctor_names_it(weft):
    needs_namespaces()
    code, out, _ = without_proc(weft, "doctor")
    assert code == 1 and "proc           missing" in out and "/proc/self/exe" in out, (code, out)
    assert "proc           ok" in weft.run("doctor")[1]


@case
def plans_need_none(weft):
    """The solver is still found next to the program."""
    needs_namespaces()
    weft.write("run.json", tiny())
    for verb in (["plan", "run.json", "-o", "plan.json"], ["check", "run.json"], ["verify", "plan.json"],
                 ["estimate", "run.json"], ["explain", "plan.json"]):
        code, out, err = without_proc(weft, *verb)
        assert code == 0 and "no weft-solve" not in out + err, (verb, code, out, err)


main(sys.argv[1])
