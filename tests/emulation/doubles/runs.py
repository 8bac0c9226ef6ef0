#!/usr/bin/env python3
"""Whole runs of one rank on the device "cuda": the program and the module as they are shipped, over the
doubles of CUDA's libraries.

    runs.py WEFT MODULE DOUBLES WATCHED

With plain products a run in f32 has the CPU's bits, losses, norms and fingerprint, whatever the policy and the
seed of the streams' delays. DOUBLES and WATCHED are folders of libraries; with the latter every use of memory
by kernels is ordered. Prints how many were compared."""
import json
import os
import random
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))
from tap import case, main  # noqa: E402

MODULE, DOUBLES, WATCHED = (os.path.abspath(path) for path in sys.argv[2:5])
COMPARED = []

# Odd sizes: no tile of a kernel is whole.
LAYERS = [
    {"name": "wte", "type": "embedding", "vocab": 61, "positions": 9, "hidden": 24},
    {"name": "h.{i}", "type": "transformer_block", "repeat": 2, "hidden": 24, "heads": 3, "ffn": 40},
    {"name": "ln_f", "type": "layer_norm", "hidden": 24},
    {"name": "head", "type": "lm_head", "vocab": 61, "hidden": 24, "bias": True},
]


def tokens_of(count, below):
    numbers = random.Random(3)
    tokens = [numbers.randrange(below) for _ in range(count)]
    return struct.pack("<3i", 20240520, 1, count).ljust(1024, b"\0") + struct.pack(f"<{count}H", *tokens)


def config_of(weft, device, planner="all-dp", steps=5, **train):
    return {"version": 1, "model": {"layers": LAYERS},
            "train": {"steps": steps, "micro_batch": 1, "seq_len": 9, "seed": 5,
                      "data": weft.write("tokens", tokens_of(9000, 61)), "clip_norm": 0.5,
                      "optimizer": {"type": "adamw", "lr": 1e-2}, "checkpoint": {"at_end": False}, **train},
            "plan": {"planner": planner, "time_limit": "5s", "fuse": False},
            "cluster": {"ranks": 1, "memory_limit": "1GiB",
                        "device": {"type": device, "flops": {"f32": "50G"}, "memory_bandwidth": "10GB/s"},
                        "link": {"intra": {"alpha": "20us", "bandwidth": "1GB/s"}}}}


def trained(weft, device, env, **what):
    """The fingerprint, and losses and norms of all steps."""
    config = config_of(weft, device, **what)
    out = weft.expect(0, "train", weft.write("config.json", config), "--run", f"run{len(os.listdir(weft.directory))}",
                      "--json", env={"WEFT_GEMM": "plain", **env}, timeout=500)
    lines = [json.loads(line) for line in out.splitlines()]
    steps = [(line["loss"], line.get("norm")) for line in lines if line["kind"] == "step"]
    assert len(steps) == config["train"]["steps"], f"{len(steps)} steps"
    return lines[-1]["fingerprint"], steps


def same_as_the_cpu(weft, doubles=DOUBLES, seed=1, **what):
    wanted = trained(weft, "cpu", {}, **what)
    got = trained(weft, "cuda", {"WEFT_CUDA_MODULE": MODULE, "LD_LIBRARY_PATH": doubles, "WEFT_DOUBLE_STOP": "1",
                                 "WEFT_DOUBLE_SEED": str(seed)}, **what)
    COMPARED.append(what)
    assert got == wanted, f"{what}: {got[0]} {got[1][-1]}, not {wanted[0]} {wanted[1][-1]}"


@case
def a_run_of_one_rank_has_the_cpus_bits(weft):
    for planner in ("all-dp", "all-fsdp"):
        same_as_the_cpu(weft, planner=planner)


@case
def so_with_other_optimizers_and_cadences(weft):
    for optimizer in ("sgd", "lamb"):
        same_as_the_cpu(weft, optimizer={"type": optimizer, "lr": 1e-2})
    same_as_the_cpu(weft, planner="all-sdp", grad_accum=2, reduce="micro_step")


@case
def delays_of_streams_change_no_bit(weft):
    for seed in (2, 3, 4):
        same_as_the_cpu(weft, seed=seed, planner="all-sdp")


@case
def every_use_of_memory_is_ordered(weft):
    same_as_the_cpu(weft, doubles=WATCHED, planner="all-fsdp", steps=2)


@case
def two_ranks_are_refused_for_want_of_nccl(weft):
    config = config_of(weft, "cuda")
    config["cluster"]["ranks"] = 2
    weft.expect(1, "train", weft.write("config.json", config), "--run", "two",
                env={"WEFT_CUDA_MODULE": MODULE, "LD_LIBRARY_PATH": DOUBLES, "WEFT_GEMM": "plain",
                     "WEFT_DOUBLE_GPUS": "2"}, says=["NCCL"])


@case
def what_was_compared_is_counted(weft):
    del weft
    print(f"# {len(COMPARED)} runs were compared")
    assert len(COMPARED) >= 9, len(COMPARED)


main(sys.argv[1])
