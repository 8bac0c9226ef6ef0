#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two nodes of two ranks, and all that may happen on the second one: faults, stops, numbers that are not finite, its
part of the fingerprint, its channels, and parameters of --from."""
import array
import contextlib
import json
import os
import signal
import sys
import time

from configs import tiny
from saved import copy_step, crc32c, manifest, rewrite, same_files, tensors
from tap import case, drawn_case, main

OUTER = {"every": 3, "momentum": 0.9, "lr": 0.7}
# Steps of nodes on their own, and steps of all ranks with copies on each node.
WAYS = {"across": {"train__across": {"every": 3}}, "outer": {"train__across": OUTER},
        "hsdp": {"plan__policies": "hsdp"}, "nodes": {"plan__policies": "nodes"}}


def two_nodes(**changes):
    return tiny(**{"cluster__ranks": 4, "cluster__ranks_per_node": 2, "cluster__threads": 1,
                   "cluster__link__inter": {"alpha": "100us", "bandwidth": "100MB/s"},
                   "train__steps": 8, "train__checkpoint": {"every": 2, "keep": 9, "at_end": True},
                   "plan__work_limit": "20M", **changes})


def result_of(weft, run):
    return json.loads((weft.directory / run / "result.json").read_text())


def train(weft, run, *flags, **changes):
    weft.expect(0, "train", weft.write(f"{run}.json", two_nodes(**changes)), "-q", "--run", run, *flags)
    return result_of(weft, run)["fingerprint"]


@case
def a_fault_of_any_rank_ends_all_with_its_code(weft):
    for name in ("across", "hsdp"):
        config = weft.write("run.json", two_nodes(**WAYS[name]))
        for rank in (1, 3):
            for does, code, words in (("error", 70, f"rank {rank}: "), ("kill", 69, f"rank {rank} ")):
                weft.expect(code, "train", config, "-q", "--run", weft.fresh("run"), says=words,
                            env={"WEFT_FAILPOINT": f"backward:rank={rank}:step=4:do={does}"})


def processes(parent):
    """The ranks that a launching process has started: {rank: process}."""
    found = {}
    with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
        children = file.read().split()
    for pid in children:
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                words = dict(word.split(b"=", 1) for word in file.read().split(b"\0") if b"=" in word)
            if b"RANK" in words:
                found[int(words[b"RANK"])] = int(pid)
    return found


def stop_one_rank(weft, config, rank):
    """SIGUSR1 reaches one rank alone, as a scheduler of one host sends it. Returns the step of the checkpoint."""
    process = weft.start("train", config, "--run", weft.fresh("run"), "--set", "train.steps=1000000", "--set",
                         "train.checkpoint.every=0")
    end = time.monotonic() + 60
    lines = weft.directory / "run/metrics.jsonl"
    while not lines.exists() or lines.read_text().count("\n") < 5:
        assert process.poll() is None and time.monotonic() < end, process.stderr.read()
        time.sleep(0.01)
    os.kill(processes(process.pid)[rank], signal.SIGUSR1)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 75, (rank, process.returncode, err)
    names = os.listdir(weft.path("run/checkpoints"))
    assert len(names) == 1, (rank, names)
    return int(names[0][5:])


@drawn_case
def a_stop_of_any_rank_stops_all_after_the_step(weft):
    for name, ranks in (("across", (1, 2, 3)), ("hsdp", (3,))):
        config = weft.write("run.json", two_nodes(**WAYS[name]))
        for rank in ranks:
            step = stop_one_rank(weft, config, rank)
            flags = ("--set", f"train.steps={step + 2}")
            weft.expect(0, "train", config, "-q", "--run", "run", "--resume", *flags)
            weft.expect(0, "train", config, "-q", "--run", weft.fresh("whole"), *flags)
            assert result_of(weft, "run")["fingerprint"] == result_of(weft, "whole")["fingerprint"], (name, rank)


@case
def a_replay_keeps_rounds_where_a_group_cannot_be_named(weft):
    """Averages over nodes and delayed reductions exclude train.group."""
    for changes in ({"train__across": OUTER}, {"train__delay": 1, "train__clip_norm": 0}):
        for reduce in ("step", "micro_step"):
            if "train__delay" in changes and reduce == "micro_step":
                continue
            train(weft, weft.fresh("run"), train__steps=6, train__grad_accum=2, train__reduce=reduce, **changes)
            found = json.loads(weft.expect(0, "replay", "run", "-q", "--json"))
            assert found["equal"] and found["compared"] == 6, (changes, reduce, found)


@case
def a_number_that_is_not_finite_has_its_step_and_rank(weft):
    """Without clipping the gradients are found when the next forward is done, and no node has updated with them."""
    for name in ("across", "hsdp"):
        for clip, words in ((1.0, "step 2: loss "), (0, "step 2: gradients of the step before it are not finite")):
            config = weft.write("run.json", two_nodes(train__clip_norm=clip, **WAYS[name]))
            for rank in (1, 3):
                weft.expect(79, "train", config, "-q", "--run", weft.fresh("run"), says=(words, f"rank {rank}"),
                            env={"WEFT_FAILPOINT": f"backward:rank={rank}:step=2:do=nan"})


def change_number(weft, step, tensor):
    """Changes the lowest bit of a tensor's first number in a checkpoint, and its checksum with it."""
    name = "optimizer.safetensors" if ".node1" in tensor else "model.safetensors"
    path = weft.directory / step / name
    data = bytearray(path.read_bytes())
    # Other tensors may have the same bytes.
    begin = 8 + int.from_bytes(data[:8], "little")
    data[begin + json.loads(data[8:begin])[tensor]["data_offsets"][0]] ^= 1
    path.write_bytes(data)
    checksum = next(file["crc32c"][0] for file in manifest(weft, step)["files"] if file["name"] == name)
    rewrite(str(weft.directory / step / "manifest.json"), f'"crc32c": [{checksum}]', f'"crc32c": [{crc32c(data)}]')


@drawn_case
def each_nodes_parameters_are_in_the_fingerprint(weft):
    """Between averages a changed number of the second node changes the fingerprint, and no number of the first node."""
    still = {"type": "sgd", "lr": 1e-30}
    changes = {"train__across": {"every": 50}, "train__optimizer": still}
    train(weft, "run", train__steps=4, **changes)
    # Updates are far below the last bit of a weight. A bias is as small as its updates, and may be rounded to the same.
    names = sorted(name for name in tensors(weft, "run/checkpoints/step-4/model.safetensors")
                   if "h.1" in name and name.endswith("weight"))
    seen = {}
    for number, tensor in enumerate((None, names[0], names[0] + ".node1", names[-1] + ".node1")):
        run, step = f"run-{number}", f"run-{number}/checkpoints/step-4"
        copy_step(weft, "run", run, 4)
        if tensor:
            change_number(weft, step, tensor)
        seen[tensor] = train(weft, run, "--resume", train__steps=5, **changes)
        first, unchanged = (tensors(weft, f"{r}/checkpoints/step-5/model.safetensors") for r in (run, "run-0"))
        assert (first == unchanged) == (tensor != names[0]), tensor
    assert len(set(seen.values())) == len(seen), seen


@drawn_case
def two_channels_have_the_bits_of_one(weft):
    for changes in WAYS.values():
        for planner in ("all-" + changes.get("plan__policies", "dp"), "random"):
            flags = ("--planner", planner, "--set", "plan.blocks=3")
            bits = {n: train(weft, weft.fresh(f"of-{n}"), *flags, **changes, cluster__channels=n) for n in (1, 2)}
            assert bits[1] == bits[2], (changes, planner, bits)


def numbers_of(weft, path, suffix=""):
    """The elements of all tensors whose names end with the suffix, in order of the names before it."""
    found = {name[:len(name) - len(suffix)]: array.array("f", data) for name, data in tensors(weft, path).items()
             if name.endswith(suffix) and (suffix or "." in name)}
    return {name: found[name] for name in sorted(found)}


@drawn_case
def all_nodes_begin_with_the_parameters_of_from(weft):
    """With steps too small for fp32 all nodes keep them, over averages too. An anchor of 0 would multiply them."""
    train(weft, "origin", train__steps=3, plan__policies="dp")
    given = numbers_of(weft, "origin/checkpoints/step-3/model.safetensors")
    still = {"type": "sgd", "lr": 1e-30}
    for name in ("across", "outer"):
        for planner in ("all-dp", "all-fsdp"):
            run = f"{name}-{planner}"
            train(weft, run, "--from", "origin", "--planner", planner, train__optimizer=still, **WAYS[name])
            for step in (2, 4, 8):
                path = f"{run}/checkpoints/step-{step}"
                second = numbers_of(weft, f"{path}/optimizer.safetensors", ".node1")
                for what, found in (("model", numbers_of(weft, f"{path}/model.safetensors")), ("node 1", second)):
                    assert found.keys() == given.keys(), (run, what)
                    for tensor, values in given.items():
                        apart = max(abs(a - b) for a, b in zip(values, found[tensor]))
                        assert apart <= 1e-6 * max(map(abs, values)), (run, step, what, tensor, apart)


@drawn_case
def a_run_from_another_one_goes_on_under_any_plan(weft):
    train(weft, "origin", train__steps=3)
    whole = train(weft, "whole", "--from", "origin", train__across=OUTER)
    for planner, step in (("all-fsdp", 2), ("all-zero1", 4)):
        run = f"on-{planner}"
        copy_step(weft, "whole", run, step)
        assert train(weft, run, "--resume", "--planner", planner, train__across=OUTER) == whole, planner
        same_files(weft, f"{run}/checkpoints/step-8", "whole/checkpoints/step-8")


main(sys.argv[1])
