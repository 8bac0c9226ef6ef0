# SPDX-License-Identifier: Apache-2.0
"""Other forms of a plan file's problem, for plan_checker, written from docs/plan-file.md: the early form and the form in
pages.
"""
import json


def layer_slots(said):
    """Returns (kind, layer, micro-step) of all forwards and backwards, in the order of the period."""
    period = said["period"]
    n_layers = 1 + max(slot["index"] for slot in said["slots"] if slot["kind"] == "forward")
    micros, each = range(period["micro_steps"]), period.get("layers", n_layers)
    groups = [range(first, min(first + each, n_layers)) for first in range(0, n_layers, each)]
    step = [("forward", layer, micro) for group in groups[:-1] for micro in micros for layer in group]
    for micro in micros:
        step += [("forward", layer, micro) for layer in groups[-1]]
        step += [("backward", layer, micro) for layer in reversed(groups[-1])]
    step += [("backward", layer, micro) for group in reversed(groups[:-1]) for micro in micros for layer in reversed(group)]
    begin = step.index(("forward", n_layers - 1, micros[-1])) + 1 if period["rotated"] else 0
    return step[begin:] + step[:begin]


def runs_ahead(said):
    return said.get("for", "").startswith("fsdp2") and not said["for"].endswith("-blocking")


def find_events(said, copies, syncs):
    """Returns the slots at which gathers begin that a slot launches: its own gather, and others."""
    own, others, event, copied = [], [], 0, 0
    for s, slot in enumerate(said["slots"]):
        forward, backward = slot["kind"] == "forward", slot["kind"] == "backward"
        if slot["kind"] == "fill" or (forward and slot["index"] == 0 and slot["micro"] > 0):
            event = copied = s
        if backward:
            event = max(event, copied)
        own.append(event)
        if forward and s in copies:
            event, copied = max(event, copied), s
        if backward and s in copies:
            event = s
        others.append(event)
        if s in syncs:
            event = s + 1
    return own, others


def launch_slots(said):
    """Slots of a problem for FSDP2 that launch gathers."""
    slots = said["slots"]
    forward = [slot["kind"] == "forward" for slot in slots]
    uses = {item["last"] + 1 for item in said["items"] if item["acquires"]}
    hooks = {s for s, slot in enumerate(slots) if slot["kind"] == "fill" or s in uses}
    hooks |= {s for s in range(1, len(slots)) if slots[s]["kind"] == "backward" and forward[s - 1] and s - 1 in hooks}
    return hooks | {s for s, slot in enumerate(slots) if forward[s] and slot["index"] == 0 and slot["micro"] > 0}


def must_block(said, item):
    last, use = said["slots"][item["last"]], said["slots"][item["last"] + 1]
    return last["micro"] < use["micro"] or (last["kind"], use["kind"]) == ("forward", "backward")


def make_early(said):
    """Returns the problem in which bounds are proven where the host runs ahead."""
    said = json.loads(json.dumps(said))
    certain = {item["last"] + 1 for item in said["items"] if item["acquires"]
               and len(item["strategies"]) == len(said["decisions"][item["decision"]]["strategies"])}
    syncs = {s for s, slot in enumerate(said["slots"]) if slot.get("syncs") and slot["kind"] == "forward"}
    own, others = find_events(said, certain, syncs)
    hooks = sorted(launch_slots(said))
    if len({item["lane"] for item in said["items"] if item["acquires"]}) > 1:
        raise ValueError("gathers on two lanes, and the host runs ahead")
    for item in said["items"]:
        if item["acquires"]:
            events = [own[item["last"] + 1]]
            if not must_block(said, item):
                events += [others[s] for s in hooks if item["first"] <= s <= item["last"]]
            item["held_bytes"], item["first"] = 0, min(*events, item["last"])
        elif len(said["lanes"]) > 2 and item["first"] > 0:
            item["held_bytes"], item["first"] = 0, item["first"] - 1
    return said


def in_pages(said, page):
    """Returns the problem with the rows that plans in pages of this size have at least."""
    said = json.loads(json.dumps(said))
    n_slots, device = len(said["slots"]), said["tiers"][0]

    def on_device(value):
        return value.get("tier", device["name"]) == device["name"]

    def outside(hold):
        return hold["category"] in ("base", "staging")

    def whole(size):
        return -(-size // page) * page

    for hold in said["common"] + [hold for decision in said["decisions"]
                                  for of in decision["strategies"] for hold in of["holds"]]:
        lasts = (hold["last"] - hold["first"]) % n_slots + 1
        if on_device(hold) and not outside(hold) and lasts < n_slots and hold["bytes"] >= page:
            hold["bytes"] = whole(hold["bytes"])
    for item in said["items"]:
        size, n = item["held_bytes"], item["blocks"]
        if on_device(item) and size > 0 and n * size >= page:
            item["held_bytes"] = min(whole(k * size) // k for k in range(1, n + 1))
    kept = [hold["bytes"] for hold in said["common"] if on_device(hold) and outside(hold)]
    limit = device["limit_bytes"]
    if limit is not None and limit >= sum(kept):
        room = limit - sum(kept) + 255 * len(kept)
        device["limit_bytes"] = sum(kept) + room // page * page
    return said
