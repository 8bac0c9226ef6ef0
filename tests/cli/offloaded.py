#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""State on a disk or in the host's memory: its location in plans and reports, and runs on a device with less memory
than their state needs.
"""
import json
import os
import sys
from pathlib import Path

from configs import tiny
from tap import Skip, case, drawn_case, main, some

DISK = {"path": "scratch", "limit": "1GiB", "read": {"bandwidth": "2GB/s"},
        "write": {"bandwidth": "1GB/s"}}
LINK = {"alpha": "10us", "bandwidth": "1GB/s"}
HERE = {"activations": ["device"]}
STREAMED = {**HERE, "update": ["device"]}
THERE = {**HERE, "state": ["host"], "update": ["host"]}
HOST = {"memory_limit": "1GiB", "down": LINK, "up": LINK, "update": "1GB/s"}
# These rules offload state at every limit.
HOST_RULES = ("offload-stream", "zero-offload", "zero-offload:stage-3", "twin-flow",
              "twin-flow:stage-2", "fsdp2-cpu-offload")
BASE = 256 << 20  # more than a run needs outside its arena, even with a sanitizer


def config(weft, limit, **changes):
    os.makedirs(weft.path("scratch"), exist_ok=True)
    return weft.write("run.json", tiny(
        cluster__memory_limit=f"{limit}B", cluster__base=f"{BASE}B",
        **{"plan__recompute": "none", **changes}))


def plan(weft, path):
    return json.loads(weft.expect(0, "plan", path, "-o", "plan.json", "--json"))


def least(weft, **changes):
    """Returns the least limit that fits, from the refusal of a small one."""
    code, _, err = weft.run("plan", config(weft, 1 << 20, **changes))
    assert code == 78, err
    words = err.split("at least" if "all tiers" in err else "least limit that fits is")[1]
    return int(words.split("(")[1].split(" bytes")[0])


def less_than_fsdp2(weft):
    """Returns a limit that is too small for fsdp2, so that a little state must be offloaded."""
    said = plan(weft, config(weft, 1 << 30, plan__planner="fsdp2"))
    return said["total_bytes"] - (8 << 10)


def deepcompile_with_less(weft):
    """Returns the rule's config with a limit at which all state fits during updates, but not during backward."""
    rule = {"cluster__host": HOST, "plan__offload": HERE, "train__micro_batch": 8,
            "plan__planner": "deepcompile-offload:100%"}
    said = plan(weft, config(weft, 1 << 30, **rule))
    assert "tiers" not in said, said
    return config(weft, said["total_bytes"] - (8 << 10), **rule)


def is_no_disk(weft):
    """True if the file system is in memory; the program keeps no state there."""
    path = config(weft, 1 << 30, cluster__disk=DISK, plan__offload={"state": ["disk"]})
    code, _, err = weft.run("train", path, "--run", "probe")
    return code == 65 and "keeps everything in memory" in err


@drawn_case
def plans_say_where_state_is(weft):
    without = least(weft)
    limit = least(weft, cluster__disk=DISK)
    assert limit < without, (limit, without)
    path = config(weft, 2 << 30, cluster__disk=DISK)
    said = json.loads(weft.expect(0, "sweep", path, "--points", "2", "--planners", "greedy", "--json"))
    first = said["curves"][0]["points"][0]["memory_limit_bytes"]
    assert limit <= first < (limit + without) // 2, (limit, first, without)
    path = config(weft, (limit + without) // 2, cluster__disk=DISK)
    said = plan(weft, path)
    disk = said["tiers"][0]
    ring = said["peak_memory_bytes"]["staging"]
    assert 0 < ring < 1 << 20, "less than where units are larger: %d" % ring
    away = [unit for unit, strategy in said["policies"].items() if strategy.endswith("+disk")]
    assert disk["name"] == "disk" and disk["units"] == len(away) > 0, said
    assert disk["peak_bytes"] == disk["read_bytes"] == disk["written_bytes"] > 0, disk
    told = " ".join(weft.expect(0, "plan", path).split())
    assert "through a ring of" in told and " staging " in told, told
    assert f"state of {len(away)} of {len(said['policies'])} units" in told, told
    told = " ".join(weft.expect(0, "verify", "plan.json", "--config", path).split())
    assert "safe in every timing" in told, told
    weft.expect(78, "plan", config(weft, limit // 2, cluster__disk={**DISK, "limit": "4KiB"}),
                says=["least limit that fits is", "With state offloaded:", "tier device", "tier disk",
                      "would have to have at least"])


@case
def the_tier_that_is_too_small_is_named(weft):
    for tier, there in ("disk", {"cluster__disk": DISK}), ("host", {"cluster__host": HOST}):
        forced = {"plan__offload": {"state": [tier], "activations": ["device"]}, **there}
        weft.expect(78, "plan", config(weft, BASE + (1 << 18), **forced), says=[
            f"; no limit would do for tier {tier} (limit 1.00 GiB", ": the device's limit is too small.",
            "tier device (limit 256 MiB (268697600 bytes)) would have to have at least"])
        key = "limit" if tier == "disk" else "memory_limit"
        small = {f"cluster__{tier}": {**there[f"cluster__{tier}"], key: "4KiB"}}
        weft.expect(78, "plan", config(weft, 1 << 30, **{**forced, **small}), says=[
            "no limit would do for tier device (limit 1.00 GiB", ": another tier's limit is too small;",
            f"tier {tier} (limit 4.00 KiB (4096 bytes)) would have to have at least"])


@drawn_case
def the_least_limit_is_one_that_fits(weft):
    limit = least(weft, cluster__disk=DISK)
    plan(weft, config(weft, limit, cluster__disk=DISK))
    weft.expect(78, "plan", config(weft, limit - 4096, cluster__disk=DISK))


@case
def estimates_have_a_line_a_tier(weft):
    sharded = {"cluster__disk": DISK, "plan__policies": "fsdp,sdp"}
    path = config(weft, 1 << 30, **sharded)
    homes = json.loads(weft.expect(0, "estimate", path, "--json"))["state_homes"]
    here, there = homes["device"], homes["disk"]
    assert here["fits"] and there["fits"] and here["ring_bytes"] == 0, homes
    for home, state in (here, {}), (there, {"cluster__disk": DISK}):
        paged = least(weft, **state)
        assert 0 <= paged - home["device_needs_bytes"] < 64 << 10, (home, paged)
    all_there = plan(weft, config(weft, 1 << 30, plan__offload={"state": ["disk"]}, **sharded))
    assert there["ring_bytes"] == all_there["peak_memory_bytes"]["staging"], homes
    assert there["held_bytes"] == all_there["tiers"][0]["peak_bytes"], (homes, all_there)
    told = weft.expect(0, "estimate", config(weft, 1 << 30, **sharded))
    assert told.count("state     all on the ") == 2, told
    small = config(weft, 1 << 30, cluster__disk={**DISK, "limit": "4KiB"})
    assert "all on the disk: no room" in weft.expect(0, "estimate", small)
    assert "all on the" not in weft.expect(0, "estimate", config(weft, 1 << 30))


@case
def plans_say_what_it_costs(weft):
    limit = (least(weft, cluster__disk=DISK) + least(weft)) // 2
    path = config(weft, limit, cluster__disk={**DISK, "endurance": "1TB"}, plan__planner="greedy")
    said = plan(weft, path)
    disk, lanes = said["tiers"][0], said["lanes"]
    takes = disk["read_bytes"] / 2 + disk["written_bytes"]  # at 2 and 1 GB/s
    assert abs(lanes["disk"] - takes) <= 2 * len(said["policies"]), (lanes, disk)
    assert lanes["compute"] == said["compute_ns"], lanes
    assert max(lanes.values()) == said["bandwidth_bound_ns"] <= said["step_ns"], said
    told = " ".join(weft.expect(0, "plan", path).split())
    assert " binds, and no step of these strategies is below " in told, told
    steps = 1e12 / (said["ranks"] * disk["written_bytes"])
    assert f"its endurance of 1 TB is spent in {steps:.0f} steps" in told, told
    table = weft.expect(0, "explain", "plan.json", "--all").split("offloaded: the device's memory")[1].split("\n\n")[0]
    away = [unit for unit, strategy in said["policies"].items() if strategy.endswith("+disk")]
    assert [line.split()[:2] for line in table.splitlines()[2:]] == [[u, "disk"] for u in away], table
    plain = weft.expect(0, "plan", config(weft, 1 << 30))
    assert "lanes" not in plain and "wear" not in plain, plain


@case
def what_stays_needs_no_ring(weft):
    without = plan(weft, config(weft, 1 << 30))
    path = config(weft, 1 << 30, cluster__disk=DISK)
    stays = plan(weft, path)
    assert "tiers" not in stays and stays["peak_memory_bytes"]["staging"] == 0, stays
    for name in "policies", "step_ns", "total_bytes", "peak_memory_bytes":
        assert stays[name] == without[name], (name, stays[name], without[name])
    told = weft.expect(0, "plan", path)
    assert "disk      no state is there, so no ring of" in told, told
    assert "(train.reduce, update_ahead, plan.offload)" in told, told
    weft.expect(0, "verify", "plan.json", "--config", path)


@case
def homes_are_those_that_are_allowed(weft):
    there = plan(weft, config(weft, 1 << 30, cluster__disk=DISK, plan__offload={"state": ["disk"]}))
    assert all(strategy.endswith("+disk") for strategy in there["policies"].values()), there
    plan(weft, config(weft, 1 << 30))
    with open(weft.path("plan.json"), "rb") as file:
        plain = file.read()
    plan(weft, config(weft, 1 << 30, cluster__disk=DISK, plan__offload={"state": ["device"]}))
    with open(weft.path("plan.json"), "rb") as file:
        assert file.read() == plain


@drawn_case
def the_hosts_memory_is_a_tier_with_a_limit(weft):
    least_limit, without = least(weft, cluster__host=HOST, plan__offload=STREAMED), least(weft)
    assert least_limit < without, (least_limit, without)
    limit = (least_limit + without) // 2
    said = plan(weft, config(weft, limit, cluster__host=HOST, plan__offload=STREAMED))
    host = said["tiers"][0]
    away = [unit for unit, strategy in said["policies"].items() if strategy.endswith("+host")]
    assert host["name"] == "host" and host["units"] == len(away) > 0, said
    assert host["peak_bytes"] >= host["read_bytes"] == host["written_bytes"] > 0, host
    small = {**HOST, "memory_limit": f"{host['peak_bytes'] // 2 // 4096 * 4096}B"}
    weft.expect(78, "plan", config(weft, limit, cluster__host=small, plan__offload=STREAMED),
                says=["tier device", "tier host", "would have to have at least"])
    weft.expect(78, "plan", config(weft, limit, cluster__host=HOST, plan__offload=STREAMED), "--planner", "fsdp2",
                says=["planner fsdp2: its plan holds", "Planner ilp can go lower. With the others as they are"])
    less = host["peak_bytes"] // 4 * 3
    small = {**HOST, "memory_limit": f"{less}B"}
    both = plan(weft, config(weft, limit, cluster__host=small, cluster__disk=DISK,
                            plan__offload=STREAMED))
    assert [tier["name"] for tier in both["tiers"]] == ["host", "disk"], both
    assert both["tiers"][0]["peak_bytes"] <= less, both


@drawn_case
def less_memory_than_the_state_needs_gives_the_same_bits(weft):
    if is_no_disk(weft):
        raise Skip("the directory for files of tests is kept in memory")
    limit = (least(weft, cluster__disk=DISK) + least(weft)) // 2
    host = (least(weft, cluster__host=HOST, plan__offload=HERE) + least(weft)) // 2

    def result(run, **changes):
        weft.expect(0, "train", config(weft, **changes), "--run", run, "-q", timeout=200)
        with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
            return json.load(file)

    weft.expect(78, "train", config(weft, limit), "--run", "refused")
    ample = result("ample", limit=1 << 30)
    away = result("away", limit=limit, cluster__disk=DISK)
    assert away["fingerprint"] == ample["fingerprint"]
    ring = plan(weft, config(weft, limit, cluster__disk=DISK))["peak_memory_bytes"]["staging"]
    assert (ample["ring_bytes"], away["ring_bytes"]) == (0, ring) and ring > 0, (ample, away, ring)
    assert os.listdir(weft.path("scratch")) == []
    ones = [result("host-alone", limit=host, cluster__host=HOST, plan__offload=HERE)]
    for state in (["host"], ["host", "disk"]):
        ones.append(result("-".join(state), limit=limit, cluster__disk=DISK, cluster__host=HOST,
                           cluster__emulate=True, plan__offload={**HERE, "state": state}))
    rooms = ("zero-infinity", 1 << 30), ("offload-greedy", less_than_fsdp2(weft))
    for planner, room in rooms:
        ones.append(result(planner, limit=room, cluster__disk=DISK, plan__planner=planner))
    for planner in HOST_RULES:
        ones.append(result(planner.replace(":", "-"), limit=1 << 30, cluster__host=HOST,
                           cluster__emulate=True, plan__offload=HERE, plan__planner=planner))
    for one in ones:
        assert one["fingerprint"] == ample["fingerprint"], one


def fingerprint(weft, run, *flags, **changes):
    weft.expect(0, "train", config(weft, 1 << 30, **changes), "--run", run, "-q", *flags, timeout=200)
    with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
        return json.load(file)["fingerprint"]


@drawn_case
def what_is_updated_on_the_host_is_told(weft):
    path = config(weft, 1 << 30, cluster__host=HOST, plan__offload=THERE)
    said = plan(weft, path)
    host = said["tiers"][0]
    assert all(strategy.endswith("+host-update") for strategy in said["policies"].values()), said
    assert host["updated_units"] == host["units"] == len(said["policies"]), host
    assert host["read_bytes"] == host["written_bytes"] == 0 < host["parameter_bytes"], host
    assert host["gradient_bytes"] == host["parameter_bytes"], "both are f32"
    assert said["lanes"]["host"] > 0 and said["peak_memory_bytes"]["optimizer_state"] == 0, said
    told = " ".join(weft.expect(0, "plan", path).split())
    assert f"{host['units']} of them are updated there: a step copies" in told, told
    table = weft.expect(0, "explain", "plan.json", "--all").split("offloaded: the device's memory")[1].split("\n\n")[0]
    rows = table.splitlines()[2:]
    assert len(rows) == host["units"] and all("host, updated on the host" in row for row in rows), table
    assert all(" - " in row for row in rows), "what may not stay frees nothing that is known"
    told = " ".join(weft.expect(0, "verify", "plan.json", "--config", path).split())
    assert "safe in every timing" in told, told
    may_stay = {"cluster__host": HOST, "plan__offload": {**HERE, "update": ["host"]}}
    plan(weft, config(weft, (least(weft, **may_stay) + least(weft)) // 2, **may_stay))
    table = weft.expect(0, "explain", "plan.json", "--all").split("offloaded: the device's memory")[1].split("\n\n")[0]
    rows = [row for row in table.splitlines()[2:] if "updated on the host" in row]
    assert rows and not any(" - " in row or " 0 B " in row for row in rows), table
    code, _, err = weft.run("plan", config(weft, 1 << 30, cluster__host=HOST, plan__policies="dp",
                                           plan__offload=THERE))
    assert code == 65 and "plan.offload.update" in err, err
    weft.expect(65, "check", config(weft, 1 << 30, plan__offload={"update": ["host"]}),
                says=["$.plan.offload.update", "cluster.host"])


@drawn_case
def updates_on_the_host_end_in_the_same_bits(weft):
    """The bits do not depend on dtype, micro-steps, clipping, threads, or the place where the run resumes."""
    ways = {"f32": {}, "bf16": {"train__precision": {"compute": "bf16"}, "cluster__device__flops__bf16": "50G"},
            "f16": {"train__precision": {"compute": "f16"}, "cluster__device__flops__f16": "50G",
                    "train__steps": 6},
            "rotated": {"train__clip_norm": 0, "train__grad_accum": 3, "train__reduce": "step"},
            "ranks": {"cluster__ranks": 3, "train__grad_accum": 2, "train__reduce": "micro_step"}}
    for name, way in ways.items():
        tiers = {"cluster__host": {**HOST, "threads": 2}, **way}
        here = fingerprint(weft, f"here-{name}", **way)
        there = fingerprint(weft, f"there-{name}", plan__offload=THERE, **tiers)
        assert there == here, name
    saves = {"train__checkpoint": {"every": 2, "at_end": False}, "train__steps": 6,
             "train__validation": {"every": 2, "share": 0.1}, "cluster__host": HOST}
    here = fingerprint(weft, "here", plan__offload={"state": ["device"]}, **saves)
    assert fingerprint(weft, "there", plan__offload=THERE, **saves) == here
    for run, kept in ("there", {"state": ["device"]}), ("here", THERE), ("there", STREAMED):
        step = f"--resume={run}/checkpoints/step-4"
        name = f"{run}-on-{len(kept)}"
        assert fingerprint(weft, name, step, plan__offload=kept, **saves) == here, (run, kept)
    told = weft.expect(0, "generate", "there", "--prompt", "a", "--tokens", "8")
    assert told == weft.expect(0, "generate", "here", "--prompt", "a", "--tokens", "8")


@case
def rules_that_offload_do_as_they_say(weft):
    less = less_than_fsdp2(weft)
    tier = {"zero-infinity": "disk", "offload-greedy": "disk"}
    for planner, name in {**tier, **{rule: "host" for rule in HOST_RULES}}.items():
        there = {"cluster__disk": DISK} if name == "disk" else {"cluster__host": HOST}
        room = less if planner == "offload-greedy" else 1 << 30
        path = config(weft, room, plan__planner=planner, plan__offload=HERE, **there)
        said = plan(weft, path)
        assert said["planner"] == planner, said
        assert said["tiers"][0]["name"] == name, said
        some = room == less or planner.startswith("twin-flow")
        assert (said["tiers"][0]["units"] < len(said["policies"])) == some, said
        weft.expect(0, "verify", "plan.json", "--config", path)
    path = deepcompile_with_less(weft)
    assert 0 < plan(weft, path)["tiers"][0]["units"] < 6
    weft.expect(0, "verify", "plan.json", "--config", path)


@drawn_case
def what_layers_saved_is_on_the_host_where_memory_asks_for_it(weft):
    kept, host = {"state": ["device"]}, {"state": ["device"], "activations": ["device", "host"]}
    without = least(weft, train__micro_batch=8)
    limit = least(weft, cluster__host=HOST, plan__offload=host, train__micro_batch=8)
    assert limit < without, (limit, without)
    changes = {"cluster__host": HOST, "plan__offload": host, "train__micro_batch": 8}
    said = plan(weft, config(weft, (limit + without) // 2, **changes))
    away = [layer for layer, home in said["saved"].items() if home == "host"]
    tier = said["tiers"][0]
    assert tier["name"] == "host" and tier["layers"] == len(away) > 0, said
    assert tier["peak_bytes"] >= tier["saved_bytes"] > 0 and tier["units"] == 0, tier
    path = config(weft, (limit + without) // 2, **changes)
    told = " ".join(weft.expect(0, "plan", path).split())
    assert f"what {len(away)} of {len(said['saved'])} layers saved" in told, told
    assert f"saved {away[0]}" in told, told
    assert "saved:" in weft.expect(0, "explain", "plan.json")
    told = " ".join(weft.expect(0, "verify", "plan.json", "--config", path).split())
    assert "safe in every timing" in told, told

    def fingerprint(run, limit, **changes):
        weft.expect(0, "train", config(weft, limit, **changes), "--run", run, "-q", timeout=200)
        with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
            return json.load(file)["fingerprint"]

    weft.expect(78, "train", config(weft, (limit + without) // 2, train__micro_batch=8),
                "--run", "refused")
    assert (fingerprint("saved", (limit + without) // 2, **changes) ==
            fingerprint("all-here", 1 << 30, plan__offload=kept, train__micro_batch=8))


@drawn_case
def inputs_of_recomputed_layers_are_on_the_host(weft):
    """These layers recompute all that they save, so nothing of them is on the device between forward and backward."""
    here = {"state": ["device"], "activations": ["device"]}
    there = {**here, "inputs": ["host"]}
    changes = {"cluster__host": HOST, "plan__recompute": "whole"}
    path = config(weft, 1 << 30, plan__offload=there, **changes)
    said = plan(weft, path)
    tier, n = said["tiers"][0], len(said["saved"])
    assert all(way.endswith("+host-input") for way in said["saved"].values()), said
    assert "whole+host-input" in said["saved"].values(), said
    assert tier["input_layers"] == n > 0 and tier["peak_bytes"] >= tier["input_bytes"] > 0, tier
    told = " ".join(weft.expect(0, "plan", path).split())
    assert f"{n} layers' inputs offloaded" in told, told
    assert f"inputs of {n} of {n} layers; a step copies" in told, told
    assert "host, input" in weft.expect(0, "explain", "plan.json")
    told = " ".join(weft.expect(0, "verify", "plan.json", "--config", path).split())
    assert "safe in every timing" in told, told
    ends = []
    for run, offload in (("there", there), ("here", here)):
        weft.expect(0, "train", config(weft, 1 << 30, plan__offload=offload, **changes), "--run", run, "-q", timeout=200)
        ends.append(json.loads(Path(weft.path(f"{run}/result.json")).read_text(encoding="utf-8"))["fingerprint"])
    assert ends[0] == ends[1], ends


@drawn_case
def the_shipped_config_gives_the_bits_of_state_that_stays(weft):
    shipped = str(Path(__file__).resolve().parents[2] / "configs/runs/gpt-tiny-host.json")
    ends = []
    for home in "host", "device":
        weft.expect(0, "train", shipped, "--set", f'plan.offload.state=["{home}"]',
                    "--set", "train.steps=3", "--work-limit", "300M", "--run", home, "-q",
                    timeout=200)
        with open(weft.path(f"{home}/result.json"), encoding="utf-8") as file:
            ends.append(json.load(file)["fingerprint"])
        with open(weft.path(f"{home}/plan.json"), encoding="utf-8") as file:
            kinds = json.load(file)["problem"]["kinds"]
        assert all(("+host" in kind) == (home == "host") for kind in kinds), kinds
    assert ends[0] == ends[1], ends


@drawn_case
def saves_in_the_background_read_what_is_away_while_a_step_moves_it(weft):
    if is_no_disk(weft):
        raise Skip("the directory for files of tests is kept in memory")

    def saved(run, state, *flags):
        weft.expect(0, "train", config(
            weft, 1 << 30, cluster__disk=DISK, cluster__host=HOST, train__steps=6,
            plan__offload={**HERE, "state": state}, plan__update_ahead=1,
            train__validation={"every": 2, "share": 0.1},
            train__checkpoint={"every": 2, "at_end": False}), "--run", run, "-q", *flags, timeout=200)
        with open(weft.path(f"{run}/result.json"), encoding="utf-8") as file:
            return json.load(file)["fingerprint"]

    here = saved("here", ["device"])
    for state in (["disk"], ["host", "disk"]):
        assert saved("-".join(state), state) == here, state
        step = f"--resume={'-'.join(state)}/checkpoints/step-4"
        assert saved("-".join([*state, "again"]), state, step) == here, state
    weft.expect(0, "train", "--resume=host-disk/checkpoints/step-4", "--run", "other", "-q",
                config(weft, 1 << 30, train__steps=6, cluster__host=HOST,
                       plan__offload={**HERE, "state": ["host"]},
                       train__validation={"every": 2, "share": 0.1}), timeout=200)
    with open(weft.path("other/result.json"), encoding="utf-8") as file:
        assert json.load(file)["fingerprint"] == here


@drawn_case
def a_rank_killed_where_something_is_moved_ends_the_others(weft):
    tiers = [("streamed", {"state": ["host"], "activations": ["host"], "inputs": ["host"], "update": ["device"]},
              ("copy_up", "copy_down", "saved_down", "saved_up", "input_down", "input_up")),
             ("there", THERE, ("gradient_down", "host_update", "parameters_up"))]
    if not is_no_disk(weft):
        tiers.append(("disk", {"state": ["disk"], **HERE}, ("read", "write")))
    for name, kept, places in tiers:
        path = config(weft, 1 << 30, cluster__disk=DISK, cluster__host=HOST, plan__offload=kept,
                      train__checkpoint={"every": 2, "at_end": False}, train__steps=6)
        whole = weft.path(f"{name}/result.json")
        weft.expect(0, "train", path, "--run", name, "-q", timeout=200)
        for place in some(places, 1):
            point = {"WEFT_FAILPOINT": f"{place}:rank=1:step=4"}
            weft.expect(69, "train", path, "--run", place, "-q", env=point,
                        says=["rank 1", "signal 9"], timeout=200)
            weft.expect(0, "train", path, "--run", place, "--resume", "-q", timeout=200)
            ends = [json.loads(Path(at).read_text(encoding="utf-8"))["fingerprint"]
                    for at in (whole, weft.path(f"{place}/result.json"))]
            assert ends[0] == ends[1], (place, ends)


main(sys.argv[1])
