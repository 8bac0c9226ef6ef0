# SPDX-License-Identifier: Apache-2.0
"""One of two ranks: worker.py RANK FILE [SNIPPET]. Writes its findings as JSON to standard output."""
import hashlib
import io
import json
import os
import sys
import warnings
from contextlib import nullcontext, redirect_stdout

import models
import torch
import torch.distributed as dist
from torch.distributed._composable.replicate_with_fsdp import replicate
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import distribute_tensor

import weft
from weft import measures

STEPS = 3


def batches():
    generator = torch.Generator().manual_seed(1 + dist.get_rank())
    for _ in range(STEPS):
        tokens = torch.randint(0, 64, (4, 9), generator=generator)
        yield tokens[:, :-1], tokens[:, 1:]


def train(wrap, finish, tied=False):
    """Returns losses, a hash of all parameters and the record of the last step."""
    model = wrap(models.make_model(tied=tied))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for inputs, targets in batches():
        with (weft.record(model) if len(losses) == STEPS - 1 else nullcontext()) as seen:
            loss = torch.nn.functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten())
            loss.backward()
            finish(model)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.item().hex())
    digest = hashlib.sha256()
    for name, parameter in sorted(model.named_parameters()):
        digest.update(name.encode() + bytes(parameter.full_tensor().detach().contiguous().view(torch.uint8).flatten().tolist()))
    return {"losses": losses, "parameters": digest.hexdigest(), "order": seen.order}, seen, model


def wrap_plainly(model, **options):
    tied = model.head.weight is model.wte.weight
    for module in ([[model.wte, model.head]] if tied else [model.wte, model.head]) + [*model.b, model]:
        fully_shard(module, **options)
    return model


def refusal(act):
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            act()
    except weft.WeftError as error:
        return str(error)
    return [str(each.message) for each in told]


def refusal_of_untouched(plan, model, **options):
    """Returns the refusal of apply, and "touched" if it changed a module."""
    def state():
        return [(type(module), len(module._forward_pre_hooks), set(vars(module))) for module in model.modules()]
    before = state()
    said = refusal(lambda: plan.apply(model, **options))
    return said if state() == before else "touched"


def bad_inputs():
    plain = weft.Plan(models.plain_plan())
    other = models.plain_plan()
    other["ranks"] = 3
    differs = models.plain_plan()
    differs["units"][0]["forward"] = ["b.1"] if dist.get_rank() else ["b.2"]
    renamed = models.plain_plan()
    renamed["units"][1]["modules"] = ["b0"]
    old = models.plain_plan()
    old["requires"].append({"call": "set_nothing", "torch": "9.9"})
    lacking = models.rich_plan()
    tied = models.make_model(tied=True)
    spread = models.make_model()
    spread.head.weight = torch.nn.Parameter(distribute_tensor(spread.head.weight.detach(), init_device_mesh("cpu", (2,))))
    copied = models.make_model()
    replicate(copied.b[0], mesh=init_device_mesh("cpu", (2,)))
    loose = models.make_model()
    loose.scale = torch.nn.Parameter(torch.ones(4))
    listed = models.plain_plan()
    listed["units"][1]["modules"] = ["b"]
    listed["units"] = [unit for unit in listed["units"] if unit["name"] not in ("b.1", "b.2")]
    for unit in listed["units"]:
        unit.update(forward=[], backward=[])
    scalar, mixed, whole, strided = (models.make_model() for _ in range(4))
    scalar.head.gate = torch.nn.Parameter(torch.tensor(1.0))
    mixed.b[1].up.to(torch.bfloat16)
    whole.b[2].up.weight = torch.nn.Parameter(torch.ones(128, 32, dtype=torch.int8), requires_grad=False)
    strided.b[2].up.weight = torch.nn.Parameter(torch.ones(32, 128).t())
    both = init_device_mesh("cpu", (2, 1), mesh_dim_names=("replicate", "shard"))
    from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy

    def refused(name, **options):
        return refusal_of_untouched(weft.Plan(plain.said), models.make_model(), **{name: options[name]})
    example = (torch.zeros(4, 9, dtype=torch.long)[:, 1:],) * 2
    return {
        "scalar": refusal_of_untouched(plain, scalar), "mixed": refusal_of_untouched(plain, mixed),
        "whole": refusal_of_untouched(plain, whole), "strided": refusal_of_untouched(plain, strided),
        "listed": refusal_of_untouched(weft.Plan(listed), models.make_model()),
        "planned mixed": refusal(lambda: weft.plan(mixed, example, loss_of)),
        "planned hsdp": refusal(lambda: weft.plan(models.make_model(), example, loss_of, mesh=both)),
        "hsdp": refused("mesh", mesh=both), "ignored": refused("ignored_params", ignored_params={1}),
        "offload": refused("offload_policy", offload_policy=CPUOffloadPolicy()),
        "int": refused("reshard_after_forward", reshard_after_forward=2),
        "placement": refused("shard_placement_fn", shard_placement_fn=lambda parameter: None),
        "unknown": refused("colour", colour=1),
        "defaults": refusal(lambda: plain.apply(models.make_model(), offload_policy=OffloadPolicy(), ignored_params=set())),
        "wrapped": refusal(lambda: plain.apply(wrap_plainly(models.make_model()))),
        "spread": refusal(lambda: plain.apply(spread)),
        "copied": refusal(lambda: plain.apply(copied)),
        "ranks": refusal(lambda: weft.Plan(other).apply(models.make_model())),
        "differs": refusal(lambda: weft.Plan(differs).apply(models.make_model())),
        "names": refusal(lambda: weft.Plan(renamed).apply(models.make_model())),
        "tied": refusal(lambda: plain.apply(tied)),
        "loose": refusal(lambda: plain.apply(loose)),
        "old": refusal(lambda: weft.Plan(old).apply(models.make_model())),
        "format": refusal(lambda: weft.Plan({})),
    }, lacking


def without_calls(said):
    """Applies a plan where PyTorch lacks late reductions and caps."""
    from torch.distributed.fsdp import FSDPModule
    names = ("set_manual_backward_finalization", "finalize_backward", "set_reduce_scatter_max_input_buffers")
    kept = {name: getattr(FSDPModule, name) for name in names}
    said["requires"].append({"call": "set_reduce_scatter_max_input_buffers", "torch": "2.13"})
    for name in names:
        delattr(FSDPModule, name)
    try:
        plan = weft.Plan(said)
        told = refusal(lambda: plan.apply(models.make_model()))
        return told, train(plan.apply, plan.finish)[0]
    finally:
        for name, call in kept.items():
            setattr(FSDPModule, name, call)


def open_output(value):
    return value["x"] if isinstance(value, dict) else value.x if isinstance(value, models.Output) else value


def odd_model(kind):
    """The tests' model with blocks that return dictionaries or dataclasses, or that are checkpointed."""
    from torch.utils.checkpoint import checkpoint
    plain = models.make_model()
    wrap = {"dict": lambda x: {"x": x}, "dataclass": models.Output}.get(kind)
    if wrap:
        for block in plain.b:
            block.register_forward_pre_hook(lambda _, args: open_output(args[0]))
            block.register_forward_hook(lambda _, __, output: wrap(output))
        plain.head.register_forward_pre_hook(lambda _, args: open_output(args[0]))
    elif kind == "checkpoint":
        for block in plain.b:
            block.forward = lambda x, run=block.forward: checkpoint(run, x, use_reentrant=False)
    elif kind in ("outer checkpoint", "reentrant checkpoint", "wide checkpoint"):
        def forward(tokens):
            x = plain.wte(tokens)
            if kind == "wide checkpoint":
                return plain.head(checkpoint(lambda x: plain.b[2](plain.b[1](plain.b[0](x))), x, use_reentrant=False))
            for block in plain.b:
                x = checkpoint(block, x, use_reentrant=kind == "reentrant checkpoint")
            return plain.head(x)
        plain.forward = forward
    return plain


def marks_of(model, example):
    marks = []
    passes = measures.Passes(model, example, loss_of, measures.find_layers(model))
    passes.run(lambda kind, number: marks.append(f"{kind} {number}"))
    return marks


def loss_of(outputs, targets):
    return torch.nn.functional.cross_entropy(outputs.flatten(0, 1), targets.flatten())


def measured_layers(model, example):
    keys = ("name", "parameters", "reads_in_backward", "forward_flops", "saved", "output", "temporary", "freed", "forward_ns")
    return [{key: getattr(layer, key) for key in keys} for layer in weft.measure(model, example, loss_of).layers]


def plan_models():
    """Measures, plans and trains, and lists refusals."""
    example = next(batches())
    result = {"layers": measured_layers(models.make_model(), example)}
    plan = weft.plan(models.make_model(), example, loss_of, memory_limit="64MiB")
    result["planned"], seen, model = train(plan.apply, plan.finish)
    result["planned"]["differences"] = seen.compare(plan)
    result["planned"]["text"] = str(plan)
    with weft.record(model, memory=True) as seen:
        loss_of(model(example[0]), example[1]).backward()
        plan.finish(model)
    result["planned"]["peaks"] = [seen.peak_bytes, plan.said["predicted"]["peak_bytes"]]
    with torch.device("meta"):
        model, meta = models.make_model(), (torch.zeros(4, 9, dtype=torch.long)[:, 1:],) * 2
    result["meta"] = measured_layers(model, meta)
    with torch.device("meta"):
        cached = models.make_cached()
    result["cached"] = measured_layers(cached, meta)
    fake = weft.plan(model, meta, loss_of)
    result["fake"], seen, _ = train(fake.apply, fake.finish)
    result["fake"].update(differences=seen.compare(fake), peaks=[each.said["predicted"]["peak_bytes"] for each in (fake, plan)])
    result["large"] = weft.plan(model, meta, loss_of, cluster="a100-8").said["ranks"]
    twice, never = models.make_model(), models.make_model()
    twice.b.append(twice.b[0])
    never.spare = torch.nn.Linear(3, 3)
    broken = models.make_model()
    broken.head = torch.nn.Linear(3, 3)
    tied = models.make_model(tied=True)
    pair = weft.plan(tied, example, loss_of, memory_limit="64MiB")
    result["pair"], seen, _ = train(pair.apply, pair.finish, tied=True)
    result["pair"].update(units=[unit["modules"] for unit in pair.units], differences=seen.compare(pair))
    tied = models.make_model(tied=True)
    thrice = models.make_model(tied=True)
    thrice.head.other = thrice.b[0].up.weight
    loose = weft.plan(tied, example, loss_of, layers=list(tied.b))
    result["loose"] = [unit["name"] for unit in loose.units], refusal(lambda: loose.apply(tied))
    result["odd"] = {kind: measured_layers(odd_model(kind), example)
                     for kind in ("dict", "dataclass", "checkpoint", "outer checkpoint")}
    result["marks"] = marks_of(odd_model("outer checkpoint"), example)
    result["bad plans"] = {
        "thrice": refusal(lambda: weft.measure(thrice, example, loss_of)),
        "twice": refusal(lambda: weft.plan(twice, example, loss_of)),
        "never": refusal(lambda: weft.plan(never, example, loss_of)),
        "meta": refusal(lambda: weft.plan(weft.measure(model, meta, loss_of, times=False), meta, loss_of)),
        "reserved": refusal(lambda: weft.plan(models.make_model(), example, loss_of, reserved_limit="1GiB")),
        "both": refusal(lambda: weft.plan(models.make_model(), example, loss_of, memory_limit="1GiB", reserved_limit="1GiB")),
        "limit": refusal(lambda: weft.plan(models.make_model(), example, loss_of, memory_limit="1KiB")),
        "ranks": refusal(lambda: weft.plan(models.make_model(), example, loss_of, ranks=7)),
        "strange": refusal(lambda: weft.plan(models.make_model(), example, loss_of, layers=[torch.nn.ReLU()])),
    }
    try:
        weft.plan(broken, example, loss_of)
    except RuntimeError as error:
        result["bad plans"]["broken"] = str(error)
    result["curve"], result["checkpointed"], result["found"] = run_module(), checkpointed(), found_units()
    result["mixed"], result["frozen"] = mixed_precision(), frozen_peaks()
    result["adapters"], result["freed inputs"] = adapters(), freed_inputs()
    result["interrupted"] = interrupted(models.plain_plan())
    result["state"], result["relu"] = changed_state(), relu_layers()
    return result


def checkpointed():
    """Trains with checkpoints inside blocks, around each, and around a unit of all; returns their results, and refusals."""
    example, result = next(batches()), {}
    for kind in ("checkpoint", "outer checkpoint", "wide checkpoint"):
        model = odd_model(kind)
        layers = [model.wte, list(model.b), model.head] if kind == "wide checkpoint" else None
        plan = weft.plan(model, example, loss_of, layers=layers, memory_limit="64MiB")
        result[kind], seen, _ = train(lambda _, kind=kind, plan=plan: plan.apply(odd_model(kind)), plan.finish)
        result[kind]["differences"] = seen.compare(plan)
    result["refused"] = [refusal(lambda kind=kind: weft.plan(odd_model(kind), example, loss_of))
                         for kind in ("reentrant checkpoint", "wide checkpoint")]
    return result


def frozen_peaks():
    """Returns the peak of a step with a frozen parameter in each block, and of one with none."""
    peaks = []
    for trains in (False, True):
        model = models.make_model()
        for block in model.b:
            block.up.weight.requires_grad_(trains)
        wrap_plainly(model)
        with weft.record(model, memory=True) as seen:
            loss_of(model(next(batches())[0]), next(batches())[1]).backward()
        peaks.append(seen.peak_bytes)
    return peaks


def adapters():
    """Trains `down` of each block alone; returns whether losses are FSDP2's, peaks, and a refusal."""
    example = next(batches())

    def make():
        model = models.make_model()
        for block in model.b:
            for module in (block.norm, block.up):
                module.requires_grad_(False)
        return model

    def train_steps(model):
        losses, optimizer = [], torch.optim.AdamW([p for p in model.parameters() if p.requires_grad])
        for _ in range(3):
            with weft.record(model, optimizer, memory=True) as seen:
                loss = loss_of(model(example[0]), example[1])
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
            losses.append(loss.item())
        return losses, seen.peak_bytes

    model = make()
    measured = weft.measure(model, example, loss_of)
    plan, whole = (weft.plan(each, example, loss_of) for each in (measured, models.make_model()))
    default = make()
    wrap_plainly(default)
    losses, peak = train_steps(plan.apply(model))
    return {"same": losses == train_steps(default)[0],
            "peaks": [peak, plan.said["predicted"]["peak_bytes"], whole.said["predicted"]["peak_bytes"]],
            "refused": refusal(lambda: weft.plan(measured, example, loss_of, optimizer="fast"))}


def mixed_precision():
    """Trains in bf16 with f32 reductions; returns results of FSDP2 and of a plan, peaks and refusals."""
    example = next(batches())
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    plan = weft.plan(models.make_model(), example, loss_of, mp_policy=policy)
    own, seen, model = train(lambda model: plan.apply(model, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16)),
                             plan.finish)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):  # the first step makes the state
        with weft.record(model, optimizer, memory=True) as peak:
            loss_of(model(example[0]), example[1]).backward()
            optimizer.step()
            optimizer.zero_grad()
    narrow = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    plain = weft.Plan(models.plain_plan())
    return {"default": train(lambda model: wrap_plainly(model, mp_policy=policy), lambda model: None)[0], "own": own,
            "differences": seen.compare(plan), "peaks": [peak.peak_bytes, plan.said["predicted"]["peak_bytes"]],
            "dtypes": [plan.said["param_dtype"], plan.said["reduce_dtype"]],
            "refused": [refusal(lambda: plan.apply(models.make_model())),
                        refusal(lambda: plan.apply(models.make_model(), mp_policy=narrow)),
                        refusal(lambda: plain.apply(models.make_model(), mp_policy=policy)),
                        refusal(lambda: weft.plan(models.make_model(), example, loss_of, precision="f16", mp_policy=policy))]}


def found_units():
    """Returns the names of layers that are found, and of a plan's units with its differences from a step."""
    names = [["+".join(names) for names, _ in measures.find_layers(model)]
             for model in (models.make_nested(), models.make_nested(own=["Linear"]), odd_model(""))]
    example = tuple(torch.zeros(2, 8, dtype=torch.long) for _ in range(2))
    plan = weft.plan(models.make_nested(True), example, loss_of)
    model = plan.apply(models.make_nested(True))
    with weft.record(model) as seen:
        loss_of(model(example[0]), example[1]).backward()
    names.append([unit["name"] for unit in plan.units])
    differences = seen.compare(plan)
    model = models.make_model()
    plan = weft.plan(model, next(batches()), loss_of, layers=[model.wte, model.b[0], model.b[1], [model.b[2], model.head]])
    grouped, seen, _ = train(plan.apply, plan.finish)
    names.append([unit["modules"] for unit in plan.units])
    return {"names": names, "differences": differences + seen.compare(plan), "grouped": grouped}


def interrupted(said):
    """Trains after a forward that raised and plan.reset."""
    plan = weft.Plan(said)

    def wrap(model):
        plan.apply(model)
        model.head.register_forward_pre_hook(fail_once)
        try:
            model(next(batches())[0])
        except InterruptedError:
            plan.reset(model)
        return model

    def fail_once(module, _):
        module._forward_pre_hooks.popitem()
        raise InterruptedError
    return train(wrap, plan.finish)[0]


def changed_state():
    """Measures a model with a buffer and dropout; returns whether random numbers and the buffer stay."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    model[0].requires_grad_(False)
    example = (torch.randn(8, 4), torch.zeros(8, 4))
    before = [model[1].running_mean.clone(), torch.get_rng_state()]
    layers = weft.measure(model, example, torch.nn.functional.mse_loss).layers
    after = [model[1].running_mean, torch.get_rng_state()]
    return [torch.equal(a, b) for a, b in zip(before, after)] + [layer.frozen for layer in layers]


def relu_layers():
    """Returns saved bytes, outputs and whether backward reads them, of a layer that ends in a ReLU, and of the next."""
    model = torch.nn.ModuleDict({"a": torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU()),
                                 "b": torch.nn.Linear(6, 2)})
    model.forward = lambda x: model.b(model.a(x))
    example = (torch.randn(8, 4), torch.zeros(8, 2))
    layers = weft.measure(model, example, torch.nn.functional.mse_loss, layers=[model.a, model.b]).layers
    return [[layer.saved, layer.output, layer.reads_output] for layer in layers]


def freed_inputs():
    """Returns which layers free their input, and temporaries: in a loop, and in a forward that names each output."""
    found = []
    for names in (False, True):
        layers = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range(4)])
        model = torch.nn.ModuleDict({"l": layers})
        layers[1:3].requires_grad_(False)

        def loop(x, layers=layers):
            for layer in layers:
                x = layer(x)
            return x

        def named(x, layers=layers):
            a = layers[0](x)
            b = layers[1](a)
            c = layers[2](b)
            return layers[3](c)
        model.forward = named if names else loop
        example = (torch.randn(8, 4), torch.zeros(8, 4))
        measured = weft.measure(model, example, torch.nn.functional.mse_loss, layers=list(layers))
        found.append([layer.frees_input for layer in measured.layers])
        found.append([layer.temporary for layer in measured.layers])
    return found


def run_module():
    """Runs python -m weft plan on this script's build; a script that fails shows its own error."""
    from weft.__main__ import main as run
    lines = io.StringIO()
    with redirect_stdout(lines):
        run(["plan", f"{__file__}:build", "--cluster", "a100-8", "--limits", "1KiB,1GiB"])
    try:
        run(["plan", f"{__file__}:fail", "--limits", "1GiB"])
    except KeyError as error:
        return [lines.getvalue(), str(error)]
    return [lines.getvalue(), "no error"]


def build():
    with torch.device("meta"):
        return models.make_model(), (torch.zeros(4, 8, dtype=torch.long),) * 2, loss_of


def fail():
    raise KeyError("the user's own")


def main(rank, file, *snippet):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=int(rank), world_size=2)
    result = {name: train(wrap_plainly, lambda model: None, tied)[0]
              for name, tied in (("default", False), ("tied default", True))}
    for name in ("plain_plan", "rich_plan", "grouped_plan", "tied_plan"):
        plan = weft.Plan(getattr(models, name)())
        result[name], seen, model = train(plan.apply, plan.finish, name == "tied_plan")
        result[name]["differences"] = seen.compare(plan)
        result[name]["cap"] = model._get_fsdp_state()._comm_ctx.reduce_scatter_max_input_buffers
    result["mutants"] = {}
    for name, (base, mutant) in models.mutants().items():
        _, seen, _ = train(weft.Plan(mutant).apply, weft.Plan(mutant).finish, "tied" in name)
        result["mutants"][name] = seen.compare(weft.Plan(base))
    forgetful = weft.Plan(models.rich_plan())
    result["forgotten"] = train(forgetful.apply, lambda model: None)[1].compare(forgetful)
    result["bad"], lacking = bad_inputs()
    told, result["lacking"] = without_calls(lacking)
    result["lacking"]["told"] = told
    result.update(plan_models())
    if snippet:
        space = {}
        with open(snippet[0], encoding="utf-8") as source:
            exec(compile(source.read(), "snippet", "exec"), space)
        result["snippet"] = train(space["wrap"], space.get("finish", lambda model: None))[0]
    dist.destroy_process_group()
    if rank == "0":
        print(json.dumps(result), flush=True)
    os._exit(0)  # threads of PyTorch abort some interpreters that end under load


if __name__ == "__main__":
    main(*sys.argv[1:])
