/* SPDX-License-Identifier: Apache-2.0 */
/* A problem small enough to work out by hand: two layers, a unit each, two blocks a unit. */
#ifndef WEFT_TESTS_PROBLEM_SMALL_PROBLEM_H
#define WEFT_TESTS_PROBLEM_SMALL_PROBLEM_H

#include "problem/problem.h"

/* Slots: 0 U:a, 1 U:b, 2 fill, 3 F:a, 4 F:b, 5 B:b, 6 B:a, 7 drain, 8 norm. */
enum { N_SMALL_SLOTS = 9 };
/* Strategies of both units, and sets of one. */
enum { IS_DP, IS_SDP, N_SMALL_STRATEGIES };
enum { DP = 1 << IS_DP, SDP = 1 << IS_SDP };
enum { A_GATHER, A_REDUCE, A_ALL_REDUCE, B_GATHER, B_REDUCE, B_ALL_REDUCE, N_SMALL_ITEMS };

/* Two blocks of it, in slots `first` to `last`. */
static inline struct weft_problem_item small_item(int32_t decision, int32_t kind,
                                                  uint64_t strategies, int32_t first, int32_t last,
                                                  int64_t held_bytes)
{
    bool gathers = kind == WEFT_ALL_GATHER;
    return (struct weft_problem_item){
        .item = {.decision = decision,
                 .kind = kind,
                 .acquires = gathers,
                 .may_block = gathers,
                 .strategies = strategies,
                 .n_blocks = 2,
                 .first = first,
                 .last = last,
                 .block_bytes = 100,
                 .stair_bytes = held_bytes,
                 .stair_category =
                     gathers ? WEFT_CATEGORY_GATHERED_PARAMETERS : WEFT_CATEGORY_FULL_GRADIENTS},
        .lane = WEFT_LANE_FIRST,
        .block_ns = 600,
        .after = -1};
}

/* A block takes 600 ns and 100 bytes; U 200 (dp: 400), F 1000, B 2000, norm 100, agree 50. Under
 * sdp a unit's full parameters are 200 bytes from its first use to its last, its full gradient 200
 * bytes in its backward slot; 1000 bytes are always held. The arrays are static: copy to change. */
static inline struct weft_problem small_problem(void)
{
    static struct weft_slot slots[N_SMALL_SLOTS] = {
        {WEFT_SLOT_UPDATE, 0, 0, false},   {WEFT_SLOT_UPDATE, 1, 0, false},
        {WEFT_SLOT_FILL, -1, 0, false},    {WEFT_SLOT_FORWARD, 0, 0, false},
        {WEFT_SLOT_FORWARD, 1, 0, false},  {WEFT_SLOT_BACKWARD, 1, 0, false},
        {WEFT_SLOT_BACKWARD, 0, 0, false}, {WEFT_SLOT_DRAIN, -1, 0, false},
        {WEFT_SLOT_NORM, -1, 0, false}};
    static const char *names[N_SMALL_SLOTS] = {"U:a", "U:b", "fill",  "F:a", "F:b",
                                               "B:b", "B:a", "drain", "norm"};
    static int64_t slot_ns[N_SMALL_SLOTS] = {0, 0, 0, 1000, 1000, 2000, 2000, 0, 100};
    static struct weft_hold a_holds[] = {{WEFT_CATEGORY_GATHERED_PARAMETERS, 3, 6, 200, 0},
                                         {WEFT_CATEGORY_FULL_GRADIENTS, 6, 6, 200, 0},
                                         {WEFT_CATEGORY_SHARDED_GRADIENTS, 7, 0, 100, 0}};
    static struct weft_hold b_holds[] = {{WEFT_CATEGORY_GATHERED_PARAMETERS, 4, 5, 200, 0},
                                         {WEFT_CATEGORY_FULL_GRADIENTS, 5, 5, 200, 0},
                                         {WEFT_CATEGORY_SHARDED_GRADIENTS, 6, 1, 100, 0}};
    static struct weft_hold common[] = {{WEFT_CATEGORY_BASE, 0, N_SMALL_SLOTS - 1, 1000, 0}};
    static const char *kinds[N_SMALL_STRATEGIES] = {"dp", "sdp"};
    static struct weft_slot_time a_times[] = {{0, 400}, {0, 200}}, b_times[] = {{1, 400}, {1, 200}};
    static struct weft_problem_strategy a_strategies[N_SMALL_STRATEGIES] = {
        {"dp", IS_DP, WEFT_POLICY_DP, 1, 0, &a_times[IS_DP], NULL, WEFT_LOCATION_DEVICE, false,
         WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE},
        {"sdp", IS_SDP, WEFT_POLICY_SDP, 1, 3, &a_times[IS_SDP], a_holds, WEFT_LOCATION_DEVICE,
         false, WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE}};
    static struct weft_problem_strategy b_strategies[N_SMALL_STRATEGIES] = {
        {"dp", IS_DP, WEFT_POLICY_DP, 1, 0, &b_times[IS_DP], NULL, WEFT_LOCATION_DEVICE, false,
         WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE},
        {"sdp", IS_SDP, WEFT_POLICY_SDP, 1, 3, &b_times[IS_SDP], b_holds, WEFT_LOCATION_DEVICE,
         false, WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE}};
    static struct weft_problem_decision decisions[2] = {
        {"a", 0, N_SMALL_STRATEGIES, a_strategies, 0, 50, 0, false, 0},
        {"b", N_SMALL_STRATEGIES, N_SMALL_STRATEGIES, b_strategies, 1, 50, 0, false, 0}};
    static int32_t slot_decisions[N_SMALL_SLOTS] = {0, 1, -1, -1, -1, -1, -1, -1, -1};
    static struct weft_problem_item items[N_SMALL_ITEMS];
    static struct weft_lane lanes[3];
    items[A_GATHER] = small_item(0, WEFT_ALL_GATHER, SDP, 1, 2, 100);
    items[A_REDUCE] = small_item(0, WEFT_REDUCE_SCATTER, SDP, 7, 7, 100);
    items[A_ALL_REDUCE] = small_item(0, WEFT_ALL_REDUCE, DP, 7, 7, 0);
    items[B_GATHER] = small_item(1, WEFT_ALL_GATHER, SDP, 2, 3, 100);
    items[B_REDUCE] = small_item(1, WEFT_REDUCE_SCATTER, SDP, 6, 7, 100);
    items[B_ALL_REDUCE] = small_item(1, WEFT_ALL_REDUCE, DP, 6, 7, 0);
    const struct weft_rates full = {WEFT_RATE_ONE, WEFT_RATE_ONE};
    lanes[0] = (struct weft_lane){"compute", WEFT_LANE_KIND_COMPUTE, full};
    lanes[1] = (struct weft_lane){"network", WEFT_LANE_KIND_NETWORK, full};
    lanes[2] = (struct weft_lane){"network 2", WEFT_LANE_KIND_NETWORK, full};
    return (struct weft_problem){
        .ranks = 2,
        .period = {.n_micro = 1, .group = 1},
        .n_tiers = 1,
        .tiers = {{"device", WEFT_LOCATION_DEVICE, INT64_MAX}},
        .profile_source = "by hand",
        .n_slots = N_SMALL_SLOTS,
        .slots = slots,
        .slot_names = names,
        .slot_ns = slot_ns,
        .n_lanes = 2,
        .lanes = lanes,
        .agree_ns = 50,
        .slot_decisions = slot_decisions,
        .n_kinds = N_SMALL_STRATEGIES,
        .kinds = kinds,
        .n_decisions = 2,
        .decisions = decisions,
        .n_strategies = 2 * N_SMALL_STRATEGIES,
        .n_common = 1,
        .common = common,
        .n_items = N_SMALL_ITEMS,
        .items = items,
    };
}

#endif
