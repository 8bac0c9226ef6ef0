/* SPDX-License-Identifier: Apache-2.0 */
/* A second memory: tiny problems get a tier of the host and a lane that copies, by hand, and
 * strategies that keep a unit's optimizer state there between its update and the last backward.
 * Others hold what they hold in tiers that are drawn. Planner, proof and files take them as they
 * take any other, and every plan of them is tried. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"
#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/scheduler/against_all.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/tiny.h"

static const char offloaded_name[] = "sdp+disk";

static void *longer(struct weft_problem *problem, const void *old, int32_t n, size_t size)
{
    unsigned char *made = weft_pool_array(&problem->pool, (size_t)n + 3, size);
    cr_assert_not_null(made);
    if (n > 0) memcpy(made, old, (size_t)n * size);
    return made;
}

static void add_host(struct weft_problem *problem)
{
    problem->tiers[problem->n_tiers++] =
        (struct weft_problem_tier){"host", WEFT_LOCATION_HOST, INT64_MAX};
}

static void add_copy_lane(struct weft_problem *problem)
{
    const struct weft_rates full = {WEFT_RATE_ONE, WEFT_RATE_ONE};
    problem->lanes = longer(problem, problem->lanes, problem->n_lanes, sizeof *problem->lanes);
    problem->lanes[problem->n_lanes++] = (struct weft_lane){"copy", WEFT_LANE_KIND_DOWN, full};
}

/* Puts an item where the order of decision, kind, gather wants it. */
static void insert_item(struct weft_problem *problem, struct weft_problem_item item)
{
    int32_t at = problem->n_items++;
    for (; at > 0; at--) {
        const struct weft_item *before = &problem->items[at - 1].item;
        if (before->decision < item.item.decision) break;
        if (before->decision == item.item.decision &&
            (before->kind < item.item.kind ||
             (before->kind == item.item.kind && before->gather < item.item.gather)))
            break;
        problem->items[at] = problem->items[at - 1];
    }
    problem->items[at] = item;
}

/* The state goes to the host behind the update, and is back before the last backward. */
static void add_copies(struct weft_problem *problem, int32_t unit, int32_t offloaded, int64_t bytes,
                       int64_t copy_ns)
{
    int32_t n = problem->n_decisions;
    struct weft_item down = {.decision = unit,
                             .kind = WEFT_ALL_REDUCE,
                             .strategies = UINT64_C(1) << offloaded,
                             .n_blocks = 1,
                             .first = unit + 1,
                             .last = n + 1,
                             .block_bytes = bytes,
                             .stair_bytes = bytes,
                             .stair_category = WEFT_CATEGORY_OPTIMIZER_STATE};
    struct weft_item up = down;
    up.kind = WEFT_ALL_GATHER;
    up.acquires = true;
    up.may_block = copy_ns % 2 == 0;
    up.gather = 1;
    up.first = 2 * n + 1;
    up.last = 3 * n - 1;
    int32_t lane = problem->n_lanes - 1;
    insert_item(problem, (struct weft_problem_item){
                             .item = down, .lane = lane, .block_ns = copy_ns, .after = -1});
    insert_item(problem, (struct weft_problem_item){
                             .item = up, .lane = lane, .block_ns = copy_ns, .after = -1});
}

/* A copy of sdp whose state is on the host, and on the device from the last backward to the update.
 */
static void add_offloaded(struct weft_problem *problem, int32_t unit, int64_t copy_ns)
{
    struct weft_problem_decision *d = &problem->decisions[unit];
    int32_t sdp = weft_decision_of_policy(d, WEFT_POLICY_SDP), offloaded = d->n_strategies;
    if (sdp < 0) return;
    d->strategies = longer(problem, d->strategies, offloaded, sizeof *d->strategies);
    struct weft_problem_strategy *to = &d->strategies[offloaded];
    *to = d->strategies[sdp];
    to->name = offloaded_name;
    to->kind = problem->n_kinds - 1;
    to->holds = longer(problem, to->holds, to->n_holds, sizeof *to->holds);
    d->n_strategies++;
    for (int32_t i = 0; i < to->n_holds; i++) {
        struct weft_hold *hold = &to->holds[i];
        if (hold->category != WEFT_CATEGORY_OPTIMIZER_STATE) continue;
        struct weft_hold there = *hold;
        there.tier = 1;
        hold->first = 3 * problem->n_decisions;
        hold->last = unit;
        to->holds[to->n_holds++] = there;
        for (int32_t k = 0; k < problem->n_items; k++) {
            struct weft_item *item = &problem->items[k].item;
            if (item->decision == unit && (item->strategies >> sdp & 1u) != 0)
                item->strategies |= UINT64_C(1) << offloaded;
        }
        add_copies(problem, unit, offloaded, there.bytes, copy_ns);
        return;
    }
}

static void check_toy_problem(struct weft_problem *problem)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_link(problem, "toy", NULL), WEFT_OK);
    cr_assert_eq(weft_problem_check(problem, "toy", &err), WEFT_OK, "%s", err.text);
}

static struct weft_problem *offloaded_problem(uint64_t seed)
{
    struct tiny_shape shape = {.n_units = 2,
                               .most_blocks = 1,
                               .policies = 1u << WEFT_POLICY_SDP | 1u << WEFT_POLICY_ZERO1,
                               .load = 0.1 * (double)(seed % 15),
                               .contends = seed % 7 == 1};
    struct weft_problem *problem = tiny_problem(&shape, seed);
    problem->kinds = longer(problem, problem->kinds, problem->n_kinds, sizeof *problem->kinds);
    problem->kinds[problem->n_kinds++] = offloaded_name;
    problem->items = longer(problem, problem->items, problem->n_items + 4, sizeof *problem->items);
    add_host(problem);
    add_copy_lane(problem);
    for (int32_t u = 0; u < problem->n_decisions; u++)
        add_offloaded(problem, u, 50 + (int64_t)(seed * 37 % 700) + u);
    check_toy_problem(problem);
    against_set_limits(problem, seed);
    return problem;
}

/* All that strategies hold, and blocks, is in a tier by lot. */
static struct weft_problem *drawn_problem(uint64_t seed)
{
    struct weft_problem *problem = tiny_problem_of(seed, 1);
    uint64_t n = 0;
    add_host(problem);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        struct weft_problem_decision *d = &problem->decisions[u];
        for (int32_t k = 0; k < d->n_strategies; k++)
            for (int32_t i = 0; i < d->strategies[k].n_holds; i++)
                d->strategies[k].holds[i].tier = (int32_t)weft_rng_below(seed, 11, n++, 2);
    }
    for (int32_t i = 0; i < problem->n_items; i++)
        problem->items[i].item.stair_tier = (int32_t)weft_rng_below(seed, 12, n++, 2);
    check_toy_problem(problem);
    against_set_limits(problem, seed);
    return problem;
}

Test(toy_tier, state_that_may_be_on_the_host_is_planned_and_proven, .timeout = 900)
{
    int32_t n_slower = 0, n_offloaded = 0;
    for (int seed = 1; seed <= TEST_CASES(60, 20); seed++) {
        struct weft_problem *problem = offloaded_problem((uint64_t)seed);
        n_slower += against_all(problem, seed, offloaded_name, &n_offloaded);
        weft_problem_destroy(problem);
    }
    cr_assert_eq(n_slower, 0, "%d plans are slower than the best", n_slower);
    cr_assert_gt(n_offloaded, TEST_CASES(10, 2), "chosen %d times", n_offloaded);
}

Test(toy_tier, rows_of_two_tiers_are_planned_and_proven, .timeout = 900)
{
    int32_t n_slower = 0, n_offloaded = 0;
    for (int seed = 1; seed <= TEST_CASES(100, 25); seed++) {
        struct weft_problem *problem = drawn_problem((uint64_t)seed);
        n_slower += against_all(problem, seed, offloaded_name, &n_offloaded);
        weft_problem_destroy(problem);
    }
    cr_assert_eq(n_slower, 0, "%d plans are slower than the best", n_slower);
}

/* The least limit of each tier, with the other as it is, is what the oracle says. */
Test(toy_tier, least_limits_are_those_of_each_tier, .timeout = 900)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        if (!test_draws(seed, 3, 8)) continue;
        struct weft_problem *problem = drawn_problem(seed);
        int64_t least = weft_least_limit(problem, 0, NULL);
        cr_assert_eq(least, enumerate_least_limit(problem), "seed %d", (int)seed);
        problem->tiers[0].limit_bytes = least;
        int64_t host = weft_least_limit(problem, 1, NULL);
        problem->tiers[1].limit_bytes = host;
        cr_assert_geq(enumerate_best(problem, least, NULL), 0, "seed %d", (int)seed);
        problem->tiers[1].limit_bytes = host - 1;
        cr_assert_lt(enumerate_best(problem, least, NULL), 0, "seed %d", (int)seed);
        struct weft_schedule_options options = {.planner = "ilp"};
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_E_INFEASIBLE);
        cr_assert_not_null(strstr(err.text, "tier host (limit "), "%s", err.text);
        weft_problem_destroy(problem);
    }
}

/* Changed prices are refused, or prove what is true; a changed problem is refused. */
Test(toy_tier, no_number_can_be_changed_to_prove_what_is_false, .timeout = 900)
{
    struct against_changes changes = {0};
    for (uint64_t seed = 1; seed <= 8; seed++) {
        struct weft_problem *problem = seed % 2 ? offloaded_problem(seed) : drawn_problem(seed);
        against_changes(problem, seed, &changes);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(changes.n, 200);
    cr_assert_gt(changes.n_refused, 100, "%d of %d", changes.n_refused, changes.n);
}
