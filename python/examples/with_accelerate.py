# SPDX-License-Identifier: Apache-2.0
"""A loop of accelerate: torchrun --nproc-per-node 2 with_accelerate.py

The plan wraps the model, so `prepare` gets the optimizer and the data alone. It would wrap the model a second time.
"""
import torch
from accelerate import Accelerator
from common import Decoder, begin, end, find_device, loss_of, make_batch

import weft

accelerator = Accelerator(cpu=not torch.cuda.is_available(), gradient_accumulation_steps=2)
begin()
model = Decoder().to(find_device())
plan = weft.plan(model, make_batch(), loss_of, memory_limit="64MiB", micro_steps=2)
plan.apply(model)
optimizer = accelerator.prepare(torch.optim.AdamW(model.parameters(), lr=1e-3))
for step in range(3):
    with weft.record(model, optimizer.optimizer, memory=step == 2) as seen:
        with plan.step(model):  # makes the calls of no_sync
            for _ in range(2):
                inputs, targets = make_batch()
                accelerator.backward(loss_of(model(inputs), targets))
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.optimizer.step()
        optimizer.optimizer.zero_grad()
end(plan, seen)
