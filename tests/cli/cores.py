# SPDX-License-Identifier: Apache-2.0
"""Ranks get cores independent of OpenMP's variables, threads within a CPU quota, and the same bits on any. TAP."""
import json
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path

from configs import tiny
from processes import finish, long_run
from saved import parameters
from tap import Skip, case, main

CORES = sorted(os.sched_getaffinity(0))
BINDING = {"OMP_PROC_BIND": "true", "GOMP_CPU_AFFINITY": str(CORES[0]), "OMP_PLACES": f"{{{CORES[0]}}}"}


def facts(weft, **options):
    code, out, err = weft.run("doctor", "--json", **options)
    assert code in (0, 1), err
    return {name: entry["text"] for name, entry in json.loads(out).items()}


def launched(weft, ranks, *program, **options):
    return weft.expect(0, "launch", "-n", str(ranks), *program, **options).splitlines()


@case
def openmp_variables_leave_ranks_all_cores(weft):
    if len(CORES) < 2:
        raise Skip("one core, which every binding leaves")
    every = launched(weft, 1, "grep", "Cpus_allowed_list", "/proc/self/status")
    for name, value in BINDING.items():
        lines = launched(weft, 2, "grep", "Cpus_allowed_list", "/proc/self/status", env={name: value})
        assert lines == 2 * every, (name, lines)
        told = facts(weft, env={name: value})
        assert told["cores"].endswith(f"this process may use {len(CORES)}"), told["cores"]
        assert f"ranks do not follow {name}" in told["environment"], told["environment"]
    assert "do not follow" not in facts(weft)["environment"]


@case
def openmp_variables_bind_no_thread_of_a_rank(weft):
    if len(CORES) < 2:
        raise Skip("one core, which every binding leaves")
    process, ranks = long_run(weft, env=BINDING, cluster__threads=1)
    for rank in ranks:
        for thread in os.listdir(f"/proc/{rank}/task"):
            assert os.sched_getaffinity(int(thread)) == set(CORES), (rank, thread)
    process.send_signal(signal.SIGKILL)
    finish(process, 10)


@case
def an_affinity_that_was_given_stays(weft):
    lines = launched(weft, 2, "grep", "Cpus_allowed_list", "/proc/self/status", env=BINDING,
                     preexec_fn=lambda: os.sched_setaffinity(0, CORES[-1:]))
    assert [line.split()[-1] for line in lines] == 2 * [str(CORES[-1])], lines


@case
def openmp_gives_ranks_the_threads_that_they_are_told(weft):
    env = launched(weft, 1, "env", env={**BINDING, "OMP_THREAD_LIMIT": "1", "OMP_DYNAMIC": "true"})
    named = dict(line.split("=", 1) for line in env if "=" in line)
    assert named["OMP_PROC_BIND"] == "false" and named["OMP_DYNAMIC"] == "false", named
    assert not {"OMP_PLACES", "GOMP_CPU_AFFINITY", "OMP_THREAD_LIMIT"} & set(named), named


def own_group(controllers):
    """Returns the directory of this process's group in the hierarchy of version 1 or 2."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        if names == "" and not controllers:
            return Path("/sys/fs/cgroup" + path)
        if controllers in names.split(","):
            return Path(f"/sys/fs/cgroup/{controllers}{path}")
    raise Skip("no such groups here")


@contextmanager
def groups_with_quotas(*microseconds):
    """Makes nested groups with these quotas in a period of 100 ms (None: no quota). Yields the innermost."""
    made = []
    try:
        try:
            make_groups(made, microseconds)
        except OSError as error:
            raise Skip(f"no group with a CPU quota can be made here: {error}") from error
        yield made[-1]
    finally:
        for path in reversed(made):
            path.rmdir()


def make_groups(made, microseconds):
    version_1 = Path("/sys/fs/cgroup/cpu/cpu.shares").exists()
    group = own_group("cpu" if version_1 else "")
    for number, quota in enumerate(microseconds):
        group = group / f"weft-test-{os.getpid()}-{number}"
        group.mkdir()
        made.append(group)
        if quota is None:
            continue
        if version_1:
            (group / "cpu.cfs_quota_us").write_text(str(quota), encoding="utf-8")
            continue
        (group / "cpu.max").write_text(f"{quota} 100000", encoding="utf-8")
        if number + 1 < len(microseconds):
            (group / "cgroup.subtree_control").write_text("+cpu", encoding="utf-8")


@case
def default_threads_follow_a_cpu_quota(weft):
    if len(CORES) < 2:
        raise Skip("one core, which is one thread in any case")
    threads = ("printenv", "OMP_NUM_THREADS")
    assert launched(weft, 1, *threads) == [str(len(CORES))]
    with groups_with_quotas(150000, None) as group:
        def join():
            (group / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")

        assert launched(weft, 1, *threads, preexec_fn=join) == ["1"]
        told = facts(weft, preexec_fn=join)["cores"]
        assert "a CPU quota gives it the time of 1.50 (" in told, told
        assert f" of {group.parent}): 1 thread by default" in told, told


@case
def threads_change_no_bit(weft):
    """A head a sample, fewer than threads, and products on both sides of the parts of oneDNN's."""
    layers = [{"name": "wte", "type": "embedding", "vocab": 256, "positions": 64, "hidden": 64},
              {"name": "h.{i}", "type": "transformer_block", "repeat": 2, "hidden": 64, "heads": 1, "ffn": 272},
              {"name": "head", "type": "lm_head", "vocab": 256, "hidden": 64}]
    flops = {"f32": "50G", "bf16": "50G", "f16": "50G"}
    for compute, products in (("f32", "auto"), ("f32", "onednn"), ("bf16", "auto"), ("f16", "auto")):
        found = set()
        for threads in (1, 2, 3):
            config = weft.write("threads.json", tiny(
                cluster__threads=threads, cluster__device__flops=flops, train__precision={"compute": compute},
                model={"layers": layers}, train__seq_len=64, train__micro_batch=1, train__steps=3))
            weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q", "-n", "1", env={"WEFT_GEMM": products})
            found.add(parameters(weft, "run"))
        assert len(found) == 1, (compute, products, found)


main(sys.argv[1])
