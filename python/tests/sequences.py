# SPDX-License-Identifier: Apache-2.0
"""One of two ranks: sequences.py RANK FILE COUNT [SEED]. Random calls, under random plans and under FSDP2 that keeps nothing.

Writes the first sequence with another bit, or none, as JSON to standard output.
"""
import json
import os
import random
import sys
import traceback
import warnings

import models
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import weft

UNITS = ("wte", "b.0", "b.1", "b.2", "head")
# Forwards with grad and without, of two batches; backwards with and without reductions; exceptions; updates.
CALLS = ("look", "look blindly", "evaluate", "part", "backward", "backward", "no sync", "twice", "again", "fail forward",
         "fail backward", "fail quietly", "step", "step", "step around", "zero", "load")


def make_model():
    """The tests' model with a parameter of the root. Evaluation leaves a block out."""
    model = models.make_model()
    model.scale = torch.nn.Parameter(torch.ones(32))

    def forward(tokens):
        x = model.wte(tokens) * model.scale
        for block in model.b if model.training else (model.b[0], model.b[2]):
            x = block(x)
        return model.head(x)
    model.forward = forward
    return model


def make_plan(choose):
    """Returns a plan that FSDP2 can run: any lists, units that are kept, and late reductions."""
    units = []
    for name in UNITS:
        backward = choose.sample(UNITS[1:], choose.randint(0, 2)) or [name]
        units.append(models.make_unit(name, choose.sample(UNITS, choose.randint(0, 3)), backward,
                                      reshard_after_forward=choose.random() < 0.5, unshard_in_backward=name != "wte",
                                      finalize=choose.choice(("own", "own", "end")) if name != "wte" else "own"))
    late = models.LATE if any(unit["finalize"] == "end" for unit in units) else ()
    return weft.Plan(models.make_said(units, [], choose.sample(UNITS, choose.randint(0, 2)), choose.randint(1, 3), late))


def wrap_safely(model):
    for module in (model.wte, *model.b, model.head, model):
        fully_shard(module, reshard_after_forward=True)
    return model


class Side:
    """A model and its optimizer; `reset` is called after an exception."""

    def __init__(self, model, reset, planned):
        self.model, self.reset, self.planned, self.losses = model, reset, planned, []
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        self.parameters = list(model.parameters())

    def loss(self, seed, scale=1.0):
        tokens = torch.randint(0, 64, (2, 9), generator=torch.Generator().manual_seed(2 * seed + dist.get_rank()))
        output = self.model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(output.flatten(0, 1), tokens[:, 1:].flatten()) * scale
        self.losses.append(loss.item())
        return loss

    def fail(self, seed, backward):
        def raise_it(*_):
            raise InterruptedError
        hook = (self.model.b[1].register_full_backward_hook if backward else self.model.b[1].register_forward_pre_hook)(raise_it)
        try:
            self.loss(seed).backward()
        except InterruptedError:
            pass
        hook.remove()

    def part(self):
        with torch.no_grad():
            self.losses.append(self.model.b[1](torch.ones(2, 32)).sum().item())

    def look(self, seed, mode):
        with mode():
            self.loss(seed)
        assert all(isinstance(parameter, DTensor) for parameter in self.model.parameters()), "a unit is still gathered"

    def call(self, name, seed):
        model = self.model
        if name == "look":
            self.loss(seed)
        elif name == "look blindly":
            self.look(seed, torch.no_grad)
        elif name == "evaluate":
            model.eval()
            self.look(seed, torch.inference_mode)
            model.train()
        elif name == "part":
            self.part()
        elif name == "backward":
            self.loss(seed).backward()
        elif name == "no sync":
            model.set_requires_gradient_sync(False)
            self.loss(seed).backward()
            model.set_requires_gradient_sync(True)
            self.loss(seed + 1).backward()
        elif name == "twice":
            (self.loss(seed) + self.loss(seed + 1, 0.5)).backward()
        elif name == "again":
            loss, other = self.loss(seed), self.loss(seed + 1)
            other.backward()
            loss.backward()
        elif name in ("fail forward", "fail backward"):
            self.fail(seed, name == "fail backward")
            self.reset(model)
        elif name == "fail quietly":  # the next forward of a plan resets
            self.fail(seed, seed % 2)
            if not self.planned:
                self.reset(model)
            self.loss(seed)
        elif name == "step":
            torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
            self.optimizer.step()
        elif name == "step around":
            self.loss(seed).backward()
            self.part()
            self.optimizer.step()
            self.part()
        elif name == "zero":
            self.optimizer.zero_grad()
        elif name == "load":
            with torch.no_grad():
                for parameter in self.parameters:
                    parameter.mul_(0.9)
                self.loss(seed)  # of the whole model: a part alone would not notice an update without an optimizer


def compare(number, seed):
    """Returns a sentence for a sequence that ends in other bits than the reference."""
    choose = random.Random(f"{seed} {number}")
    plan = make_plan(choose)
    sides = [Side(wrap_safely(make_model()), lambda model: model.reset_iter_state(), False),
             Side(plan.apply(make_model()), plan.reset, True)]
    calls = ["look"] + [choose.choice(CALLS) for _ in range(12)] + ["backward", "step", "look"]
    for place, name in enumerate(calls):
        for side in sides:
            side.call(name, 100 * number + 3 * place)
        base, own = sides
        grads = [[p.grad is not None and p.grad.to_local() for p in side.parameters] for side in sides]
        alike = [torch.equal(a, b) if torch.is_tensor(a) and torch.is_tensor(b) else a is b for a, b in zip(*grads)]
        weights = [torch.equal(a.to_local(), b.to_local()) for a, b in zip(base.parameters, own.parameters)]
        if base.losses != own.losses or not all(alike) or not all(weights):
            return (f"sequence {number}: {calls[:place + 1]} ends in other bits: losses {base.losses[-2:]} {own.losses[-2:]}, "
                    f"gradients {alike}, weights {weights}; {json.dumps(plan.said)}")
    return None


def main(rank, file, count, seed="0", first="0"):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=int(rank), world_size=2)
    warnings.simplefilter("ignore")
    found = None
    for number in range(int(first), int(first) + int(count)):
        try:
            found = compare(number, seed)
        except Exception:
            found = f"sequence {number}: {traceback.format_exc()}"
        if found:
            break
    if rank == "0":
        print(json.dumps(found), flush=True)
    os._exit(0)  # threads of PyTorch abort some interpreters that end under load


if __name__ == "__main__":
    main(*sys.argv[1:])
