# SPDX-License-Identifier: Apache-2.0
"""Plans that FSDP2 runs: wrapping a model by public calls alone."""
import difflib
import hashlib
import inspect
import json
import warnings
from contextlib import contextmanager

from .checks import check_mesh, check_options, check_parameters, choose_policy, count_shards, make_shell
from .guards import Guard, find_guard
from .measures import checkpoint_forward
from .program import WeftError
from .ranks import gather_numbers, within

# The cost of a PyTorch without the call.
MISSING = {
    "set_reduce_scatter_max_input_buffers": "one reduction is under way at a time",
    "set_manual_backward_finalization": "every unit is reduced after its own backward",
    "finalize_backward": "every unit is reduced after its own backward",
    "replicate": "replicated units are sharded, and gathered once a step",
}


def find_call(name):
    """Returns whether this PyTorch has the call."""
    from torch.distributed import fsdp
    if name == "replicate":
        try:
            from torch.distributed._composable.replicate_with_fsdp import replicate  # noqa: F401
        except ImportError:
            return False
        return "mesh" in inspect.signature(replicate).parameters
    return hasattr(fsdp, name) or hasattr(fsdp.FSDPModule, name)


def seconds(nanoseconds):
    return f"{nanoseconds / 1e6:.3g} ms" if nanoseconds < 1e9 else f"{nanoseconds / 1e9:.3g} s"


def size(count):
    return f"{count / 2**20:.1f} MiB" if count < 2**30 else f"{count / 2**30:.2f} GiB"


class Plan:
    """A plan for FSDP2, from `weft export --to fsdp2`.

    `said` is the export's content. `rule` has the figures of FSDP2's own rule, by Weft's planner fsdp2, for print.
    """

    def __init__(self, said, rule=None):
        if said.get("format") != "weft-export" or said.get("target") != "fsdp2":
            raise WeftError("this is no plan for FSDP2: weft export PLAN --to fsdp2 writes one")
        self.said, self.rule = said, rule
        self.lost = set()  # calls that this PyTorch lacks

    @classmethod
    def read(cls, path):
        with open(path, encoding="utf-8") as file:
            return cls(json.load(file))

    def hash(self):
        return hashlib.sha256(json.dumps(self.said, sort_keys=True).encode()).hexdigest()

    @property
    def units(self):
        return self.said["units"]

    @property
    def replicas(self):
        """Groups of ranks that each have all shards, as in HSDP. Exports do not say it, the package does."""
        return self.said.get("replicas", 1)

    @property
    def micro_steps(self):
        return self.said["micro_steps"]

    @property
    def reduces_each(self):
        """Whether each micro-step reduces its gradients. Exports of earlier versions do not say it."""
        return self.said.get("reduce_every", 1) == 1

    def list_order(self):
        """Returns the collectives of a whole step. A single rank gathers nothing."""
        order = [event for event in self.said["order"] if self.said["ranks"] > 1 or event.startswith("reduce")]
        before = order if self.reduces_each else [event for event in order if event.startswith("gather")]
        return before * (self.micro_steps - 1) + order

    def __str__(self):
        told = self.said["predicted"]
        lines = [f"plan for FSDP2 on {self.said['ranks']} ranks" + (f", {self.replicas} replicas" if self.replicas > 1 else "")]
        if self.micro_steps > 1:
            lines[0] += (f", {self.micro_steps} micro-steps a step, gradients reduced " +
                         ("in each" if self.reduces_each else "in the last"))
        for unit in self.units:
            words = [unit["policy"]] if unit["replicate"] or unit["policy"] == "fsdp" else ["kept gathered"]
            if unit["reshard_after_forward"] and not unit["unshard_in_backward"]:
                words = ["not gathered in backward"]
            words += ["recomputed"] if unit.get("checkpoint") else []
            words += ["reduced at the end"] if unit["finalize"] == "end" else []
            for key in ("forward", "backward"):
                ahead = [name for name in unit[key] if name != unit["name"]]
                words += [f"{key} gathers {' '.join(ahead)}"] if ahead else []
            lines.append(f"  {unit['name']:<16} {', '.join(words)}")
        where = "predicted on a GPU, where the host runs ahead" if told.get("runs_ahead") else "predicted"
        lines.append(f"step    {seconds(told['step_ns'])} {where}; no plan is faster than {seconds(told['bound_ns'])} "
                     f"(gap {100 * told['gap']:.2f} %)")
        lines.append(f"memory  {size(told['peak_bytes'])} of tensors a rank, in {told['peak_slot']}; "
                     "the allocator, NCCL and the context come on top")
        if "reserved_bytes" in told:
            lines.append(f"        {size(told['reserved_bytes'])} reserved on a GPU, in a pool for each stream: compute, gathers, "
                         "reduced gradients")
        if self.rule is not None:
            gain = 100 * (1 - told["step_ns"] / self.rule["step_ns"])
            lines.append(f"{'gain' if gain > -0.1 else 'cost'}    FSDP2's own rule takes {seconds(self.rule['step_ns'])} at "
                         f"{size(self.rule['peak_bytes'])}: " + (f"{gain:.1f} % less" if gain >= 0.1 else
                                                                 "nothing to gain here" if gain > -0.1 else
                                                                 f"the plan takes {-gain:.1f} % more"))
        lines += self.said["not_expressed"]
        return "\n".join(lines)

    def list_figures(self, seen=None):
        """Returns step_ns, allocated_bytes and reserved_bytes of FSDP2's default, the plan and a record; None: not known."""
        def row(told, peak="peak_bytes"):
            return {"step_ns": told.get("step_ns") or None, "allocated_bytes": told.get(peak) or None, "reserved_bytes": told.get("reserved_bytes") or None}
        return {"default": row(self.rule or {}), "plan": row(self.said["predicted"]), "measured": row(vars(seen) if seen else {})}

    def make_table(self, seen=None, as_json=False):
        """Returns the figures as a table: FSDP2's default, the plan, and the record of a step."""
        figures = self.list_figures(seen)
        if as_json:
            return json.dumps(figures)
        shown = {"step_ns": seconds, "allocated_bytes": size, "reserved_bytes": size}
        lines = [f"{'':10}{'step':>12}{'allocated':>14}{'reserved':>14}"]
        for name, row in figures.items():
            words = [show(row[key]) if row[key] else "-" for key, show in shown.items()]
            lines.append(f"{name:10}{words[0]:>12}{words[1]:>14}{words[2]:>14}")
        return "\n".join(lines)

    # Checks, all before anything is wrapped.

    def find_modules(self, model):
        """Returns the modules of each unit by the unit's name."""
        modules = dict(model.named_modules(remove_duplicate=False))
        found = {}
        for unit in self.units:
            for name in unit["modules"]:
                if name not in modules:
                    near = difflib.get_close_matches(name, modules, 3, 0.3)
                    raise WeftError(f"the model has no module {name}" +
                                    (f"; the nearest are {', '.join(near)}" if near else ""))
            found[unit["name"]] = [modules[name] for name in unit["modules"]]
        return found

    def check_model(self, model, groups):
        from torch.distributed.fsdp import FSDPModule
        from torch.distributed.tensor import DTensor
        for name, module in model.named_modules():
            if isinstance(module, FSDPModule):
                raise WeftError(f"module {name or 'of the model'} is already wrapped by fully_shard or "
                                "replicate: apply the plan to the model before that")
        owners = {}
        for unit, modules in groups.items():
            named = [pair for module in modules for pair in module.named_parameters()]
            for name, parameter in named:
                if isinstance(parameter, DTensor):
                    raise WeftError(f"parameter {name} of unit {unit} is a DTensor: apply the plan "
                                    "before the model is distributed")
                other = owners.setdefault(parameter, unit)
                if other != unit:
                    raise WeftError(f"units {other} and {unit} share parameter {name}: plan them as "
                                    "one unit of two modules, fully_shard([a, b])")
            check_parameters(f"unit {unit}", named)
        loose = {name: parameter for name, parameter in model.named_parameters() if parameter not in owners}
        if loose:
            check_parameters("the root", loose.items())
            warnings.warn(f"{len(loose)} parameters are in no unit, such as {next(iter(loose))}: the root gathers "
                          "them, and the plan does not count them")

    def check_ranks(self, mesh):
        ranks, replicas = count_shards(mesh)
        if ranks != self.said["ranks"]:
            raise WeftError(f"the plan is for {self.said['ranks']} ranks, and there are {ranks}: plan with "
                            f"ranks={ranks}")
        if replicas != self.replicas:
            raise WeftError(f"the plan is for {self.replicas} replicas of {ranks} ranks, and the mesh has {replicas}: plan with "
                            "the same mesh")
        with within(mesh):
            hashes = gather_numbers(list(bytes.fromhex(self.hash())))
        for rank, other in enumerate(hashes):
            if other != hashes[0]:
                raise WeftError(f"ranks 0 and {rank} have different plans: give all ranks rank 0's")

    def check_calls(self):
        self.lost = {need["call"] for need in self.said["requires"] if not find_call(need["call"])}
        fatal = [name for name in self.lost if name not in MISSING]
        needs = {need["call"]: need["torch"] for need in self.said["requires"]}
        if fatal:
            raise WeftError(f"this PyTorch has no {fatal[0]}: install {needs[fatal[0]]} or newer")
        if self.lost:
            told = "; ".join(sorted(f"without {name} (PyTorch {needs[name]}) {MISSING[name]}" for name in self.lost))
            warnings.warn(f"this PyTorch lacks calls of the plan: {told}")

    # Wrapping.

    def apply(self, model, mesh=None, **options):
        """Wraps the model, instead of the fully_shard calls. Of their options it takes mp_policy."""
        check_mesh(mesh)
        check_options(options)
        self.check_model(model, self.find_modules(model))
        self.check_ranks(mesh)
        self.check_calls()
        policy = choose_policy(options.get("mp_policy"), self.said)
        options = {} if policy is None else {"mp_policy": policy}
        try:
            self.wrap(make_shell(model), mesh, options)
        except Exception as error:
            raise WeftError(f"FSDP2 refuses the model: {error}") from error
        heads, late = self.wrap(model, mesh, options)
        Guard(model, heads, late, self.micro_steps, 1 if self.reduces_each else self.micro_steps)
        return model

    def wrap(self, model, mesh, options):
        """Returns a module of each unit, and the modules of late units."""
        from torch.distributed.fsdp import fully_shard
        groups = self.find_modules(model)
        heads = {"": model, **{name: modules[0] for name, modules in groups.items()}}
        for unit in self.units:
            for name in unit.get("checkpoint", ()):
                checkpoint_forward(groups[unit["name"]][unit["modules"].index(name)])
        for unit in self.units:
            modules = groups[unit["name"]]
            modules = modules if len(modules) > 1 else modules[0]
            if unit["replicate"] and "replicate" not in self.lost:
                from torch.distributed._composable.replicate_with_fsdp import replicate
                replicate(modules, mesh=mesh, **options)
            else:
                fully_shard(modules, mesh=mesh, reshard_after_forward=unit["reshard_after_forward"], **options)
        root = self.said["root"]
        fully_shard(model, mesh=mesh, reshard_after_forward=root["reshard_after_forward"], **options)
        for unit in [*self.units, {**root, "name": "", "unshard_in_backward": True}]:
            module = heads[unit["name"]]
            module.set_modules_to_forward_prefetch([heads[name] for name in unit["forward"]])
            module.set_modules_to_backward_prefetch([heads[name] for name in unit["backward"]])
            if not unit["unshard_in_backward"]:
                module.set_unshard_in_backward(False)
        cap = self.said["max_reduce_scatter_inputs"]
        if cap > 1 and "set_reduce_scatter_max_input_buffers" not in self.lost:
            model.set_reduce_scatter_max_input_buffers(cap)
        late = [] if "finalize_backward" in self.lost else [heads[unit["name"]] for unit in self.units
                                                            if unit["finalize"] == "end"]
        if late:
            model.set_manual_backward_finalization(True)
        return [heads[unit["name"]] for unit in self.units], late

    @contextmanager
    def step(self, model):
        """Runs the forwards and backwards of a step's micro-steps, with reductions where the plan has them."""
        guard = find_guard(model)
        guard.begin_step()
        try:
            yield
        except BaseException:
            guard.leave_step(model)
            raise
        guard.end_step(model)

    def finish(self, model):
        """Reduces the units that the plan reduces at the end, for a loss of something other than the model's output.

        Otherwise the end of backward does it.
        """
        find_guard(model).finish(model)

    def reset(self, model):
        """Releases units that are still gathered after an exception in forward or backward. Call it before the next one."""
        find_guard(model).reset(model)
