# SPDX-License-Identifier: Apache-2.0
"""A plain loop: torchrun --nproc-per-node 2 plain.py"""
import torch
from common import Decoder, begin, end, find_device, loss_of, make_batch

import weft

begin()
model = Decoder().to(find_device())
plan = weft.plan(model, make_batch(), loss_of, memory_limit="64MiB")
plan.apply(model)  # instead of the fully_shard calls
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(3):
    inputs, targets = make_batch()
    with weft.record(model, optimizer, memory=step == 2) as seen:
        loss_of(model(inputs), targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
end(plan, seen)
