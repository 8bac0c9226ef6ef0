# SPDX-License-Identifier: Apache-2.0
"""Hooks that make every sequence of calls safe: forwards without a backward, exceptions, accumulation."""
import functools
import warnings
import weakref

from .measures import walk_tensors
from .program import WeftError

GUARDS = weakref.WeakSet()


def find_task():
    """Returns the number of the backward that runs here, -1 outside of one."""
    import torch
    return torch._C._current_graph_task_id()


def is_pending(module):
    """Returns whether a gather may be under way: PyTorch has no public call, and an unknown state counts as one."""
    try:
        group = module._get_fsdp_state()._fsdp_param_group
        return group is not None and group._all_gather_result is not None
    except AttributeError:
        return True


def has_sync(module):
    """Returns the last choice of set_requires_gradient_sync, which has no public counterpart."""
    group = module._get_fsdp_state()._fsdp_param_group
    return group is not None and group.reduce_grads


def has_symmetric_memory(module):
    """Returns whether set_symm_mem_for_comm was called, which has no public counterpart."""
    group = module._get_fsdp_state()._fsdp_param_group
    return type(getattr(group, "_all_gather_comm", None)).__name__.startswith("SymmMem")


def count_steps(count):
    return f"{count} micro-step{'' if count == 1 else 's'}"


class Guard:
    """Two hooks on the root of an applied plan, and one on optimizers.

    A unit that a forward keeps gathered, or a gather that a prefetch list launched, survives a forward without a
    backward, and a later one would compute with its old weights. So all units are released before a forward and an update,
    and after a forward without grad. Late reductions run at the end of each backward.
    """

    def __init__(self, model, units, late, micro_steps=1, reduce_every=1):
        self.units = [*units, model]  # a module of each
        self.late = late
        self.micro_steps, self.reduce_every = micro_steps, reduce_every
        self.place = None  # micro-steps that have begun within plan.step; None: outside of it
        self.syncs = []  # for each backward since the last update: whether it reduces
        self.told = self.early = False
        self.forwards = 0
        self.held = []  # late units of the backward that runs
        self.within = None  # "forward" or "backward" that has begun and not ended
        self.task = -1  # of that backward
        self.sharded = set()  # ids of parameters that an optimizer updates
        model.register_forward_pre_hook(self.begin_forward, prepend=True)
        model.register_forward_hook(self.end_forward)
        GUARDS.add(self)
        guard_optimizers()

    def release(self):
        for unit in self.units:
            if is_pending(unit):
                unit.unshard()  # waits: reshard alone leaves a gather under way
        for unit in self.units:
            unit.reshard()

    def begin_forward(self, model, _):
        if find_task() >= 0:  # a checkpoint around the root repeats its forward
            return
        if any(map(has_symmetric_memory, self.units)):
            raise WeftError("the plan has no symmetric memory: its buffers are registered and never freed. Leave "
                            "set_symm_mem_for_comm out, or train without a plan")
        if self.within is not None:
            warnings.warn(f"the last {self.within} did not end: its gradients, and those accumulated before, are dropped")
            self.reset(model)
        self.release()
        self.sharded = {id(parameter) for parameter in model.parameters()}
        if self.place is None and self.syncs[-1:] == [True] and all(p.grad is None for p in model.parameters()):
            self.syncs = []  # a step without an update, as a scaler skips it
        self.within = "forward"

    def end_forward(self, model, _, output):
        if find_task() >= 0:
            return
        self.within = None
        import torch
        tensors = [tensor for tensor in walk_tensors(output) if tensor.requires_grad and torch.is_grad_enabled()]
        self.forwards += bool(tensors)
        for tensor in tensors:
            tensor.register_hook(lambda _, number=self.forwards: self.begin_backward(model, number))
        if not tensors:
            self.release()

    def begin_backward(self, model, number):
        if self.task == find_task():  # another output of the same backward
            return
        if number < self.forwards and not self.early:
            self.early = True
            warnings.warn("this backward is of an earlier forward than the last one, as in a pipeline with several micro-batches "
                          "under way: the plan holds the activations of one, and the peak may be above it")
        if self.within is not None:
            raise WeftError(f"the last {self.within} did not end: call plan.reset(model) after an exception")
        self.within, self.task = "backward", find_task()  # first: after an error the next forward resets
        if self.place == self.micro_steps:
            raise WeftError(f"plan.step has a backward pass after the plan's {count_steps(self.micro_steps)}: plan with "
                            "micro_steps=, or update before it")
        if self.place is not None:
            self.place += 1
            model.set_requires_gradient_sync(self.place % self.reduce_every == 0)
        self.syncs.append(any(map(has_sync, self.units)))
        self.held = [unit for unit in self.late if has_sync(unit)]
        for unit in self.held:
            unit.set_requires_gradient_sync(False, recurse=False)
        import torch
        # FSDP2's own end may be queued later: a callback that a callback queues comes after all others.
        queue = torch.autograd.Variable._execution_engine.queue_callback
        queue(lambda: queue(lambda: self.end_backward(model)))

    def end_backward(self, model):
        self.within, self.task = None, -1
        self.finish(model)

    def begin_update(self, optimizer):
        ids = (id(parameter) for group in optimizer.param_groups for parameter in group["params"])
        if find_task() < 0 and not self.sharded.isdisjoint(ids):
            self.release()
            self.check_steps()

    def check_steps(self):
        """Warns once if the loop does not accumulate gradients as planned."""
        seen, self.syncs = self.syncs, []
        planned = [(place + 1) % self.reduce_every == 0 for place in range(self.micro_steps)]
        if seen and seen != planned and not self.told:
            self.told = True
            warnings.warn(f"this update follows {count_steps(len(seen))}, of which {sum(seen)} reduced gradients, and the plan "
                          f"has {count_steps(len(planned))}, of which {sum(planned)}: its memory and step are not this "
                          "loop's. Plan with micro_steps= and cadence=, and run the micro-steps in plan.step(model)")

    def begin_step(self):
        if self.place is not None:
            raise WeftError("plan.step is within another one: end a step before the next one begins")
        self.place, self.syncs = 0, []

    def leave_step(self, model):
        """Returns the number of micro-steps that have begun."""
        place, self.place = self.place, None
        model.set_requires_gradient_sync(True)
        if self.within is None and place % self.reduce_every:  # gradients that no reduction will take
            try:
                self.reset(model)
            except WeftError:  # a warning, as it would hide the error that ended the step
                warnings.warn("plan.step ended before its reduction, and PyTorch before 2.13 cannot drop the gradients "
                              "that it added up: build and wrap the model again")
        return place

    def end_step(self, model):
        place = self.leave_step(model)
        if place != self.micro_steps:
            raise WeftError(f"plan.step had {count_steps(place)} with a backward pass of the model's output, and the plan has "
                            f"{count_steps(self.micro_steps)}: run all of them in it, or plan with micro_steps={place or 1}")

    def finish(self, model):
        for unit in self.held:
            unit.set_requires_gradient_sync(True, recurse=False)
        self.held = []
        if self.late:
            model.finalize_backward(async_op=False)

    def reset(self, model):
        if not hasattr(model, "reset_iter_state"):
            raise WeftError("a forward or backward did not end, and PyTorch before 2.13 cannot clear its state: "
                            "build and wrap the model again")
        for unit in self.held:
            unit.set_requires_gradient_sync(True, recurse=False)
        self.held, self.within, self.task, self.syncs = [], None, -1, []
        model.reset_iter_state()


@functools.cache
def guard_optimizers():
    """Registers a hook on all optimizers, which PyTorch has public for all alone."""
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    def before(optimizer, *_):
        for guard in list(GUARDS):
            guard.begin_update(optimizer)
    register_optimizer_step_pre_hook(before)


def find_guard(model):
    """Returns the guard of a model that a plan was applied to."""
    for guard in GUARDS:
        if guard.units[-1] is model:
            return guard
    raise WeftError("no plan was applied to this model: call plan.apply(model) first")
