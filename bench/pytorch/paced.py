#!/usr/bin/env python3
"""Steps of FSDP2's default and of Weft's plans on two gloo ranks with a link of known speed.

    PYTHONPATH=python WEFT=build/cli/weft bench/pytorch/paced.py [--rate 50e6] [--steps 4] [--limits 1.0,1.1]

The model has 10.7 M parameters. One thread a rank moves messages in order, and keeps the link busy for the bytes that a
rank sends at that rate. Peaks are MemTracker's. Limits are shares of the default's peak. A busy machine makes times
indicative only.
"""
import argparse
import queue
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
from torch import nn
from torch.distributed.fsdp import fully_shard

import weft

WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 384, 6, 6, 256, 1


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        n, t, _ = x.shape
        parts = self.qkv(self.norms[0](x)).view(n, t, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(n, t, WIDTH))
        return x + self.down(nn.functional.gelu(self.up(self.norms[1](x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(256, WIDTH)
        self.h = nn.ModuleList([Block() for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, 256, bias=False)

    def forward(self, x):
        x = self.wte(x)
        for block in self.h:
            x = block(x)
        return self.head(x)


class Sent(dist.distributed_c10d.Work):
    def __init__(self):
        super().__init__()
        self.done = threading.Event()

    def wait(self, timeout=None):
        self.done.wait()
        return True


class Link:
    """Moves messages in order on one thread. A reduction waits until fewer than `cap` are under way."""

    def __init__(self, rate):
        self.rate, self.cap, self.reductions = rate, 1, []
        self.queue = queue.SimpleQueue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            move, size, sent = self.queue.get()
            end = time.perf_counter() + size / self.rate
            move()
            move = None  # otherwise it holds its buffers until the next message
            time.sleep(max(0.0, end - time.perf_counter()))
            sent.done.set()

    def send(self, move, size):
        sent = Sent()
        self.queue.put((move, size, sent))
        return sent

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
                              input_tensor.nbytes)
        return sent if async_op else sent.wait() and None


class Reduce(Comm):
    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        waiting = self.link.reductions
        while len(waiting) >= self.link.cap:
            waiting.pop(0).wait()
        waiting.append(self.link.send(lambda: dist.reduce_scatter_tensor(output_tensor, input_tensor, op, group),
                                      output_tensor.nbytes))


def loss_of(outputs, targets):
    return nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def train(wrap, finish, cap, options):
    """Returns the median step in ms, the peak in bytes and the last loss."""
    torch.manual_seed(0)
    model = wrap(Model())
    link = Link(options.rate)
    link.cap = cap
    for module in model.modules():
        if isinstance(module, dist.fsdp.FSDPModule):
            module.set_custom_all_gather(Gather(link))
            module.set_custom_reduce_scatter(Reduce(link))
    model._set_unshard_async_op(True)  # on a CPU a gather is otherwise complete before its unit goes on
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(1 + dist.get_rank())
    times, loss = [], 0.0
    for step in range(options.steps + 2):
        tokens = torch.randint(0, 256, (BATCH, CONTEXT + 1))
        dist.barrier()
        begin = time.perf_counter()
        with weft.record(model, optimizer, memory=True) if step > options.steps else nullcontext() as seen:
            loss = loss_of(model(tokens[:, :-1]), tokens[:, 1:])
            loss.backward()
            finish(model)
            link.drain()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[1:-1]), seen.peak_bytes, loss.item(), seen


def wrap_default(model):
    for module in (model.wte, *model.h, model.head, model):
        fully_shard(module)
    return model


def run_rank(rank, options):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{options.meet}", rank=rank, world_size=2)
    step, base, loss, _ = train(wrap_default, lambda model: None, 1, options)
    if rank == 0:
        print(f"FSDP2's default           {step:8.0f} ms {base:12d} bytes  loss {loss.hex()}", flush=True)
    torch.manual_seed(0)
    tokens = torch.randint(0, 256, (BATCH, CONTEXT + 1))
    measured = weft.measure(Model(), (tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()), loss_of)
    sizes = [1 << shift for shift in range(14, 27, 2)]
    paced = [int(1e9 * size / 2 / options.rate) for size in sizes]
    measured.collectives = {kind: (sizes, paced) for kind in ("all_gather", "reduce_scatter", "all_reduce")}
    for share in options.limits.split(","):
        plan = weft.plan(measured, None, None, memory_limit=f"{int(base * float(share))}B",
                         planner=options.planner)
        told = plan.said["predicted"]
        step, peak, loss, seen = train(plan.apply, plan.finish, plan.said["max_reduce_scatter_inputs"], options)
        if rank == 0:
            print(f"plan at {share} of that peak {step:8.0f} ms {peak:12d} bytes  loss {loss.hex()}  "
                  f"(planned {told['step_ns'] / 1e6:.0f} ms, {told['peak_bytes']} bytes; {seen.compare(plan) or 'as planned'})",
                  flush=True)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, default=50e6, help="bytes that a rank sends in a second")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--limits", default="1.0,1.1", help="shares of the default's peak")
    parser.add_argument("--planner", default="ilp", help="Weft's planner")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--meet", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank is not None:
        return run_rank(options.rank, options)
    with tempfile.TemporaryDirectory() as directory:
        ranks = [subprocess.Popen([sys.executable, str(Path(__file__)), *sys.argv[1:], "--rank", str(rank), "--meet",
                                   f"{directory}/meet"]) for rank in range(2)]
        return max(rank.wait() for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
