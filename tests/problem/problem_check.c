/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of decisions of layers, frozen units, updates on the host and chains; sums up to their
 * limits. tests/problem/problem.c has the others. */
#include <criterion/criterion.h>
#include <string.h>

#include "problem/problem.h"
#include "tests/problem/small_problem.h"

enum { MOST_DECISIONS = 4 };

/* The small problem with one more item, and two more decisions: a frozen unit c with a strategy of
 * its own and, from decision 3 on, the saved activations of a. */
static struct weft_problem_decision decisions[MOST_DECISIONS];
static struct weft_problem_item items[N_SMALL_ITEMS + 1];
static struct weft_problem problem;

enum { FROZEN = 2, SAVED = 3 };

static void make_problem(void)
{
    static struct weft_problem_strategy frozen[] = {
        {"sdp", IS_SDP, WEFT_POLICY_SDP, 0, 0, NULL, NULL, WEFT_LOCATION_DEVICE, false,
         WEFT_RECOMPUTE_NONE, WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE}};
    static struct weft_problem_strategy saved[] = {{"host", 2, WEFT_POLICY_COUNT, 0, 0, NULL, NULL,
                                                    WEFT_LOCATION_HOST, false, WEFT_RECOMPUTE_NONE,
                                                    WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE}};
    static const char *kinds[] = {"dp", "sdp", "host"};
    problem = small_problem();
    memcpy(decisions, problem.decisions, 2 * sizeof *decisions);
    memcpy(items, problem.items, N_SMALL_ITEMS * sizeof *items);
    decisions[FROZEN] = (struct weft_problem_decision){"c", 4, 1, frozen, -1, 50, 0, false, 0};
    decisions[SAVED] = (struct weft_problem_decision){"saved:a", 5, 1, saved, -1, 0, 0, true, 0};
    problem.decisions = decisions;
    problem.n_decisions = MOST_DECISIONS;
    problem.n_strategies += 2;
    problem.kinds = kinds;
    problem.n_kinds = 3;
    problem.items = items;
}

TestSuite(problem_check, .init = make_problem);

static void expect_fine(void)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
}

static void expect_refused(const char *word)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_E_DATA, "%s", word);
    cr_assert(strncmp(err.text, "here: ", 6) == 0 && strstr(err.text, word) != NULL,
              "\"%s\" lacks \"%s\"", err.text, word);
}

Test(problem_check, decisions_of_layers_follow_those_of_units_in_order)
{
    struct weft_problem_decision *saved = &decisions[SAVED], *frozen = &decisions[FROZEN];
    const struct weft_problem_decision good = *saved, unit = *frozen;
    expect_fine();
    saved->layer = 1;
    expect_fine();
    saved->layer = 2;
    expect_refused("decisions[3] (saved:a): layer 2: there is no such layer");
    saved->layer = -1;
    expect_refused("layer -1: there is no such layer");
    *saved = good;
    saved->elements = 1;
    expect_refused("a layer has no parameters of its own");
    *saved = good;
    saved->update_slot = 0;
    expect_refused("a layer has no parameters of its own");
    *saved = good;
    frozen->layer = 1;
    expect_refused("decisions[2] (c): layer 1: a unit is no layer");
    *frozen = good;
    *saved = unit;
    expect_refused("units stand before layers");
    *saved = good;
    expect_refused("layers are not in order, each once");
    saved->layer = 1;
    expect_fine();
    frozen->layer = 1;
    saved->layer = 0;
    expect_refused("layers are not in order, each once");
}

Test(problem_check, a_strategy_of_a_unit_has_a_policy_and_of_a_layer_none)
{
    decisions[SAVED].strategies[0].policy = WEFT_POLICY_DP;
    expect_refused("decisions[3] (saved:a): strategy 0 is of no kind");
    decisions[SAVED].strategies[0].policy = WEFT_POLICY_COUNT;
    decisions[FROZEN].strategies[0].policy = WEFT_POLICY_COUNT;
    expect_refused("decisions[2] (c): strategy 0 is of no kind");
    decisions[FROZEN].strategies[0].policy = WEFT_POLICY_SDP;
    decisions[FROZEN].strategies[0].kind = -1;
    expect_refused("decisions[2] (c): strategy 0 is of no kind");
    decisions[FROZEN].strategies[0].kind = IS_SDP;
    expect_fine();
}

Test(problem_check, an_update_slot_is_an_update_of_its_unit)
{
    for (int32_t slot = 0; slot <= N_SMALL_SLOTS; slot++) {
        decisions[FROZEN].update_slot = slot;
        expect_refused("decisions[2] (c): update_slot");
    }
    decisions[FROZEN].update_slot = -2;
    expect_refused("update_slot -2 is not an update of its unit");
    decisions[FROZEN].update_slot = -1;
    decisions[FROZEN].elements = WEFT_PROBLEM_MOST;
    expect_fine();
    decisions[FROZEN].elements++;
    expect_refused("decisions[2] (c): elements is");
    decisions[FROZEN].elements = -1;
    expect_refused("elements is -1; out of range");
}

/* Puts an item at the end. */
static struct weft_item *add_item(int32_t decision, int32_t kind, bool acquires, int32_t first,
                                  int32_t last)
{
    struct weft_problem_item *it = &items[N_SMALL_ITEMS];
    *it = small_item(decision, kind, decision == FROZEN ? 1 : SDP, first, last, 100);
    it->item.acquires = acquires;
    it->item.may_block = false;
    problem.n_items = N_SMALL_ITEMS + 1;
    return &it->item;
}

Test(problem_check, a_frozen_unit_is_gathered_and_nothing_more)
{
    add_item(FROZEN, WEFT_ALL_GATHER, true, 2, 2);
    expect_fine();
    add_item(FROZEN, WEFT_REDUCE_SCATTER, false, 7, 7);
    expect_refused("items[6]: a frozen unit has nothing to reduce");
    add_item(FROZEN, WEFT_STATE_READ, true, 0, 1);
    expect_refused("items[6]: a frozen unit has no state");
    add_item(FROZEN, WEFT_GRADIENT_DOWN, false, 7, 7);
    expect_refused("items[6]: a frozen unit is not updated");
    add_item(SAVED, WEFT_ALL_GATHER, true, 2, 2)->strategies = 1;
    expect_refused("items[6]: a layer has no parameters to gather or reduce");
    add_item(FROZEN, WEFT_SAVED_DOWN, false, 4, 4);
    expect_refused("items[6]: a unit saves nothing for its backward");
}

/* Slots: 0 U:a, 1 U:b, 2 fill, 3 F:a, 4 F:b, 5 B:b, 6 B:a, 7 drain, 8 norm. */
Test(problem_check, updates_on_the_host_are_on_their_side_of_the_update)
{
    add_item(1, WEFT_GRADIENT_DOWN, false, 6, 7);
    expect_fine();
    add_item(1, WEFT_GRADIENT_DOWN, false, 2, 2);
    expect_fine();
    add_item(1, WEFT_GRADIENT_DOWN, false, 1, 2);
    expect_refused("items[6]: it goes down before the update of its period");
    add_item(1, WEFT_GRADIENT_DOWN, true, 6, 7);
    expect_refused("a gradient that goes down is released");
    add_item(1, WEFT_HOST_UPDATE, false, 0, 2);
    expect_refused("a gradient that goes down is released");
    for (int32_t kind = WEFT_HOST_UPDATE; kind <= WEFT_PARAMETERS_UP; kind++) {
        add_item(1, kind, true, 0, 2);
        expect_fine();
        add_item(1, kind, true, 0, 3);
        expect_fine();
        add_item(1, kind, true, 0, 4);
        expect_refused("items[6]: no forward runs in the slot after its window");
        add_item(1, kind, true, 0, 1);
        expect_refused("no forward runs in the slot after its window");
    }
}

Test(problem_check, a_shard_on_the_host_goes_down_after_its_update)
{
    add_item(1, WEFT_PARAMETERS_DOWN, false, 2, 2);
    expect_fine();
    add_item(1, WEFT_PARAMETERS_DOWN, false, 1, 2);
    expect_refused("items[6]: it goes down before the unit's update has ended");
    add_item(1, WEFT_PARAMETERS_DOWN, true, 2, 2);
    expect_refused("items[6]: parameters that go down are released, others are acquired");
    add_item(FROZEN, WEFT_PARAMETERS_DOWN, false, 2, 2);
    expect_refused("items[6]: a frozen unit has no updated parameters");
    add_item(1, WEFT_PARAMETERS_FETCH, true, 2, 3);
    expect_fine();
    add_item(1, WEFT_PARAMETERS_FETCH, true, 1, 3);
    expect_refused("items[6]: its window begins before the unit's update has ended");
    add_item(1, WEFT_PARAMETERS_FETCH, true, 2, 6);
    expect_refused("items[6]: no layer runs in the slot after its window");
}

/* An average of b in one step of four, which each step counts with a fourth. */
Test(problem_check, an_average_has_its_share_of_a_step)
{
    struct weft_problem_item *it = &items[N_SMALL_ITEMS];
    add_item(1, WEFT_AVERAGE, true, 2, 3);
    expect_refused("items[6]: nodes do not step on their own, so nothing is averaged");
    problem.period.every = 4;
    it->average_ns = 2403;
    expect_fine();
    it->block_ns = 601;
    expect_refused("items[6]: its block_ns is not its share of a step");
    it->block_ns = 600;
    it->phase = 3;
    expect_fine();
    it->phase = 4;
    expect_refused("items[6]: its phase is not below period.every");
    it->phase = 0;
    it->item.may_block = true;
    expect_refused("items[6]: an average is complete before its use");
    it->item.may_block = false;
    items[A_GATHER].average_ns = 1;
    expect_refused("items[0]: it is no average, and has its time");
    items[A_GATHER].average_ns = 0;
    it->average_ns = WEFT_PROBLEM_MOST;
    it->block_ns = it->average_ns / 4;
    expect_refused("items[6]: 2 blocks of");
    add_item(FROZEN, WEFT_AVERAGE, true, 2, 2);
    expect_refused("items[6]: a frozen unit has nothing to reduce");
}

Test(problem_check, a_window_has_a_slot_after_it)
{
    struct weft_item *item = &items[B_REDUCE].item;
    item->last = N_SMALL_SLOTS - 2;
    expect_fine();
    item->last = N_SMALL_SLOTS - 1;
    expect_refused("items[4]: its window is not within the period");
    item->last = 7;
    item->first = -1;
    expect_refused("items[4]: its window is not within the period");
    item->first = 1;
    expect_refused("items[4]: its window begins before the unit's update has ended");
    item->first = 2;
    expect_fine();
    items[A_GATHER].item.last = 3; /* F:b uses it */
    expect_fine();
    items[A_GATHER].item.last = 1; /* fill */
    expect_refused("items[0]: no layer runs in the slot after its window");
    items[A_GATHER].item.last = 6; /* drain */
    expect_refused("items[0]: no layer runs in the slot after its window");
}

Test(problem_check, what_comes_after_another_has_time_for_it)
{
    struct weft_item *gather = &items[A_GATHER].item, *reduce = &items[A_REDUCE].item;
    items[A_REDUCE].after = A_GATHER;
    reduce->first = 3;
    expect_fine();
    reduce->first = 2;
    expect_refused("items[1]: it releases before the use of its predecessor");
    items[A_REDUCE].after = -1;
    reduce->first = 7;
    /* A gather after another of the same window. */
    *reduce = *gather;
    reduce->gather = 1;
    items[A_REDUCE].after = A_GATHER;
    expect_fine();
    reduce->may_block = false;
    expect_refused("items[1]: it cannot wait for an item that may block");
    reduce->last++;
    expect_fine();
    reduce->last--;
    gather->may_block = false;
    expect_fine();
    /* A release before an acquisition ends a slot before. */
    items[A_GATHER].after = -1;
    items[A_REDUCE].after = A_GATHER;
    gather->kind = WEFT_ALL_GATHER;
    reduce->first = gather->first - 1;
    expect_refused("items[1]: its window begins");
}

Test(problem_check, sums_go_up_to_the_most)
{
    int64_t *base = &problem.common[0].bytes;
    const int64_t was = *base;
    int64_t other_bytes = 0;
    for (int32_t i = 0; i < N_SMALL_ITEMS; i++)
        other_bytes += items[i].item.n_blocks * items[i].item.stair_bytes;
    for (int32_t d = 0; d < problem.n_decisions; d++)
        for (int32_t k = 0; k < decisions[d].n_strategies; k++)
            for (int32_t h = 0; h < decisions[d].strategies[k].n_holds; h++)
                other_bytes += decisions[d].strategies[k].holds[h].bytes;
    *base = WEFT_PROBLEM_MOST - other_bytes;
    expect_fine();
    ++*base;
    expect_refused("items[");
    *base = was;
    int32_t other_blocks = 0;
    for (int32_t i = 1; i < N_SMALL_ITEMS; i++)
        other_blocks += items[i].item.n_blocks;
    items[A_GATHER].item.n_blocks = WEFT_PROBLEM_MOST_BLOCKS - other_blocks;
    expect_fine();
    items[A_GATHER].item.n_blocks++;
    expect_refused("make blocks larger (plan.block_size) or fewer (plan.blocks)");
    items[A_GATHER].item.n_blocks = 1;
    items[A_GATHER].item.block_bytes = WEFT_PROBLEM_MOST;
    expect_fine();
    items[A_GATHER].item.n_blocks = 2;
    expect_refused("items[0]: 2 blocks of 9007199254740991 bytes");
    items[A_GATHER].item.block_bytes = -1;
    items[A_GATHER].item.n_blocks = 1;
    expect_refused("items[0]: 1 blocks of -1 bytes");
}

Test(problem_check, no_period_is_of_no_micro_step)
{
    problem.period.n_micro = 0;
    expect_refused("no period has 0 micro-steps");
    problem.period.n_micro = 2;
    expect_refused("slots[");
    problem.period.n_micro = 3;
    expect_refused("do not make a period of 3 micro-steps");
}

Test(problem_check, idle_ranks_are_in_the_last_of_several_rounds)
{
    problem.period.idle = 1;
    expect_refused("with idle ranks");
    problem.period.idle = -1;
    expect_refused("with idle ranks");
    problem.period.idle = (int32_t)problem.ranks;
    expect_refused("leave the last round without a gradient");
}

/* Bounds of ranks and of each rate. */
Test(problem_check, scalars_go_up_to_their_limits)
{
    problem.ranks = INT32_MAX;
    expect_fine();
    problem.ranks++;
    expect_refused("ranks is 2147483648");
    problem.ranks = 1;
    expect_fine();
    problem.lanes[1].rates = (struct weft_rates){WEFT_RATE_LEAST, WEFT_RATE_ONE - WEFT_RATE_LEAST};
    expect_fine();
    problem.lanes[1].rates.own--;
    expect_refused("one after the other would be faster");
    problem.lanes[1].rates = (struct weft_rates){WEFT_RATE_ONE, WEFT_RATE_LEAST};
    expect_fine();
    problem.lanes[1].rates.own--;
    expect_refused("a rate of it is not in 64 to 1024");
    problem.lanes[1].rates = (struct weft_rates){WEFT_RATE_ONE, WEFT_RATE_ONE};
    problem.agree_ns = INT64_MAX / 2;
    expect_refused("agree_ns is");
    problem.agree_ns = WEFT_PROBLEM_MOST / 5 + 1; /* 4 decisions and the norm */
    expect_refused("agree_ns is");
}
