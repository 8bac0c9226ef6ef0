/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/problem.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/problem/small_problem.h"

static void refused_problem(const struct weft_problem *problem, const char *word)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_check(problem, "here", &err), WEFT_E_DATA, "%s", word);
    cr_assert(strncmp(err.text, "here: ", 6) == 0, "%s", err.text);
    cr_assert(strstr(err.text, word) != NULL, "\"%s\" lacks \"%s\"", err.text, word);
}

Test(problem, small_one_is_right)
{
    struct weft_problem problem = small_problem();
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
}

Test(problem, scalars)
{
    struct weft_problem problem = small_problem();
    problem.ranks = 0;
    refused_problem(&problem, "ranks is 0");
    problem = small_problem();
    problem.ranks_per_node = 3;
    refused_problem(&problem, "ranks_per_node is 3, which does not divide 2 ranks");
    problem = small_problem();
    problem.tiers[0].limit_bytes = 0;
    refused_problem(&problem, "tiers[0] (device): its limit_bytes");
    problem.tiers[0].limit_bytes = WEFT_PROBLEM_MOST + 1;
    refused_problem(&problem, "its limit_bytes");
    problem = small_problem();
    problem.agree_ns = -1;
    refused_problem(&problem, "agree_ns");
    problem = small_problem();
}

/* The small problem with host memory as a second tier. */
static struct weft_problem two_tiers(void)
{
    struct weft_problem problem = small_problem();
    problem.n_tiers = 2;
    problem.tiers[1] = (struct weft_problem_tier){"host", WEFT_LOCATION_HOST, INT64_C(1) << 40};
    return problem;
}

Test(problem, tiers)
{
    struct weft_error err = {0};
    struct weft_problem problem = two_tiers();
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
    problem.n_tiers = 0;
    refused_problem(&problem, "there are 0 tiers; expected 1 to 8");
    problem.n_tiers = 9;
    refused_problem(&problem, "there are 9 tiers");
    problem = two_tiers();
    problem.tiers[1].name = "device";
    refused_problem(&problem, "tiers[1] (device): another has its name");
    problem = two_tiers();
    problem.tiers[1].kind = WEFT_LOCATION_DEVICE;
    refused_problem(&problem,
                    "tiers[1] (host): the first tier is the device's memory, and no other");
    problem = two_tiers();
    problem.tiers[0].kind = WEFT_LOCATION_DISK;
    refused_problem(&problem, "tiers[0] (device): the first tier is the device's memory");
    problem = two_tiers();
    problem.tiers[1].kind = WEFT_LOCATION_COUNT;
    refused_problem(&problem, "tiers[1] (host): its kind is out of range");
    problem = two_tiers();
    problem.tiers[1].limit_bytes = -1;
    refused_problem(&problem, "tiers[1] (host): its limit_bytes");
    problem.tiers[1].limit_bytes = 0; /* nothing is there then */
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
}

Test(problem, what_is_held_is_in_a_tier_that_there_is)
{
    struct weft_problem problem = two_tiers();
    struct weft_hold hold = {WEFT_CATEGORY_OPTIMIZER_STATE, 0, 2, 100, 1};
    struct weft_error err = {0};
    problem.common = &hold;
    problem.items[0].item.stair_tier = 1;
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
    hold.tier = 2;
    refused_problem(&problem, "tier 2; the period has slots 0 to 8, there are 11 categories and 2");
    hold.tier = -1;
    refused_problem(&problem, "tier -1");
    hold.tier = 1;
    problem.items[0].item.stair_tier = 2;
    refused_problem(&problem, "items[0]: it holds blocks in no tier that there is");
    problem.items[0].item.stair_tier = 0;
}

/* The row that exceeds its own limit most, not the largest row. */
Test(problem, the_fullest_row_is_by_limit)
{
    struct weft_problem problem = two_tiers();
    int64_t rows[2 * N_SMALL_SLOTS] = {0};
    problem.tiers[0].limit_bytes = 1000;
    problem.tiers[1].limit_bytes = 5000;
    rows[3] = 900;
    rows[N_SMALL_SLOTS + 4] = 4800;
    cr_assert_eq(weft_problem_fullest_row(&problem, rows), 3);
    rows[N_SMALL_SLOTS + 4] = 5001;
    cr_assert_eq(weft_problem_fullest_row(&problem, rows), N_SMALL_SLOTS + 4);
}

Test(problem, lanes)
{
    struct weft_problem problem = small_problem();
    problem.lanes[1].rates.compute = WEFT_RATE_LEAST - 1;
    refused_problem(&problem, "lanes[1] (network): a rate of it is not in 64 to 1024");
    problem.lanes[1].rates = (struct weft_rates){WEFT_RATE_ONE / 2, WEFT_RATE_ONE / 2 - 1};
    refused_problem(&problem, "one after the other");
    problem.lanes[1].rates.own = WEFT_RATE_ONE + 1;
    refused_problem(&problem, "a rate of it is not in 64 to 1024");
    problem = small_problem();
    problem.n_lanes = 1;
    refused_problem(&problem, "there are 1 lanes; expected 2 to 16");
    problem.n_lanes = WEFT_MOST_LANES + 1;
    refused_problem(&problem, "there are 17 lanes; expected 2 to 16");
    problem = small_problem();
    problem.items[A_GATHER].lane = 2;
    refused_problem(&problem, "items[0]: it is on no lane that moves anything");
    problem.items[A_GATHER].lane = WEFT_LANE_COMPUTE;
    refused_problem(&problem, "it is on no lane that moves anything");
    problem = small_problem();
    problem.n_lanes = 3;
    problem.lanes[2].name = "network";
    refused_problem(&problem, "lanes[2] (network): another has its name");
    problem = small_problem();
    problem.lanes[1].kind = WEFT_LANE_KIND_COMPUTE;
    refused_problem(&problem, "the first lane computes, and no other");
    problem.lanes[1].kind = WEFT_LANE_KIND_READ;
    refused_problem(&problem, "no lane is of kind network");
    problem.lanes[1].kind = WEFT_LANE_KIND_COUNT;
    refused_problem(&problem, "its kind is out of range");
}

/* a's reduction may come after a's gather, which its backward uses. */
Test(problem, what_comes_after_another)
{
    struct weft_problem problem = small_problem();
    struct weft_error err = {0};
    problem.items[A_REDUCE].after = A_GATHER;
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
    cr_assert(weft_problem_chains(&problem));
    cr_assert_eq(weft_problem_depth(&problem, A_REDUCE), 1);
    problem.items[A_GATHER].after = A_REDUCE;
    refused_problem(&problem, "items[0]: it comes after itself, round a circle");
    problem.items[A_GATHER].after = -1;
    problem.items[A_REDUCE].after = N_SMALL_ITEMS;
    refused_problem(&problem, "there is no item that it comes after");
    problem.items[A_REDUCE].after = B_GATHER;
    refused_problem(&problem, "its predecessor is not there under all of its strategies");
    problem.items[A_REDUCE].after = A_ALL_REDUCE;
    refused_problem(&problem, "its predecessor is not there under all of its strategies");
    problem.items[A_REDUCE].after = A_GATHER;
    for (int32_t n = 1; n <= 3; n += 2) { /* its predecessor has 2 */
        problem.items[A_REDUCE].item.n_blocks = n;
        refused_problem(&problem, "its predecessor has another number of blocks");
    }
    problem = small_problem();
    problem.items[A_GATHER].after = A_REDUCE;
    refused_problem(&problem, "its window begins or ends before that of its predecessor");
    problem = small_problem();
    problem.items[A_REDUCE].item.may_block = true;
    refused_problem(&problem, "an item that releases cannot block");
}

/* Two reductions of a, the second after the first. */
Test(problem, what_comes_after_another_does_not_begin_before_it)
{
    struct weft_problem problem = small_problem();
    struct weft_item *first = &problem.items[A_REDUCE].item;
    struct weft_item *second = &problem.items[A_ALL_REDUCE].item;
    struct weft_error err = {0};
    problem.items[A_ALL_REDUCE].after = A_REDUCE;
    second->strategies = SDP;
    first->first = second->first = 5;
    first->last = second->last = 6;
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
    first->first = 6;
    refused_problem(&problem, "its window begins or ends before that of its predecessor");
    first->first = 5;
    first->last = 7;
    refused_problem(&problem, "its window begins or ends before that of its predecessor");
}

Test(problem, slots_make_a_period)
{
    struct weft_problem problem = small_problem();
    problem.n_slots = 0;
    refused_problem(&problem, "do not make a period");
    problem.n_slots = N_SMALL_SLOTS - 1;
    refused_problem(&problem, "do not make a period");
    problem = small_problem();
    problem.slots[3].index = 1;
    refused_problem(&problem, "slots[3]");
    problem.slots[3] = (struct weft_slot){WEFT_SLOT_BACKWARD, 0, 0, false};
    refused_problem(&problem, "expected forward");
    problem.slots[3] = (struct weft_slot){WEFT_SLOT_FORWARD, 0, 0, false};
    problem.slots[1].index = 0;
    refused_problem(&problem, "slots[1]");
    problem.slots[1].index = 2;
    refused_problem(&problem, "slots[1]");
    problem.slots[1].index = 1;
    problem.slot_ns[4] = -1;
    refused_problem(&problem, "slots[4]");
    problem.slot_ns[4] = WEFT_PROBLEM_MOST;
    refused_problem(&problem, "2^53");
}

Test(problem, decisions)
{
    struct weft_problem problem = small_problem();
    struct weft_problem_strategy *strategy = &problem.decisions[1].strategies[IS_SDP];
    strategy->kind = N_SMALL_STRATEGIES;
    refused_problem(&problem, "decisions[1] (b): strategy 1 is of no kind");
    strategy->kind = IS_DP;
    refused_problem(&problem, "decisions[1] (b): strategy 1 is there already");
    strategy->kind = IS_SDP;
    strategy->times[0].ns = -1;
    refused_problem(&problem, "decisions[1] (b): time of slot 1 is -1 ns");
    strategy->times[0].ns = 200;
    strategy->holds[0].last = N_SMALL_SLOTS;
    refused_problem(&problem, "hold 0 is in slots 4 to 9");
    strategy->holds[0].last = 5;
    strategy->holds[0].category = WEFT_CATEGORY_COUNT;
    refused_problem(&problem, "category");
    strategy->holds[0].category = WEFT_CATEGORY_BASE;
    problem.common[0].bytes = WEFT_PROBLEM_MOST;
    refused_problem(&problem, "sum of all bytes");
}

static void refused_link(struct weft_problem *problem, const char *word)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_link(problem, "by hand", &err), WEFT_E_DATA, "%s", word);
    cr_assert_not_null(strstr(err.text, word), "%s: %s", word, err.text);
    weft_pool_finish(&problem->pool);
}

/* A slot's time is its constant part plus the part of the chosen strategy. */
Test(problem, links_slots_to_the_decisions_that_add_to_them)
{
    struct weft_problem problem = small_problem();
    int32_t before[N_SMALL_SLOTS];
    memcpy(before, problem.slot_decisions, sizeof before);
    problem.slot_decisions = NULL;
    problem.n_strategies = 0;
    cr_assert_eq(weft_problem_link(&problem, "by hand", NULL), WEFT_OK);
    cr_assert_arr_eq(problem.slot_decisions, before, sizeof before);
    cr_assert_eq(problem.n_strategies, 2 * N_SMALL_STRATEGIES);
    cr_assert_eq(weft_strategy_at(&problem, 1, IS_SDP), 3);
    const int32_t strategies[] = {IS_DP, IS_SDP};
    cr_assert_eq(weft_problem_slot_ns(&problem, strategies, 0), 400);
    cr_assert_eq(weft_problem_slot_ns(&problem, strategies, 1), 200);
    cr_assert_eq(weft_problem_slot_ns(&problem, strategies, 3), 1000);
    problem.slot_ns[1] = 7;
    cr_assert_eq(weft_problem_slot_ns(&problem, strategies, 1), 207);
    weft_pool_finish(&problem.pool);
}

Test(problem, links_refuse_what_is_not_one_decision_s)
{
    struct weft_problem problem = small_problem();
    struct weft_problem_strategy *strategy = &problem.decisions[1].strategies[IS_DP];
    strategy->times[0].slot = 0;
    refused_link(&problem,
                 "decisions[1] (b): dp: a time of slot 0, which another decision adds to");
    strategy->times[0].slot = N_SMALL_SLOTS;
    refused_link(&problem, "a time of slot 9, which is not in the period");
    struct weft_slot_time twice[] = {{1, 400}, {1, 1}};
    strategy->times = twice;
    strategy->n_times = 2;
    refused_link(&problem, "which does not follow the one before it");
    strategy->n_times = 1;
    problem.decisions[1].n_strategies = 0;
    refused_link(&problem, "decisions[1] (b) has 0 strategies");
    problem.decisions[1].n_strategies = WEFT_MOST_STRATEGIES + 1;
    refused_link(&problem, "has 65 strategies; there are 1 to 64: leave some out of plan.policies");
}

/* 64 strategies are 64 bits. */
Test(problem, a_decision_has_as_many_strategies_as_a_mask_has_bits)
{
    struct weft_problem_strategy strategies[WEFT_MOST_STRATEGIES] = {{0}};
    struct weft_problem_decision decision = {.n_strategies = 1, .strategies = strategies};
    cr_assert_eq(weft_decision_all(&decision), 1);
    decision.n_strategies = WEFT_MOST_STRATEGIES;
    cr_assert_eq(weft_decision_all(&decision), UINT64_MAX);
    strategies[63].policy = WEFT_POLICY_FSDP;
    cr_assert_eq(weft_decision_policies(&decision, 1u << WEFT_POLICY_FSDP), UINT64_C(1) << 63);
}

/* b's gather and reduction as a read and a write of its state. */
Test(problem, items_that_move_state)
{
    struct weft_problem problem = small_problem();
    struct weft_item *item = &problem.items[N_SMALL_ITEMS - 1].item;
    const struct weft_item good = *item;
    int32_t update = problem.decisions[good.decision].update_slot;
    struct weft_item write = good, read = good;
    write.kind = WEFT_STATE_WRITE;
    write.acquires = write.may_block = false;
    write.first = update + 1;
    write.last = update + 2;
    read.kind = WEFT_STATE_READ;
    read.acquires = true;
    read.may_block = true;
    read.first = 0;
    read.last = update - 1;
    *item = read;
    cr_assert_eq(weft_problem_check(&problem, "here", NULL), WEFT_OK);
    item->last = update;
    refused_problem(&problem, "no update of its unit is in the slot after its window");
    *item = read;
    item->acquires = item->may_block = false;
    refused_problem(&problem, "a copy to the device acquires state");
    *item = write;
    cr_assert_eq(weft_problem_check(&problem, "here", NULL), WEFT_OK);
    item->first = update;
    refused_problem(&problem, "before the unit's update has ended");
    *item = write;
    problem.period.agreed_updates = true;
    problem.items[A_GATHER].item.first = 2;
    refused_problem(&problem, "which ranks agree on");
    problem.period.agreed_updates = false;
    *item = write;
    item->acquires = true;
    refused_problem(&problem, "a copy to the device acquires state");
    weft_pool_finish(&problem.pool);
}

/* Saved activations of layer a: down after F:a (3), up before B:a (6). F:b and B:b are 4 and 5. */
Test(problem, items_that_move_saved_activations)
{
    struct weft_problem problem = small_problem();
    struct weft_problem_decision decisions[3];
    struct weft_problem_item items[N_SMALL_ITEMS + 1];
    static struct weft_problem_strategy saved[] = {{"host", 2, -1, 0, 0, NULL, NULL,
                                                    WEFT_LOCATION_HOST, false, WEFT_RECOMPUTE_NONE,
                                                    WEFT_LOCATION_DEVICE, WEFT_LOCATION_DEVICE}};
    static const char *kinds[] = {"dp", "sdp", "host"};
    memcpy(decisions, problem.decisions, 2 * sizeof *decisions);
    memcpy(items, problem.items, N_SMALL_ITEMS * sizeof *items);
    decisions[2] = (struct weft_problem_decision){"a", 4, 1, saved, -1, 0, 0, true, 0};
    problem.decisions = decisions;
    problem.n_decisions = 3;
    problem.n_strategies++;
    problem.kinds = kinds;
    problem.n_kinds = 3;
    problem.items = items;
    problem.n_items++;
    struct weft_item *item = &items[N_SMALL_ITEMS].item;
    items[N_SMALL_ITEMS] = small_item(2, WEFT_SAVED_DOWN, 1, 4, 4, 100);
    const struct weft_item down = *item;
    items[N_SMALL_ITEMS] = small_item(2, WEFT_SAVED_UP, 1, 5, 5, 100);
    item->acquires = item->may_block = true;
    const struct weft_item up = *item;
    struct weft_error err = {0};

    *item = down;
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
    item->last = 5;
    refused_problem(&problem, "on both sides of its micro-step's turning point");
    *item = down;
    item->first = item->last = 5;
    refused_problem(&problem, "not next to its layer's forward or backward");
    *item = down;
    item->first = item->last = 0;
    refused_problem(&problem, "no layer runs in the slot before its window");
    *item = down;
    item->acquires = true;
    refused_problem(&problem, "a copy up acquires activations");
    *item = up;
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
    item->first = 4;
    refused_problem(&problem, "on both sides of its micro-step's turning point");
    *item = up;
    item->last = 4;
    item->first = 4;
    refused_problem(&problem, "not next to its layer's forward or backward");
    *item = up;
    item->gather = 1;
    refused_problem(&problem, "gather is out of range");
    decisions[2].layer = 1;
    *item = up;
    refused_problem(&problem, "not next to its layer's forward or backward");
}

Test(problem, items)
{
    struct weft_problem problem = small_problem();
    struct weft_item *item = &problem.items[B_GATHER].item, good = *item;
    item->decision = 2;
    refused_problem(&problem, "items[3]: decision");
    *item = good;
    item->kind = WEFT_ITEM_KIND_COUNT;
    refused_problem(&problem, "items[3]: kind");
    *item = good;
    item->last = item->first - 1;
    refused_problem(&problem, "items[3]: its window is not");
    *item = good;
    item->last = N_SMALL_SLOTS - 1;
    refused_problem(&problem, "items[3]: its window is not");
    *item = good;
    item->first = 1;
    refused_problem(&problem, "before the unit's update");
    *item = good;
    item->n_blocks = 0;
    refused_problem(&problem, "n_blocks");
    *item = good;
    item->n_blocks = WEFT_PROBLEM_MOST_BLOCKS;
    refused_problem(&problem, "there are more than 16777216; make blocks larger");
    *item = good;
    item->strategies = 0;
    refused_problem(&problem, "no strategies");
    item->strategies = 1u << N_SMALL_STRATEGIES;
    refused_problem(&problem, "no strategies");
    *item = good;
    item->gather = -1;
    refused_problem(&problem, "gather");
    *item = good;
    item->stair_bytes = WEFT_PROBLEM_MOST;
    refused_problem(&problem, "sum is out of range");
    *item = good;
    item->decision = 0;
    refused_problem(&problem, "items[3] does not follow items[2]");
    *item = good;
    problem.items[B_REDUCE].item.gather = 1;
    refused_problem(&problem, "items[4]: gather");
    problem = small_problem();
    struct weft_item *items[] = {&problem.items[0].item, &problem.items[1].item,
                                 &problem.items[2].item};
    *items[1] = *items[2] = *items[0];
    items[1]->strategies = DP;
    refused_problem(&problem, "items[2] does not follow items[1]");
}

Test(problem, needs)
{
    struct weft_problem problem = small_problem();
    const int32_t strategies[] = {IS_SDP, IS_DP};
    cr_assert(weft_problem_needs(&problem, strategies, A_GATHER));
    cr_assert_not(weft_problem_needs(&problem, strategies, A_ALL_REDUCE));
    cr_assert_not(weft_problem_needs(&problem, strategies, B_GATHER));
    cr_assert(weft_problem_needs(&problem, strategies, B_ALL_REDUCE));
}

/* Hashes appear if nothing but them differs, and numbers that print alike appear in full. */
Test(problem, compares_in_units)
{
    struct weft_problem a = small_problem(), b = small_problem();
    struct weft_text out;
    weft_text_init(&out);
    a.config_hash = (struct weft_hash){1, 2};
    b.config_hash = (struct weft_hash){1, 3};
    weft_problem_compare(&a, &b, &out);
    cr_assert_not_null(strstr(weft_text_chars(&out), "config, in what no figure shows; hash: "),
                       "%s", weft_text_chars(&out));
    weft_text_finish(&out);
    weft_text_init(&out);
    a.tiers[0].limit_bytes = INT64_C(24) << 30;
    b.tiers[0].limit_bytes = INT64_C(20) << 30;
    a.blocks.least_bytes = 10000000;
    b.blocks.least_bytes = 10000001;
    weft_problem_compare(&a, &b, &out);
    cr_assert_str_eq(weft_text_chars(&out), "memory limit: 24.0 GiB, 20.0 GiB\n"
                                            "least block: 10000000, 10000001\n");
    weft_text_finish(&out);
}

Test(problem, compares_at_most_five)
{
    struct weft_problem a = small_problem(), b = small_problem();
    struct weft_text out;
    weft_text_init(&out);
    weft_problem_compare(&a, &b, &out);
    cr_assert_str_eq(weft_text_chars(&out), "");
    b.ranks = 4;
    b.agree_ns = 51;
    weft_problem_compare(&a, &b, &out);
    cr_assert_str_eq(weft_text_chars(&out), "ranks: 2, 4\nagreement: 50 ns, 51 ns\n");
    weft_text_finish(&out);
    int64_t slot_ns[N_SMALL_SLOTS];
    for (int s = 0; s < N_SMALL_SLOTS; s++)
        slot_ns[s] = a.slot_ns[s] + 1;
    b.slot_ns = slot_ns;
    weft_problem_compare(&a, &b, &out);
    int lines = 0;
    for (const char *at = weft_text_chars(&out); *at != '\0'; at++)
        lines += *at == '\n';
    cr_assert_eq(lines, 5);
    cr_assert(strstr(weft_text_chars(&out), "U:a takes: 0 ns, 1 ns\n") != NULL, "%s",
              weft_text_chars(&out));
    weft_text_finish(&out);
}
