/* SPDX-License-Identifier: Apache-2.0 */
/* Names of planners, in the order of their table (table.c), for messages. */
#ifndef WEFT_SCHEDULER_PLANNERS_NAMES_H
#define WEFT_SCHEDULER_PLANNERS_NAMES_H

#define WEFT_PLANNER_NAMES                                                                         \
    "ilp, greedy, all-fsdp, all-sdp, all-zero1, all-dp, all-hsdp, all-central, all-nodes, fcdp, "  \
    "random, ddp, zero1, zero2, fairscale, fsdp2, fsdp2-mix, deepspeed, deepcompile, "             \
    "latest-safe, simple-overlap, "                                                                \
    "bytescheduler, mg-wfbp, dear, osdp, fsdp-milp, recompute-all, recompute-selective, "          \
    "checkmate-budget, auto-perf-maxing, sac-ilp, galvatron, auto-micro-batch, zero-infinity, "    \
    "breadth-first, greedysnake, "                                                                 \
    "offload-stream, offload-greedy, deepcompile-offload, zero-offload, twin-flow, "               \
    "fsdp2-cpu-offload, "                                                                          \
    "largest-first-offload, two-stage, seed-ilp"

#endif
