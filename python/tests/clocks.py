# SPDX-License-Identifier: Apache-2.0
"""The step of an export, hook by hook: the judge of the program's steps. It shares no code with the program.

On a CPU a collective is launched when compute reaches its hook. On a GPU the host runs ahead, so hooks run long before, and
streams wait for FSDP2's events alone:

- forward: the gather of a unit waits for the copy-out of the unit before the last one, and for earlier gathers;
- backward: gathers that follow a unit's copy-out wait for the copy-out;
- a reduction waits for its unit's backward; compute waits for the oldest one when as many are under way as may be;
- gathers and reductions share a communicator, in order of launch.
"""
from dataclasses import dataclass, field


@dataclass
class Times:
    """Nanoseconds of a plan: by layer, by unit, and of the rest of the step."""
    forward: list
    backward: list
    gathers: dict  # by name of unit
    reductions: dict  # of units that train
    spans: dict  # first and last layer of a unit
    rest: int = 0
    syncs: set = field(default_factory=set)  # layers that the host waits for in forward


def read_times(plan):
    """Returns the times of a plan's file."""
    problem = plan["problem"]
    spent = [slot["time_ns"] for slot in problem["slots"]]
    for decision, chosen in zip(problem["decisions"], plan["strategies"]):
        for strategy in decision["strategies"]:
            for time in strategy.get("times", ()) if strategy["name"] == chosen else ():
                spent[time["slot"]] += time["time_ns"]
    layers = {kind: [ns for slot, ns in zip(problem["slots"], spent) if slot["kind"] == kind and slot["micro"] == 0]
              for kind in ("forward", "backward")}
    names = [decision["name"] for decision in problem["decisions"]]
    moved = {kind: {names[item["decision"]]: item["block_ns"] * item["blocks"] for item in problem["items"]
                    if item["kind"] == kind} for kind in ("all_gather", "reduce_scatter")}
    spans = {}
    for decision in problem["decisions"]:
        found = decision.get("tied_layers") or decision.get("layers")
        if found and decision["name"] in moved["all_gather"]:
            spans[decision["name"]] = (min(found), max(found))
    rest = sum(ns for slot, ns in zip(problem["slots"], spent) if slot["kind"] not in layers) + problem["agree_ns"]
    syncs = {slot["index"] for slot in problem["slots"] if slot.get("syncs")}
    return Times(layers["forward"], layers["backward"][::-1], moved["all_gather"], moved["reduce_scatter"], spans, rest, syncs)


@dataclass
class Streams:
    """Times at which compute, gathers, reductions and their communicator are free."""
    times: Times
    ahead: bool  # False: a launch waits for compute, as where the host does not run ahead
    cap: int = 1
    compute: int = 0
    gathered: int = 0
    reduced: int = 0
    channel: int = 0
    pending: dict = field(default_factory=dict)  # ends of gathers, by unit
    full: set = field(default_factory=set)
    copied: int = 0  # the last copy-out of a forward
    under_way: list = field(default_factory=list)

    def gather(self, unit):
        if unit in self.full or unit in self.pending:
            return
        begin = max(self.gathered, self.channel, 0 if self.ahead else self.compute)
        self.gathered = self.channel = self.pending[unit] = begin + self.times.gathers[unit]

    def copy_out(self, unit, forward):
        self.gather(unit)
        if unit in self.full:
            return
        if forward:
            self.gathered = max(self.gathered, self.copied)
        self.compute = max(self.compute, self.pending.pop(unit))
        self.full.add(unit)
        if forward:
            self.copied = self.compute
        else:
            self.gathered = max(self.gathered, self.compute)

    def reduce(self, unit):
        if unit not in self.times.reductions:
            return
        while len(self.under_way) >= self.cap:
            self.compute = max(self.compute, self.under_way.pop(0))
        self.reduced = self.channel = max(self.reduced, self.compute, self.channel) + self.times.reductions[unit]
        self.under_way.append(self.reduced)

    def end_backward(self):
        self.compute = max(self.compute, *self.under_way, self.channel)
        self.under_way = []


def run_micro_step(streams, units, root, reduces):
    """Runs the hooks of a forward and a backward. An empty backward list is FSDP2's own rule."""
    times = streams.times
    named = {unit["name"]: unit for unit in units}
    first = next((name for name in named if name in times.reductions), None)
    streams.gathered = max(streams.gathered, streams.compute)  # the root's pre-forward
    for name in root:
        streams.gather(name)
    for layer, spent in enumerate(times.forward):
        for name, unit in named.items():
            if times.spans[name][0] == layer:
                streams.copy_out(name, True)
                for other in unit["forward"]:
                    streams.gather(other)
        streams.compute += spent
        if layer in times.syncs:
            streams.gathered = max(streams.gathered, streams.compute)
        for name, unit in named.items():
            if times.spans[name][1] == layer and unit["reshard_after_forward"]:
                streams.full.discard(name)
    streams.gathered = max(streams.gathered, streams.copied)
    order = list(named)
    for layer in reversed(range(len(times.backward))):
        for place, name in enumerate(order):
            if times.spans[name][1] == layer:
                if named[name]["unshard_in_backward"]:
                    streams.copy_out(name, False)
                for other in named[name]["backward"] or order[max(0, place - 1):place]:
                    if named[other]["unshard_in_backward"]:
                        streams.gather(other)
        streams.compute += times.backward[layer]
        recomputes = any(named[name].get("checkpoint") for name in order if times.spans[name] == (layer, layer))
        if layer in times.syncs and recomputes:
            streams.gathered = max(streams.gathered, streams.compute)
        for name in order:
            if times.spans[name][0] == layer:
                streams.full.discard(name)
                if reduces and name != first and named[name]["finalize"] == "own":
                    streams.reduce(name)
    for name in reversed(order):
        streams.full.discard(name)
        if reduces and (name == first or named[name]["finalize"] == "end"):
            streams.reduce(name)
    streams.end_backward()


def find_step(said, times, ahead=True):
    """Returns the step of an export with these times, in nanoseconds."""
    streams = Streams(times, ahead, said["max_reduce_scatter_inputs"])
    for micro in range(said["micro_steps"]):
        run_micro_step(streams, said["units"], said["root"]["forward"], (micro + 1) % said.get("reduce_every", 1) == 0)
    return times.rest + streams.compute


def make_default(said):
    """Returns FSDP2 as it is: no lists, each unit gathered in backward and reduced after it."""
    units = [{**unit, "reshard_after_forward": True, "unshard_in_backward": True, "forward": [], "backward": [],
              "finalize": "own"} for unit in said["units"]]
    return {**said, "units": units, "root": {**said["root"], "forward": []}, "max_reduce_scatter_inputs": 1}
