#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole runs on an emulated GPU: the program with the kernels of runtime/nn/cuda instead of the CPU's.

    runs.py WEFT EMULATED [--all]

With plain products a run in f32 has the CPU's bits. Otherwise its bits are the same for every policy, planner,
block, emulator seed and GPU, and near the CPU's. Prints the number of compared runs.
"""
import itertools
import json
import os
import random
import struct
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[at] / folder) for at, folder in ((2, "cli"), (3, "bench/gpu"))]
from models import BERT, GEMMA, MASKED, VIT  # noqa: E402
from tap import case, main  # noqa: E402

ALL = "--all" in sys.argv
EMULATED = os.path.abspath(sys.argv[2])
STEPS = 20 if ALL or "WEFT_TEST_ALL" in os.environ else 8
COMPARED = []

# Sizes are odd, so every kernel has partial tiles.
BLOCKS = [
    {"name": "wte", "type": "embedding", "vocab": 61, "positions": 9, "hidden": 24},
    {"name": "h.{i}", "type": "transformer_block", "repeat": 2, "hidden": 24, "heads": 3, "ffn": 40},
    {"name": "ln_f", "type": "layer_norm", "hidden": 24},
    {"name": "head", "type": "lm_head", "vocab": 61, "hidden": 24, "bias": True},
]
MAPS = [
    {"name": "wte", "type": "embedding", "vocab": 61, "positions": 0, "hidden": 24},
    {"name": "up", "type": "linear", "hidden": 24, "outputs": 40, "bias": True},
    {"name": "gelu", "type": "gelu", "hidden": 40},
    {"name": "down", "type": "linear", "hidden": 40, "outputs": 24, "bias": False},
    {"name": "relu", "type": "relu", "hidden": 24},
    {"name": "head", "type": "lm_head", "vocab": 61, "hidden": 24, "bias": True},
]
# Kinds with RMS norms, rotary positions, a gate, and heads that share keys.
LLAMA = [
    {"name": "wte", "type": "embedding", "vocab": 61, "positions": 0, "hidden": 24},
    {"name": "h.0", "type": "llama_block", "hidden": 24, "heads": 4, "kv_heads": 2, "head_dim": 8, "ffn": 40,
     "qkv_bias": True},
    {"name": "h.1", "type": "qwen3_block", "hidden": 24, "heads": 3, "kv_heads": 1, "head_dim": 8, "ffn": 40},
    {"name": "h.2", "type": "olmo2_block", "hidden": 24, "heads": 3, "head_dim": 8, "ffn": 40},
    {"name": "norm", "type": "rms_norm", "hidden": 24},
    {"name": "head", "type": "lm_head", "vocab": 61, "hidden": 24, "bias": False},
]
LLAMA_FINGERPRINT = "6b7f319c3495e453ae7722d93ba791e1"  # of 8 steps


def tokens_of(count, below):
    numbers = random.Random(3)
    tokens = [numbers.randrange(below) for _ in range(count)]
    return struct.pack("<3i", 20240520, 1, count).ljust(1024, b"\0") + struct.pack(f"<{count}H", *tokens)


def config_of(weft, ranks=2, planner="all-sdp", dtype="f32", optimizer="adamw", layers=None, **changes):
    layers = layers or BLOCKS
    train = {"steps": STEPS, "micro_batch": 1, "seq_len": 9, "seed": 5,
             "optimizer": {"type": optimizer, "lr": 1e-2}, "clip_norm": 0.5,
             "precision": {"compute": dtype}, "checkpoint": {"at_end": False}}
    train["data"] = weft.write("tokens", tokens_of(9000, 61))
    plan = {"planner": planner, "work_limit": "300M", "fuse": False}
    for key, value in changes.items():
        (plan if key in ("blocks", "fuse", "policies", "recompute", "micro_step_order", "update_in") else train)[key] = value
    return {"version": 1, "model": {"layers": layers}, "train": train, "plan": plan,
            "cluster": {"ranks": ranks, "memory_limit": "1GiB",
                        "device": {"flops": {"f32": "50G", "bf16": "50G", "f16": "50G"},
                                   "memory_bandwidth": "10GB/s"},
                        "link": {"intra": {"alpha": "20us", "bandwidth": "1GB/s"}}}}


def trained(weft, config, way, emulated, env=None):
    """Trains; returns the fingerprint, and losses and norms of all steps."""
    path = weft.write("config.json", config)
    before, weft.program = weft.program, EMULATED if emulated else weft.program
    try:
        out = weft.expect(0, "train", path, "--run", f"run{len(os.listdir(weft.directory))}", "--json",
                          env={"WEFT_GEMM": way, **(env or {})}, timeout=600)
    finally:
        weft.program = before
    lines = [json.loads(line) for line in out.splitlines()]
    steps = [(line["loss"], line.get("norm")) for line in lines if line["kind"] == "step"]
    assert len(steps) == config["train"]["steps"], f"{len(steps)} steps"
    return lines[-1]["fingerprint"], steps


def same_as_the_cpu(weft, **what):
    config = config_of(weft, **what)
    wanted = trained(weft, config, "plain", False)
    got = trained(weft, config, "plain", True)
    COMPARED.append(what)
    assert got == wanted, f"{what}: {got[0]} {got[1][-1]}, not {wanted[0]} {wanted[1][-1]}"


def all_the_same(weft, way, variants, **what):
    """Checks that all variants, pairs of changes of config and environment, have the same bits. Returns the first
    result.
    """
    first = None
    for changes, env in variants:
        got = trained(weft, config_of(weft, **{**what, **changes}), way, True, env)
        COMPARED.append((what, changes, env))
        first = first or got
        assert got == first, f"{what} {changes} {env}: {got[0]} {got[1][-1]}, not {first[0]} {first[1][-1]}"
    return first


PLANNERS = ["all-dp", "all-sdp", "all-zero1", "all-fsdp", "greedy", "ilp", "fsdp2", "random"]


@case
def with_plain_products_f32_has_the_cpus_bits(weft):
    for ranks in (1, 2, 3, 4):
        same_as_the_cpu(weft, ranks=ranks, planner="all-fsdp" if ranks % 2 else "all-sdp")
    for planner, ranks in itertools.product(PLANNERS if ALL else ["ilp"], (1, 2, 3, 4) if ALL else (2,)):
        same_as_the_cpu(weft, ranks=ranks, planner=planner)


@case
def so_with_every_optimizer_cadence_and_kind(weft):
    for optimizer in ("sgd", "lamb"):
        same_as_the_cpu(weft, optimizer=optimizer)
    for reduce in ("micro_step", "step"):
        same_as_the_cpu(weft, reduce=reduce, grad_accum=2, planner="all-fsdp")
    same_as_the_cpu(weft, micro_step_order="layer", grad_accum=2, planner="all-fsdp")
    same_as_the_cpu(weft, clip_norm=0, planner="all-fsdp", ranks=3)
    same_as_the_cpu(weft, clip_norm=0, planner="all-fsdp", update_in=1)
    same_as_the_cpu(weft, layers=MAPS, planner="all-fsdp")
    same_as_the_cpu(weft, recompute="whole", planner="all-fsdp")
    for optimizer, reduce, clip, ranks in itertools.product(
            ("adamw", "sgd", "lamb"), ("micro_step", "step"), (0, 0.5), (2, 3)) if ALL else ():
        same_as_the_cpu(weft, optimizer=optimizer, reduce=reduce, clip_norm=clip, ranks=ranks,
                        grad_accum=2, planner="all-fsdp")


@case
def policies_planners_blocks_seeds_and_gpus_change_no_bit(weft):
    some = [({"planner": p}, {}) for p in (PLANNERS if ALL else ["all-dp", "all-fsdp", "ilp"])]
    some += [({"recompute": "whole"}, {})]
    some += [({"planner": "all-fsdp", "blocks": n}, {"WEFT_EMULATION_SEED": str(n)})
             for n in ((1, 2, 3, 5, 7) if ALL else (3,))]
    some += [({}, {"WEFT_EMULATION_SEED": str(seed), "WEFT_EMULATION_GPU": gpu})
             for seed, gpu in (enumerate(("sm_80", "sm_86", "sm_89", "sm_90", "sm_120")) if ALL else [(9, "sm_89")])]
    for dtype, ranks in itertools.product(("f32", "bf16", "f16"), (1, 2, 3, 4) if ALL else (3,)):
        all_the_same(weft, "own", some, dtype=dtype, ranks=ranks)


@case
def own_products_are_near_the_cpus(weft):
    """Compares the losses of all steps: the same curve up to rounding."""
    for dtype, most in (("f32", 1e-7), ("bf16", 1e-3), ("f16", 1e-4)):
        config = config_of(weft, dtype=dtype, optimizer="sgd")
        wanted, got = (trained(weft, config, way, way == "own")[1] for way in ("plain", "own"))
        COMPARED.append(dtype)
        worst = max(abs(a - b) / abs(b) for (a, _), (b, _) in zip(got, wanted))
        print(f"# {dtype}: losses are at most {worst:.1e} off the CPU's")
        assert got != wanted and worst < most, f"{dtype}: {worst}"


@case
def a_run_goes_on_from_one_device_to_the_other(weft):
    """A checkpoint of either device resumes on the other, to the same bits."""
    half = STEPS // 2
    config = config_of(weft, checkpoint={"every": half, "keep": 2})
    wanted = trained(weft, config, "plain", False)
    path, env = weft.write("config.json", config), {"WEFT_GEMM": "plain"}
    for first, then in ((EMULATED, weft.program), (weft.program, EMULATED)):
        name = os.path.basename(first)
        weft.program = first
        weft.expect(0, "train", path, "--run", f"half-{name}", "--json", env=env, timeout=600)
        saved = weft.path(f"half-{name}/checkpoints")
        middle = next(entry for entry in sorted(os.listdir(saved)) if entry.endswith(f"-{half}"))
        weft.program = then
        out = weft.expect(0, "train", path, "--run", f"rest-{name}", f"--resume={saved}/{middle}", "--json",
                          env=env, timeout=600)
        COMPARED.append(name)
        last = json.loads(out.splitlines()[-1])
        assert last["fingerprint"] == wanted[0], f"{last['fingerprint']}, not {wanted[0]}"


@case
def llama_has_the_cpus_bits_a_stored_fingerprint_and_resumes(weft):
    same_as_the_cpu(weft, layers=LLAMA, planner="all-fsdp", ranks=2, recompute="whole")
    path = weft.write("config.json", config_of(weft, layers=LLAMA, planner="all-fsdp", ranks=1,
                                               checkpoint={"every": STEPS // 2, "keep": 2}))
    weft.program = EMULATED
    for name, flags in (("half", []), ("rest", [f"--resume=half/checkpoints/step-{STEPS // 2}"])):
        out = weft.expect(0, "train", path, "--run", name, "--json", *flags, env={"WEFT_GEMM": "plain"}, timeout=600)
        got = json.loads(out.splitlines()[-1])["fingerprint"]
        assert STEPS != 8 or got == LLAMA_FINGERPRINT, f"{name}: {got}"


@case
def llamas_own_kernels_have_the_same_bits_everywhere_near_the_cpus(weft):
    for dtype, most in (("f32", 1e-6), ("bf16", 1e-3)):
        some = [({"planner": "all-fsdp"}, {})]
        if ALL or dtype != "f32":
            some += [({"planner": "all-dp", "recompute": "selective"},
                      {"WEFT_EMULATION_SEED": "9", "WEFT_EMULATION_GPU": "sm_90"})]
        _, got = all_the_same(weft, "own", some, dtype=dtype, optimizer="sgd", layers=LLAMA)
        _, wanted = trained(weft, config_of(weft, dtype=dtype, optimizer="sgd", layers=LLAMA), "plain", False)
        worst = max(abs(a - b) / abs(b) for (a, _), (b, _) in zip(got, wanted))
        print(f"# {dtype}: losses of llama are at most {worst:.1e} off the CPU's")
        assert worst < most, f"{dtype}: {worst}"


@case
def encoders_and_gemma_have_the_cpus_bits(weft):
    same_as_the_cpu(weft, layers=BERT, planner="all-fsdp", masked=MASKED, grad_accum=2, reduce="micro_step")
    same_as_the_cpu(weft, layers=VIT, planner="all-sdp", recompute="whole")
    same_as_the_cpu(weft, layers=GEMMA, planner="all-fsdp", recompute="selective", padding={"token": 7})
    same_as_the_cpu(weft, layers=BERT, planner="all-fsdp", recompute="whole", masked=MASKED, padding={"token": 7})


@case
def their_own_kernels_have_the_same_bits_everywhere_near_the_cpus(weft):
    """Tensor cores attend in all blocks but gemma2_block, which has a cap."""
    for name, layers, what in (("BERT", BERT, {"masked": MASKED}), ("GEMMA", GEMMA, {})):
        some = [({"planner": "all-fsdp"}, {}),
                ({"planner": "all-dp", "recompute": "selective"},
                 {"WEFT_EMULATION_SEED": "9", "WEFT_EMULATION_GPU": "sm_90"})]
        _, got = all_the_same(weft, "own", some, dtype="bf16", optimizer="sgd", layers=layers, **what)
        _, wanted = trained(weft, config_of(weft, dtype="bf16", optimizer="sgd", layers=layers, **what), "plain", False)
        worst = max(abs(a - b) / abs(b) for (a, _), (b, _) in zip(got, wanted))
        print(f"# losses of {name} in bf16 are at most {worst:.1e} off the CPU's")
        assert worst < 2e-3, f"{name}: {worst}"


@case
def what_was_compared_is_counted(weft):
    del weft
    print(f"# {len(COMPARED)} runs of {STEPS} steps were compared")
    assert len(COMPARED) > (200 if ALL else 20), len(COMPARED)


main(sys.argv[1])
