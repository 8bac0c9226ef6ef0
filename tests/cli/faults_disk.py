#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""State on a disk gives the bits of a run with state on the device. Disk faults end it cleanly."""
import os
import sys
import time

from configs import tiny
from interpose import interpose
from saved import copy_step, parameters, same_files, saving, steps
from tap import Skip, case, main

LINK = {"bandwidth": "1GB/s"}
ONLY_DISK = {"state": ["disk"], "activations": ["device"]}


def disk(weft):
    """Returns the tier of a directory on a disk: the test's own, or /var/tmp if that one is in memory."""
    for path in (weft.path("scratch"), "/var/tmp"):
        os.makedirs(path, exist_ok=True)
        here = {"path": path, "limit": "1GB", "read": LINK, "write": LINK}
        config = weft.write("probe.json", tiny(cluster__disk=here, plan__offload=ONLY_DISK,
                                               plan__planner="all-fsdp", train__steps=1))
        code, _, err = weft.run("train", config, "--run", "probe", "-q")
        if code == 0:
            return here
        assert code == 65 and "keeps everything in memory" in err, (code, err)
    raise Skip("no disk to keep state on")


def away(here, **changes):
    return saving(cluster__disk=here, plan__offload=ONLY_DISK, plan__planner="all-fsdp",
                  **changes)


@case
def what_is_saved_and_gone_on_with_is_the_same_wherever_state_is(weft):
    here = weft.write("here.json", saving(plan__planner="all-fsdp"))
    there = weft.write("there.json", away(disk(weft)))
    weft.expect(0, "train", here, "--run", "here", "-q")
    weft.expect(0, "train", there, "--run", "there", "-q")
    same_files(weft, "there/checkpoints/step-8", "here/checkpoints/step-8")
    for run, config in (("down", there), ("up", here)):
        copy_step(weft, "here" if run == "down" else "there", run, 6)
        weft.expect(0, "train", config, "--run", run, "-q", "--resume")
        assert parameters(weft, run) == parameters(weft, "here"), run
        same_files(weft, f"{run}/checkpoints/step-8", "here/checkpoints/step-8")


@case
def a_rank_killed_while_its_state_moves(weft):
    config = weft.write("run.json", away(disk(weft), cluster__ranks=3))
    for place in ("read", "write"):
        start = time.monotonic()
        weft.expect(69, "train", config, "--run", place, "-q", says=["rank 1", "signal 9"],
                    env={"WEFT_FAILPOINT": f"{place}:rank=1:step=2"})
        assert time.monotonic() - start < 20, "took too long"
        weft.expect(0, "train", config, "--run", place, "-q", "--resume=if-any")


# Counts the requests of rank 1 after its initial values.
FAULT = """
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static atomic_int requests;
static int strikes(void)
{
    const char *rank = getenv("RANK");
    return rank != NULL && *rank == '1' && atomic_fetch_add(&requests, 1) == FIRST;
}
"""
WRITE = """
ssize_t pwritev64(int fd, const struct iovec *from, int n, off64_t at)
{
    if (strikes()) { errno = %s; return -1; }
    return syscall(SYS_pwritev, fd, from, n, at, at >> 32);
}
"""
READ = """
ssize_t preadv64(int fd, const struct iovec *to, int n, off64_t at)
{
    const int now = strikes();
    if (now && %s) { errno = %s; return -1; }
    const ssize_t got = syscall(SYS_preadv, fd, to, n, at, at >> 32);
    if (now && got > 0) ((unsigned char *)to[0].iov_base)[got / 2] ^= 4;
    return got;
}
"""


@case
def a_disk_that_fails_ends_all_ranks_and_no_checkpoint(weft):
    scratch = disk(weft)
    config = weft.write("run.json", away(scratch, train__checkpoint={"every": 1, "keep": 8}))
    weft.expect(0, "train", config, "--run", "whole", "-q")
    for number, (source, says) in enumerate((
            (WRITE % "EIO", ["Input/output error"]),
            (WRITE % "ENOSPC", ["No space left on device"]),
            (READ % ("1", "EIO"), ["Input/output error"]),
            (READ % ("0", "0"), ["what came back"]))):
        run = f"cut{number}"
        env = interpose(weft, f"fault{number}", FAULT.replace("FIRST", "90") + source)
        weft.expect(74, "train", config, "--run", run, "-q", env=env,
                    says=["rank 1", "block", "unit", scratch["path"]] + says)
        last = steps(weft, run)[-1]
        assert last != "step-8", "it has ended before the fault"
        same_files(weft, f"{run}/checkpoints/{last}", f"whole/checkpoints/{last}")
        weft.expect(0, "train", config, "--run", run, "-q", "--resume")
        same_files(weft, f"{run}/checkpoints/step-8", "whole/checkpoints/step-8")


@case
def a_disk_that_is_gone_is_missed_by_those_that_use_it(weft):
    """A run without state on the missing disk goes on; a run with state there gets advice."""
    here = disk(weft)
    there = {**here, "path": os.path.join(here["path"], "gone")}
    saves = {"train__checkpoint": {"every": 1, "keep": 8}}
    unused = weft.write("unused.json", saving(
        cluster__disk=there, plan__planner="greedy", plan__offload={"activations": ["device"]}, **saves))
    used = weft.write("used.json", away(there, **saves))
    os.mkdir(there["path"])
    for name, config in ("unused", unused), ("used", used):
        assert "ok" in weft.expect(0, "check", config)
        weft.expect(0, "train", config, "--run", name, "-q")
    os.rmdir(there["path"])
    weft.expect(0, "train", unused, "--run", "fresh", "-q")
    for name, config in ("unused", unused), ("used", used):
        copy_step(weft, name, f"{name}-again", 6)
        for file in "config.json", "plan.json", "profile.json":
            os.replace(weft.path(f"{name}/{file}"), weft.path(f"{name}-again/{file}"))
        says = ["cluster.disk.path: ", there["path"]]
        weft.expect(65, "check", config, says=says)
        code = 0 if name == "unused" else 65
        weft.expect(code, "train", "--resume", "--run", f"{name}-again", "-q", says=says * (code > 0))
    same_files(weft, "unused-again/checkpoints/step-8", "unused/checkpoints/step-8")
    weft.expect(65, "train", used, "--run", "no", "-q", says=says)
    assert not os.path.exists(weft.path("no")), "a run was begun"
    weft.expect(0, "train", "--resume", "--run", "used-again", "-q", "--set",
                'plan.offload.state=["device"]')
    same_files(weft, "used-again/checkpoints/step-8", "used/checkpoints/step-8")


main(sys.argv[1])
