#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steps of FSDP2's default and of Weft's plans on gloo ranks with a link of known speed.

    PYTHONPATH=python WEFT=build/cli/weft bench/pytorch/paced.py [--models gpt,cnn,tied,uneven] [--limits least,middle,most]

One thread a rank moves messages in order, and keeps the link busy for the bytes that a rank sends at that rate. Peaks are
MemTracker's. Limits are shares of the default's peak, or least, middle and most: the least that a plan fits, the peak of a
plan without a limit, and their mean. Each plan must run in its order, with the default's losses and parameters to the bit,
and with a peak of at most the plan's and at least 0.97 of it. --check-times also asks for steps within 7 % of the
prediction: a busy machine makes them indicative only. Exit code 1 if a check fails.

--ahead shows the times of a GPU, where the host runs ahead. A message is still moved when its hook is called, but its time
on the link begins at the events that FSDP2's streams wait for, which are earlier. A wait ends when both are over.
"""
import argparse
import hashlib
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from models import MODELS, loss_of
from torch.distributed.fsdp import fully_shard

import weft


class Sent(dist.distributed_c10d.Work):
    def __init__(self, waited=None):
        super().__init__()
        self.done, self.waited = threading.Event(), waited

    def wait(self, timeout=None):
        self.done.wait()
        if self.waited is not None:
            self.waited()
        return True


class Link:
    """Moves messages in order on one thread. A reduction waits until fewer than `cap` are under way.

    If the host runs `ahead`, gathers begin at FSDP2's events: `passed` is the time that the stream of gathers waits for, and
    `copied` that of the last copy-out in forward. Each wait for a gather is followed by its copy-out.
    """

    def __init__(self, rate, cap, ahead):
        self.rate, self.cap, self.ahead, self.reductions = rate, cap, ahead, []
        self.free = self.passed = self.copied = 0.0
        self.is_forward = True
        self.queue = queue.SimpleQueue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            move, size, begin, sent = self.queue.get()
            # The time at which a message before it was over may be past: its move took longer.
            self.free = max(self.free, begin) if self.ahead else time.perf_counter()
            self.free = end = self.free + size / self.rate
            move()
            move = None  # otherwise it holds its buffers until the next message
            time.sleep(max(0.0, end - time.perf_counter()))
            sent.done.set()

    def send(self, move, size, gathers):
        sent = Sent(self.copy_out if gathers else None)
        self.queue.put((move, size, self.passed if gathers else time.perf_counter(), sent))
        return sent

    def copy_out(self):
        now = time.perf_counter()
        if self.is_forward:
            self.passed, self.copied = max(self.passed, self.copied), now
        else:
            self.passed = now

    def begin_forward(self):
        self.is_forward = True
        self.passed = self.copied = time.perf_counter()

    def begin_backward(self):
        self.is_forward = False
        self.passed = max(self.passed, self.copied)

    def drain(self):
        while self.reductions:
            self.reductions.pop(0).wait()


class Comm:
    def __init__(self, link):
        self.link = link

    def allocate(self, size, *, dtype, device):
        return torch.empty(*size, dtype=dtype, device=device)


class Gather(Comm):
    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        sent = self.link.send(lambda: dist.all_gather_into_tensor(output_tensor, input_tensor, group),
                              input_tensor.nbytes * (dist.get_world_size() - 1), True)
        return sent if async_op else sent.wait() and None


class Reduce(Comm):
    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        waiting = self.link.reductions
        while len(waiting) >= self.link.cap:
            waiting.pop(0).wait()
        waiting.append(self.link.send(lambda: dist.reduce_scatter_tensor(output_tensor, input_tensor, op, group),
                                      output_tensor.nbytes * (dist.get_world_size() - 1), False))


class Run:
    """A training run: the median step in ms, peak, losses, a hash of all parameters, and the record of its last step."""

    def __init__(self, name, options, wrap, cap=1):
        torch.manual_seed(0)
        model = MODELS[name]()
        make_batch = model.batch
        wrap(model)
        self.link = Link(options.rate, cap, options.ahead)
        modules = [module for module in model.modules() if isinstance(module, dist.fsdp.FSDPModule)]
        for module in modules:
            module.set_custom_all_gather(Gather(self.link))
            module.set_custom_reduce_scatter(Reduce(self.link))
        model._set_unshard_async_op(True)  # on a CPU a gather is otherwise complete before its unit goes on
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        torch.manual_seed(1 + dist.get_rank())
        times, self.losses = [], []
        for step in range(options.steps + 2):
            batches = [make_batch() for _ in range(options.accumulate)]
            dist.barrier()
            begin = time.perf_counter()
            with weft.record(model, optimizer, memory=True) if step > options.steps else nullcontext() as self.seen:
                for number, (inputs, targets) in enumerate(batches):
                    if options.accumulate > 1:
                        model.set_requires_gradient_sync(number + 1 == len(batches))
                    self.link.begin_forward()
                    loss = loss_of(model(inputs), targets)
                    self.link.begin_backward()
                    loss.backward()
                    self.losses.append(loss.item().hex())
                self.link.drain()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
            times.append(1e3 * (time.perf_counter() - begin))
        self.step, self.peak = statistics.median(times[1:-1]), self.seen.peak_bytes
        self.full = [parameter.full_tensor().detach() for _, parameter in sorted(model.named_parameters())]
        self.hash = hashlib.sha256(b"".join(bytes(each.contiguous().view(torch.uint8).flatten().numpy())
                                            for each in self.full)).hexdigest()


def wrap_default(model):
    for unit in (*model.units(), model):
        fully_shard(unit)


def measure(name, options):
    torch.manual_seed(0)
    model = MODELS[name]()
    torch.manual_seed(1 + dist.get_rank())
    measured = weft.measure(model, model.batch(), loss_of)
    sizes = [1 << shift for shift in range(10, 27, 2)]
    ranks = dist.get_world_size()
    paced = [int(1e9 * size * (ranks - 1) / ranks / options.rate) for size in sizes]
    measured.collectives = {kind: (sizes, paced) for kind in ("all_gather", "reduce_scatter", "all_reduce")}
    return measured


def find_limits(measured, base, options):
    """Returns limits in bytes by their names."""
    def plan(limit):
        return weft.plan(measured, None, None, memory_limit=limit, planner=options.planner, host_ahead=options.ahead)
    named = {}
    if {"least", "middle", "most"} & set(options.limits.split(",")):
        most = plan(None).said["predicted"]["peak_bytes"]
        try:
            plan("1B")
        except weft.WeftError as error:
            least = int(re.findall(r"(\d+) bytes", str(error).partition("the least limit")[2])[0])
        named = {"least": least, "middle": (least + most) // 2, "most": most}
    return {name: named[name] if name in named else int(base * float(name)) for name in options.limits.split(",")}


def find_faults(run, default, plan, options):
    """Returns a sentence for each check that fails."""
    faults = list(run.seen.compare(plan))
    told = plan.said["predicted"]
    if run.losses != default.losses:
        faults.append("other losses")
    if run.hash != default.hash:
        faults.append("other parameters")
    if run.peak < 0.97 * told["peak_bytes"]:
        faults.append(f"the peak is {1 - run.peak / told['peak_bytes']:.1%} below the plan")
    if options.check_times and abs(1e6 * run.step / told["step_ns"] - 1) > 0.07:
        faults.append("the step is not within 7 % of the prediction")
    return faults


def describe_default(default, plan):
    """The planner's rule without a limit is FSDP2's default, where the host runs ahead."""
    return f"; the default's step {1e6 * default.step / plan.rule['step_ns'] - 1:+.1%} of its prediction"


def run_model(name, options, say):
    """Returns the number of plans that fail a check."""
    default, failed = Run(name, options, wrap_default), 0
    say(f"{name:8} FSDP2's default {default.step:7.0f} ms {'':10} {default.peak:11d} bytes")
    measured = measure(name, options)
    for share, limit in find_limits(measured, default.peak, options).items():
        try:
            plan = weft.plan(measured, None, None, memory_limit=f"{limit}B", planner=options.planner,
                             host_ahead=options.ahead)
        except weft.WeftError as error:
            say(f"{name:8} {share:15} {error}")
            continue
        run = Run(name, options, plan.apply, plan.said["max_reduce_scatter_inputs"])
        told, faults = plan.said["predicted"], find_faults(run, default, plan, options)
        failed += bool(faults)
        say(f"{name:8} {share:15} {run.step:7.0f} ms {1e6 * run.step / told['step_ns'] - 1:+9.1%} {run.peak:12d} bytes "
            f"{run.peak / told['peak_bytes'] - 1:+.2%}  {', '.join(faults) or 'as planned'}"
            f"{', late' if any(unit['finalize'] == 'end' for unit in plan.units) else ''}"
            f"{describe_default(default, plan) if options.ahead else ''}")
    return failed


def run_rank(rank, options):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{options.meet}", rank=rank, world_size=options.ranks)

    def say(text):
        if rank == 0:
            print(text, flush=True)
    failed = sum(run_model(name, options, say) for name in options.models.split(","))
    say(f"{failed} plans fail a check" if failed else "all plans pass")
    dist.destroy_process_group()
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default="gpt-10m", help=f"of {', '.join(MODELS)}")
    parser.add_argument("--rate", type=float, default=50e6, help="bytes that a rank sends in a second")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--limits", default="1.0,1.1", help="shares of the default's peak, or least, middle, most")
    parser.add_argument("--planner", default="ilp", help="Weft's planner")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--accumulate", type=int, default=1, help="micro-steps; the default runs them in no_sync")
    parser.add_argument("--ahead", action="store_true", help="the times of a GPU, where the host runs ahead")
    parser.add_argument("--check-times", action="store_true")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meet", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        return run_rank(options.rank, options)
    with tempfile.TemporaryDirectory() as directory:
        ranks = [subprocess.Popen([sys.executable, str(Path(__file__)), *sys.argv[1:], "--rank", str(rank), "--meet",
                                   f"{directory}/meet"]) for rank in range(options.ranks)]
        return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
