/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "tests/scheduler/chain.h"

/* Units are small: all of them hold less than 500 bytes. A layer saves 10000 bytes, or 4000 and 10
 * ns of its backward, or none and 100 ns. A layer's backward has its 10000 in any case. So backward
 * of layer 3 has 10000, and the saved bytes of layers 0 to 2. */
enum { SELECTIVE_NS = 10, WHOLE_NS = 100, SELF = 10500 };
static const struct chain recompute_chain = {.n_layers = 4,
                                             .n_blocks = {1, 1, 1, 1},
                                             .block_bytes = {16, 16, 16, 16},
                                             .gather_ns = {10, 10, 10, 10},
                                             .policies =
                                                 1u << WEFT_POLICY_SDP | 1u << WEFT_POLICY_FSDP,
                                             .kept_bytes = 10000,
                                             .selective_bytes = 4000,
                                             .selective_ns = SELECTIVE_NS,
                                             .whole_ns = WHOLE_NS};

static int64_t kept_ns(const struct weft_problem *problem)
{
    struct chain_plan plan = chain_plan(problem, "fsdp2", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp fsdp fsdp sdp device device device device");
    return plan.step_ns;
}

static void expect_levels(const char *planner, int64_t limit_bytes, const char *levels,
                          int64_t added_ns)
{
    struct weft_problem *problem = chain_problem(&recompute_chain);
    struct chain_plan plan = chain_plan(problem, planner, limit_bytes);
    char policies[128];
    snprintf(policies, sizeof policies, "sdp fsdp fsdp sdp %s", levels);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, policies);
    cr_assert_eq(plan.step_ns, kept_ns(problem) + added_ns, "%lld and %lld",
                 (long long)plan.step_ns, (long long)kept_ns(problem));
    weft_problem_destroy(problem);
}

static void expect_refused(const char *planner, int64_t limit_bytes)
{
    struct weft_problem *problem = chain_problem(&recompute_chain);
    cr_assert_eq(chain_plan(problem, planner, limit_bytes).status, WEFT_E_INFEASIBLE);
    weft_problem_destroy(problem);
}

Test(recompute, all_and_selective_give_every_layer_one_level)
{
    expect_levels("recompute-all", SELF, "whole whole whole whole", 4 * WHOLE_NS);
    expect_levels("recompute-selective", SELF + 12000, "selective selective selective selective",
                  4 * SELECTIVE_NS);
    expect_refused("recompute-selective", SELF + 11000);
    expect_refused("recompute-all", 10000);
}

/* Three of 4000 fit 12000. Within 11000 one of them is whole, which is cheaper than two whole and
 * one kept. Layer 3 frees nothing where memory is short, so it is kept while its forward fits. */
Test(recompute, checkmate_restores_least_within_every_row)
{
    expect_levels("checkmate-budget", SELF + 30000, "device device device device", 0);
    expect_levels("checkmate-budget", SELF + 12000, "selective selective selective device",
                  3 * SELECTIVE_NS);
    expect_levels("checkmate-budget", SELF, "whole whole whole device", 3 * WHOLE_NS);
    expect_refused("checkmate-budget", 10000);
}

/* The budget counts all four layers' saved bytes. The first budget allows one kept layer, and the
 * peak is then above the limit. The next one has all four selective. */
Test(recompute, auto_perf_maxing_has_one_budget)
{
    expect_levels("auto-perf-maxing", SELF + 30000, "device device device device", 0);
    expect_levels("auto-perf-maxing", SELF + 12000, "selective selective selective selective",
                  4 * SELECTIVE_NS);
    expect_refused("auto-perf-maxing", 10000);
}

Test(recompute, sac_ilp_counts_two_gathered_units)
{
    expect_levels("sac-ilp", SELF + 30000, "device device device device", 0);
    expect_levels("sac-ilp", SELF + 12000, "selective selective selective device",
                  3 * SELECTIVE_NS);
}

/* It sums the most that each layer takes in any slot, next to the peak with all recomputed, and has
 * no selective level. So 30000 more keep three layers of four. */
Test(recompute, galvatron_keeps_or_recomputes_whole)
{
    expect_levels("galvatron", SELF + 40000, "device device device device", 0);
    expect_levels("galvatron", SELF + 30000, "device device device whole", WHOLE_NS);
    expect_levels("galvatron", SELF, "whole whole whole whole", 4 * WHOLE_NS);
}

Test(recompute, rules_need_a_layer_that_may_recompute)
{
    static const char *const planners[] = {"recompute-all", "recompute-selective",
                                           "checkmate-budget", "auto-perf-maxing", "sac-ilp"};
    struct chain plain = recompute_chain;
    plain.kept_bytes = 0;
    struct weft_problem *problem = chain_problem(&plain);
    for (size_t i = 0; i < sizeof planners / sizeof *planners; i++) {
        struct chain_plan plan = chain_plan(problem, planners[i], INT64_MAX);
        cr_assert_eq(plan.status, WEFT_E_INFEASIBLE);
        cr_assert_not_null(strstr(plan.err.text, "plan.recompute=auto"), "%s", plan.err.text);
    }
    weft_problem_destroy(problem);
}
