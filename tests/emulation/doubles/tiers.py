#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes on the host or on a disk, and updates there, with the device "cuda": the shipped program over doubles.

    tiers.py WEFT MODULE DOUBLES WATCHED [--all]

The location of bytes changes no bit. With plain products a run in f32 has the CPU's fingerprint, losses and norms.
In bf16 it has those of a run that offloads nothing. Planted mistakes (an event without a wait, pageable memory) are
found. Prints the number of compared runs.
"""
import itertools
import json
import os
import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[at] / folder) for at, folder in ((2, "cli"), (3, "bench/gpu"))]
import models  # noqa: E402
from processes import gone, ranks_of  # noqa: E402
from tap import case, drawn_case, left_out, main  # noqa: E402

ALL = "--all" in sys.argv
MODULE, DOUBLES, WATCHED = (os.path.abspath(path) for path in sys.argv[2:5])
COMPARED = []

STATE, SAVED, ALL_AWAY = ("state",), ("activations",), models.MAY_BE_AWAY
UPDATE, DISK, PARAMETERS = ("update",), ("disk",), ("parameters",)
UPDATE_ALL, DISK_ALL = UPDATE + SAVED, DISK + SAVED
SYSTEM, LOST, INTERNAL, FINDING = 71, 69, 70, "double: "


def config_of(weft, device, **what):
    """Copies go in several blocks, unless all that is offloaded is state."""
    config = models.config_of(weft.write("tokens", models.tokens_of(9000, 61)), device, **what)
    if "activations" in what.get("away", ()):
        config["plan"]["offload"]["block_size"] = "1KiB"
    return config


def environment_of(device, ranks=1, doubles=DOUBLES, seed=1, **more):
    of_gpu = {"WEFT_CUDA_MODULE": MODULE, "LD_LIBRARY_PATH": doubles, "WEFT_DOUBLE_STOP": "1",
              "WEFT_DOUBLE_SEED": str(seed), "WEFT_DOUBLE_GPUS": str(ranks)}
    return {"WEFT_GEMM": "plain", **(of_gpu if device == "cuda" else {}), **more}


def folder_of(weft):
    return f"run{len(os.listdir(weft.directory))}"


def run(weft, config, *arguments, **env):
    """Trains; returns the folder, and the fingerprint with losses and norms of all steps."""
    device, folder = config["cluster"]["device"]["type"], folder_of(weft)
    out = weft.expect(0, "train", weft.write("config.json", config), "--run", folder, *arguments, "--json",
                      env=environment_of(device, config["cluster"]["ranks"], **env), timeout=300)
    lines = [json.loads(line) for line in out.splitlines()]
    steps = [(line["loss"], line.get("norm")) for line in lines if line["kind"] == "step"]
    return folder, (lines[-1]["fingerprint"], steps)


def is_away(weft, folder, away):
    """Returns whether the run's plan offloads exactly the kinds in `away`, and the plan's kinds."""
    with open(weft.path(f"{folder}/plan.json"), encoding="utf-8") as file:
        kinds = json.load(file)["problem"]["kinds"]
    has = {"state": any(kind.endswith("+host") for kind in kinds), "activations": any(kind == "host" for kind in kinds),
           "update": any("+host-update" in kind for kind in kinds), "disk": any("+disk" in kind for kind in kinds),
           "parameters": any("+host-parameters" in kind for kind in kinds)}
    return all(there == (name in away) for name, there in has.items()), kinds


def same(weft, away, *flags, doubles=DOUBLES, seed=1, **what):
    """Checks that a run equals the CPU's, or in 16 bits a run that offloads nothing. Its plan must offload `away`."""
    reference = "cpu" if what.get("dtype", "f32") == "f32" else "cuda"
    _, wanted = run(weft, config_of(weft, reference, **what))
    folder, got = run(weft, config_of(weft, "cuda", away=away, **what), *flags, doubles=doubles, seed=seed)
    COMPARED.append((away, what))
    assert got == wanted, f"{away} {what}: {got[0]} {got[1][-1]}, not {wanted[0]} {wanted[1][-1]}"
    there, kinds = is_away(weft, folder, away)
    assert there, (away, kinds)


@drawn_case
def where_bytes_are_changes_no_bit(weft):
    """The cases cover each kind of offloaded bytes, 1 and 2 ranks, f32 and bf16, clipping, and seeds of delays. Dead
    GPU memory is poisoned, since otherwise a missing copy would still find its bytes there.
    """
    same(weft, STATE, "--poison", planner="all-dp")
    same(weft, ALL_AWAY, "--poison", planner="all-fsdp", ranks=2, clip_norm=0, seed=2)
    same(weft, SAVED, "--poison", planner="all-sdp", ranks=2, grad_accum=2)
    same(weft, ALL_AWAY, "--poison", planner="all-zero1", ranks=2, dtype="bf16", seed=3)
    same(weft, ALL_AWAY, dtype="bf16", clip_norm=0, validation={"share": 0.2, "every": 2})
    every = itertools.product((STATE, SAVED, ALL_AWAY, UPDATE_ALL, DISK_ALL), (1, 2, 3), ("f32", "bf16"), (0, 0.5),
                              ("all-dp", "all-fsdp", "all-zero1", "greedy"))
    for seed, (away, ranks, dtype, clip, planner) in enumerate(every if ALL else ()):
        same(weft, away, "--poison", ranks=ranks, dtype=dtype, clip_norm=clip, planner=planner, seed=seed + 2)


@case
def updates_on_the_host_change_no_bit(weft):
    """Threads of the host update while the GPU computes. Words in pinned memory order their streams."""
    same(weft, UPDATE, "--poison", planner="all-fsdp")
    same(weft, UPDATE_ALL, "--poison", planner="all-sdp", ranks=2, grad_accum=2, seed=2)
    same(weft, UPDATE_ALL, "--poison", planner="all-zero1", ranks=2, dtype="bf16", clip_norm=0, seed=3)


@drawn_case
def parameters_on_the_host_change_no_bit(weft):
    """The random planner keeps those of some units there."""
    for clip in 0, 0.5:
        what = {"planner": "random", "ranks": 2, "dtype": "bf16", "clip_norm": clip}
        _, wanted = run(weft, config_of(weft, "cuda", **what))
        folder, got = run(weft, config_of(weft, "cuda", away=PARAMETERS, **what), "--poison", seed=4)
        COMPARED.append(PARAMETERS)
        assert got == wanted, (clip, got, wanted)
        with open(weft.path(f"{folder}/plan.json"), encoding="utf-8") as file:
            strategies = json.load(file)["strategies"]
        assert any("+host-parameters" in strategy for strategy in strategies), strategies


@drawn_case
def state_on_a_disk_changes_no_bit(weft):
    same(weft, DISK, "--poison", planner="all-dp")
    same(weft, DISK_ALL, "--poison", planner="all-fsdp", ranks=2, grad_accum=2, seed=2)
    same(weft, DISK_ALL, "--poison", planner="all-zero1", ranks=2, dtype="bf16", clip_norm=0, seed=3)


@drawn_case
def a_gpu_that_waits_for_no_word_has_the_same_bits(weft):
    """The issuing thread waits in its place."""
    for away in UPDATE, DISK:
        _, wanted = run(weft, config_of(weft, "cpu", planner="all-fsdp"))
        _, got = run(weft, config_of(weft, "cuda", away=away, planner="all-fsdp"), WEFT_DOUBLE_FAIL="cuStreamWaitValue32_v2:1:801")
        COMPARED.append(away)
        assert got == wanted, (away, got, wanted)


@drawn_case
def a_word_that_nobody_waits_for_is_found(weft):
    """Without the wait, an update on the GPU could begin before its state has come from the disk. The double does not see
    the host's own writes, so it misses no word after an update on the host.
    """
    found = 0
    for at in range(1, 13):
        env = environment_of("cuda", doubles=WATCHED, WEFT_DOUBLE_DROP=f"a wait for a word:{at}")
        code, err = ended(weft, env, away=DISK, steps=3, planner="all-fsdp")
        assert (code != 0) == ("double: order: " in err), (at, code, err)
        found += code != 0
        if found:
            break
    assert found > 0, "no word is missed"


@drawn_case
def a_stream_of_the_host_that_fails_ends_the_run(weft):
    for away, place in (UPDATE, "host_update"), (DISK, "read"), (DISK, "write"):
        env = environment_of("cuda", 2, WEFT_FAILPOINT=f"{place}:rank=1:step=2:do=error")
        code, err = ended(weft, env, away=away, ranks=2, steps=4, planner="all-fsdp")
        assert code == INTERNAL and "rank 1" in err and "WEFT_FAILPOINT" in err and FINDING not in err, (place, code, err)
        env = environment_of("cuda", 2, WEFT_FAILPOINT=f"{place}:rank=1:step=2")
        code, err = ended(weft, env, away=away, ranks=2, steps=4, planner="all-fsdp")
        assert code == LOST and "signal 9" in err and FINDING not in err, (place, code, err)


@drawn_case
def every_use_of_memory_is_ordered(weft):
    same(weft, UPDATE_ALL, doubles=WATCHED, planner="all-fsdp", steps=3, ranks=2)
    same(weft, DISK_ALL, doubles=WATCHED, planner="all-sdp", steps=3, clip_norm=0)
    same(weft, ALL_AWAY, doubles=WATCHED, planner="all-fsdp", steps=2, ranks=2)
    same(weft, ALL_AWAY, doubles=WATCHED, planner="all-dp", steps=3, clip_norm=0)
    for planner, clip, micro in itertools.product(("all-sdp", "all-zero1", "ilp"), (0, 0.5),
                                                  (1, 2)) if ALL else ():
        same(weft, ALL_AWAY, doubles=WATCHED, planner=planner, steps=3, ranks=2, clip_norm=clip, grad_accum=micro)


@drawn_case
def a_run_goes_on_elsewhere_with_other_homes(weft):
    """A checkpoint resumes with other locations: from a GPU run that offloads to a CPU run that does not, and back."""
    what = {"planner": "all-fsdp", "ranks": 2, "steps": 6, "checkpoint": {"every": 3, "keep": 2}}
    cpu, cuda = config_of(weft, "cpu", **what), config_of(weft, "cuda", away=ALL_AWAY, **what)
    first, wanted = run(weft, cpu)
    for start, then in ((first, cuda), (run(weft, cuda)[0], cpu)):
        saved = Path(weft.path(f"{start}/checkpoints"))
        third = next(entry for entry in sorted(saved.iterdir()) if entry.name.endswith("3"))
        _, got = run(weft, then, f"--resume={third}")
        COMPARED.append(start)
        assert got[0] == wanted[0], f"from {start}: {got[0]}, not {wanted[0]}"


def ended(weft, env, **what):
    """Trains; returns exit code and stderr. Checks that no rank is left."""
    process = weft.start("train", weft.write("config.json", config_of(weft, "cuda", **what)), "--run", folder_of(weft),
                         env=env)
    pids = ranks_of(process.pid)
    _, err = process.communicate(timeout=120)
    assert gone(pids), "a rank is left"
    return process.returncode, err


@drawn_case
def what_is_pinned_is_told(weft):
    code, err = ended(weft, environment_of("cuda", 2), away=STATE, ranks=2, steps=1)
    told = re.findall(r"the host's tier: (\S+ \S+) a rank, pinned in \d+\.\d\d s", err)
    assert code == 0 and len(told) == 1, (code, err)
    code, err = ended(weft, environment_of("cuda"), steps=1)
    assert code == 0 and "pinned" not in err, (code, err)


@drawn_case
def memory_that_is_not_pinned_ends_the_run(weft):
    """One or all ranks refuse, with advice. A copy of pageable memory is found."""
    for fault, says in (2, "keep less on the host"), (719, "cannot pin the host's memory"):
        env = environment_of("cuda", 2, WEFT_DOUBLE_FAIL=f"cudaHostRegister:1:{fault}", WEFT_DOUBLE_FAIL_RANK="1")
        code, err = ended(weft, env, away=STATE, ranks=2)
        assert code == SYSTEM and says in err and "rank 1" in err and FINDING not in err, (code, err)
    code, err = ended(weft, environment_of("cuda", WEFT_DOUBLE_DROP="cudaHostRegister:1"), away=SAVED)
    assert code != 0 and "double: unpinned: " in err, (code, err)


@drawn_case
def a_copy_that_fails_ends_the_run(weft):
    """Copies fail at every place of the module that copies, in the mailbox and in tiers."""
    sites = Path(weft.path("sites"))
    code, err = ended(weft, environment_of("cuda", WEFT_DOUBLE_SITES=str(sites)), away=ALL_AWAY, steps=2)
    assert code == 0, (code, err)
    lines = [line.split() for line in sites.read_text(encoding="utf-8").splitlines()]
    places = sorted({place for _, function, place, _ in lines if function == "cudaMemcpyAsync"})
    told = []
    for place in places:
        env = environment_of("cuda", WEFT_DOUBLE_FAIL=f"cudaMemcpyAsync@{place}:3:719")
        code, err = ended(weft, env, away=ALL_AWAY, steps=2)
        assert code == SYSTEM and re.search("CUDA|GPU", err) and FINDING not in err, (place, code, err)
        told += re.findall(r"cannot copy (?:to|from) the host's tier", err)
    assert told, places


@drawn_case
def a_rank_killed_where_something_is_copied_ends_the_other(weft):
    for place in ("copy_up", "copy_down", "saved_down", "saved_up") if ALL else ("copy_down",):
        env = environment_of("cuda", 2, WEFT_FAILPOINT=f"{place}:rank=1:step=2")
        code, err = ended(weft, env, away=ALL_AWAY, ranks=2, steps=4)
        assert code == LOST and "rank 1" in err and "signal 9" in err and FINDING not in err, (place, code, err)


UNITS = 5  # of models.LAYERS: the first step's copies up precede no update


@drawn_case
def an_event_that_nobody_waits_for_is_found(weft):
    """After a copy up, an update or a backward could begin before the bytes arrive. After a copy down of saved
    activations, they could be copied up too early. If a plan waits for a later copy of the same stream, dropping an
    event has no effect.
    """
    planted = [(STATE, "from", UNITS + 1, UNITS), (SAVED, "from", 1, 4), (SAVED, "to", 1, 2)]
    for away, direction, first, n in planted:
        found = 0
        for at in range(first, first + n):
            env = environment_of("cuda", doubles=WATCHED, WEFT_DOUBLE_DROP=f"a copy {direction} the host:{at}")
            code, err = ended(weft, env, away=away, steps=2)
            assert (code != 0) == ("double: order: " in err), (away, direction, at, code, err)
            found += code != 0
            if found and not ALL:
                break
        assert found > 0, (away, direction, "no event is missed")


@drawn_case
def copies_are_measured(weft):
    """A profile has times of copies each way and of both at once. A config without figures is measured first."""
    config = config_of(weft, "cuda", away=ALL_AWAY)
    config["cluster"].update({"device": {"type": "cuda"}, "host": {"memory_limit": "64MiB"}})
    weft.expect(0, "profile", weft.write("config.json", config), "-o", weft.path("copies.json"), env=environment_of("cuda"))
    with open(weft.path("copies.json"), encoding="utf-8") as file:
        host = json.load(file)["host"]
    for way in ("down", "up"):
        assert len(host[way]["bytes"]) >= 4 and min(host[way]["ns"]) > 0 and 1 <= host[f"{way}_beside"] <= 1024, host
    assert host["update_bytes_per_s"] == 0, host
    disk = {"path": ".", "limit": "1GiB"}
    of_disk = {**config, "cluster": {**config["cluster"], "disk": disk}, "plan": {**config["plan"], "offload": {"state": ["disk"]}}}
    weft.expect(0, "profile", weft.write("disk.json", of_disk), "-o", weft.path("both.json"), env=environment_of("cuda"))
    with open(weft.path("both.json"), encoding="utf-8") as file:
        found = json.load(file)["disk"]
    for way in ("read", "write"):
        assert min(found[way]["ns"]) > 0, found
    there, kinds = is_away(weft, run(weft, config)[0], ALL_AWAY)
    assert there, kinds


@drawn_case
def a_disk_without_memory_of_the_host_is_refused_and_planned_for(weft):
    config = config_of(weft, "cuda")
    config["cluster"]["disk"] = models.DISK
    path = weft.write("config.json", config)
    weft.expect(65, "train", path, "--run", "disk", env=environment_of("cuda"),
                says=["passes through the host's memory", "give cluster.host"])
    weft.expect(0, "plan", path)


@drawn_case
def a_ring_that_cannot_be_pinned_ends_the_run(weft):
    code, err = ended(weft, environment_of("cuda", WEFT_DOUBLE_FAIL="cudaHostRegister:1:2"), away=DISK)
    assert code == SYSTEM and "keep less on the host" in err and FINDING not in err, (code, err)


@case
def what_was_compared_is_counted(weft):
    del weft
    print(f"# {len(COMPARED)} runs were compared")
    assert len(COMPARED) >= (240 if ALL else 1 if left_out() else 21), len(COMPARED)


main(sys.argv[1])
