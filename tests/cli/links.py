#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Links between hosts that break: ranks of both sides end in time, and no side leaves a torn checkpoint."""
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

from configs import tiny
from namespaces import LIBRARIES, Namespaces, Unavailable, environment_of, need_library
from tap import Skip, case, main

TIMEOUT_SECONDS = 2
# Giving up, and the wait for rank 0's verdict. Rank 0 may also wait for MPI's end.
MOST_SECONDS = TIMEOUT_SECONDS + 8

# A launcher kills a rank's session on a host that it reaches, so ranks have their own: each shall end by itself.
OUTER = 'exec setsid -w sh "$1/inner.sh" "$@"\n'
INNER = 'cd "$1"; r=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}; shift\n' \
        '"$@" 2>err-$r & echo $! >pid-$r; wait $!; code=$?; echo $code >code-$r; exit $code\n'


def break_link(hosts, way):
    if way == "down":
        subprocess.run(["ip", "link", "set", "weft-port-1", "down"], check=True)
        return
    deaf = 0 if way == "rank 0 is not heard" else 1  # this host hears the other one, which does not hear it
    subprocess.run(["ip", "netns", "exec", hosts.names[deaf], "ip", "route", "add", "blackhole",
                    hosts.addresses[1 - deaf]], check=True)


def stop_all(weft, process, ranks):
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for rank in range(ranks):
        path = weft.directory / f"pid-{rank}"
        if path.exists() and not (weft.directory / f"code-{rank}").exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGKILL)


def break_run(weft, hosts, library, config, way, per_host=1):
    """Each rank leaves its exit code and its messages in files. Returns both for all ranks."""
    ranks = range(2 * per_host)
    weft.write("inner.sh", INNER)
    command = [*hosts.command(weft.program, library, per_host), "sh", weft.write("outer.sh", OUTER), str(weft.directory),
               weft.program, "train", config, "--run", weft.fresh("run")]
    for name in os.listdir(weft.directory):
        if re.match(r"(code|err|pid)-\d", name):
            os.remove(weft.path(name))
    process = subprocess.Popen(command, cwd=weft.directory, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, env={**os.environ, **environment_of(library)}, start_new_session=True)
    try:
        for line in process.stdout:
            if re.match(r"step +30/", line):
                break
        break_link(hosts, way)
        threading.Thread(target=process.stdout.read, daemon=True).start()
        end = time.monotonic() + MOST_SECONDS
        codes = [weft.directory / f"code-{rank}" for rank in ranks]
        while not all(path.exists() and path.read_text() for path in codes):
            assert time.monotonic() < end, (library, way, "a rank is left", [path.exists() for path in codes])
            time.sleep(0.05)
    finally:
        stop_all(weft, process, len(ranks))
    return [int(path.read_text()) for path in codes], [(weft.directory / f"err-{rank}").read_text() for rank in ranks]


@case
def a_broken_link_ends_both_sides(weft):
    config = weft.write("run.json", tiny(
        cluster__ranks=2, cluster__ranks_per_node=1, cluster__threads=1, cluster__timeout=f"{TIMEOUT_SECONDS}s",
        plan__work_limit="20M", cluster__link__inter={"alpha": "100us", "bandwidth": "100MB/s"},
        train__steps=1000000, train__checkpoint__every=10))
    for library in LIBRARIES:
        try:
            need_library(weft.program, library)
            for way in ("down", "rank 0 is not heard", "rank 1 is not heard"):
                with Namespaces(2, directory=weft.directory) as hosts:
                    codes, told = break_run(weft, hosts, library, config, way)
                assert codes == [80, 80], (library, way, codes, told)
                for rank in (0, 1):  # the rank that heard the verdict is silent
                    lines = [line for line in told[rank].splitlines() if line.startswith("weft: ")]
                    assert len(lines) == 1 or (rank == 1 and not lines), (library, way, rank, told)
                    assert all("did not come: rank " in line and "(host weft-host-" in line for line in lines), told
                weft.expect(0, "generate", "run", "--tokens", "1")
        except Unavailable as why:
            raise Skip(str(why)) from why


@case
def a_broken_link_ends_all_ranks_of_both_hosts_alike(weft):
    """One cause and one code on all ranks of a host, and at most one of them prints."""
    for library in LIBRARIES:
        for per_host, policy in ((2, "fsdp"), (2, "hsdp"), (3, "dp")):
            config = weft.write("run.json", tiny(
                cluster__ranks=2 * per_host, cluster__ranks_per_node=per_host, cluster__threads=1,
                cluster__timeout=f"{TIMEOUT_SECONDS}s", plan__work_limit="20M", plan__policies=policy,
                cluster__link__inter={"alpha": "100us", "bandwidth": "100MB/s"},
                train__steps=1000000, train__checkpoint__every=10))
            try:
                need_library(weft.program, library)
                with Namespaces(2, directory=weft.directory) as hosts:
                    codes, told = break_run(weft, hosts, library, config, "down", per_host)
            except Unavailable as why:
                raise Skip(str(why)) from why
            assert codes == [80] * 2 * per_host, (library, policy, codes, told)
            for host in (0, 1):
                lines = [line for text in told[host * per_host:(host + 1) * per_host]
                         for line in text.splitlines() if line.startswith("weft: ")]
                assert len(lines) == 1 or (host == 1 and not lines), (library, policy, host, told)
                assert all("did not come: rank " in line and "(host weft-host-" in line for line in lines), told
            weft.expect(0, "generate", "run", "--tokens", "1")


main(sys.argv[1])
