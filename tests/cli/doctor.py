# SPDX-License-Identifier: Apache-2.0
"""Compares `weft doctor`'s facts with the system's own."""
import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

from tap import Skip, case, main

SOURCE = Path(__file__).resolve().parents[2]


def facts(weft, *, code=None, **options):
    """Returns the facts' texts by name."""
    got, out, err = weft.run("doctor", "--json", **options)
    assert got in ((0, 1) if code is None else (code,)), err
    return {name: entry["text"] for name, entry in json.loads(out).items()}


@case
def a_bug_report_has_what_it_needs(weft):
    told = facts(weft)
    for name in ("version", "commit", "compiler", "libraries", "machine", "cores", "load", "memory",
                 "limits", "cgroup", "dev_shm", "launcher", "environment", "solver", "kernels", "bits"):
        assert told.get(name), (name, told)
    assert f"weft {told['version']}\n" == weft.expect(0, "version")
    assert re.search(r"\d", told["compiler"]) and "build type" in told["compiler"], told["compiler"]
    assert re.match(r"glibc \d", told["libraries"]), told["libraries"]
    assert re.search(r"oneDNN \d+\.\d", told["libraries"]), told["libraries"]
    assert re.match(r"products: \S+, oneDNN \d+\.\d+\.\d+, \w+; attention: \w+$", told["bits"]), told["bits"]
    assert os.uname().release in told["machine"], told["machine"]
    assert re.match(r"\d+\.\d\d in the last minute", told["load"]), told["load"]
    shown = weft.run("doctor")[1]
    for name in told:
        assert re.search(rf"^{name} ", shown, re.M), (name, shown)


@case
def a_gpu_that_is_missing_is_no_fault(weft):
    told = weft.run("doctor", "--json", env=os.environ | {"WEFT_CUDA_MODULE": "/nonexistent.so"})[1]
    entry = json.loads(told)["cuda"]
    assert entry["state"] == "off", entry
    assert "/nonexistent.so" in entry["text"] and "docs/gpu.md" in entry["text"], entry


@case
def slow_hosts_of_a_profile_are_named(weft):
    hosts = [{"name": "a", "compute_ns": 9000000}, {"name": "b", "compute_ns": 1000000}]
    profile = {"format": "weft-profile", "version": 1, "source": "measured", "machine": "m", "ranks": 2, "layers": [],
               "collectives": {}}
    network = {"hosts": hosts, "pair_bytes": 1000, "pairs": [{"a": 0, "b": 1, "ns": 1000}]}
    for content, state, says in (({}, "off", "of one host"), ({"network": network}, "off", "slow host a: compute"),
                                 ({"network": {**network, "hosts": [hosts[1], hosts[1]]}}, "ok", "no slow link or host")):
        path = weft.write("profile.json", {**profile, **content})
        entry = json.loads(weft.run("doctor", "--json", "--profile", path)[1])["network"]
        assert entry["state"] == state and says in entry["text"], entry
    assert "network" not in facts(weft)
    for path, code, says in ((weft.write("wrong.json", {**profile, "network": {**network, "pairs": 7}}), 65, "pairs"),
                             ("/nonexistent.json", 66, "/nonexistent.json")):
        got, _, err = weft.run("doctor", "--profile", path)
        assert got == code and err.count("\n") == 1 and says in err, (got, err)


@case
def the_commit_is_one_of_this_repository(weft):
    if not (SOURCE / ".git").exists() or not shutil.which("git"):
        raise Skip("the sources are no checkout, or git is not installed")
    commit = facts(weft)["commit"]
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?", commit), commit
    kind = subprocess.run(["git", "-C", SOURCE, "cat-file", "-t", commit[:12]], text=True,
                          capture_output=True, check=False).stdout
    assert kind == "commit\n", commit


@case
def cores_and_limits_are_those_of_the_process(weft):
    def narrow():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        resource.setrlimit(resource.RLIMIT_NOFILE, (123, 123))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))

    told = facts(weft, preexec_fn=narrow)
    assert told["cores"] == f"{os.cpu_count()}, of which this process may use 1", told["cores"]
    assert "open files 123," in told["limits"], told["limits"]
    assert "file size 1.00 GiB" in told["limits"], told["limits"]


@case
def the_cgroup_is_named(weft):
    told, version = facts(weft)["cgroup"], 0
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(",") or (not controllers and not version):
            version, group = (1 if controllers else 2), path
    if not version:
        raise Skip("no groups here")
    assert told.startswith(f"version {version}, "), told
    assert group.rstrip("/") in told, told


@case
def dev_shm_is_measured(weft):
    shm = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    told = facts(weft)["dev_shm"]
    if shm is None:
        assert told.startswith("none"), told
        return
    size, unit = re.match(r"([\d.]+) (\w+), of which ", told).groups()
    scale = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}[unit]
    assert abs(float(size) * scale - shm.f_blocks * shm.f_frsize) <= 0.006 * float(size) * scale, told


@case
def a_launcher_is_found(weft):
    weft.write("mpirun", "#!/bin/sh\n")
    os.chmod(weft.path("mpirun"), 0o755)
    env = {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "4",
           "PATH": f"{weft.directory}:{os.environ['PATH']}"}
    told = facts(weft, env=env)["launcher"]
    assert told.startswith("rank 1 of 4 of MVAPICH2 (MV2_COMM_WORLD_RANK"), told
    assert weft.path("mpirun") in told, told
    assert facts(weft)["launcher"].startswith("none around this process")


@case
def variables_that_change_a_run_are_shown(weft):
    told = facts(weft, env={"OMP_NUM_THREADS": "3", "WEFT_OF_A_TEST": "red\033[31m"})
    assert "OMP_NUM_THREADS=3" in told["environment"], told["environment"]
    shown = weft.run("doctor", env={"WEFT_OF_A_TEST": "red\033[31m"})[1]
    assert "\033" not in shown and "WEFT_OF_A_TEST=red\\u001b[31m" in shown, shown


def disk_of(weft, code, directory, **options):
    _, out, _ = weft.run("doctor", "--json", "--disk", directory, **options)
    told = json.loads(out)["disk"]
    assert told["state"] == ("missing" if code else "ok"), told
    return told["text"]


@case
def the_disk_of_a_directory_is_named(weft):
    assert "disk" not in facts(weft)
    Path(weft.path("scratch")).mkdir()
    told = disk_of(weft, 0, "scratch")
    name, free = re.match(r"scratch: (\S+).*, aligned to [\d.]+ KiB, ([\d.]+ \w+) free$", told).groups()
    assert ("direct (O_DIRECT)" in told) != ("through the page cache (" in told), told
    number = subprocess.run(["stat", "-f", "-c", "%t", weft.path("scratch")], check=True,
                            capture_output=True, text=True).stdout.strip()
    named = {"ef53": "ext4", "58465342": "xfs", "9123683e": "btrfs", "794c7630": "overlay"}
    assert name.rstrip(",") == named.get(number, name.rstrip(",")), (told, number)
    size = float(free.split()[0]) * {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
                                     "TiB": 1 << 40}[free.split()[1]]
    there = os.statvfs(weft.path("scratch"))
    assert abs(size - there.f_bavail * there.f_frsize) < 0.3 * size, (told, there)
    assert os.listdir(weft.path("scratch")) == []


@case
def what_is_no_disk_is_missing(weft):
    assert "no such directory" in disk_of(weft, 1, "nowhere")
    weft.write("file", "text")
    assert "is not a directory" in disk_of(weft, 1, "file")
    weft.expect(1, "doctor", "--disk", "nowhere", says="is missing")
    if os.path.isdir("/dev/shm") and subprocess.run(
            ["stat", "-f", "-c", "%T", "/dev/shm"], check=True, capture_output=True,
            text=True).stdout.strip() == "tmpfs":
        assert "keeps everything in memory" in disk_of(weft, 1, "/dev/shm")


@case
def a_solver_that_is_none_is_missing(weft):
    told = facts(weft, code=1, env={"WEFT_SOLVE": shutil.which("true")})
    assert "is not weft-solve, or does not run" in told["solver"], told["solver"]
    told = facts(weft, code=1, env={"WEFT_SOLVE": "/no/such/solver"})
    assert told["solver"].startswith("no weft-solve"), told["solver"]


@case
def the_solver_says_its_version(weft):
    solver = facts(weft)["solver"]
    if solver.startswith("no weft-solve"):
        raise Skip("this build has no weft-solve")
    assert re.search(r"weft-solve, weft-solve [\d.]+, GLPK \d", solver), solver


main(sys.argv[1])
