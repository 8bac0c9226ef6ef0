# SPDX-License-Identifier: Apache-2.0
"""A checker of plan files, written from docs/plan-file.md without code of weft. It derives placements, memory rows,
hashes, sizes and the proven bound again, and raises Wrong if the file differs.
"""
import json
import struct

from order_checker import refutes
from plan_forms import in_pages, launch_slots, layer_slots, make_early, must_block, runs_ahead

ONE = 1 << 40  # prices are multiples of 2^-40
RATE = 1024
NEVER = 1 << 31
PRICED_OUT = 1 << 126
PLACED, BEGUN, ENDED = range(3)
MOMENTS = {"placed": PLACED, "begun": BEGUN, "ended": ENDED}
WORD = (1 << 64) - 1


class Wrong(Exception):
    pass


def need(what, text):
    if not what:
        raise Wrong(text)


# Hashes: MurmurHash3_x64_128 with seed 0, as the hexadecimal digits of both halves.

def murmur(data):
    one, two = 0x87C37B91114253D5, 0x4CF5AD432745937F

    def turn(x, bits):
        return (x << bits | x >> (64 - bits)) & WORD

    def first(k):
        return turn(k * one & WORD, 31) * two & WORD

    def second(k):
        return turn(k * two & WORD, 33) * one & WORD

    def finish(k):
        k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & WORD
        k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & WORD
        return k ^ k >> 33

    high = low = 0
    whole = len(data) // 16 * 16
    for at in range(0, whole, 16):
        a, b = struct.unpack_from("<QQ", data, at)
        high = (turn(high ^ first(a), 27) + low) * 5 + 0x52DCE729 & WORD
        low = (turn(low ^ second(b), 31) + high) * 5 + 0x38495AB5 & WORD
    rest = data[whole:]
    low ^= second(int.from_bytes(rest[8:], "little"))
    high ^= first(int.from_bytes(rest[:8], "little"))
    high, low = high ^ len(data), low ^ len(data)
    high = high + low & WORD
    low = low + high & WORD
    high, low = finish(high), finish(low)
    high = high + low & WORD
    return high, low + high & WORD


def show(pair):
    return f"{pair[0]:016x}{pair[1]:016x}"


def hash_of_problem(problem):
    """Names of layers and modules change no plan."""
    decisions = [{key: value for key, value in decision.items() if key not in ("layers", "tied_layers")}
                 for decision in problem["decisions"]]
    unnamed = {key: decisions if key == "decisions" else value for key, value in problem.items() if key != "modules"}
    return show(murmur(json.dumps(unnamed, ensure_ascii=False).encode()))


def hash_of_decisions(plan, problem):
    def words(code, values):
        return murmur(struct.pack(f"<{len(values)}{code}", *values))

    pages = plan["pages"]
    lists = pages["stretches"]
    ends, flat = [], []
    for of in lists:
        flat += of
        ends.append(len(flat) // 2)
    strategies = [next(k for k, of in enumerate(decision["strategies"]) if of["name"] == name)
                  for decision, name in zip(problem.decisions, plan["strategies"])]
    places = {(at["item"], at["block"]): i for i, at in enumerate(plan["placements"])}
    placements = [n for at in plan["placements"]
                  for n in (at["item"], at["block"], at["launch"], at["deadline"],
                            places.get((problem.items[at["item"]]["after"], at["block"]), -1))]
    parts = [words("q", [pages["page_bytes"], pages["tables"], len(lists)]), words("i", ends),
             words("i", flat)]
    periods = [plan["periods_open"]]
    for other in plan["other_periods"]:
        periods += [other[key] for key in ("bound_ns", "paged_bound_ns", "page_bytes", "problem") if key in other]
    parts = [words("i", strategies), words("i", placements),
             words("Q", [half for part in parts for half in part]), murmur(json.dumps(periods).encode())]
    return show(words("Q", [half for part in parts for half in part]))


class Problem:
    def __init__(self, said):
        self.said = said
        self.n_slots = len(said["slots"])
        self.slot_ns = [slot["time_ns"] for slot in said["slots"]]
        self.tiers = [tier["name"] for tier in said["tiers"]]
        self.limits = [tier["limit_bytes"] for tier in said["tiers"]]
        self.lanes = said["lanes"]
        self.decisions = said["decisions"]
        self.items = said["items"]
        for item in self.items:
            names = [of["name"] for of in self.decisions[item["decision"]]["strategies"]]
            item["of"] = {names.index(name) for name in item["strategies"]}
            item["row"] = self.tier_at(item)
        updates = sum(of["update_slot"] >= 0 for of in self.decisions)
        self.agree_ns = said["agree_ns"] * (
            1 + (updates if said["period"].get("agreed_updates") else 0))

    def tier_at(self, value):
        return self.tiers.index(value.get("tier", self.tiers[0])) * self.n_slots

    def hold_slots(self, hold):
        """Returns the indexes of a hold's rows; a hold may wrap around the period's end."""
        at, last = hold["first"], hold["last"]
        slots = range(at, last + 1) if at <= last else [*range(at, self.n_slots), *range(last + 1)]
        return [self.tier_at(hold) + slot for slot in slots]

    def rows_of(self, holds):
        rows = [0] * (self.n_slots * len(self.tiers))
        for hold in holds:
            for row in self.hold_slots(hold):
                rows[row] += hold["bytes"]
        return rows

    def room(self, row):
        limit = self.limits[row // self.n_slots]
        return (1 << 63) - 1 if limit is None else limit


# Placements and rows

def check_slots(said):
    """Checks the order of forwards and backwards."""
    period, found = said["period"], [(slot["kind"], slot["index"], slot["micro"]) for slot in said["slots"]
                                     if slot["kind"] in ("forward", "backward")]
    need(found == layer_slots(said), "slots of another order")
    if "layers" in period:
        turns = period["micro_steps"] > 1 and period["reduce"] == "step"
        need(turns and 0 < period["layers"] < len(found) // (2 * period["micro_steps"]), "turns that are none")


def check_placements(plan, problem, chosen):
    blocks = [0] * len(problem.items)
    launched = [0] * len(problem.lanes)
    places, begins, follows = {}, [], []
    for i, at in enumerate(plan["placements"]):
        item = problem.items[at["item"]]
        follows.append(places.get((item["after"], at["block"]), -1))
        places[at["item"], at["block"]] = i
        if follows[i] >= 0:
            launched[item["lane"]] = max(launched[item["lane"]], begins[follows[i]])
        need(chosen[item["decision"]] in item["of"], "a block that no strategy needs")
        need(at["block"] == blocks[at["item"]], "blocks out of order")
        blocks[at["item"]] += 1
        latest = item["last"] + (1 if item["may_block"] else 0)
        need(item["first"] <= at["launch"] <= latest, "a launch outside its window")
        if item["acquires"]:
            need(at["deadline"] == item["last"] + 1, "a gather that is not due at its use")
            need(at["launch"] >= launched[item["lane"]], "a launch before one ahead of it")
        else:
            need(at["launch"] < at["deadline"] <= item["last"] + 1, "a deadline outside its window")
        if not item["acquires"] and "for" in problem.said:
            need(at["launch"] == item["first"], "a reduction that is not launched first")
        launched[item["lane"]] = max(launched[item["lane"]], at["launch"])
        begins.append(launched[item["lane"]])
        behind = launched[item["lane"]] - (1 if item["may_block"] else 0)
        need(behind < at["deadline"], "a block that is launched too late")
    for item, n in zip(problem.items, blocks):
        needed = item["blocks"] if chosen[item["decision"]] in item["of"] else 0
        need(n == needed, "a block is missing")
    for i, at in enumerate(plan["placements"]):
        ahead = places.get((problem.items[at["item"]]["after"], at["block"]), -1)
        need(ahead == follows[i], "a block before the one that it follows")
    due = [problem.n_slots] * len(problem.lanes)
    due_after = [problem.n_slots] * len(begins)
    for i, at in reversed(list(enumerate(plan["placements"]))):
        item = problem.items[at["item"]]
        due[item["lane"]] = min(due[item["lane"]], due_after[i])
        need(item["acquires"] or at["deadline"] <= due[item["lane"]], "a deadline behind another")
        complete = at["deadline"] + (1 if at["launch"] == at["deadline"] else 0)
        due[item["lane"]] = min(due[item["lane"]], complete)
        if follows[i] >= 0:
            due_after[follows[i]] = min(due_after[follows[i]], due[item["lane"]])


def check_twins(plan, problem):
    """Later micro-steps launch their gathers as the first one does."""
    def place(s):
        return slots[s]["kind"], slots[s]["index"], slots[s]["micro"]

    slots = problem.said["slots"]
    at_place = {place(s): s for s in range(len(slots))}
    first = {(item["decision"], *place(item["last"] + 1)[:2]): at["launch"]
             for at in plan["placements"] for item in [problem.items[at["item"]]]
             if item["acquires"] and slots[item["last"] + 1]["micro"] == 0}
    for at in plan["placements"]:
        item = problem.items[at["item"]]
        kind, index, micro = place(item["last"] + 1)
        if not item["acquires"] or micro == 0:
            continue
        launch, use = first[item["decision"], kind, index], item["last"] + 1
        same = ("forward", 0) if slots[launch]["kind"] == "fill" else place(launch)[:2]
        same = use if same == (kind, index) else at_place[(*same, micro)]
        need(at["launch"] == (same if item["first"] <= same <= use else use), "a gather unlike the first micro-step's")


def check_launches(plan, problem):
    """The rules of `for`."""
    n, hooks = len(problem.decisions), launch_slots(problem.said)
    reached = [(0, 0)] * len(problem.lanes)
    for at in plan["placements"]:
        item = problem.items[at["item"]]
        if item["acquires"]:
            need(at["launch"] in hooks, "a gather where no unit begins")
            need(not must_block(problem.said, item) or at["launch"] == at["deadline"],
                 "a gather of an earlier micro-step or forward")
            place = (at["launch"], n if at["launch"] == at["deadline"] else n + 1)
        else:
            place = (at["launch"], n - 1 - item["decision"])
        need(reached[item["lane"]] <= place, "a launch ahead of its order")
        reached[item["lane"]] = place
    check_twins(plan, problem)


def plan_rows(plan, problem, chosen):
    holds = list(problem.said["common"])
    for decision, k in zip(problem.decisions, chosen):
        holds += decision["strategies"][k]["holds"]
    rows = problem.rows_of(holds)
    for at in plan["placements"]:
        item = problem.items[at["item"]]
        first = at["launch"] if item["acquires"] else item["first"]
        for slot in range(first, at["deadline"]):  # none if it blocks
            rows[item["row"] + slot] += item["held_bytes"]
    return rows


# Milestones: facts about blocks, by moment and block

class Known:
    def __init__(self, problem, facts):
        self.problem, self.told = problem, {}
        for item, n_blocks, slot, moment, reached in facts:
            n = problem.items[item]["blocks"]
            by, behind = self.told.setdefault(
                item, ([[NEVER] * n for _ in MOMENTS], [[-1] * n for _ in MOMENTS]))
            if reached:
                by[moment][n_blocks - 1] = min(by[moment][n_blocks - 1], slot)
            else:
                behind[moment][n_blocks - 1] = max(behind[moment][n_blocks - 1], slot)
        for item, (by, behind) in self.told.items():
            self.follow(problem.items[item]["acquires"], by, behind)
        self.under_way = {}
        self.alone = all(self.note_under_way(item) for item in sorted(self.told))

    @staticmethod
    def follow(gathers, by, behind):
        placed = begun = ended = NEVER
        for b in reversed(range(len(by[0]))):
            placed = min(placed, by[PLACED][b])
            ended = min(ended, begun, by[ENDED][b])
            if not gathers:
                ended = min(ended, placed)
            begun = min(begun, ended, by[BEGUN][b])
            if gathers:
                placed = min(placed, begun)
            by[PLACED][b], by[BEGUN][b], by[ENDED][b] = placed, begun, ended
        placed = begun = ended = -1
        for b in range(len(by[0])):
            placed = max(placed, behind[PLACED][b])
            begun = max(begun, ended, behind[BEGUN][b])
            if gathers:
                begun = max(begun, placed)
            ended = max(ended, begun, behind[ENDED][b])
            if not gathers:
                placed = max(placed, ended)
            behind[PLACED][b], behind[BEGUN][b], behind[ENDED][b] = placed, begun, ended

    def note_under_way(self, item):
        by, behind = self.told[item]
        lane = self.problem.items[item]["lane"]
        for b, (begun, ended) in enumerate(zip(by[BEGUN], behind[ENDED])):
            for slot in range(begun, ended + 1):
                if self.under_way.setdefault((lane, slot), (item, b)) != (item, b):
                    return False
        return True

    def by(self, moment, item, block):
        return self.told[item][0][moment][block] if item in self.told else NEVER

    def behind(self, moment, item, block):
        return self.told[item][1][moment][block] if item in self.told else -1

    def narrow(self, item, block, first, last):
        lane = self.problem.items[item]["lane"]

        def other(slot):
            of = self.under_way.get((lane, slot))
            return of if of != (item, block) else None

        if not self.under_way:
            return first, last
        slot = self.by(BEGUN, item, block)
        while slot <= last:
            if other(slot):
                last = slot
            slot += 1
        slot = self.behind(ENDED, item, block)
        while slot >= first:
            if other(slot):
                first = slot + 1
            slot -= 1
        while 0 < first <= last and other(first) and other(first) == other(first - 1):
            first += 1
        while last >= first and last > 0 and other(last) and other(last) == other(last - 1):
            last -= 1
        return first, last


# Boxes: the remaining strategies, and the windows of blocks

class Box:
    def __init__(self, problem, groups, lean, common, facts):
        self.problem, self.groups, self.common = problem, groups, common
        self.known = Known(problem, facts["milestones"])
        self.allowed = [set(of) for of in facts["allowed"]]
        self.empty = not self.known.alone
        self.least_count = [0] * len(groups)
        self.most_count = [len(of["decisions"]) for of in groups]
        for group, n, reached in facts["counts"]:
            if reached:
                self.least_count[group] = max(self.least_count[group], n)
            else:
                self.most_count[group] = min(self.most_count[group], n - 1)
        self.lean = lean if not self.known.told else [[list(rows) for rows in of] for of in lean]
        for i, item in enumerate(problem.items):
            if i not in self.known.told:
                continue
            if self.known.by(PLACED if item["acquires"] else BEGUN, i, 0) < NEVER:
                self.allowed[item["decision"]] &= item["of"]
            for k in item["of"]:
                for slot, n in self.held(i).items():
                    self.lean[item["decision"]][k][item["row"] + slot] += n * item["held_bytes"]
        self.empty = self.empty or not all(self.allowed)
        self.spans = {}
        while not self.empty:
            self.find_room()
            if self.rule_out() or self.settle():
                continue
            if self.narrow_all():
                break

    def find_room(self):
        n_rows = len(self.common)
        self.least = [[min(of[k][r] for k in left) for r in range(n_rows)]
                      for of, left in zip(self.lean, self.allowed)]
        self.room = [self.problem.room(r) - self.common[r] - sum(of[r] for of in self.least)
                     for r in range(n_rows)]

    def rule_out(self):
        changed = False
        for u, left in enumerate(self.allowed):
            out = {k for k in left if any(a - b > room for a, b, room in
                                          zip(self.lean[u][k], self.least[u], self.room))}
            changed = changed or bool(out)
            self.allowed[u] = left - out
        self.empty = not all(self.allowed)
        return changed and not self.empty

    def count(self, g):
        of = self.groups[g]
        must = sum(not self.allowed[u] - of["of"] for u in of["decisions"])
        may = sum(bool(self.allowed[u] & of["of"]) for u in of["decisions"])
        return must, may

    def known_count(self, g):
        must, may = self.count(g)
        least, most = max(must, self.least_count[g]), min(may, self.most_count[g])
        return least if least == most else -1

    def settle(self):
        changed = False
        for g, of in enumerate(self.groups):
            must, may = self.count(g)
            self.empty = self.empty or must > self.most_count[g] or may < self.least_count[g]
            for u in of["decisions"] if not self.empty else ():
                left = self.allowed[u]
                if not left - of["of"] or not left & of["of"]:
                    continue
                if must == self.most_count[g]:
                    left = left - of["of"]
                if may == self.least_count[g]:
                    left = left & of["of"]
                changed = changed or left != self.allowed[u]
                self.allowed[u] = left
        return changed and not self.empty

    def held(self, i):
        """Returns blocks that milestones hold, by slot of the item's window."""
        item, known = self.problem.items[i], self.known
        found = {}
        for slot in range(item["first"], item["last"] + 1):
            blocks = range(item["blocks"])
            if item["acquires"]:
                n = sum(known.by(PLACED, i, b) <= slot for b in blocks)
                found[slot] = 0 if slot == item["last"] and not item["may_block"] else n
            else:
                n = sum(known.behind(PLACED, i, b) >= slot - 1 for b in blocks)
                found[slot] = 0 if slot == item["first"] or i not in known.told else n
        return found

    def most(self, i, left):
        """Returns the most blocks that may be held, by slot of the window."""
        item, n, found = self.problem.items[i], self.problem.items[i]["blocks"], {}
        u, size = item["decision"], item["held_bytes"]
        for slot, held in self.held(i).items():
            more, row = n, item["row"] + slot
            if size > 0:
                own = min(self.lean[u][k][row] for k in left)
                room = self.room[row] + self.least[u][row] - own
                if room < n * size:
                    more = max(room, 0) // size
            found[slot] = min(n, held + more)
        return found

    def narrow_all(self):
        whole = True
        for i, item in enumerate(self.problem.items):
            left = self.allowed[item["decision"]] & item["of"]
            spans = self.narrow(i, left) if left else []
            if spans is None:
                whole = False
                self.allowed[item["decision"]] -= item["of"]
                self.empty = self.empty or not self.allowed[item["decision"]]
                if self.empty:
                    break
            self.spans[i] = spans or []
        return whole

    def narrow(self, i, left):
        item, most, n = self.problem.items[i], self.most(i, left), self.problem.items[i]["blocks"]
        first, last = item["first"], item["last"]
        spans = []
        for block in range(n):
            if item["acquires"]:
                full = [s for s in range(first, last + (1 if item["may_block"] else 0))
                        if most[s] <= block]
                span = self.gather_span(i, block, max(full, default=first - 1) + 1)
            else:
                full = [s for s in range(first + 1, last + 1) if n - most[s] > block]
                span = self.reduction_span(i, block, min(full, default=last + 1) - 1)
            if span is None:
                return None
            spans.append(span)
        return spans

    def gather_span(self, i, block, first):
        item, known = self.problem.items[i], self.known
        last = item["last"]
        by = known.by(PLACED, i, block)
        if not item["may_block"]:
            by = min(by, last)
        blocks = by > last
        first = max(first, known.behind(PLACED, i, block) + 1)
        hold = last + 1 if blocks else by
        if not blocks and first > hold:
            return None
        first = max(first, known.behind(BEGUN, i, block) + 1)
        end = min(known.by(ENDED, i, block), last)
        first, end = known.narrow(i, block, first, end)
        return None if not blocks and first > end else (first, end, hold)

    def reduction_span(self, i, block, last):
        item, known = self.problem.items[i], self.known
        hold = max(known.behind(PLACED, i, block) + 1, item["first"])
        last = min(last, known.by(PLACED, i, block))
        if hold > last:
            return None
        first = max(known.behind(BEGUN, i, block) + 1, item["first"])
        last = min(last, known.by(ENDED, i, block))
        first, last = known.narrow(i, block, first, last)
        return None if first > last else (first, last, hold)


# Prices

class Whole:
    """A whole row: the bytes that count in it, and its room."""

    def __init__(self, said, box, bounds):
        problem = box.problem
        self.nu, self.step = said["nu"], said["step_bytes"]
        self.row = said.get("tier", 0) * problem.n_slots + said["slot"]
        reference, held = said["reference"], bounds.fixed
        usual = [(held[u][k][self.row],) * 2 for u, k in enumerate(reference)]
        self.of = [None] * len(usual)  # the group that a decision is compared by
        for g, group in enumerate(box.groups):
            members = group["decisions"]
            if not said["relies"][g] or any(self.of[u] is not None for u in members):
                continue
            inside = [u for u in members if reference[u] in group["of"]]
            outside = [u for u in members if reference[u] not in group["of"]]
            if not inside or not outside or len(inside) != box.known_count(g):
                continue
            both = min(usual[u][0] for u in inside), min(usual[u][1] for u in outside)
            for u in members:
                usual[u], self.of[u] = both, group["of"]
        self.usual = usual
        room = problem.room(self.row) - bounds.common[self.row] - sum(
            self.usual_bytes(u, k) for u, k in enumerate(reference))
        steps, self.rest = divmod(room, self.step)
        self.room = steps * (self.step - self.rest)

    def usual_bytes(self, u, k):
        return self.usual[u][0 if self.of[u] is None or k in self.of[u] else 1]

    def count(self, size):
        steps, rest = divmod(size, self.step)
        return steps * (self.step - self.rest) + max(0, rest - self.rest)


class Bounds:
    """Computes the bound of every leaf of a certificate."""

    def __init__(self, problem, certificate):
        self.problem, self.certificate = problem, certificate
        self.common = problem.rows_of(problem.said["common"])
        self.fixed = [[problem.rows_of(of["holds"]) for of in decision["strategies"]]
                      for decision in problem.decisions]
        self.lean = [[list(rows) for rows in of] for of in self.fixed]
        for item in problem.items:
            slot = item["last"] if item["acquires"] else item["first"]
            for k in item["of"] if not item["may_block"] else ():
                self.lean[item["decision"]][k][item["row"] + slot] += (
                    item["blocks"] * item["held_bytes"])
        blocking = {(item["last"] + 1, item["lane"]) for item in problem.items
                    if item["may_block"] and item["block_ns"] > 0}
        self.shared = {(slot, lane) for slot, lane in blocking
                       if any(s == slot and other != lane for s, other in blocking)}
        self.groups = []
        for group in certificate["groups"]:
            names = [of["name"] for of in problem.decisions[group["decisions"][0]]["strategies"]]
            self.groups.append({**group, "of": {names.index(name) for name in group["strategies"]}})

    def compute(self, ns, slot, lam, part):
        paid = ns * part[slot]
        for lane in self.problem.lanes[1:]:
            rate = lane["compute_rate"]
            gain = (RATE - rate) * part[slot] - sum(
                other["rate"] * lam[j][slot] for j, other in enumerate(self.problem.lanes[1:])
                if other["compute_rate"] >= rate)
            if gain < 0:
                paid = min(paid, ns * part[slot] - -(gain * ns // rate))
        return paid

    def leaf(self, facts, node):
        problem, n_slots, prices = self.problem, self.problem.n_slots, self.certificate["prices"][node["prices"]]
        n_lanes, mu = len(problem.lanes) - 1, prices["mu"]
        lam = [prices["lambda"][j * n_slots:(j + 1) * n_slots] for j in range(n_lanes)]
        chains = [self.chain(at) for at in prices.get("chains", [])]
        covered, total = self.covered(prices.get("chains", []), chains)
        total = [rho + sum(of[s] for of in lam) for s, rho in enumerate(total)]
        need(min(prices["lambda"] + mu) >= 0 and max(total) <= ONE, "prices are out of range")
        need(all(of["nu"] >= 0 for of in prices["whole"]), "prices are out of range")
        kappa = self.waits(prices.get("waits", []), total)
        box = Box(problem, self.groups, self.lean, self.common, facts)
        if box.empty:
            return NEVER << 64
        whole = {}
        rest = problem.agree_ns * ONE
        for said in prices["whole"]:
            row = Whole(said, box, self)
            whole.setdefault(row.row, []).append(row)
            rest -= row.nu * row.room
        rest -= sum(price * (problem.room(r) - self.common[r]) for r, price in enumerate(mu))
        part = [ONE - rho for rho in covered]
        rest += sum(self.compute(ns, s, lam, part) for s, ns in enumerate(problem.slot_ns))
        cost = [{k: self.strategy(u, k, mu, lam, part, whole) for k in left}
                for u, left in enumerate(box.allowed)]
        for i, item in enumerate(problem.items):
            left = box.allowed[item["decision"]] & item["of"]
            paid = sum(self.block(item, span, lam, kappa, mu, whole)
                       for span in box.spans.get(i, ())) if left else 0
            for k in left:
                cost[item["decision"]][k] += paid
        for said, (*_, ns) in zip(prices.get("chains", []), chains):
            item = problem.items[said["item"]]
            for k in box.allowed[item["decision"]] & item["of"]:
                cost[item["decision"]][k] += said["rho"] * ns
        for g, group in enumerate(self.groups):
            pi = prices["pi"][g] * ONE
            count = box.most_count[g] if pi > 0 else box.least_count[g]
            rest -= pi * count
            for u in group["decisions"]:
                for k in group["of"] & box.allowed[u]:
                    cost[u][k] += pi
        ns = max(0, -(-(rest + sum(min(of.values()) for of in cost)) // ONE))
        if node.get("searched_ns", 0) <= ns:
            return ns
        refuted = refutes(self, rest, cost, node, ONE)
        need(refuted is None, refuted)
        return node["searched_ns"]

    def chain(self, said):
        """Returns the slots of a chain, the slot that it may block or None, and its time."""
        end = at = self.problem.items[said["item"]]
        times = [at["block_ns"]]
        while at["after"] >= 0:
            at = self.problem.items[at["after"]]
            times.append(at["block_ns"])
        blocks = end["last"] + 1 if end["may_block"] else None
        return (range(at["first"], end["last"] + 1), blocks,
                sum(times) + (end["blocks"] - 1) * max(times))

    def covered(self, said, chains):
        """Returns rho by slot: of the chains that pass it, and of these and the chains that may block it."""
        items = [at["item"] for at in said]
        need(items == sorted(set(items)) and all(at["rho"] >= 0 for at in said),
             "prices are out of range")
        passed, total = [0] * self.problem.n_slots, [0] * self.problem.n_slots
        for at, (slots, blocks, _) in zip(said, chains):
            for slot in slots:
                passed[slot] += at["rho"]
                total[slot] += at["rho"]
            if blocks is not None:
                total[blocks] += at["rho"]
        return passed, total

    def strategy(self, u, k, mu, lam, part, whole):
        of = self.problem.decisions[u]["strategies"][k]
        cost = sum(mu[row] * size for row, size in enumerate(self.fixed[u][k]) if size)
        cost += sum(self.compute(at["time_ns"], at["slot"], lam, part) for at in of["times"])
        for row, rows in whole.items():
            cost += sum(at.nu * at.count(self.fixed[u][k][row] - at.usual_bytes(u, k))
                        for at in rows)
        return cost

    def waits(self, said, total):
        """Returns kappa by slot and lane, of all that may block a slot."""
        places = [(at["slot"], at["lane"]) for at in said]
        need(places == sorted(set(places)) and set(places) <= self.shared, "a wait of no slot")
        need(all(at["kappa"] >= 0 for at in said), "prices are out of range")
        left = [ONE - of for of in total]
        for at in said:
            left[at["slot"]] -= at["kappa"]
        need(min(left) >= 0, "prices are out of range")
        found = {place: 0 for place in self.shared}
        found.update((place, at["kappa"]) for place, at in zip(places, said))
        return lambda slot, lane: found.get((slot, lane), ONE - total[slot])

    def block(self, item, span, lam, kappa, mu, whole):
        first, last, hold = span
        own, size = lam[item["lane"] - 1], item["held_bytes"]
        gathers, at = item["acquires"], item["row"]

        def held(slot):  # from there to the far end of the window
            slots = range(slot, item["last"] + 1) if gathers else range(item["first"], slot + 1)
            return sum(mu[at + s] * size + sum(row.nu * row.count(size)
                                               for row in whole.get(at + s, ())) for s in slots)

        costs = [own[s] * item["block_ns"] + held(min(s, hold) if gathers else max(s, hold))
                 for s in range(first, last + 1)]
        if gathers and hold > item["last"]:
            use = item["last"] + 1
            costs.append((own[use] + kappa(use, item["lane"])) * item["block_ns"])
        return min(costs)

    def walk(self, facts, at):
        """Returns the least bound and the index of the next node after this subtree."""
        nodes = self.certificate["tree"]
        need(at < len(nodes), "a leaf is missing")
        node = nodes[at]
        if "prices" in node:
            return self.leaf(facts, node), at + 1
        one, other = dict(facts), dict(facts)
        if "decision" in node:
            u = node["decision"]
            names = [of["name"] for of in self.problem.decisions[u]["strategies"]]
            some = {names.index(name) for name in node["strategies"]}
            for side, left in ((one, facts["allowed"][u] & some),
                               (other, facts["allowed"][u] - some)):
                need(left, "a node that divides nothing")
                side["allowed"] = [*facts["allowed"][:u], left, *facts["allowed"][u + 1:]]
        elif "item" in node:
            said = node["item"], node["blocks"], node["slot"], MOMENTS[node.get("moment", "placed")]
            one["milestones"] = facts["milestones"] + [(*said, True)]
            other["milestones"] = facts["milestones"] + [(*said, False)]
        else:
            said = node["group"], node["decisions"]
            one["counts"] = facts["counts"] + [(*said, True)]
            other["counts"] = facts["counts"] + [(*said, False)]
        least, at = self.walk(one, at + 1)
        second, at = self.walk(other, at)
        return min(least, second), at

    def proven_ns(self):
        facts = {"allowed": [set(range(len(of["strategies"]))) for of in self.problem.decisions],
                 "milestones": [], "counts": []}
        least, end = self.walk(facts, 0)
        need(end == len(self.certificate["tree"]), "nodes behind the last leaf")
        return least


def check_bound(said, certificate, bound_ns, page=None):
    if bound_ns == 0:
        return
    need(certificate["problem"] == hash_of_problem(said), "the certificate is of another problem")
    rows = make_early(said) if runs_ahead(said) else json.loads(json.dumps(said))
    rows = rows if page is None else in_pages(said, page)
    proven_ns = Bounds(Problem(rows), certificate).proven_ns()
    need(bound_ns <= proven_ns, f"says {bound_ns}, proven is {proven_ns}")


def check(plan, problems=()):
    """Raises Wrong if a claim of the plan is false. The file has only the terms of its other periods' problems, so their
    bounds are checked if `problems` has them, in the same order.
    """
    need((plan["format"], plan["version"]) == ("weft-plan", 13), "no plan of this version")
    problem = Problem(json.loads(json.dumps(plan["problem"])))
    chosen = [[of["name"] for of in decision["strategies"]].index(name)
              for decision, name in zip(problem.decisions, plan["strategies"])]
    need(plan["decision_hash"] == hash_of_decisions(plan, problem), "decisions were changed")
    check_slots(problem.said)
    check_placements(plan, problem, chosen)
    if "for" in problem.said:
        check_launches(plan, problem)
    rows, prediction = plan_rows(plan, problem, chosen), plan["prediction"]
    need(all(size <= problem.room(row) for row, size in enumerate(rows)), "a row above its limit")
    peak = max(rows[:problem.n_slots])
    need((prediction["peak_bytes"], prediction["peak_slot"]) == (peak, rows.index(peak)),
         "another peak")
    stretches = [pair for of in plan["pages"]["stretches"] for pair in zip(of[::2], of[1::2])]
    pages = max((first + count for first, count in stretches), default=0)
    need(prediction["arena_bytes"] == pages * plan["pages"]["page_bytes"], "another arena")
    need(prediction["total_bytes"] <= problem.room(0), "more than the limit")
    need(prediction["step_ns"] == sum(prediction[f"{part}_ns"] for part in
                                      ("compute", "slowdown", "exposed")), "another step")
    bound = plan["bound"]
    check_bound(plan["problem"], plan["certificate"], bound["bound_ns"])
    check_bound(plan["problem"], plan["paged_certificate"], bound["paged_bound_ns"],
                plan["pages"]["page_bytes"])
    for other, whole in zip(plan["other_periods"], problems):
        need(all(whole[key] == value for key, value in other["problem"].items()), "another period")
        check_bound(whole, other["certificate"], other["bound_ns"])
        if "paged_bound_ns" in other:
            need(other["page_bytes"] in [1 << shift for shift in range(12, 22)], "no page has that size")
            check_bound(whole, other["paged_certificate"], other["paged_bound_ns"], other["page_bytes"])
    need(max(bound["bound_ns"], bound["paged_bound_ns"]) <= prediction["step_ns"],
         "faster than is possible")
