# SPDX-License-Identifier: Apache-2.0
"""Records a step as FSDP2 runs it, and compares it with a plan."""
import re
import time
from contextlib import contextmanager

RANGE = re.compile(r"FSDP::(all_gather|post_backward_reduce) \((.*)\)$")


class Record:
    """The collectives of a step in order, such as "gather h.0", its time, and bytes at its peak; 0: not known.

    `reserved_bytes` are of PyTorch's allocator on a GPU. The time is not that of a step without a recorder.
    """

    def __init__(self):
        self.order = []
        self.step_ns = self.peak_bytes = self.reserved_bytes = 0

    def compare(self, plan):
        """Returns the differences from the plan, a sentence each; empty if there are none."""
        # FSDP2 names a unit by its modules in the order of named_modules.
        units = {frozenset(unit["modules"]): unit["name"] for unit in plan.units}
        seen = []
        for event in self.order:
            kind, name = event.split(" ", 1)
            seen.append(f"{kind} {units.get(frozenset(name.split(', ')), name)}")
        found = []
        reduced = {event.split(" ", 1)[1] for event in seen if event.startswith("reduce ")}
        for unit in plan.units:
            if unit["finalize"] == "end" and f"reduce {unit['name']}" in plan.said["order"]:
                if unit["name"] not in reduced:
                    found.append(f"{unit['name']} was not reduced, so it does not train: with a loss of something other "
                                 "than the model's output call plan.finish(model) between backward and clipping")
        # A replicated unit has no range of its own for its copy.
        copies = {f"gather {unit['name']}" for unit in plan.units if unit["replicate"]}
        planned = plan.list_order()
        seen = [event for event in seen if event not in copies]
        for place, (have, want) in enumerate(zip([*seen, "the end"], [*planned, "the end"])):
            if have != want:
                found.append(f"the order differs first at collective {place}: planned {want}, seen {have}")
                break
        limit = plan.said["predicted"]["peak_bytes"]
        if self.peak_bytes > limit:
            found.append(f"the peak is {self.peak_bytes} bytes, above the planned {limit}")
        return found


def make_tracker(model):
    """Returns PyTorch's MemTracker. FSDPMemTracker breaks units of several modules, and leaves hooks."""
    from torch.distributed._tools.mem_tracker import MemTracker

    class Tracker(MemTracker):
        def _track_module_params_and_buffers(self, module, install_grad_hooks=True):
            # Hooks only sort the gradients of the total, and a frozen parameter refuses them.
            return super()._track_module_params_and_buffers(module, install_grad_hooks=False)

        def _pre_fw_hook(self, module, inputs):
            if module is model and not self._mod_tracker.is_bw:
                self.reset_mod_stats()  # of the micro-step before; the peak stays
            super()._pre_fw_hook(module, inputs)
    return Tracker()


@contextmanager
def record(model, optimizer=None, memory=False):
    """Records the step that runs inside, all of its micro-steps. `memory` also finds the peak, and makes the step slow."""
    import torch
    from torch.profiler import ProfilerActivity, profile
    seen = Record()
    tracker = None
    if memory:
        tracker = make_tracker(model)
        tracker.track_external(model, *([optimizer] if optimizer is not None else []))
    on_gpu = next(model.parameters()).device.type == "cuda"
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        begin = time.perf_counter_ns()
        if tracker is None:
            yield seen
        else:
            with tracker:
                yield seen
        if on_gpu:
            torch.cuda.synchronize()
            seen.peak_bytes, seen.reserved_bytes = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        seen.step_ns = time.perf_counter_ns() - begin
        if tracker is not None:
            peak = tracker.get_tracker_snapshot("peak")
            seen.peak_bytes = max(sum(v for k, v in parts.items() if str(k) != "Total")
                                  for parts in peak.values())
    events = sorted((e for e in profiler.events() if RANGE.match(e.name)), key=lambda e: e.time_range.start)
    for event in events:
        kind, name = RANGE.match(event.name).groups()
        seen.order.append(f"{'gather' if kind == 'all_gather' else 'reduce'} {name}")
