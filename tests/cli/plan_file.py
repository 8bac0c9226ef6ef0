#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plan files follow docs/plan-file.md. A checker written from that page accepts plans of `weft plan`. An edited plan is
refused by both, or by neither.
"""
import copy
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

from configs import tiny
from plan_checker import (Wrong, check, check_launches, check_placements, hash_of_decisions, hash_of_problem,
                          Problem)
from tap import case, main

SHAPES = 9
LINK = {"alpha": "10us", "bandwidth": "1GB/s"}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "1GB/s"}


def shape(number):
    """Returns a config with uneven units, so that its bound needs a tree."""
    dice = random.Random(number)
    vocab = dice.choice([256, 2000])
    layers = [{"name": "wte", "type": "embedding", "vocab": vocab, "positions": 16, "hidden": 32}]
    layers += [{"name": f"h{i}", "type": "transformer_block", "hidden": 32, "heads": 2,
                "ffn": dice.choice([32, 64, 256, 600])} for i in range(dice.randint(2, 5))]
    layers += [{"name": "head", "type": "lm_head", "vocab": vocab, "hidden": 32, "bias": False}]
    return tiny(model={"layers": layers}, cluster__ranks=4,
                cluster__link__intra__bandwidth=dice.choice(["0.3GB/s", "1GB/s", "3GB/s"]),
                train__grad_accum=dice.choice([1, 2]),
                plan={"planner": "ilp", "fuse": False, "blocks": dice.choice([1, 2, 3]), "gap": 0,
                      "work_limit": "100M"})


def plan_of(weft, config, factor, *settings):
    """Returns a plan at `factor` times the least limit, which it sets in the config."""
    _, _, err = weft.run("plan", weft.write("run.json", config), "--memory-limit", "1KiB", *settings)
    least = int(re.search(r"(?:least limit that fits is|at least) .*?\((\d+) bytes\)", err).group(1))
    config["cluster"]["memory_limit"] = f"{int(least * factor)}B"
    weft.expect(0, "plan", weft.write("run.json", config), "-o", "plan.json", "-q", *settings)
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        return json.load(file)


def is_right(plan):
    try:
        check(plan)
        return True
    except (Wrong, KeyError, ValueError, IndexError, StopIteration, TypeError):
        return False


@case
def the_short_reader_computes_rows_and_step_again(weft):
    """It agrees with plans of weft, also with a host tier, and refuses another step, row or limit in 60 lines."""
    reader = str(Path(__file__).resolve().parents[2] / "bench/study/read_plan.py")
    assert len(Path(reader).read_text(encoding="utf-8").splitlines()) <= 60

    def reads(plan):
        path = weft.write("read.json", plan)
        return subprocess.run([sys.executable, reader, path], capture_output=True, text=True, check=False).returncode == 0

    for number in range(1, 1 + SHAPES):
        config = shape(number)
        if number % 3 == 0:
            config["cluster"]["host"] = HOST
            config["plan"]["offload"] = {"state": ["device", "host"]}
        plan = plan_of(weft, config, (1.0, 1.1, 1.3)[number % 3])
        assert reads(plan), number
        for key in ("step_ns", "peak_bytes"):
            edited = copy.deepcopy(plan)
            edited["prediction"][key] += 1
            assert not reads(edited), (number, key)
        plan["problem"]["tiers"][0]["limit_bytes"] = plan["prediction"]["peak_bytes"] - 1
        assert not reads(plan), number


@case
def what_is_planned_is_right_by_the_page(weft):
    """The plans have trees of strategies, counts and milestones, whole rows, and searches of orders."""
    met = set()
    for number in (1, 3, 4, 7, 9, 13, 14, 17, 29):
        work = "1G" if number == 4 else "100M"  # searches of orders come last
        plan = plan_of(weft, shape(number), (1.0, 1.1, 1.3)[number % 3], "--work-limit", work)
        check(plan)
        for node in plan["certificate"]["tree"]:
            met |= {"decision", "group", "item", "prices", "searched_ns"} & set(node)
        met |= {"whole" for prices in plan["certificate"]["prices"] if prices["whole"]}
    wanted = {"decision", "group", "item", "prices", "searched_ns", "whole"}
    assert met == wanted or plan["solver"]["stop"].startswith("no solver"), met


@case
def a_search_of_orders_proves_no_more_than_it_finds(weft):
    """The page and the program search again, and refuse a claim above the best order and too few steps."""
    plan = plan_of(weft, shape(4), 1.1, "--work-limit", "1G")
    at = next((i for i, node in enumerate(plan["certificate"]["tree"]) if "searched_ns" in node), None)
    assert at is not None or plan["solver"]["stop"].startswith("no solver"), plan["solver"]
    for key, number, says in () if at is None else (
            ("searched_ns", plan["bound"]["bound_ns"] + 1, f"leaf {at} claims that no order takes less than"),
            ("steps", 1, f"the search of leaf {at} takes more than 1 steps"),
            ("steps", 1 << 22, f"tree[{at}]"), ("steps", 0, f"tree[{at}]"), ("searched_ns", None, "not both")):
        edited = copy.deepcopy(plan)
        leaf = edited["certificate"]["tree"][at]
        leaf["steps"] = 100000
        leaf[key] = number
        if number is None:
            del leaf[key]
        weft.expect(65, "verify", weft.write("edited.json", edited), says=says)
        assert not is_right(edited), (key, number)


@case
def several_periods_are_right_by_the_page(weft):
    """The period is rotated, and the config leaves open how far ahead it updates."""
    check_periods(weft, 1.2, "bound_ns")


@case
def bounds_in_pages_of_several_periods_are_right_by_the_page(weft):
    """The limit is tight, so whole pages decide, layers recompute, and a period of the file has a bound in pages."""
    check_periods(weft, 1.001, "paged_bound_ns", "--set", "plan.recompute=none,selective,whole")


def check_periods(weft, factor, key, *settings):
    """Checks a plan of several periods, and raises a bound of the first one that has this key."""
    config, problems = tiny(train__clip_norm=0), []
    plan = plan_of(weft, config, factor, *settings)
    paged = {"paged_bound_ns", "page_bytes", "paged_certificate"}
    for other in plan["other_periods"]:
        assert set(other) - paged == {"bound_ns", "certificate", "problem"} and "slots" not in other["problem"]
        assert len(paged & set(other)) in (0, 3) and other["bound_ns"] < other.get("paged_bound_ns", 2**53)
        weft.expect(0, "plan", "run.json", "--memory-limit", "1GB", "--planner", "greedy", "-o", "other.json", "-q",
                    *settings, "--set", f"plan.update_ahead={other['problem']['period']['update_ahead']}")
        with open(weft.path("other.json"), encoding="utf-8") as file:
            problems.append(json.load(file)["problem"])
        problems[-1].update({of: plan["problem"][of] for of in ("config_hash", "tiers")})
    check(plan, problems)
    weft.expect(0, "verify", "plan.json", "--config", "run.json", *settings)
    forged = next(other for other in plan["other_periods"] if key in other)
    forged[key] += 1 + forged[key] // 10
    plan["decision_hash"] = hash_of_decisions(plan, Problem(copy.deepcopy(plan["problem"])))
    try:
        check(plan, problems)
    except Wrong as wrong:
        assert "proven is" in str(wrong), wrong
    else:
        raise AssertionError("a bound that is too high")
    at = plan["other_periods"].index(forged)
    weft.expect(65, "verify", weft.write("b.json", plan), "--config", "run.json", *settings,
                says=[f"other_periods[{at}]: ", "no step is below"])
    if key == "paged_bound_ns":
        for page_bytes in (3000, 4095, 12288, 1 << 22):
            forged["page_bytes"] = page_bytes
            plan["decision_hash"] = hash_of_decisions(plan, Problem(copy.deepcopy(plan["problem"])))
            weft.expect(65, "verify", weft.write("b.json", plan),
                        says=[f"other_periods[{at}]: ", f"page_bytes is {page_bytes}", "a power of two"])
        del forged["page_bytes"]
        weft.expect(65, "verify", weft.write("b.json", plan), says=[f"other_periods[{at}]: ", "not all three"])


@case
def chains_are_right_by_the_page(weft):
    """Places of blocks that follow others are moved. The page and the program refuse the plan, or neither does."""
    dice, counts = random.Random(int(os.environ.get("WEFT_TEST_SEED", "1"))), {True: 0, False: 0}
    config = tiny(cluster__host=HOST, cluster__channels=2,
                  plan={"planner": "ilp", "work_limit": "100M", "blocks": 2,
                        "offload": {"state": ["host"], "update": ["host"], "activations": ["device"]}})
    plan = plan_of(weft, config, 1.2)
    check(plan)
    items, placements = plan["problem"]["items"], plan["placements"]
    linked = [i for i, at in enumerate(placements) if items[at["item"]]["after"] >= 0]
    linked += [i for i, at in enumerate(placements)
               if any(items[placements[k]["item"]]["after"] == at["item"] for k in linked)]
    for _ in range(30):
        edited, at = copy.deepcopy(plan), dice.choice(linked)
        edited["placements"][at][dice.choice(["launch", "deadline"])] += dice.choice([-2, -1, 1, 2])
        right = placements_are_right(edited)
        edited["decision_hash"] = hash_of_decisions(edited, Problem(copy.deepcopy(edited["problem"])))
        code, _, err = weft.run("verify", weft.write("edited.json", edited))
        assert right == ("placements[" not in err), (at, edited["placements"][at], code, err)
        counts[right] += 1
    assert counts[False] > 0, counts


def placements_are_right(plan):
    problem = Problem(json.loads(json.dumps(plan["problem"])))
    chosen = [[of["name"] for of in decision["strategies"]].index(name)
              for decision, name in zip(problem.decisions, plan["strategies"])]
    try:
        check_placements(plan, problem, chosen)
        if "for" in problem.said:
            check_launches(plan, problem)
    except Wrong:
        return False
    return True


@case
def plans_for_fsdp2_are_right_by_the_page(weft):
    """Launches at random are refused by both the page and the program, or by neither."""
    dice, counts = random.Random(int(os.environ.get("WEFT_TEST_SEED", "1"))), {True: 0, False: 0}
    for target, micro_steps, factor in (("fsdp2", 1, 1.3), ("fsdp2-blocking", 2, 1.2), ("fsdp2-default", 2, 1.5)):
        config = tiny(cluster__ranks=4, train__grad_accum=micro_steps, cluster__link__intra__bandwidth="0.3GB/s",
                      plan={"planner": "ilp", "for": target, "work_limit": "100M"})
        plan = plan_of(weft, config, factor)
        assert plan["problem"]["for"] == target
        check(plan)
        placements = plan["placements"]
        for _ in range(16):
            edited, at = copy.deepcopy(plan), dice.randrange(len(placements) - 1)
            if dice.random() < 0.5:
                edited["placements"][at:at + 2] = placements[at + 1], placements[at]
            else:
                edited["placements"][at]["launch"] += dice.choice([-2, -1, 1, 2])
            right = placements_are_right(edited)
            _, _, err = weft.run("verify", weft.write("edited.json", edited))
            assert right == ("placements[" not in err), (target, at, err)
            counts[right] += 1
    assert counts[False] >= 20, counts


@case
def plans_for_fsdp2_verify_at_tight_limits(weft):
    """Tight limits and several micro-steps leave gaps, and no leaf of an early form may search orders."""
    runs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "configs", "runs")
    for work in "60M", "100M":
        weft.expect(0, "plan", os.path.join(runs, "gpt-accumulate.json"), "--for", "fsdp2", "--memory-limit", "5MiB",
                    "--set", "plan.policies=fsdp,sdp", "--work-limit", work, "-q", "-o", "tight.json")
        weft.expect(0, "verify", "tight.json", "-q")


@case
def later_micro_steps_of_fsdp2_launch_as_the_first_one(weft):
    """One gather that a later micro-step alone leaves to its unit is refused by both, mostly for that alone."""
    config = tiny(cluster__ranks=4, train__grad_accum=2, cluster__link__intra__bandwidth="0.3GB/s",
                  plan={"planner": "ilp", "for": "fsdp2-blocking", "work_limit": "100M"})
    plan = plan_of(weft, config, 1.5)
    items, slots, n = plan["problem"]["items"], plan["problem"]["slots"], len(plan["problem"]["decisions"])

    def rank(at):
        if not items[at["item"]]["acquires"]:
            return at["launch"], n - 1 - items[at["item"]]["decision"]
        return at["launch"], n if at["launch"] == at["deadline"] else n + 1

    n_refused = 0
    for k, at in enumerate(plan["placements"]):
        item = items[at["item"]]
        if not item["acquires"] or slots[item["last"] + 1]["micro"] == 0 or at["launch"] == at["deadline"]:
            continue
        edited = copy.deepcopy(plan)
        edited["placements"][k]["launch"] = at["deadline"]
        edited["placements"].sort(key=rank)
        assert not placements_are_right(edited)
        code, _, err = weft.run("verify", weft.write("edited.json", edited))
        assert code == 65 and "placements[" in err, (code, err)
        n_refused += "one list of gathers" in err
    assert n_refused > 0


def offloaded():
    """Returns a config whose slots wait for gathers and for copies from the host."""
    return tiny(cluster__host=HOST, plan={"planner": "ilp", "fuse": False, "blocks": 2, "gap": 0,
                                          "work_limit": "100M"})


def priced(plan, key):
    """Returns the plan's first prices that have such rows; None without a solver."""
    found = [prices for prices in plan["certificate"]["prices"] if key in prices]
    assert found or plan["solver"]["stop"].startswith("no solver"), key
    return found[0] if found else None


@case
def waits_that_lanes_share_are_right_by_the_page(weft):
    """Their prices are refused, with the slot, if they cannot be."""
    plan = plan_of(weft, offloaded(), 1.1)
    check(plan)
    if priced(plan, "waits") is None:
        return
    slot = priced(plan, "waits")["waits"][0]["slot"]
    for key, number, says in (("kappa", -1, f"kappa of slot {slot} is negative"),
                              ("kappa", 1 << 41, f"kappa of slot {slot} is above 1 in sum"),
                              ("lane", 0, f"kappa of slot {slot} is of lane 0, which does not"),
                              ("slot", 1 << 20, f"kappa of slot {1 << 20} is of no slot")):
        edited = copy.deepcopy(plan)
        priced(edited, "waits")["waits"][0][key] = number
        weft.expect(65, "verify", weft.write("edited.json", edited), says=says)
        assert not is_right(edited), (key, number)
    edited = copy.deepcopy(plan)
    edited["version"] = 10
    weft.expect(65, "verify", weft.write("edited.json", edited), says=["version 10", "plan again"])


def coarse():
    """Returns a config in pages of 1 MiB, which round up much of its buffers."""
    sizes = [1300003, 2700001, 900007, 3100019, 1700033, 2300003]
    layers = [{"name": f"l.{i}", "type": "custom", "hidden": 1, "parameters": size, "output": "1MB",
               "saved": "3MB", "forward_flops": str(150 * size), "backward_flops": str(300 * size)}
              for i, size in enumerate(sizes)]
    return {"version": 1, "model": {"layers": layers}, "plan": {"work_limit": "500M"},
            "cluster": {"ranks": 2, "base": "100B", "page": "1MiB",
                        "device": {"flops": {"f32": "10T", "bf16": "10T"}, "memory_bandwidth": "1TB/s",
                                   "efficiency": 0.5},
                        "link": {"intra": {"alpha": "5us", "bandwidth": "20GB/s"}}},
            "train": {"micro_batch": 1, "seq_len": 1, "clip_norm": 1, "reduce": "micro_step",
                      "optimizer": {"type": "adamw"}}}


@case
def a_bound_in_pages_is_right_by_the_page(weft):
    plan = plan_of(weft, coarse(), 1.02)
    check(plan)
    bound = plan["bound"]
    assert bound["bound_ns"] < bound["paged_bound_ns"] <= plan["prediction"]["step_ns"], bound
    _, out, _ = weft.run("verify", "plan.json")
    assert ", and in pages of 1.00 MiB than " in " ".join(out.split()), out
    dice, refused = random.Random(3), 0
    places = places_of_numbers(plan["paged_certificate"], ("paged_certificate",))
    places = [path for path in places if path[1] != "tree"]
    for edit in range(24):
        edited = copy.deepcopy(plan)
        if edit == 0:
            edited["bound"]["paged_bound_ns"] += 1 + bound["paged_bound_ns"] // 50
        elif edit == 1:  # proven for a larger page only
            edited["pages"]["page_bytes"] //= 4
            edited["prediction"]["arena_bytes"] //= 4
            edited["prediction"]["total_bytes"] -= 3 * edited["prediction"]["arena_bytes"]
            edited["decision_hash"] = hash_of_decisions(edited, Problem(
                copy.deepcopy(edited["problem"])))
        else:
            path = dice.choice(places)
            at = plan
            for key in path:
                at = at[key]
            edited = with_number(plan, path, another_number(dice, at))
        code, _, err = weft.run("verify", weft.write("edited.json", edited))
        assert code in (0, 65), (edit, code, err)
        assert code == 65 or is_right(edited), (edit, err)
        assert code == 65 or edit > 1, (edit, err)
        refused += code == 65
    assert refused > 5, refused


def places_of_numbers(value, path=()):
    if isinstance(value, bool) or isinstance(value, str) or value is None:
        return
    if isinstance(value, (int, float)):
        yield path
        return
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield from places_of_numbers(inner, (*path, key))


def with_number(plan, path, number):
    edited = copy.deepcopy(plan)
    at = edited
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = number
    return edited


def another_number(dice, number):
    return dice.choice([0, 1, -1, number + 1, number - 1, 2 * number, number // 2, 1 << 31, 1 << 40,
                        (1 << 53) - 1, dice.randrange(1 << 20)])


@case
def an_edited_number_is_refused_wherever_the_page_says_that_it_is_wrong(weft):
    """Hashes are recomputed, so that the fields they cover are checked."""
    plan = plan_of(weft, shape(9), 1.1)
    dice = random.Random(1)
    # The program checks pages: see the next case.
    places = [at for at in places_of_numbers(plan) if at[0] not in ("solver", "pages")]
    wrong = {True: 0, False: 0}
    for _ in range(60):
        path = dice.choice(dice.choice([places, [p for p in places if p[0] != "certificate"]]))
        at = plan
        for key in path:
            at = at[key]
        edited = with_number(plan, path, another_number(dice, at))
        if path[0] == "problem":
            edited["certificate"]["problem"] = hash_of_problem(edited["problem"])
        if path[0] == "placements":
            try:
                edited["decision_hash"] = hash_of_decisions(edited, Problem(
                    copy.deepcopy(edited["problem"])))
            except Exception:  # the number does not fit the hash's words: keep the old hash
                pass
        code, _, err = weft.run("verify", weft.write("edited.json", edited))
        assert code in (0, 65), (path, code, err)
        assert code == 65 or is_right(edited), (path, at, err)
        wrong[code == 65] += 1
    assert min(wrong.values()) > 5, wrong


@case
def a_changed_stretch_is_refused_without_the_config(weft):
    """The stretch omits a page, or adds one that the arena lacks."""
    plan = plan_of(weft, tiny(train__clip_norm=0), 1.2)
    for change in (-1, 1 << 20):
        edited = copy.deepcopy(plan)
        edited["pages"]["stretches"][0][1] += change
        edited["decision_hash"] = hash_of_decisions(edited, Problem(
            copy.deepcopy(edited["problem"])))
        weft.expect(65, "verify", weft.write("edited.json", edited),
                    says="its stretches are not the pages of that")
    edited = copy.deepcopy(plan)
    edited["prediction"]["arena_bytes"] -= plan["pages"]["page_bytes"]
    weft.expect(65, "verify", weft.write("edited.json", edited), says="not the pages of that")


@case
def pages_at_random_are_refused_or_lead_to_the_same_bits(weft):
    """No number in `pages` makes a rank crash or exceed the limit."""
    config = tiny(train__steps=2, cluster__base="1GiB", cluster__memory_limit="1028MiB")
    run = weft.write("run.json", config)
    weft.expect(0, "plan", run, "-o", "plan.json", "-q")
    with open(weft.path("plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    dice, accepted, n_refused = random.Random(2), [], 0
    for n in range(60):
        edited = copy.deepcopy(plan)
        lists = edited["pages"]["stretches"]
        if n % 10 == 0:
            key = dice.choice(["page_bytes", "tables"])
            edited["pages"][key] = another_number(dice, edited["pages"][key])
        elif n % 10 == 1:
            del lists[dice.randrange(len(lists))]
        else:
            of = lists[dice.randrange(len(lists))]
            at = dice.randrange(len(of))
            of[at] = max(0, another_number(dice, of[at])) if n % 2 else of[at] + dice.choice([1, -1])
        try:
            edited["decision_hash"] = hash_of_decisions(edited, Problem(
                copy.deepcopy(edited["problem"])))
        except Exception:
            continue
        code, _, err = weft.run("verify", weft.write("edited.json", edited), "--config", run)
        assert code in (0, 65), (code, err)
        n_refused += code == 65
        if code == 0 and edited["pages"] != plan["pages"]:
            accepted.append(edited)
    assert n_refused > 30, n_refused
    fingerprints = set()
    for each in [plan, *accepted[:3]]:
        out = weft.expect(0, "train", run, "--plan", weft.write("plan.json", each), "--json", "-q")
        fingerprints.add(json.loads(out.splitlines()[-1])["fingerprint"])
    assert len(fingerprints) == 1, fingerprints


@case
def bytes_at_random_are_refused_in_one_line(weft):
    plan_of(weft, shape(3), 1.1)
    with open(weft.path("plan.json"), "rb") as file:
        good = file.read()
    dice = random.Random(3)
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(dice.choice([1, 1, 2, 8])):
            at = dice.randrange(len(bad))
            kind = dice.randrange(3)
            if kind == 0:
                bad[at] = dice.randrange(256)
            elif kind == 1:
                del bad[at:at + dice.choice([1, 10, 1000])]
            else:
                bad[at:at] = dice.choice([b"9", b"-", b"[", b"}", b'"', b"e9", b"\\u0000"])
        code, _, err = weft.run("verify", weft.write("bad.json", bytes(bad)), "--config",
                                weft.path("run.json"))
        assert code in (0, 65) and err.count("\n") <= 2, (code, err)


main(sys.argv[1])
