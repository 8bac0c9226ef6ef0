#!/usr/bin/env python3
"""Trains the GPT of configs/models/gpt-10m.json in PyTorch, to compare Weft with it.

    pytorch.py f32|bf16

Prints a line of JSON that describes it. For every number N on stdin it does N training steps in each way, and prints
the milliseconds of each as a line of JSON. A step is forward, backward, clipping to norm 1 and fused AdamW, on one
thread and one batch of 8 x 256:

    f32   eager and compiled
    bf16  autocast with f32 parameters, and bf16 parameters with f32 masters; eager and compiled

Attention is PyTorch's fused one. Model, sizes and optimizer are those of Weft, written as a PyTorch user writes
them. Weights are random, because time does not depend on them.
"""
import json
import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402  (after the number of threads is set)
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

SAMPLES, SEQ_LEN, VOCAB, HIDDEN, HEADS, BLOCKS = 8, 256, 256, 384, 6, 6


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.proj = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.fc, self.mlp_proj = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)

    def forward(self, x):
        samples, seq_len, _ = x.shape
        q, k, v = (part.view(samples, seq_len, HEADS, -1).transpose(1, 2)
                   for part in self.qkv(self.ln1(x)).split(HIDDEN, dim=2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(attended.transpose(1, 2).reshape(samples, seq_len, HIDDEN))
        return x + self.mlp_proj(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCAB, HIDDEN), nn.Embedding(SEQ_LEN, HIDDEN)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.ln_f = nn.LayerNorm(HIDDEN)
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False)
        self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, VOCAB).float(), targets.view(-1))


class Way:
    """One way to do a training step: compiled or eager, its dtypes, and the parameters that the optimizer updates."""

    def __init__(self, name, batch, compiled, autocast=False, masters=False):
        self.name, self.batch, self.autocast = name, batch, autocast
        self.model = Gpt()
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
    precision = sys.argv[1]
    torch.set_num_threads(1)
    torch.manual_seed(1)
    batch = (torch.randint(VOCAB, (SAMPLES, SEQ_LEN)), torch.randint(VOCAB, (SAMPLES, SEQ_LEN)))
    kinds = {"f32": [("", {})], "bf16": [("autocast ", {"autocast": True}),
                                         ("f32 masters ", {"masters": True})]}[precision]
    ways = [Way(name + ("compiled" if compiled else "eager"), batch, compiled, **settings)
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
