#!/usr/bin/env python3
"""Local ranks that stand for several nodes: sums have two levels, and every policy has their bits."""
import json
import sys

from configs import tiny
from tap import case, main

SPEED = {"f32": "50G", "bf16": "50G"}
PLANNERS = ("all-dp", "all-zero1", "all-fsdp")


def fingerprint(weft, ranks, per_node, compute, planner):
    config = weft.write("run.json", tiny(cluster__ranks=ranks, cluster__ranks_per_node=per_node, cluster__threads=1,
                                         cluster__link__inter={"alpha": "100us", "bandwidth": "100MB/s"},
                                         cluster__device__flops=SPEED, train__precision={"compute": compute}))
    weft.expect(0, "train", config, "--planner", planner, "--quiet", "--run", weft.fresh("run"))
    return json.loads((weft.directory / "run/result.json").read_text())["fingerprint"]


@case
def every_policy_has_the_bits_of_its_nodes(weft):
    for compute in SPEED:
        found = {}
        for ranks, per_node in ((4, 4), (4, 2), (6, 6), (6, 2), (6, 3)):
            bits = {fingerprint(weft, ranks, per_node, compute, planner) for planner in PLANNERS}
            assert len(bits) == 1, (ranks, per_node, compute, bits)
            found[ranks, per_node] = bits.pop()
        assert len(set(found.values())) == len(found), (compute, found)


@case
def one_rank_a_node_has_the_bits_of_one_node(weft):
    assert fingerprint(weft, 3, 1, "f32", "all-fsdp") == fingerprint(weft, 3, 3, "f32", "all-fsdp")


main(sys.argv[1])
