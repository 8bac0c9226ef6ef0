# SPDX-License-Identifier: Apache-2.0
"""One of two ranks, or of four for part replicas: loops.py RANK FILE [PART...].

Trains in loops that people have, by FSDP2's default and by plans, and writes its findings as JSON.
"""
import hashlib
import json
import os
import sys
import warnings
from unittest import mock

import models
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

import weft
from weft import measures, planning
from weft.ranks import gather_numbers

MICRO_STEPS, STEPS = 3, 3
BF16 = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)


def batch(step, micro, width=64):
    generator = torch.Generator().manual_seed(10 * step + micro + 100 * dist.get_rank())
    tokens = torch.randint(0, 64, (8, width + 1), generator=generator)
    return tokens[:, :-1], tokens[:, 1:]


def loss_of(outputs, targets):
    return torch.nn.functional.cross_entropy(outputs.flatten(0, 1).float(), targets.flatten())


def wrap_plainly(model, policy, mesh=None):
    options = {"mesh": mesh} if policy is None else {"mp_policy": policy}
    for module in (model.wte, *model.b, model.head, model):
        fully_shard(module, **options)
    return model


def train(model, run_step):
    """Returns losses, a hash of parameters, and the record of the last step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(STEPS):
        with weft.record(model, optimizer, memory=True) if step == STEPS - 1 else warnings.catch_warnings() as seen:
            run_step(model, step, losses)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    digest = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        digest.update(name.encode() + parameter.full_tensor().detach().contiguous().view(torch.uint8).numpy().tobytes())
    return {"losses": losses, "parameters": digest.hexdigest()}, seen


def run_micro_step(model, step, micro, losses):
    inputs, targets = batch(step, micro)
    loss = loss_of(model(inputs), targets) / MICRO_STEPS
    loss.backward()
    losses.append(loss.item().hex())


def accumulate(cadence, policy=None, width=96):
    """Trains by FSDP2's default with the usual calls, by the same calls under a plan, and by plan.step."""
    plan = weft.plan(models.make_model(width=width), batch(0, 0), loss_of, mp_policy=policy, micro_steps=MICRO_STEPS,
                     cadence=cadence)

    def by_calls(model, step, losses):
        for micro in range(MICRO_STEPS):
            model.set_requires_gradient_sync(cadence == "micro_step" or micro + 1 == MICRO_STEPS)
            run_micro_step(model, step, micro, losses)

    def by_context(model, step, losses):
        with plan.step(model):
            for micro in range(MICRO_STEPS):
                run_micro_step(model, step, micro, losses)
    options = {} if policy is None else {"mp_policy": policy}
    default, _ = train(wrap_plainly(models.make_model(width=width), policy), by_calls)
    calls, _ = train(plan.apply(models.make_model(width=width), **options), by_calls)
    own, seen = train(plan.apply(models.make_model(width=width), **options), by_context)
    return {"default": default, "calls": calls, "own": own, "differences": seen.compare(plan), "text": str(plan),
            "peaks": [seen.peak_bytes, plan.said["predicted"]["peak_bytes"]],
            "slot": plan.said["predicted"]["peak_slot"],
            "reduces": sum(event.startswith("reduce") for event in seen.order)}


class Attention(torch.nn.Module):
    """A block with dropout and heads: its recomputation must restore random numbers."""

    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv = torch.nn.LayerNorm(width), torch.nn.Linear(width, 3 * width)
        self.out, self.drop = torch.nn.Linear(width, width), torch.nn.Dropout(0.1)

    def forward(self, x, scale=1.0):
        q, k, v = (each.unflatten(-1, (4, -1)).transpose(1, 2) for each in self.qkv(self.norm(x)).chunk(3, -1))
        y = torch.softmax(q @ k.transpose(-1, -2) * scale, -1) @ v
        return x + self.drop(self.out(y.transpose(1, 2).flatten(2)))


def make_attentive(width):
    """The tests' model with blocks of attention between its own."""
    model = models.make_model(width=width)
    model.b = torch.nn.ModuleList([each for block in model.b for each in (Attention(width), block)])
    return model


def recompute(make, policy=None, width=96):
    """Trains by FSDP2's default without checkpoints, and by plans at limits that need more and more of them."""
    options = {} if policy is None else {"mp_policy": policy}

    def run_step(model, step, losses):
        torch.manual_seed(step)
        run_micro_step(model, step, 0, losses)
    measured = weft.measure(make(width), batch(0, 0), loss_of, mp_policy=policy, recompute=True)
    default, _ = train(wrap_plainly(make(width), policy), run_step)
    free, least = (weft.plan(measured, None, None, mp_policy=policy, recompute=how) for how in ("none", "whole"))
    peaks = [plan.said["predicted"]["peak_bytes"] for plan in (free, least)]
    found = {"default": default, "plans": []}
    for limit, how in ((peaks[1], "if-needed"), (sum(peaks) // 2, "auto"), (None, "if-needed")):
        plan = weft.plan(measured, None, None, mp_policy=policy, recompute=how,
                         memory_limit=limit and f"{limit}B")
        own, seen = train(plan.apply(make(width), **options), run_step)
        found["plans"].append({"own": own, "differences": seen.compare(plan), "limit": limit, "text": str(plan),
                               "peaks": [seen.peak_bytes, plan.said["predicted"]["peak_bytes"]],
                               "slot": plan.said["predicted"]["peak_slot"],
                               "checkpoints": [name for unit in plan.units for name in unit["checkpoint"]]})
    return found


def replicate(mesh, width=96):
    """Trains by FSDP2's default and by a plan, both with a mesh of replicas x shards."""
    plan = weft.plan(models.make_model(width=width), batch(0, 0), loss_of, mesh=mesh)

    def run_step(model, step, losses):
        run_micro_step(model, step, 0, losses)
    default, _ = train(wrap_plainly(models.make_model(width=width), None, mesh), run_step)
    own, seen = train(plan.apply(models.make_model(width=width), mesh=mesh), run_step)
    single = init_device_mesh("cpu", (4, 1), mesh_dim_names=("replicate", "shard"))
    cube = init_device_mesh("cpu", (1, 2, 2), mesh_dim_names=("pp", "replicate", "shard"))
    with torch.device("meta"):
        meta = models.make_model(), (torch.zeros(8, 64, dtype=torch.long),) * 2, loss_of
    return {"default": default, "own": own, "differences": seen.compare(plan), "text": str(plan), "ranks": plan.said["ranks"],
            "peaks": [seen.peak_bytes, plan.said["predicted"]["peak_bytes"]],
            "refused": [refusal(lambda: plan.apply(models.make_model(width=width), mesh=mesh["shard"])),
                        refusal(lambda: plan.apply(models.make_model(width=width))),
                        refusal(lambda: weft.plan(models.make_model(), batch(0, 0), loss_of, mesh=single)),
                        refusal(lambda: plan.apply(models.make_model(width=width), mesh=cube)),
                        refusal(lambda: weft.plan(*meta, mesh=mesh, cluster="a100-8"))]}


def run_stages(mesh):
    """Trains a model for each stage of a pipeline, of other widths, by FSDP2's default and by the stage's own plan."""
    stage, shards = mesh.get_local_rank("pp"), mesh["dp"]
    width = 32 * (stage + 1)

    def run_step(model, step, losses):
        run_micro_step(model, step, 0, losses)
    plan = weft.plan(models.make_model(width=width), batch(0, 0), loss_of, mesh=shards)
    default, _ = train(wrap_plainly(models.make_model(width=width), None, shards), run_step)
    own, seen = train(plan.apply(models.make_model(width=width), mesh=shards), run_step)
    model = plan.apply(models.make_model(width=width), mesh=shards)
    losses = [loss_of(model(inputs), targets) for inputs, targets in (batch(0, 0), batch(0, 1))]
    told = refusal(losses[0].backward)
    model, (inputs, targets) = plan.apply(models.make_model(width=width), mesh=shards), batch(0, 0)
    loss = loss_of(model(inputs), targets)
    with torch.no_grad():
        model(inputs)
    told += refusal(loss.backward) or []  # a forward without grad is no micro-batch
    mine = [own == default, not seen.compare(plan), plan.said["ranks"] == 2, plan.said["predicted"]["peak_bytes"], len(told) == 1
            and "earlier forward than the last one" in told[0]]
    return gather_numbers(mine)


def refusal(act):
    """Returns the error of an act, or the warnings of one without an error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            act()
        except weft.WeftError as error:
            return str(error)
    return [str(each.message) for each in told]


def misuse():
    """Returns what loops are told that do not follow their plan."""
    plan = weft.plan(models.make_model(), batch(0, 0), loss_of, micro_steps=2)
    model = plan.apply(models.make_model())
    optimizer = torch.optim.AdamW(model.parameters())

    def run(count, update=True):
        for micro in range(count):
            inputs, targets = batch(0, micro)
            loss_of(model(inputs), targets).backward()
        if update:
            optimizer.step()
        optimizer.zero_grad()

    def run_within(count):
        with plan.step(model):
            run(count, update=False)
        optimizer.step()

    def nest():
        with plan.step(model), plan.step(model):
            pass

    def plan_with(**options):
        return refusal(lambda: weft.plan(models.make_model(), batch(0, 0), loss_of, **options))
    found = {"few": refusal(lambda: run_within(1)), "again": refusal(lambda: plan.reset(model)),
             "many": refusal(lambda: run_within(3)), "after": refusal(lambda: plan.reset(model)),
             "nested": refusal(nest), "right": refusal(lambda: run_within(2))}
    found["skipped"] = refusal(lambda: (run(1, update=False), run_within(2)))
    found["other"], found["twice"] = refusal(lambda: run(1)), refusal(lambda: run(1))
    from torch.distributed.fsdp._fully_shard._fsdp_collectives import SymmMemAllGather
    found["symmetric"] = refusal(lambda: (setattr(model.b[0]._get_fsdp_state()._fsdp_param_group, "_all_gather_comm",
                                                  object.__new__(SymmMemAllGather)), run(1)))
    found.update(none=plan_with(micro_steps=0), cadence=plan_with(micro_steps=2, cadence="daily"))
    return found


def abort():
    """Returns gradients of a step after one that ended early, by the way it ended, and what the loops were told."""
    plan = weft.plan(models.make_model(), batch(0, 0), loss_of, micro_steps=2)

    def run(model, count, step=0, error=None):
        with plan.step(model):
            for micro in range(count):
                inputs, targets = batch(step, micro)
                loss_of(model(inputs), targets).backward()
            if error is not None:
                raise error

    def find_gradients(model):
        run(model, 2)
        return [parameter.grad.full_tensor().double().sum().item().hex() for parameter in model.parameters()]

    def lack(model):
        """Resets like PyTorch before 2.13."""
        with mock.patch.object(FSDPModule, "reset_iter_state", property(lambda self: getattr(self, "nothing_of_this_name"))):
            run(model, 1, 1, KeyError("the user's own"))
    found = {"whole": find_gradients(plan.apply(models.make_model())), "told": {}}
    for name, act in {"exception": lambda model: run(model, 1, 1, KeyError("the user's own")),
                      "few": lambda model: run(model, 1, 1), "many": lambda model: run(model, 3, 1), "lacking": lack}.items():
        model = plan.apply(models.make_model())
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                act(model)
            except (KeyError, weft.WeftError) as error:
                found["told"][name] = [repr(error), *(str(each.message) for each in told)]
        if name != "lacking":
            found[name] = find_gradients(model)
    return found


def fail_first():
    """Returns what ranks raise if the first one fails as it plans."""
    def plan_with(**options):
        try:
            return weft.plan(models.make_model(), batch(0, 0), loss_of, **options)
        except (TypeError, weft.WeftError) as error:
            return repr(error)
    mine = {"size": plan_with(cluster={"ranks": 2, "base": "80 GiB"})}
    with mock.patch.object(planning, "make_plans", side_effect=TypeError("no such thing")):
        mine["other"] = plan_with()
    return {name: [bytes(map(int, each)).decode().strip() for each in gather_numbers(list(said.ljust(200).encode()))]
            for name, said in mine.items()}


def plan_for_cluster():
    """Returns ranks of plans with and without a mesh, and the units of a model whose layers share a tensor."""
    def plan_with(tied=False, **options):
        return weft.plan(models.make_model(tied=tied), batch(0, 0), loss_of, cluster="a100-8", **options)
    mesh = init_device_mesh("cpu", (2,))
    return {"ranks": [plan_with(**options).said["ranks"] for options in ({}, {"mesh": mesh}, {"mesh": mesh, "ranks": 4})],
            "tied": [unit["name"] for unit in plan_with(tied=True).units]}


PARTS = {
    "abort": abort,
    "cluster": plan_for_cluster,
    "fail first": fail_first,
    "accumulate": lambda: {f"{cadence} {name}": accumulate(cadence, policy) for cadence in ("step", "micro_step")
                           for name, policy in (("f32", None), ("bf16", BF16))},
    "recompute": lambda: {"plain": recompute(lambda width: models.make_model(width=width)),
                          "attentive": recompute(make_attentive, BF16)},
    "misuse": misuse,
}


def run_replicas():
    """Runs on four ranks."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    stages = run_stages(init_device_mesh("cpu", (2, 2), mesh_dim_names=("pp", "dp")))
    return {**replicate(mesh), "stages": stages}


def main(rank, file, *parts):
    torch.set_num_threads(1)
    measures.REPEATS = 1
    four = parts == ("replicas",)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=int(rank), world_size=4 if four else 2)
    result = run_replicas() if four else {name: PARTS[name]() for name in parts or PARTS}
    if rank == "0":
        print(json.dumps(result), flush=True)
    os._exit(0)  # threads of PyTorch abort some interpreters that end under load


if __name__ == "__main__":
    main(*sys.argv[1:])
