# SPDX-License-Identifier: Apache-2.0
"""The search of orders of docs/plan-file.md, for plan_checker: tries every order of blocks on the lanes, without code of
weft. Steps are this search's own; it remembers every state.
"""
import copy

from plan_forms import runs_ahead

RATE = 1024
MOST_STEPS = 1 << 21


class Faster(Exception):
    """An order takes less than the claim."""


def ceil(work):
    return -(-work // RATE)


class Moment:
    """A partial schedule at a time: work left by lane in 1/1024 ns, and blocks not begun by item."""

    def __init__(self, n_lanes, n_tiers, left):
        self.now, self.slot, self.left = 0, 0, left
        self.computes = self.waits = self.stays = False
        self.work, self.on, self.rests = [0] * n_lanes, [None] * n_lanes, [False] * n_lanes
        self.late = [0] * n_tiers

    def fork(self):
        other = copy.copy(self)
        for name in ("left", "work", "on", "rests", "late"):
            setattr(other, name, list(getattr(self, name)))
        return other

    def key(self):
        return (self.slot, self.computes, self.waits, self.stays, *self.left, *self.work, *self.on, *self.rests, *self.late)


class Search:
    def __init__(self, bounds, below, most_steps):
        self.bounds, self.problem = bounds, bounds.problem
        self.below, self.steps = below - self.problem.agree_ns, most_steps

    def undone(self, at, i):
        return at.left[i] + (at.on[self.items[i]["lane"]] == i)

    def run(self, chosen):
        """Raises Faster if an order with these strategies takes less than the claim."""
        problem, n = self.problem, self.problem.n_slots
        rows = [self.bounds.lean[u][k] for u, k in enumerate(chosen)]
        self.room = [problem.room(r) - common - sum(of[r] for of in rows)
                     for r, common in enumerate(self.bounds.common)]
        self.slot_ns = list(problem.slot_ns)
        for decision, k in zip(problem.decisions, chosen):
            for at in decision["strategies"][k]["times"]:
                self.slot_ns[at["slot"]] += at["time_ns"]
        self.rest = [sum(self.slot_ns[s:]) for s in range(n + 1)]
        self.items, self.met = problem.items, {}
        self.active = sorted((i for i, item in enumerate(self.items) if chosen[item["decision"]] in item["of"]),
                             key=lambda i: self.items[i]["last"])
        left = [item["blocks"] if i in self.active else 0 for i, item in enumerate(self.items)]
        if min(self.room) >= 0:
            self.explore(Moment(len(problem.lanes), len(problem.tiers), left))

    def hopeless(self, at):
        """Compute, and blocks due by each slot, which begin one after another in their windows."""
        lanes, n = range(len(at.work)), self.problem.n_slots
        free = [at.now + ceil(work) for work in at.work]
        over, load, begin = [0] * len(at.work), [[0] * n for _ in lanes], [at.now] * (n + 1)

        def add(i):
            item, lane = self.items[i], self.items[i]["lane"]
            if at.on[lane] == i:
                over[lane] = max(over[lane], free[lane])
            for s in range(at.slot, max(at.slot, item["first"]) + 1):
                if at.left[i]:
                    load[lane][s] += at.left[i] * item["block_ns"]
                    over[lane] = max(over[lane], max(free[lane], begin[s]) + load[lane][s])

        for i in self.active:
            if self.items[i]["last"] < at.slot and self.undone(at, i):
                add(i)
        ns = at.now + ceil(at.work[0]) if at.computes else max(at.now, *over) + self.slot_ns[at.slot]
        for s in range(at.slot, n):
            if ns + self.rest[s + 1] >= self.below:
                return True
            due = [i for i in self.active if self.items[i]["last"] == s]
            for i in due:
                if not self.items[i]["may_block"]:
                    add(i)
            begin[s + 1] = max(ns, *over)
            for i in due:
                if self.items[i]["may_block"]:
                    add(i)
            if s + 1 < n:
                ns = max(begin[s + 1], *over) + self.slot_ns[s + 1]
        return False

    def may_begin(self, at, i):
        item = self.items[i]
        if at.left[i] == 0 or item["first"] > at.slot:
            return False
        if item["after"] >= 0 and self.undone(at, item["after"]) >= at.left[i]:
            return False
        if not item["acquires"]:
            return True
        if item["last"] < at.slot:
            return not at.computes
        return all(self.free_bytes(at, item, s) >= item["held_bytes"] for s in self.held_slots(item, at.slot))

    @staticmethod
    def held_slots(item, slot):
        """Slots in which a block that begins in `slot` adds to the least rows, which have the last slot of others."""
        return range(slot, item["last"] + item["may_block"])

    def free_bytes(self, at, item, slot):
        late = at.late[item["row"] // self.problem.n_slots] if slot == at.slot else 0
        held = sum((other["blocks"] - at.left[k]) * other["held_bytes"] for k, other in self.gathers(item["row"])
                   if slot in self.held_slots(other, other["first"]))
        return self.room[item["row"] + slot] - held - late

    def gathers(self, row):
        return [(k, self.items[k]) for k in self.active if self.items[k]["acquires"] and self.items[k]["row"] == row]

    def begin(self, at, i):
        then, item = at.fork(), self.items[i]
        then.left[i] -= 1
        then.on[item["lane"]], then.work[item["lane"]] = i, item["block_ns"] * RATE
        self.explore(then)

    def enter(self, at):
        """Ends the slot if no block that is due is missing."""
        for i in self.active:
            if self.items[i]["last"] <= at.slot and (
                    at.on[self.items[i]["lane"]] == i or (at.left[i] and not self.items[i]["may_block"])):
                return
        then = at.fork()
        then.slot += 1
        if then.slot == self.problem.n_slots:
            if at.now < self.below:
                raise Faster(at.now + self.problem.agree_ns)
            return
        then.computes = then.waits = then.stays = False
        then.rests = [False] * len(at.rests)
        then.late = [0] * len(at.late)
        for i in self.active:
            item = self.items[i]
            if not item["acquires"] and item["first"] < then.slot:
                then.late[item["row"] // self.problem.n_slots] += self.undone(at, i) * item["held_bytes"]
        if all(self.fits(then, tier) for tier in range(len(then.late))):
            self.explore(then)

    def fits(self, at, tier):
        row = {"row": tier * self.problem.n_slots}
        return self.free_bytes(at, row, at.slot) >= 0

    def complete(self, at):
        for lane in range(1, len(at.work)):
            i = at.on[lane]
            if i is None or at.work[lane] > 0:
                continue
            at.on[lane], at.waits = None, False
            if not self.items[i]["acquires"] or self.items[i]["last"] == at.slot:
                at.stays = False
            for k in self.active:
                if self.items[k]["after"] == i:
                    at.rests[self.items[k]["lane"]] = False

    def advance(self, at):
        """Goes to the end of the first work to end. False if there is none."""
        lanes = self.problem.lanes
        busy = [lane for lane, work in enumerate(at.work) if work > 0]
        rates = [min([RATE] + [lanes[lane]["compute_rate"] for lane in busy if lane > 0])]
        rates += [lane["rate"] if at.work[0] > 0 else RATE for lane in lanes[1:]]
        if not busy:
            return False
        ns = min(-(-at.work[lane] // rates[lane]) for lane in busy)
        at.now += ns
        at.work = [max(0, work - ns * rate) for work, rate in zip(at.work, rates)]
        return True

    def explore(self, at):
        while True:
            self.steps -= 1
            if self.steps < 0:
                raise OverflowError
            self.complete(at)
            if not at.computes and not any(self.items[i]["last"] < at.slot and self.undone(at, i) for i in self.active):
                at.computes, at.work[0] = True, self.slot_ns[at.slot] * RATE
            lane = next((k for k in range(1, len(at.work)) if at.on[k] is None and not at.rests[k] and
                         any(at.left[i] for i in self.active if self.items[i]["lane"] == k)), None)
            over = at.computes and at.work[0] == 0
            if lane is not None or (over and not at.waits and not at.stays):
                if self.hopeless(at) or self.met.get(at.key(), at.now + 1) <= at.now:
                    return
                self.met[at.key()] = at.now
            if lane is not None:
                for i in self.active:
                    if self.items[i]["lane"] == lane and self.may_begin(at, i):
                        self.begin(at, i)
                at.rests[lane] = True
                continue
            if over and not at.waits and not at.stays:
                self.enter(at)
            at.waits |= over
            if not self.advance(at):
                return
            at.stays = over


def choices(rest, cost, most):
    """The strategies of all decisions whose price is at most this."""
    least = [sum(min(of.values()) for of in cost[u:]) for u in range(len(cost) + 1)]

    def choose(u, paid, chosen):
        if paid + least[u] > most:
            return
        if u == len(cost):
            yield chosen
            return
        for k in sorted(cost[u]):
            yield from choose(u + 1, paid + cost[u][k], [*chosen, k])

    yield from choose(0, rest, [])


def refutes(bounds, rest, cost, leaf, one):
    """Why the leaf's search is refused; None if no order of its plans takes less than it says."""
    if runs_ahead(bounds.problem.said):
        return "orders of a host that runs ahead"
    if not 1 <= leaf["steps"] <= MOST_STEPS:
        return "steps are out of range"
    search = Search(bounds, leaf["searched_ns"], 20 * leaf["steps"])
    try:
        for chosen in choices(rest, cost, (leaf["searched_ns"] - 1) * one):
            search.run(chosen)
    except Faster as faster:
        return f"says {leaf['searched_ns']}, an order takes {faster}"
    except OverflowError:
        return "a search of more steps"
    return None
