# SPDX-License-Identifier: Apache-2.0
"""Refusals before anything is wrapped: PyTorch has no public call that unwraps."""
import copy
import dataclasses
import functools
import types

from .program import WeftError

# Options of fully_shard that change memory or messages, and the reason why no plan has them.
REFUSED = {
    "dp_mesh_dims": "plans are for a mesh of one dimension",
    "ignored_params": "the plan gathers, reduces and updates every parameter",
    "offload_policy": "the plan keeps parameters and state on the device",
    "reshard_after_forward": "the plan says which units stay gathered",
    "shard_placement_fn": "the plan shards the first dimension of each parameter",
}


def check_mesh(mesh):
    """Raises for a mesh that is neither FSDP's, of one dimension, nor HSDP's: replicas x shards."""
    if mesh is None or mesh.ndim == 1:
        return
    names = " x ".join(mesh.mesh_dim_names or map(str, mesh.shape))
    if mesh.ndim > 2:
        raise WeftError(f"the mesh has {mesh.ndim} dimensions ({names}): give fully_shard's, of one dimension or two (replicas x "
                        "shards), such as mesh[\"shard\"]")
    if mesh.size(1) == 1:
        raise WeftError(f"the mesh ({names}) shards over one rank: FSDP2 then gathers nothing, and no plan has its all-reduce. "
                        "Use DistributedDataParallel, or a mesh that shards over more ranks")


def count_shards(mesh):
    """Returns ranks that share a unit, and replicas of them."""
    import torch.distributed as dist
    if mesh is None:
        return dist.get_world_size(), 1
    return (mesh.size(), 1) if mesh.ndim == 1 else (mesh.size(1), mesh.size(0))


def check_options(options):
    """Raises for an option of fully_shard that no plan has, unless it asks for the default."""
    from torch.distributed.fsdp import OffloadPolicy
    for name, value in options.items():
        if name == "mp_policy":
            if getattr(value, "param_dtype_override_fn", None) is not None:
                raise WeftError("no plan has mp_policy.param_dtype_override_fn: a unit is gathered in one dtype")
        elif name not in REFUSED:
            raise WeftError(f"apply has no option {name}")
        elif value is not None and (name == "reshard_after_forward" or (value and type(value) is not OffloadPolicy)):
            raise WeftError(f"apply takes no {name}: {REFUSED[name]}")


def choose_policy(policy, said):
    """Returns the planned policy with the rest of the caller's. None: FSDP2 keeps the parameters' own dtypes."""
    import torch
    # An export has null for 16 bits.
    planned = {name: getattr(torch, said[name] or "bfloat16") for name in ("param_dtype", "reduce_dtype")}
    told = f"MixedPrecisionPolicy(param_dtype={planned['param_dtype']}, reduce_dtype={planned['reduce_dtype']})"
    if policy is None:
        if planned["param_dtype"] != torch.float32:
            raise WeftError(f"the plan gathers in {planned['param_dtype']}: give mp_policy={told}")
        return None
    for name, dtype in planned.items():
        given = getattr(policy, name)
        if given != dtype and not (given is None and (name == "reduce_dtype" or dtype == torch.float32)):
            raise WeftError(f"mp_policy has {name}={given}, and the plan {dtype}: give {told}, or plan with mp_policy")
    # Until PyTorch 2.15 reduce_dtype=None meant param_dtype.
    return dataclasses.replace(policy, reduce_dtype=planned["reduce_dtype"])


def check_parameters(unit, named):
    """Raises for (name, parameter) pairs that FSDP2 refuses, some of them in the first forward alone."""
    from torch.nn.parameter import Parameter, UninitializedTensorMixin
    dtypes = {}
    for name, parameter in named:
        if isinstance(parameter, UninitializedTensorMixin):
            raise WeftError(f"parameter {name} of {unit} has no shape yet: run the model once")
        if type(parameter) is not Parameter or not parameter.is_floating_point():
            raise WeftError(f"parameter {name} of {unit} is a {type(parameter).__name__} of {parameter.dtype}: no plan has "
                            "parameters that are quantised, distributed or not of floats")
        if parameter.dim() == 0:
            raise WeftError(f"parameter {name} of {unit} is a scalar, which FSDP2 refuses: make it a tensor of one element")
        if parameter.requires_grad:
            dtypes.setdefault(parameter.dtype, name)
    if len(dtypes) > 1:
        told = ", ".join(f"{name} {str(dtype).removeprefix('torch.')}" for dtype, name in dtypes.items())
        raise WeftError(f"parameters of {unit} have several dtypes ({told}), and FSDP2 wants one a unit: convert the model, "
                        "and give mp_policy for other dtypes of gathers")


def rebind(value, old, new):
    """Returns a module's own forward, such as one with a checkpoint, as that of its copy."""
    if isinstance(value, functools.partial):
        return functools.partial(rebind(value.func, old, new), *(rebind(each, old, new) for each in value.args), **value.keywords)
    return types.MethodType(value.__func__, new) if getattr(value, "__self__", None) is old else value


def make_shell(module, known=None, make=None):
    """Copies modules and their dictionaries, with tensors on meta: wrapping the copy changes no module of the original.

    `make` returns another tensor for a tensor instead.
    """
    import torch
    known = {} if known is None else known
    if id(module) in known:
        return known[id(module)]
    shell = known[id(module)] = object.__new__(type(module))
    shell.__dict__.update({key: copy.copy(value) if isinstance(value, dict) else value
                           for key, value in module.__dict__.items()})
    if "forward" in shell.__dict__:
        shell.__dict__["forward"] = rebind(shell.__dict__["forward"], module, shell)

    def empty(tensor):
        if id(tensor) not in known:
            made = torch.empty_like(tensor, device="meta") if make is None else make(tensor).detach()
            known[id(tensor)] = torch.nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, torch.nn.Parameter) else made
        return known[id(tensor)]
    for key in ("_parameters", "_buffers"):
        shell.__dict__[key] = {name: None if tensor is None else empty(tensor) for name, tensor in module.__dict__[key].items()}
    shell.__dict__["_modules"] = {name: None if child is None else make_shell(child, known, make)
                                  for name, child in module._modules.items()}
    return shell
