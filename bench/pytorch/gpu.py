#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FSDP2's default and a plan of Weft on one GPU with two ranks: memory and order, not speed.

    PYTHONPATH=python WEFT=build/cli/weft bench/pytorch/gpu.py [--width 1024] [--layers 16] [--json gpu.json]

Two ranks share the GPU, so each has at most 0.45 of its memory. NCCL refuses that unless its release knows
NCCL_MULTI_RANK_GPU_ENABLE; otherwise gloo moves CUDA tensors. A decoder is on meta when it is planned, in bf16. The limits are
the peak of FSDP2's default and 1.1 of it, and the default's reserved memory as reserved_limit. Each line has the measured and
the planned bytes, allocated and reserved, and whether order and losses are the planned ones. --cpu rehearses on gloo ranks
without a GPU. Exit code 1 if an order or losses differ or memory exceeds the plan, 77 without a GPU.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from models import Gpt, loss_of
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

import weft

RANKS, SHARE = 2, 0.45
POLICY = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
CALLS = ("set_reduce_scatter_max_input_buffers", "finalize_backward", "reset_iter_state", "set_custom_all_gather")


def begin(rank, options):
    """Joins the ranks; returns the device and the backend that moves a tensor."""
    device = torch.device("cpu" if options.cpu else "cuda")
    if not options.cpu:
        torch.cuda.set_device(0)
        torch.cuda.set_per_process_memory_fraction(SHARE)
    for number, backend in enumerate(["gloo"] if options.cpu else ["nccl", "cpu:gloo,cuda:gloo"]):
        try:
            dist.init_process_group(backend, init_method=f"file://{options.meet}{number}", rank=rank, world_size=RANKS,
                                    timeout=timedelta(seconds=60))
            dist.all_reduce(torch.ones(1, device=device))
            if not options.cpu:
                torch.cuda.synchronize()
            return device, backend
        except (RuntimeError, ValueError) as error:
            why = str(error).splitlines()[0]
            if rank == 0:
                print(f"{backend}: {why}", flush=True)
            if dist.is_initialized():
                dist.destroy_process_group()
    sys.exit("no backend moves tensors between two ranks on one GPU")


class Run:
    """Losses, and the record of the last step: order, step, allocated and reserved bytes."""

    def __init__(self, options, device, wrap):
        with torch.device("meta"):
            model = Gpt(options.width, options.width // 64, options.layers)
        wrap(model)
        model.to_empty(device=device)
        torch.manual_seed(0)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.02)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        torch.manual_seed(1 + dist.get_rank())
        self.losses = []
        for step in range(options.steps + 1):
            inputs, targets = (each.to(device) for each in model.batch())
            with weft.record(model, optimizer, memory=options.cpu and step == options.steps) as self.seen:
                loss = loss_of(model(inputs).float(), targets)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            self.losses.append(loss.item().hex())
        del model, optimizer
        if not options.cpu:
            torch.cuda.empty_cache()


def wrap_default(model):
    for unit in (*model.units(), model):
        fully_shard(unit, mp_policy=POLICY)


def run_rank(rank, options):
    begun = time.monotonic()
    device, backend = begin(rank, options)
    lacks = [name for name in CALLS if not hasattr(FSDPModule, name)]
    rows = []

    def say(name, run, plan=None, faults=()):
        seen, told = run.seen, plan.said["predicted"] if plan else {}
        rows.append({"name": name, "allocated": seen.peak_bytes, "reserved": seen.reserved_bytes, "faults": list(faults),
                     "planned": told.get("peak_bytes"), "planned_reserved": told.get("reserved_bytes")})
        if rank == 0:
            print(f"{name:22} allocated {seen.peak_bytes:12d} of {told.get('peak_bytes', 0):12d}  reserved {seen.reserved_bytes:12d} "
                  f"of {told.get('reserved_bytes', 0):12d}  {'; '.join(faults) or 'as planned'}", flush=True)
    if rank == 0:
        print(f"PyTorch {torch.__version__}, {backend}, {device}" + (f"; lacks {', '.join(lacks)}" if lacks else ""), flush=True)
    default = Run(options, device, wrap_default)
    say("FSDP2's default", default)
    with torch.device("meta"):
        model = Gpt(options.width, options.width // 64, options.layers)
        batch = model.batch()
    measured = weft.measure(model, batch, lambda outputs, targets: loss_of(outputs.float(), targets), mp_policy=POLICY,
                            device=device)
    limits = [("at its peak", {"memory_limit": f"{int(1.005 * default.seen.peak_bytes)}B"}),
              ("at 1.1 of it", {"memory_limit": f"{int(1.1 * default.seen.peak_bytes)}B"})]
    if default.seen.reserved_bytes:
        limits.append(("at its reserved", {"reserved_limit": f"{default.seen.reserved_bytes}B"}))
    for name, limit in limits:
        if time.monotonic() - begun > options.seconds:
            print(f"{name}: no time left") if rank == 0 else None
            continue
        try:
            plan = weft.plan(measured, None, None, mp_policy=POLICY, optimizer=None if options.cpu else "foreach", **limit)
        except weft.WeftError as error:
            print(f"{name}: {error}", flush=True) if rank == 0 else None
            continue
        run = Run(options, device, lambda model, plan=plan: plan.apply(model, mp_policy=POLICY))
        faults = run.seen.compare(plan)
        faults += [] if run.losses == default.losses else ["other losses"]
        if run.seen.reserved_bytes > plan.said["predicted"].get("reserved_bytes", 1 << 62):
            faults.append("more reserved than planned")
        say(name, run, plan, faults)
    if rank == 0 and options.json:
        Path(options.json).write_text(json.dumps({"torch": torch.__version__, "backend": backend, "device": str(device),
                                                  "lacks": lacks, "rows": rows}, indent=2))
    os._exit(any(row["faults"] for row in rows))  # threads of PyTorch abort some interpreters that end under load


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=200, help="begin no plan after so long")
    parser.add_argument("--json", help="write the figures to a file")
    parser.add_argument("--cpu", action="store_true", help="rehearse without a GPU")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meet", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        run_rank(options.rank, options)
    if not options.cpu and not torch.cuda.is_available():
        print("skipped: no GPU. Not measured: allocated and reserved memory of FSDP2's default and of plans, and their order on "
              "streams. --cpu rehearses the script")
        return 77
    with tempfile.TemporaryDirectory() as directory:
        env = {**os.environ, "NCCL_MULTI_RANK_GPU_ENABLE": "1"}
        ranks = [subprocess.Popen([sys.executable, str(Path(__file__)), *sys.argv[1:], "--rank", str(rank), "--meet",
                                   f"{directory}/meet"], env=env) for rank in range(RANKS)]
        return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
