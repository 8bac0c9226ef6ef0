#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cluster.bind gives each rank its own cores. TAP."""
import json
import os
import signal
import sys

from configs import tiny
from processes import finish, long_run
from tap import Skip, case, main

CORES = sorted(os.sched_getaffinity(0))


def on_one_core():
    os.sched_setaffinity(0, CORES[:1])


@case
def every_thread_keeps_to_its_ranks_cores(weft):
    if len(CORES) < 2:
        raise Skip("one core, which two ranks cannot both have")
    process, ranks = long_run(weft, cluster__bind=True, cluster__threads=1)
    shares = []
    for rank in ranks:
        threads = [int(name) for name in os.listdir(f"/proc/{rank}/task")]
        assert len(threads) >= 3, f"rank's threads: {threads}"  # threads that issue, compute and communicate
        masks = {tuple(sorted(os.sched_getaffinity(thread))) for thread in threads}
        assert len(masks) == 1, f"threads of one rank may use {masks}"
        shares.append(set(masks.pop()))
    assert not shares[0] & shares[1], shares
    assert [len(share) for share in shares] == 2 * [len(CORES) // 2], shares
    assert os.sched_getaffinity(process.pid) == set(CORES), "the launcher is bound too"
    process.send_signal(signal.SIGKILL)
    finish(process, 10)


@case
def bound_ranks_give_the_same_bits(weft):
    if len(CORES) < 2:
        raise Skip("one core, which two ranks cannot both have")
    prints = set()
    for bind in (False, True):
        config = weft.write("run.json", tiny(cluster__bind=bind, cluster__threads=1))
        weft.expect(0, "train", config, "--run", f"run-{bind}", "-q")
        with open(weft.path(f"run-{bind}/result.json"), encoding="utf-8") as file:
            prints.add(json.load(file)["fingerprint"])
    assert len(prints) == 1, prints


@case
def fewer_cores_than_asked_are_refused(weft):
    config = weft.write("run.json", tiny(cluster__bind=True))
    for verb in (("train", config, "--run", "run"), ("profile", config, "-o", "profile.json")):
        weft.expect(1, *verb, preexec_fn=on_one_core,
                    says="2 ranks of 1 thread need 2 and this process may use 1")
    config = weft.write("wide.json", tiny(cluster__bind=True, cluster__threads=len(CORES)))
    weft.expect(1, "train", config, "--run", "run",
                says=f"need {2 * len(CORES)} and this process may use {len(CORES)}")
    # The run fails before it plans or writes anything.
    code, out, _ = weft.run("train", config, "--run", "none", preexec_fn=on_one_core)
    assert code == 1 and out == "" and not os.path.exists(weft.path("none")), (code, out)
    # Planning needs no cores of its own.
    weft.expect(0, "plan", config, "-o", "plan.json", preexec_fn=on_one_core)


main(sys.argv[1])
