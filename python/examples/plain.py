# SPDX-License-Identifier: Apache-2.0
"""A plain loop: torchrun --nproc-per-node 2 plain.py"""
from common import Decoder, begin, find_device, loss_of, make_batch, train

import weft

begin()
model = Decoder().to(find_device())
plan = weft.plan(model, make_batch(), loss_of, memory_limit="64MiB")
plan.apply(model)  # instead of the fully_shard calls
train(model, plan)
