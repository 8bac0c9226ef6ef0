#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Local ranks that stand for several nodes: sums have two levels, and every policy has their bits."""
import json
import sys

from configs import tiny
from tap import case, drawn_case, main

SPEED = {"f32": "50G", "bf16": "50G"}
PLANNERS = ("all-dp", "all-zero1", "all-fsdp")


def nodes(ranks, per_node, compute="f32", **changes):
    return tiny(cluster__ranks=ranks, cluster__ranks_per_node=per_node, cluster__threads=1,
                cluster__link__inter={"alpha": "100us", "bandwidth": "100MB/s"}, cluster__device__flops=SPEED,
                train__precision={"compute": compute}, **changes)


def fingerprint(weft, ranks, per_node, compute, planner):
    config = weft.write("run.json", nodes(ranks, per_node, compute))
    weft.expect(0, "train", config, "--planner", planner, "--quiet", "--run", weft.fresh("run"))
    return json.loads((weft.directory / "run/result.json").read_text())["fingerprint"]


@case
def every_policy_has_the_bits_of_its_nodes(weft):
    for compute, shapes in (("f32", ((4, 4), (4, 2), (6, 6), (6, 2), (6, 3))), ("bf16", ((4, 4), (4, 2)))):
        found = {}
        for ranks, per_node in shapes:
            bits = {fingerprint(weft, ranks, per_node, compute, planner) for planner in PLANNERS}
            assert len(bits) == 1, (ranks, per_node, compute, bits)
            found[ranks, per_node] = bits.pop()
        assert len(set(found.values())) == len(found), (compute, found)


@case
def one_rank_a_node_has_the_bits_of_one_node(weft):
    assert fingerprint(weft, 3, 1, "f32", "all-fsdp") == fingerprint(weft, 3, 3, "f32", "all-fsdp")


def train(weft, run, *flags, **changes):
    config = weft.write("run.json", nodes(6, 2, plan__work_limit="20M", plan__blocks=2, **changes))
    weft.expect(0, "train", config, "--quiet", "--run", run, *flags)
    return json.loads((weft.directory / run / "result.json").read_text())


def evaluations(weft, run):
    lines = map(json.loads, (weft.directory / run / "metrics.jsonl").read_text().splitlines())
    return [(line["step"], line["validation_loss"]) for line in lines if "validation_loss" in line]


@case
def hybrid_shards_have_the_bits_of_all_policies(weft):
    """hsdp and nodes, alone and among others, 20 steps. Their checkpoints go on under other policies."""
    steps = {"train__steps": 20, "train__checkpoint": {"every": 10, "at_end": True}}
    expected = train(weft, weft.fresh("fsdp"), plan__policies="fsdp", **steps)
    for run, policies in (("nodes", "nodes"), ("all", "dp,zero1,sdp,fsdp,hsdp,nodes")):
        assert train(weft, weft.fresh(run), plan__policies=policies, **steps)["fingerprint"] == \
            expected["fingerprint"], policies
    for policies, source in (("nodes", "fsdp"), ("hsdp", "nodes"), ("fsdp", "nodes")):
        resumed = train(weft, weft.fresh("resumed"), f"--resume={source}/checkpoints/step-10", plan__policies=policies,
                        **steps)
        assert resumed["fingerprint"] == expected["fingerprint"], policies


@drawn_case
def state_of_nodes_may_be_offloaded_and_frozen_units_have_none(weft):
    """State on a disk and in host memory, with frozen blocks: the bits of fsdp."""
    link = {"bandwidth": "2GB/s"}
    homes = {"disk": {"cluster__disk": {"path": "scratch", "limit": "1GiB", "read": link, "write": link}},
             "host": {"cluster__host": {"memory_limit": "1GiB", "down": link, "up": link}}}
    (weft.directory / "scratch").mkdir()
    same = {"compute": "bf16", "train__steps": 4, "train__clip_norm": 0, "model__layers__1__frozen": True}
    expected = train(weft, weft.fresh("fsdp"), plan__policies="fsdp", **same)["fingerprint"]
    for home, tier in homes.items():
        offload = {"state": [home], "update": ["device"]}
        found = train(weft, weft.fresh(home), plan__policies="nodes", plan__offload=offload, **tier, **same)
        plan = json.loads((weft.directory / home / "plan.json").read_text())
        assert found["fingerprint"] == expected, home
        assert {f"nodes+{home}", "hsdp"} == set(plan["strategies"]) - {"device", "host"}, plan["strategies"]


@drawn_case
def state_of_nodes_may_be_updated_on_the_host(weft):
    """Shared by all ranks, in f32 and bf16, with clipping and micro-steps: the bits of fsdp. Checkpoints go on on the device."""
    link = {"bandwidth": "2GB/s"}
    host = {"cluster__host": {"memory_limit": "1GiB", "down": link, "up": link, "update": "1GB/s"}, "plan__policies": "nodes",
            "plan__offload": {"state": ["host"], "update": ["host"], "activations": ["device"]}}
    for compute, clip in (("f32", 0), ("bf16", 1.0)):
        same = {"compute": compute, "train__clip_norm": clip, "train__steps": 6, "train__grad_accum": 2,
                "train__checkpoint": {"every": 3, "at_end": True}, "train__compare_every": 2}
        expected = train(weft, weft.fresh("fsdp"), plan__policies="fsdp", **same)["fingerprint"]
        for planner in ("ilp", "all-nodes", "random"):
            found = train(weft, weft.fresh("updated"), "--planner", planner, **host, **same)
            plan = json.loads((weft.directory / "updated/plan.json").read_text())
            assert set(plan["strategies"]) - {"device"} == {"nodes+host-update"}, plan["strategies"]
            assert found["fingerprint"] == expected, (compute, planner)
        for source, changes in (("fsdp", host), ("updated", {"plan__policies": "nodes"})):
            resumed = train(weft, weft.fresh("resumed"), f"--resume={source}/checkpoints/step-3", **changes, **same)
            assert resumed["fingerprint"] == expected, (compute, source)


@case
def a_nodes_cache_changes_no_bit(weft):
    """Parameters of nodes in host memory, by fcdp and by random plans. Checkpoints go on with and without the cache."""
    link = {"bandwidth": "2GB/s"}
    cache = {"cluster__host": {"memory_limit": "1GiB", "down": link, "up": link}, "plan__policies": "nodes",
             "plan__offload": {"state": ["device"], "parameters": ["device", "host"]}}
    same = {"compute": "bf16", "train__steps": 6, "train__checkpoint": {"every": 3, "at_end": True},
            "train__validation": {"share": 0.1, "every": 2, "samples": 8}, "train__compare_every": 2}
    expected = train(weft, weft.fresh("fsdp"), plan__policies="fsdp", **same)
    for clip in (1.0, 0):
        if clip == 0:
            expected = train(weft, weft.fresh("fsdp"), plan__policies="fsdp", train__clip_norm=0, **same)
        found = train(weft, weft.fresh("cached"), "--planner", "fcdp", train__clip_norm=clip, **cache, **same)
        plan = json.loads((weft.directory / "cached/plan.json").read_text())
        assert "nodes+host-parameters" in plan["strategies"], plan["strategies"]
        assert found["fingerprint"] == expected["fingerprint"], clip
        assert evaluations(weft, "cached") == evaluations(weft, "fsdp"), clip
        source, changes = ("fsdp", cache) if clip else ("cached", {"plan__policies": "fsdp"})
        resumed = train(weft, weft.fresh("resumed"), f"--resume={source}/checkpoints/step-3", train__clip_norm=clip,
                        **changes, **same)
        assert resumed["fingerprint"] == expected["fingerprint"], (clip, source)


@case
def a_cache_needs_its_policy(weft):
    config = weft.write("run.json", nodes(4, 2, "bf16", plan__policies="nodes"))
    weft.expect(65, "plan", config, "--planner", "fcdp", says=["planner fcdp", "plan.offload.parameters"])
    config = weft.write("run.json", nodes(4, 2, "bf16", plan__policies="nodes", plan__offload={"parameters": ["host"]}))
    weft.expect(65, "plan", config, says="plan.offload.parameters")


@case
def hybrid_shards_need_two_levels_and_their_links(weft):
    for per_node, changes, words in ((4, {}, "hsdp shards within nodes, and needs several nodes"), (1, {}, "several ranks"),
                                     (2, {"train__delay": 1}, "train.delay"),
                                     (2, {"cluster__link": {"inter": {"bandwidth": "1GB/s"}}}, "cluster.link.intra")):
        for policy in ("hsdp", "nodes"):
            config = weft.write("run.json", nodes(4, per_node, plan__policies=policy, **changes))
            weft.expect(65, "plan", config, says=words.replace("hsdp", policy))


@case
def plans_without_the_policy_stay_the_same(weft):
    config = weft.write("run.json", nodes(4, 2))
    said = json.loads(weft.expect(0, "plan", config, "-o", weft.path("plan.json"), "--json"))
    assert "hsdp" not in json.dumps(said) and "across" not in (weft.directory / "plan.json").read_text()


main(sys.argv[1])
