/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "tests/scheduler/chain.h"
#include "tests/scheduler/tiny.h"

/* Only sdp and fsdp, units of 1000. sdp saves a gather, 30 or 20. All fsdp peaks in B0: moments and
 * slices 4500, unit 0, its gradient, gradient 1 in flight, slices 1000: 8500. Unit 1 gathered from
 * F1 to B1 adds to B2 alone, 7500. Unit 0 gathered until B0 makes B1, with unit 1, its gradient, 2
 * in flight and a slice 500, 9000. */
Test(two_stage, chooses_policies_by_their_times_within_the_limit)
{
    static const struct chain chain = {.n_layers = 3,
                                       .n_blocks = {1, 1, 1},
                                       .block_bytes = {1000, 1000, 1000},
                                       .gather_ns = {30, 20, 30},
                                       .policies = 1 << WEFT_POLICY_SDP | 1 << WEFT_POLICY_FSDP};
    struct weft_problem *problem = chain_problem(&chain);
    cr_assert_str_eq(chain_plan(problem, "two-stage", 8500).policies, "fsdp sdp sdp");
    cr_assert_str_eq(chain_plan(problem, "two-stage", 8999).policies, "fsdp sdp sdp");
    cr_assert_str_eq(chain_plan(problem, "two-stage", 9000).policies, "sdp sdp sdp");
    cr_assert_eq(chain_plan(problem, "two-stage", 8499).status, WEFT_E_INFEASIBLE);
    weft_problem_destroy(problem);
}

static int64_t time_of(const struct weft_problem *problem, const int32_t *strategies)
{
    int64_t ns = 0;
    for (int32_t u = 0; u < problem->n_decisions; u++)
        ns += weft_strategy_ns(weft_problem_chosen(problem, strategies, u), u);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_problem_item *item = &problem->items[i];
        if (weft_item_active(&item->item, strategies)) ns += item->item.n_blocks * item->block_ns;
    }
    return ns;
}

/* The least time of all policies with lean rows that fit. */
static int64_t enumerate_two_stage(const struct weft_problem *problem,
                                   const struct weft_digest *table, int64_t limit_bytes)
{
    int64_t best_ns = INT64_MAX, rows[64];
    for (int32_t n = 0; n < 256; n++) {
        int32_t strategies[4];
        bool allowed = true;
        for (int32_t u = 0; u < 4; u++) {
            strategies[u] = n >> 2 * u & 3;
            allowed &= strategies[u] < problem->decisions[u].n_strategies;
        }
        if (!allowed || weft_digest_lean_rows(table, strategies, rows, NULL) > limit_bytes)
            continue;
        int64_t ns = time_of(problem, strategies);
        if (ns < best_ns) best_ns = ns;
    }
    return best_ns;
}

/* If more than two slots matter, the rule may use less than its limit, which is rare. */
Test(two_stage, chooses_as_enumeration_does)
{
    int n = 0, n_equal = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct tiny_shape shape = {.n_units = 4, .most_blocks = 2, .policies = 15, .load = 0.8};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        struct weft_digest *table = NULL;
        struct weft_outcome outcome = {0};
        int32_t strategies[4];
        struct weft_move moves[64];
        struct weft_candidate candidate = {.strategies = strategies, .moves = moves};
        tiny_set_limit(problem, 0.5);
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        int64_t own = table->least_bytes + (problem->tiers[0].limit_bytes - table->least_bytes) *
                                               (int64_t)(seed % 5) / 4;
        struct weft_schedule_options options = {.policy_limit_bytes = own};
        cr_assert_eq(weft_planner_find("two-stage", NULL)
                         ->decide(problem, &options, &candidate, &outcome, NULL),
                     WEFT_OK);
        int64_t ns = time_of(problem, strategies),
                best_ns = enumerate_two_stage(problem, table, own);
        cr_assert_geq(ns, best_ns);
        n++;
        n_equal += ns == best_ns;
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
    cr_assert_geq(n_equal * 10, n * 9, "%d of %d", n_equal, n);
}
