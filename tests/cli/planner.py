#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Problems for which the planner once ended far from the best plan, or from the best proof. The configs are in
tests/cli/planner/; each expected step is that of a plan which `weft verify` accepts.
"""
import json
import sys
from pathlib import Path

from tap import Skip, case, main

CONFIGS = Path(__file__).with_name("planner")


def plan(weft, name, *flags):
    """Plans a config, verifies the plan, and returns the plan file's content and its weakest bound."""
    out = weft.path("plan.json")
    weft.expect(0, "plan", str(CONFIGS / f"{name}.json"), "-o", out, *flags)
    weft.expect(0, "verify", out)
    with open(out, encoding="utf-8") as file:
        made = json.load(file)
    if "no solver" in made["solver"]["stop"]:
        raise Skip("weft-solve is not built")
    bound = made["bound"]
    own_ns = max(bound["bound_ns"], bound["paged_bound_ns"])
    return made, min([own_ns, *(other["bound_ns"] for other in made["other_periods"])])


@case
def leaves_are_searched_until_an_order_is_the_best(weft):
    """The tree has few choices of strategies, and each has many orders on three lanes."""
    made, bound_ns = plan(weft, "long_orders")
    assert made["prediction"]["step_ns"] <= bound_ns * 1.0001, (made["prediction"], bound_ns)


@case
def a_period_that_pages_refuse_keeps_its_proof(weft):
    made, bound_ns = plan(weft, "refused_in_pages")
    assert made["prediction"]["step_ns"] <= bound_ns * 1.001, (made["prediction"], bound_ns)


@case
def a_size_of_blocks_is_tried_in_every_period(weft):
    """Whole blocks are the fastest without offloaded state. With them offloaded state is faster still."""
    made, _ = plan(weft, "scale_of_offload", "--work-limit", "6G")
    assert made["prediction"]["step_ns"] <= 130500, made["prediction"]


@case
def a_start_of_another_period_is_kept(weft):
    """The start has blocks and a period that a small budget does not reach, and other units than the first period."""
    settings = ["--set", "plan.block_scale=whole", "--set", "plan.update_ahead=2"]
    made, _ = plan(weft, "scale_of_offload", "--work-limit", "300M", *settings)
    start = weft.write("start.json", made)
    alone, _ = plan(weft, "scale_of_offload", "--work-limit", "20M")
    from_start, _ = plan(weft, "scale_of_offload", "--work-limit", "20M", "--start", start)
    steps = [found["prediction"]["step_ns"] for found in (from_start, made, alone)]
    assert steps[0] <= steps[1] < steps[2], steps


if __name__ == "__main__":
    main(sys.argv[1])
