#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in host memory (train.checkpoint.host): ranks die at every place, and the run goes on from memory with at
most K steps lost, in the bits of the undisturbed run. WEFT_HISTORIES and WEFT_HISTORIES_SEED give the number of random
histories and the first seed. TAP."""
import json
import os
import random
import re
import signal
import sys
import time

from configs import tiny
from saved import parameters
from tap import Skip, case, main

CORES = len(os.sched_getaffinity(0))
KEEP_PLACES = ("keep_begin", "keep_write", "keep_manifest", "keep_commit")
STEP_PLACES = ("update", "load", "forward", "backward", "norm", "all_gather", "reduce_scatter", "agree")
DEVICE = {"state": ["device"], "activations": ["device"]}
GO_ON = re.compile(r"(\d+) of \d+ ranks go on after step (\d+)(, from host memory|, from the disk|): "
                   r"(?:no step is lost|steps? (\d+)(?: to (\d+))?)")


def kept(weft, name="run.json", host=2, **changes):
    options = {"train__steps": 12, "train__micro_batch": 1, "train__grad_accum": 2, "train__reduce": "step",
               "train__checkpoint": {"every": 100, "host": host, "at_end": True}, "plan__offload": DEVICE,
               "cluster__host": {"memory_limit": "64MiB"}, "cluster__threads": 1, "plan__planner": "all-fsdp"}
    return weft.write(name, tiny(**{**options, **changes}))


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def is_stopped(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"
    except OSError:
        return False


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def run_stopping(weft, config, run, place, rank, decide, flags=("--elastic", "1:2")):
    """A failpoint stops the rank at each pass through the place. `decide` then kills the rank, or lets it go on."""
    process = weft.start("train", config, "--run", run, "-q", *flags,
                         env={"WEFT_FAILPOINT": f"{place}:rank={rank}:do=stop"})
    deadline, number = time.monotonic() + 120, 0
    while process.poll() is None and time.monotonic() < deadline:
        for pid in children(process.pid):
            if not is_stopped(pid):
                continue
            send(pid, signal.SIGKILL if decide(number, process.pid) else signal.SIGCONT)
            number += 1
        time.sleep(0.002)
    if process.poll() is None:
        process.kill()
    _, err = process.communicate()
    return process.returncode, err


def lost_steps(err):
    """Of each start after the first one: ranks, step that it went on after, source, steps lost."""
    rows = []
    for ranks, after, source, first, last in GO_ON.findall(err):
        lost = 0 if first == "" else int(last or first) - int(after)
        rows.append((int(ranks), int(after), source, lost))
    return rows


def need_two_cores():
    if CORES < 2:
        raise Skip("one core")


@case
def a_rank_dies_at_each_place_of_keeping(weft):
    """While step 6 is kept, so step 4 is in the other generation; after the last write, step 6 is complete."""
    need_two_cores()
    config = kept(weft)
    weft.expect(0, "train", kept(weft, "whole.json", host=0), "--run", weft.fresh("whole"), "-q")
    for place, rank, after in (("keep_begin", 0, 4), ("keep_write", 0, 4), ("keep_write", 1, 4), ("keep_manifest", 0, 4),
                               ("keep_commit", 0, 6)):
        code, err = run_stopping(weft, config, weft.fresh("run"), place, rank, lambda number, pid: number == 2)
        assert code == 0, (place, err)
        rows = lost_steps(err)
        assert len(rows) == 1 and rows[0][:3] == (2, after, ", from host memory"), (place, rows, err)
        assert rows[0][3] == 6 - after, (place, rows)
        assert parameters(weft, "run") == parameters(weft, "whole"), place


@case
def fewer_ranks_go_on_from_memory(weft):
    need_two_cores()
    config = kept(weft)
    weft.expect(0, "train", kept(weft, "whole.json", host=0), "--run", weft.fresh("whole"), "-q")
    _, _, err = weft.run("train", config, "--run", weft.fresh("run"), "-q", "--elastic", "1:2",
                         env={"WEFT_FAILPOINT": "forward:rank=1:step=6"})
    assert [row[:3] for row in lost_steps(err)] == [(2, 4, ", from host memory"), (1, 4, ", from host memory")], err
    assert parameters(weft, "run") == parameters(weft, "whole")
    # Each step has one line of metrics, also those that were done again.
    with open(weft.path("run/metrics.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    assert [line["step"] for line in lines if line["kind"] == "step"] == list(range(1, 13)), lines


@case
def the_newer_one_of_disk_and_memory_is_taken(weft):
    need_two_cores()
    for every, host, after, source in ((5, 3, 5, ", from the disk"), (3, 5, 5, ", from host memory")):
        checkpoint = {"every": every, "host": host, "asynchronous": False}
        config = kept(weft, train__checkpoint=checkpoint)
        code, err = run_stopping(weft, config, weft.fresh("run"), "forward", 1, lambda number, pid: number == 5)
        assert code == 0 and lost_steps(err)[0][:3] == (2, after, source), (every, err)


@case
def damage_in_memory_is_found(weft):
    """A bit of the newest parameters flips; the other generation is whole."""
    need_two_cores()
    config = kept(weft)
    weft.expect(0, "train", kept(weft, "whole.json", host=0), "--run", weft.fresh("whole"), "-q")

    def flip(number, pid):
        if number < 6:
            return False
        files = []
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            if "memfd:weft-checkpoint" in os.readlink(path):
                files.append((int(name), path))
        models = [path for _, path in sorted(files)][0::3]
        assert len(models) == 2, files
        for path in models[1:]:  # steps 2 and 6 are in the first generation, 4 in the second
            with open(path, "r+b") as file:
                file.seek(-3, os.SEEK_END)
                byte = file.read(1)
                file.seek(-1, os.SEEK_CUR)
                file.write(bytes([byte[0] ^ 1]))
        return number == 6

    code, err = run_stopping(weft, config, weft.fresh("run"), "forward", 1, flip)
    assert code == 0, err
    assert "It is left out" not in err and lost_steps(err)[0][1] == 6, err
    code, err = run_stopping(weft, config, weft.fresh("run"), "forward", 1,
                             lambda number, pid: flip(number + 2, pid) and number == 4)
    assert code == 0, err
    assert "is damaged in chunk 0" in err and "It is left out" in err and lost_steps(err)[0][1] == 2, err
    assert parameters(weft, "run") == parameters(weft, "whole")


@case
def a_failed_save_leaves_the_generation_before(weft):
    need_two_cores()
    config = kept(weft)
    _, _, err = weft.run("train", config, "--run", weft.fresh("run"), "-q", "--elastic", "1:2",
                         env={"WEFT_FAILPOINT": "keep_manifest:rank=0:step=6:do=error"})
    assert err.count("step 6 cannot be saved") == 1 and "host memory has step 4" in err, err
    checkpoint = {"every": 100, "host": 2, "required": True}
    weft.expect(74, "train", kept(weft, train__checkpoint=checkpoint), "--run", weft.fresh("run"), "-q", "--elastic",
                "1:2", says="step 6 cannot be saved", env={"WEFT_FAILPOINT": "keep_manifest:rank=0:step=6:do=error"})


@case
def the_bytes_are_in_the_plan_and_within_the_limit(weft):
    need_two_cores()
    config = kept(weft)
    tiers = json.loads(weft.expect(0, "plan", config, "--json"))["tiers"]
    planned = tiers[0]["checkpoint_bytes"]
    assert tiers[0]["name"] == "host" and tiers[0]["peak_bytes"] == planned, tiers
    told = weft.expect(0, "plan", config)
    assert "train.checkpoint.host" in told and "exposed" in told, told
    assert not any(words in told for words in ("another tier", "state of", "lanes  ")), told
    weft.expect(78, "plan", config, "--memory-limit", "16KiB", says="the least limit that fits is")
    exact = kept(weft, cluster__host={"memory_limit": f"{planned}B"})
    weft.expect(0, "train", exact, "--run", weft.fresh("run"), "-q", "--elastic", "2:2")
    with open(weft.path("run/result.json"), encoding="utf-8") as file:
        result = json.load(file)
    assert result["host_planned_bytes"] == planned, result
    assert planned - (192 << 10) <= result["host_measured_bytes"] <= planned, result
    code, _, err = weft.run("train", exact, "--run", weft.fresh("run"), "-q", "--elastic", "1:2")
    assert code == 64 and "with 1 rank, and cluster.host.memory_limit is" in err, (code, err)
    needed = re.search(r"raise it to (\d+B)", err).group(1)
    assert not os.path.exists(weft.path("run/config.json"))
    enough = kept(weft, cluster__host={"memory_limit": needed})
    weft.expect(0, "train", enough, "--run", weft.fresh("run"), "-q", "--elastic", "1:2")
    less = kept(weft, cluster__host={"memory_limit": f"{planned - 1}B"})
    for verb in (["plan", less], ["train", less, "--run", weft.fresh("run"), "--elastic", "1:2"]):
        weft.expect(78, *verb, says=["train.checkpoint.host: checkpoints of two steps take", f"raise it to {planned}B"])


@case
def other_values_are_refused(weft):
    config = kept(weft)
    for value, says in (("12", "a run of 12 steps has none after such a step"), ("50", "a run of 12 steps has none"),
                        ("-1", "out of range"), ("0.5", "not a whole number")):
        weft.expect(65, "plan", config, "--set", f"train.checkpoint.host={value}",
                    says=["$.train.checkpoint.host", says])
    weft.expect(65, "plan", weft.write("none.json", tiny(train__checkpoint={"host": 2})),
                says=["$.train.checkpoint.host", "give cluster.host.memory_limit"])
    weft.expect(65, "plan", config, "--set", "plan.for=fsdp2", says="is kept by `weft train` alone")
    weft.expect(0, "train", config, "--run", weft.fresh("run"), "-q",
                says="host memory keeps nothing without --elastic MIN:MAX")
    weft.expect(0, "plan", config, "--set", "train.checkpoint.host=0")


def live(weft, seed):
    draw = random.Random(seed)
    host, steps = draw.choice((1, 2, 3)), draw.randint(9, 14)
    optimizer = draw.choice(({"type": "adamw", "lr": 1e-3}, {"type": "sgd", "lr": 0.01, "momentum": 0.9}))
    checkpoint = {"every": draw.choice((0, 4, 100)), "host": host, "asynchronous": draw.random() < 0.5}
    changes = {"train__steps": steps, "train__optimizer": optimizer, "train__clip_norm": draw.choice((0, 0.5)),
               "plan__planner": draw.choice(("all-fsdp", "all-sdp", "random")), "plan__seed": draw.randrange(1000)}
    config = kept(weft, train__checkpoint=checkpoint, **changes)
    weft.expect(0, "train", kept(weft, "whole.json", host=0, **changes), "--run", weft.fresh("whole"), "-q")
    keeps = draw.random() < 0.6
    place = draw.choice(KEEP_PLACES if keeps else STEP_PLACES)
    rank = 0 if place in KEEP_PLACES and place != "keep_write" else draw.randrange(2)
    free, kills = [draw.randint(0, 2)], [0]

    def decide(_number, _pid):
        free[0] -= 1
        if free[0] >= 0 or draw.random() < 0.3:
            return False
        kills[0] += 1
        # The next kill comes after a step was kept, since two starts without one end the run.
        free[0] = 1 if keeps else host + 1
        return True

    code, err = run_stopping(weft, config, weft.fresh("run"), place, rank, decide)
    rows = lost_steps(err)
    assert code == 0 and len(rows) == kills[0], (seed, place, rank, rows, err)
    assert all(lost <= host for _, _, _, lost in rows), (seed, rows)
    assert parameters(weft, "run") == parameters(weft, "whole"), (seed, rows)
    return kills[0]


@case
def random_kills_lose_at_most_k_steps(weft):
    need_two_cores()
    first, n = int(os.environ.get("WEFT_HISTORIES_SEED", "1")), int(os.environ.get("WEFT_HISTORIES", "6"))
    kills = sum(live(weft, seed) for seed in range(first, first + n))
    print(f"# {n} histories with {kills} kills", flush=True)
    assert kills > 0, "no rank was killed"


main(sys.argv[1])
