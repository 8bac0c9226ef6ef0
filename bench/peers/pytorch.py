#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains the model of configs/models/gpt-10m.json or llama-10m.json in PyTorch, to compare Weft with it.

    pytorch.py f32|bf16 gpt-10m|llama-10m

Prints a line of JSON that describes it. For every number N on stdin it does N training steps in each way, and prints
the milliseconds of each as a line of JSON. A step is forward, backward, clipping to norm 1 and fused AdamW, on one
thread and one batch of 8 x 256:

    f32   eager and compiled
    bf16  autocast with f32 parameters, and bf16 parameters with f32 masters; eager and compiled

gpt.py and llama.py have the models. Sizes and optimizer are Weft's.
"""
import json
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402  (after the number of threads is set)
from torch import nn  # noqa: E402
import gpt  # noqa: E402
import llama  # noqa: E402

VOCAB, SEQ_LEN, SAMPLES = 256, 256, 8
MODELS = {
    "gpt-10m": lambda: gpt.Gpt(gpt.Sizes(VOCAB, SEQ_LEN, hidden=384, heads=6, blocks=6)),
    "llama-10m": lambda: llama.Llama(llama.Sizes(VOCAB, SEQ_LEN, hidden=384, heads=6, kv_heads=2,
                                                 ffn=1024, blocks=6)),
}


class Way:
    """One way to do a training step: compiled or eager, its dtypes, and the parameters that the optimizer updates."""

    def __init__(self, name, model, batch, compiled, autocast=False, masters=False):
        self.name, self.batch, self.autocast = name, batch, autocast
        self.model = MODELS[model]()
        self.parameters = list(self.model.parameters())
        self.masters = [p.detach().clone() for p in self.parameters] if masters else None
        if masters:
            self.model.bfloat16()
            self.parameters = list(self.model.parameters())
        self.forward = torch.compile(self.model) if compiled else self.model
        self.optimizer = torch.optim.AdamW(self.masters or self.parameters, lr=1e-3,
                                           betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def step(self):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            loss = self.forward(*self.batch)
        loss.backward()
        moved = self.parameters
        if self.masters:
            moved = self.masters
            for master, parameter in zip(moved, self.parameters):
                master.grad = parameter.grad.float()
        nn.utils.clip_grad_norm_(moved, 1.0)
        self.optimizer.step()
        if self.masters:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, self.masters)
        self.optimizer.zero_grad(set_to_none=True)
        for parameter in self.parameters:
            parameter.grad = None
        return loss.item()

    def milliseconds(self, steps):
        times = []
        for _ in range(steps):
            start = time.perf_counter()
            self.step()
            times.append(1e3 * (time.perf_counter() - start))
        return times


def main():
    precision, model = sys.argv[1:3]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    batch = [torch.randint(VOCAB, (SAMPLES, SEQ_LEN)) for _ in range(2)]
    kinds = {"f32": [("", {})], "bf16": [("autocast ", {"autocast": True}),
                                         ("f32 masters ", {"masters": True})]}[precision]
    ways = [Way(name + ("compiled" if compiled else "eager"), model, batch, compiled, **settings)
            for name, settings in kinds for compiled in (False, True)]
    losses = {}
    for way in ways:
        way.milliseconds(2)
        losses[way.name] = round(way.step(), 3)
    print(json.dumps({"with": "PyTorch " + torch.__version__,
                      "cpu": torch.backends.cpu.get_cpu_capability(), "losses": losses}), flush=True)
    for line in sys.stdin:
        print(json.dumps({way.name: way.milliseconds(int(line)) for way in ways}), flush=True)


main()
