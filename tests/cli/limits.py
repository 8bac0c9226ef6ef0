#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Memory limits of a shell or a job system are reported before a rank starts to train. TAP."""
import json
import os
import resource
import sys

from configs import tiny
from tap import Skip, case, main

LIMITS = {"RLIMIT_DATA": "ulimit -d", "RLIMIT_AS": "ulimit -v"}
KIB_OF_PLANNING = 100000  # more than planning needs, less than a rank's products need


def skip_if_sanitized(weft):
    if weft.is_sanitized():
        raise Skip("a sanitizer has more memory than the limits leave")


def limited(name, kib):
    return lambda: resource.setrlimit(getattr(resource, name), (kib * 1024, kib * 1024))


def train(weft, name, kib, *, ranks=1, threads=1, library="auto"):
    """Runs a training that must not hang: it ends with 0 or 71. Returns exit code and stderr."""
    config = weft.write("run.json", tiny(cluster__ranks=ranks, cluster__threads=threads))
    run = f"run-{name}-{kib}-{ranks}-{threads}-{library}"
    code, _, err = weft.run("train", config, "--run", run, "-q", timeout=20, preexec_fn=limited(name, kib),
                            env={"WEFT_GEMM": library})
    assert code in (0, 71), (run, code, err)
    return code, err


@case
def a_rank_without_room_for_products_says_so(weft):
    skip_if_sanitized(weft)
    for ranks in (1, 2):
        code, err = train(weft, "RLIMIT_DATA", KIB_OF_PLANNING, ranks=ranks)
        assert code == 71 and "matrix products need " in err, (ranks, code, err)
        assert "own memory is limited to 97.7 MiB (RLIMIT_DATA)" in err and "ulimit -d" in err, err
        assert "RLIMIT_AS" not in err, err


@case
def no_limit_of_memory_makes_a_rank_hang(weft):
    skip_if_sanitized(weft)
    for threads, library in ((1, "auto"), (2, "auto"), (2, os.environ.get("WEFT_GEMM", "auto"))):
        for kib in (140000, 175000, 190000, 280000, 330000):
            code, err = train(weft, "RLIMIT_DATA", kib, threads=threads, library=library)
            assert code == 0 or "RLIMIT_DATA" in err and "ulimit -u" not in err, (threads, kib, err)


@case
def the_limit_that_binds_is_named(weft):
    skip_if_sanitized(weft)
    for name, cure in LIMITS.items():
        code, err = train(weft, name, KIB_OF_PLANNING + 100000 * (name == "RLIMIT_AS"))
        assert code == 71 and name in err and cure in err, (name, code, err)
    # Planning itself has too little memory.
    code, err = train(weft, "RLIMIT_DATA", 20000)
    assert code == 71 and "out of memory for " in err and "ulimit -d" in err, (code, err)


main(sys.argv[1])
