# SPDX-License-Identifier: Apache-2.0
"""torchtitan's order: a model on meta, a parallelize function, then memory and weights: torchrun --nproc-per-node 2 parallelize.py"""
import torch
from common import Decoder, begin, find_device, loss_of, make_batch, train
from torch.distributed.device_mesh import init_device_mesh

import weft


def parallelize(model, mesh, memory_limit):
    """Stands in for the calls of fully_shard. The model is on meta, so its layers are measured one by one."""
    layers = [model.tok_embeddings, *model.layers.values(), [model.norm, model.output]]
    plan = weft.plan(model, make_batch(), loss_of, mesh=mesh, layers=layers, memory_limit=memory_limit)
    return plan.apply(model, mesh=mesh), plan


begin()
dp_mesh = init_device_mesh(find_device().type, (torch.distributed.get_world_size(),), mesh_dim_names=("dp_shard",))
with torch.device("meta"):
    model = Decoder()
model, plan = parallelize(model, dp_mesh, "64MiB")
model.to_empty(device=find_device())
model.init_weights()
train(model, plan)
