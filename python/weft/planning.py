# SPDX-License-Identifier: Apache-2.0
"""Makes Weft's config and profile of a measured model, and the plan."""
import json
import re
from dataclasses import dataclass
from pathlib import Path

from .checks import check_options
from .measures import Measured, measure, pad_rows
from .plans import Plan
from .program import WeftError, find_program, make_plan, weigh_plan
from .ranks import is_first, share_text, within

LOOPS = ("foreach", "fused", "for-loop")  # of PyTorch's AdamW
CADENCES = ("step", "micro_step", "auto")  # reductions of gradients
DTYPES = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}  # Weft's names, and PyTorch's


WORK = "--work-limit", "20G"
NO_LIMIT = "none"  # None leaves the limit of a cluster's file


@dataclass(frozen=True)
class Way:
    """Restrictions of a plan: the key plan.ahead, plan.prefetch, and cluster.pools: the limit is of reserved memory."""
    ahead: int = 0
    prefetch: bool = False
    pools: bool = False


OWN = Way(1, prefetch=True)  # as FSDP2's own rule gathers; its memory is weighed most closely


def find_cluster(cluster):
    """Returns a cluster's content: a dictionary, a path, or a name such as "a100-8" of Weft's own."""
    if isinstance(cluster, dict):
        return dict(cluster)
    root = Path(find_program()).resolve().parent
    places = [Path(cluster), *(above / "share/weft/configs/clusters" / f"{cluster}.json" for above in root.parents),
              *(above / "configs/clusters" / f"{cluster}.json" for above in root.parents)]
    for place in places:
        if place.is_file():
            return json.loads(place.read_text(encoding="utf-8"))
    raise WeftError(f"cluster {cluster}: no file of that name, and none of Weft's clusters")


def read_size(text):
    """Returns the bytes of a size of a config, such as "1.5GiB"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:([KMGTP])(i?))?B", str(text))
    if found is None:
        raise WeftError(f"cluster.base is {text!r}: give bytes with a unit and without spaces, such as \"1.5GiB\"")
    number, prefix, binary = found.groups()
    return round(float(number) * (1024 if binary else 1000) ** " KMGTP".index(prefix or " "))


def find_loop(measured, timed, optimizer):
    """Returns how the optimizer updates; PyTorch's default is foreach on a GPU."""
    if optimizer not in (None, *LOOPS):
        raise WeftError(f"optimizer {optimizer}: give {', '.join(LOOPS)}, as PyTorch's AdamW has them")
    return optimizer or ("for-loop" if timed and measured.device == "cpu" else "foreach")


def check_steps(micro_steps, cadence):
    if not isinstance(micro_steps, int) or micro_steps < 1:
        raise WeftError(f"micro_steps is {micro_steps!r}: give the number of backward passes of a step, 1 or more")
    if cadence not in CADENCES:
        raise WeftError(f"cadence {cadence}: give step (gradients are added up, and reduced in the last micro-step), "
                        "micro_step (reduced in each), or auto (the faster one)")


def describe_checkpoint(layer):
    """Returns the keys of a layer that may recompute."""
    if layer.again is None:
        return {}
    more = max(1, layer.again.rise - layer.temporary)
    return {"checkpoints": True, "kept": f"{layer.again.saved}B", "restored": f"{more}B"}


def describe_times(layer):
    times = {"name": layer.name, "forward_ns": layer.forward_ns, "backward_ns": layer.backward_ns}
    if layer.again is not None:
        times["whole"] = {"forward_ns": layer.again.forward_ns, "backward_ns": layer.again.backward_ns}
    return times


def make_config(measured, memory_limit=None, ranks=None, cluster=None, precision=None,
                planner=None, reduce="f32", optimizer=None, micro_steps=1, cadence="step",
                recompute="none", way=Way(), target="fsdp2"):
    """Returns config and profile; None for a profile without measured times."""
    timed = not measured.on_meta and cluster is None
    if not timed and cluster is None:
        raise WeftError("a model on the meta device has no times: give cluster=, such as \"a100-8\"")
    if cluster is not None and measured.replicas > 1:
        raise WeftError("cluster= has no times of an all-reduce over replicas: plan with times of the ranks that run, without "
                        "cluster=, or give a mesh of the shards alone, such as mesh[\"shard\"]")
    place = {} if cluster is None else find_cluster(cluster)
    place.pop("$comment", None)
    place["ranks"] = ranks or place.get("ranks") or measured.ranks
    # Each rank holds buffers whole, next to the context and libraries.
    place["base"] = f"{read_size(place.get('base', '0B')) + measured.buffers}B"
    if timed and measured.reduce_copies:
        place["reduce_copies"] = True
    if way.pools:
        place["pools"] = True
    if memory_limit == NO_LIMIT:
        place.pop("memory_limit", None)
    elif memory_limit is not None:
        place["memory_limit"] = memory_limit
    if timed and place["ranks"] != measured.ranks:
        raise WeftError(f"collectives were measured on {measured.ranks} ranks: give cluster= to plan for "
                        f"{place['ranks']}, or start as many")
    layers = []
    for layer in measured.layers:
        frozen = 0 if layer.frozen else pad_rows(layer.frozen_shapes, place["ranks"])
        layers.append({"name": layer.name, "type": "custom", "hidden": 0, "forward_flops": str(layer.forward_flops),
                       "backward_flops": str(layer.backward_flops), "parameters": layer.pad(place["ranks"]) - frozen,
                       "frozen_parameters": frozen, "output": f"{layer.output}B", "saved": f"{layer.saved}B",
                       "temporary": f"{layer.temporary}B", "freed": f"{layer.freed}B",
                       "frees_input": layer.frees_input and layer.again is None,  # a checkpoint keeps it
                       "reads_output": layer.reads_output, "frozen": layer.frozen and layer.whole > 0,
                       "table": layer.whole > 0 and not layer.reads_in_backward,
                       **describe_checkpoint(layer),
                       **({} if layer.tie is None else {"tie": measured.layers[layer.tie].name})})
    config = {"version": 1, "model": {"layers": layers}, "cluster": place,
              "train": {"micro_batch": 1, "grad_accum": micro_steps, "reduce": cadence, "seq_len": 1, "steps": 1,
                        "clip_norm": 1.0,
                        "optimizer": {"type": "adamw", "loop": find_loop(measured, timed, optimizer)},
                        "precision": {"compute": precision or ("f32" if timed else "bf16"), "reduce": reduce}},
              "plan": {"for": target, "planner": planner or "ilp", "recompute": recompute, "ahead": way.ahead,
                       "prefetch": way.prefetch}}
    if not timed:
        return config, None
    def curve(of, name):
        return {name: list(of[0]), "ns": list(of[1])}
    profile = {"format": "weft-profile", "version": 1, "source": "measured", "machine": "PyTorch",
               "ranks": measured.ranks, "update": curve(measured.update, "elements"),
               "layers": [describe_times(layer) for layer in measured.layers],
               "norm": {"elements": [1], "ns": [0]}, "agree_ns": measured.agree_ns, "base_bytes": measured.buffers,
               "collectives": {kind: curve(found, "bytes") for kind, found in measured.collectives.items()}}
    return config, profile


def runs_ahead(measured, cluster):
    """Returns whether the host runs ahead of the devices: not over gloo, and not on a cluster whose devices are CPUs by name."""
    return not measured.reduce_copies if cluster is None else find_cluster(cluster).get("device", {}).get("type") != "cpu"


def list_ways(ahead, has_limit, reserved):
    """Returns lists of ways. Of a list the first way with a plan counts.

    On a GPU more than one gather ahead takes a larger pool, so its plan must fit the limit with all pools.
    """
    if reserved:
        return [[Way(count, pools=True)] for count in (1, 2, 4)]
    if ahead:
        return [[OWN, Way(1)], [Way(4, pools=has_limit)]]
    return [[Way()]]


def find_plans(limited, planner, ways):
    """Returns (way, plan, export) of the plans that fit. Raises the first refusal if none does."""
    found, refusal = [], None
    for way in ways:
        try:
            plan, said = make_plan(*limited(planner, way), WORK)
        except WeftError as error:
            refusal = refusal or error
            continue
        found.append((way, plan, said))
        break
    return found, refusal


def make_rule(free, said):
    """Returns plan and export of FSDP2's default. Where units share tensors it may gather one of them outside of its way."""
    for way in (OWN, Way()):
        try:
            return make_plan(*free(said, None, way), ("--work-limit", "1M"), force=True)
        except WeftError:
            if way == Way():
                raise


def make_plans(ahead, limited, free, planner, has_limit, reserved):
    """Returns the export of a plan within the limit, and figures of FSDP2's default without one.

    `limited` makes the config and profile of a planner and a way. `free` makes those of an export, a planner and a way without
    a limit; without a planner they are of FSDP2's default.
    """
    found, refusal = [], None
    for ways in list_ways(ahead, has_limit, reserved):
        more, error = find_plans(limited, planner, ways)
        found, refusal = found + more, refusal or error
    if not found:
        raise refusal
    # The first of equals: it has fewer gathers ahead.
    way, plan, said = min(found, key=lambda each: each[2]["predicted"]["step_ns"])
    told = said["predicted"]
    # The default has no limit to keep to, and its bound is not shown: no work is spent on one.
    own, rule = make_rule(free, said)
    if ahead:
        rule["predicted"]["reserved_bytes"] = weigh_plan(own, *free(said, None, Way(1, pools=True)))["peak_bytes"]
        told["reserved_bytes"] = told["peak_bytes"]
        other = weigh_plan(plan, *free(said, planner or "ilp", Way(way.ahead, pools=not way.pools)))
        if way.pools:
            told.update(peak_bytes=other["peak_bytes"], peak_slot=other["peak_slot"])
        else:
            told["reserved_bytes"] = other["peak_bytes"]
    return said, rule["predicted"]


def find_policy(policy, precision):
    """Returns a policy, and Weft's names of the dtypes of gathers and of reductions."""
    names = {None: None, **{name: short for short, name in DTYPES.items()}}
    if policy is None and precision in (None, "f32"):
        return None, precision, "f32"
    import torch
    from torch.distributed.fsdp import MixedPrecisionPolicy
    if policy is None:
        if precision not in DTYPES:
            raise WeftError(f"precision {precision}: give f32, bf16 or f16")
        policy = MixedPrecisionPolicy(param_dtype=getattr(torch, DTYPES[precision]), reduce_dtype=torch.float32)
    check_options({"mp_policy": policy})
    told = [dtype and str(dtype).removeprefix("torch.") for dtype in (policy.param_dtype, policy.reduce_dtype)]
    if not all(dtype in names for dtype in told):
        raise WeftError(f"mp_policy has {' and '.join(map(str, told))}: plans are in float32, bfloat16 or float16")
    compute, reduce = names[told[0]] or "f32", names[told[1]] or "f32"
    if precision not in (None, compute):
        raise WeftError(f"precision is {precision}, and mp_policy.param_dtype is {told[0]}: give one of them")
    return policy, compute, reduce


def plan(model, example, loss, mesh=None, memory_limit=None, ranks=None, cluster=None, layers=None, precision=None,
         planner=None, mp_policy=None, optimizer=None, micro_steps=1, cadence="step",
         recompute="none", reserved_limit=None, device=None, host_ahead=None):
    """Plans a model that is not wrapped yet; returns a Plan, the same on all ranks.

    `example` is (inputs, targets) of a rank's micro-batch, for loss(model(inputs), targets). `memory_limit` is
    "24GiB" or None. `ranks` and `cluster` are of machines that are not there. `precision` is the dtype of gathers: f32,
    or bf16 with a cluster, unless given. `mp_policy` is the policy that `apply` gets: its dtypes are those of gathers,
    reductions and activations. `planner` is one of Weft's, ilp unless given. `optimizer` is how AdamW updates: "foreach",
    "fused" or "for-loop"; unless given PyTorch's default for the device. A step has `micro_steps` backward passes.
    `cadence` says if their gradients are reduced once a "step", in each "micro_step", or "auto": the faster way.
    `recompute` says which layers may have an activation checkpoint: "none", "if-needed" (some, if nothing fits without),
    "auto" (as the planner finds best), "whole" (all that can), or names of modules with commas between them.
    `memory_limit` is of tensors. `reserved_limit`, given instead, is of the memory that PyTorch's allocator reserves for them
    on a GPU, with a pool for each stream. `device` is the device of a model on meta, for times without ranks.
    `host_ahead` says if the host queues work ahead of the devices. Unless given, it does except on ranks of CPUs.
    """
    check_steps(micro_steps, cadence)
    if memory_limit is not None and reserved_limit is not None:
        raise WeftError("memory_limit is of tensors, and reserved_limit of the pools that hold them: give one of them")
    if mp_policy is None and precision is None and cluster is not None:
        precision = "bf16"
    mp_policy, precision, reduce = find_policy(mp_policy, precision)
    measured = model if isinstance(model, Measured) else measure(
        model, example, loss, layers, mesh, mp_policy=mp_policy, recompute=recompute != "none", device=device,
        times=cluster is None)
    if mesh is not None:
        ranks = ranks or measured.ranks
    with within(mesh):
        text, own = "", None
        if is_first():
            try:
                limit, ahead = reserved_limit or memory_limit, runs_ahead(measured, cluster) if host_ahead is None else host_ahead
                target, default = ("fsdp2", "fsdp2-default") if ahead else ("fsdp2-blocking", "fsdp2-blocking")
                if limit is None and cluster is not None:
                    limit = find_cluster(cluster).get("memory_limit")
                if reserved_limit is not None and not ahead:
                    raise WeftError("reserved_limit is of a GPU's pools, and these ranks run on CPUs: give memory_limit")

                def limited(name, way):
                    return make_config(measured, limit, ranks, cluster, precision, name, reduce, optimizer, micro_steps,
                                       cadence, recompute, way, target)

                def free(said, name, way):
                    chosen = "step" if said["reduce_every"] == micro_steps else "micro_step"
                    return make_config(measured, NO_LIMIT, ranks, cluster, precision, name or "fsdp2", reduce, optimizer,
                                       micro_steps, chosen, recompute if name else "none", way, target if name else default)
                said, rule = make_plans(ahead, limited, free, planner, limit is not None, reserved_limit is not None)
                said["param_dtype"], said["reduce_dtype"] = (DTYPES[dtype] for dtype in (precision or "f32", reduce))
                said["replicas"] = measured.replicas
                modules = {layer.name: layer.names for layer in measured.layers}
                for unit in said["units"]:
                    for key in ("modules", "checkpoint"):
                        unit[key] = [name for layer in unit[key] for name in modules[layer]]
                text = json.dumps({"said": said, "rule": rule})
            except Exception as error:  # the other ranks wait for its text
                own = error
                text = json.dumps({"error": f"{'' if isinstance(error, WeftError) else type(error).__name__ + ': '}{error}"})
        shared = json.loads(share_text(text))
        if "error" in shared:
            raise own or WeftError(shared["error"])
        return Plan(**shared)
