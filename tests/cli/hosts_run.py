# SPDX-License-Identifier: Apache-2.0
"""Runs the program under the launchers of MPI libraries."""
import os
import subprocess

from namespaces import LIBRARIES, Unavailable, environment_of, local_command
from tap import Skip

# Messages of the launchers and transports about ranks that failed; only Weft's own lines are counted.
OWN = "weft: "


def run_hosts(weft, command, library, *arguments, env=None, timeout=100):
    done = subprocess.run([*command, weft.program, *arguments], cwd=weft.directory, capture_output=True, text=True,
                          env={**os.environ, **environment_of(library), **(env or {})}, timeout=timeout, check=False)
    return done.returncode, done.stdout, [line for line in done.stderr.splitlines() if line.startswith(OWN)], \
        done.stderr


def each_library(weft, ranks):
    """Yields name and launcher command of each library that is here."""
    found = []
    for name in LIBRARIES:
        try:
            found.append((name, local_command(weft.program, name, ranks)))
        except Unavailable as why:
            reason = str(why)
    if not found:
        raise Skip(reason)
    return found
