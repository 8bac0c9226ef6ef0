#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a GPT-2 in PyTorch on a GPU, to compare Weft with it: pytorch.py VOCAB HIDDEN HEADS BLOCKS SAMPLES STEPS

The model is compiled, its parameters are bf16 with f32 masters, and a step is forward, backward, clipping to norm 1 and
fused AdamW on SAMPLES x 1024 tokens. Prints one line of JSON: version, seconds before the first timed step, and the
milliseconds of STEPS steps, each until the GPU has ended it.
"""
import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "peers"))
from gpt import Gpt, Sizes  # noqa: E402

SEQ_LEN, WARM_STEPS = 1024, 5


class Training:
    def __init__(self, sizes, samples):
        self.masters = None
        with torch.device("cuda"):
            model = Gpt(sizes)
            self.masters = [one.detach().clone() for one in model.parameters()]
            model.bfloat16()
            self.batch = [torch.randint(sizes.vocab, (samples, sizes.seq_len)) for _ in range(2)]
        self.parameters = list(model.parameters())
        self.forward = torch.compile(model)
        self.optimizer = torch.optim.AdamW(self.masters, lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    def step(self):
        loss = self.forward(*self.batch)
        loss.backward()
        for master, parameter in zip(self.masters, self.parameters):
            master.grad = parameter.grad.float()
        torch.nn.utils.clip_grad_norm_(self.masters, 1.0)
        self.optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(self.parameters, self.masters)
        for parameter in self.parameters:
            parameter.grad = None
        return loss.item()


def main():
    vocab, hidden, heads, blocks, samples, steps = map(int, sys.argv[1:])
    torch.manual_seed(1)
    began = time.perf_counter()
    training = Training(Sizes(vocab, SEQ_LEN, hidden, heads, blocks), samples)
    for _ in range(WARM_STEPS):
        training.step()
    warm_s, times = time.perf_counter() - began, []
    for _ in range(steps):
        start = time.perf_counter()
        training.step()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    print(json.dumps({"with": f"PyTorch {torch.__version__}", "start_s": round(warm_s, 1), "ms": times}))


main()
