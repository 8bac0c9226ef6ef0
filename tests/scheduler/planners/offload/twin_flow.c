/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

static const struct chain twin_flow_chain = {
    .n_layers = 4,
    .n_blocks = {1, 1, 1, 1},
    .block_bytes = {10 * MIB, 10 * MIB, 10 * MIB, 10 * MIB},
    .gather_ns = {10, 10, 10, 10},
    .host_ns = {5, 5, 5, 5},
    .update_ns = {100, 100, 100, 40}};

/* Four units: up to 4 of 16 shares are one, up to 8 are two. In MiB there are most in B0: slices
 * 20, unit 0, all gradients, 40, which are reduced behind, and those of three units reduced, or to
 * go down, 15: 85. With that come 10 of state for each unit that is not on the host. */
Test(twin_flow, has_the_least_share_that_fits)
{
    static const struct {
        int64_t limit_bytes;
        const char *policies;
    } cases[] = {
        {INT64_MAX, "sdp sdp sdp sdp+host-update"},
        {115 * MIB, "sdp sdp sdp sdp+host-update"},
        {115 * MIB - 1, "sdp sdp sdp+host-update sdp+host-update"},
        {105 * MIB, "sdp sdp sdp+host-update sdp+host-update"},
        {105 * MIB - 1, "sdp sdp+host-update sdp+host-update sdp+host-update"},
        {95 * MIB, "sdp sdp+host-update sdp+host-update sdp+host-update"},
        {95 * MIB - 1, "sdp+host-update sdp+host-update sdp+host-update sdp+host-update"},
        {85 * MIB, "sdp+host-update sdp+host-update sdp+host-update sdp+host-update"},
    };
    struct weft_problem *problem = chain_problem(&twin_flow_chain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct chain_plan plan = chain_plan(problem, "twin-flow", cases[i].limit_bytes);
        cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
        cr_assert_str_eq(plan.policies, cases[i].policies);
    }
    cr_assert_eq(chain_plan(problem, "twin-flow", 85 * MIB - 1).status, WEFT_E_INFEASIBLE);
    weft_problem_destroy(problem);
}

/* The host updates unit 3, then 2, whose parameters are up at 145. Nothing of F0's comes up: so
 * that it waits, unit 2 is gathered first, then its own until 165. Behind 1200 are four reductions.
 */
Test(twin_flow, forward_waits_for_the_host)
{
    struct weft_problem *problem = chain_problem(&twin_flow_chain);
    struct chain_plan plan = chain_plan(problem, "twin-flow", 105 * MIB);
    cr_assert_str_eq(plan.moves,
                     "h3@open p3@open h2@open p2@open g2@fill g0@F0! g1@F0 g3@F0 r3@drain>drain "
                     "r2@drain>drain r1@drain>drain r0@drain>drain d3@drain>drain d2@drain>drain");
    cr_assert_eq(plan.step_ns, 165 + 1200 + 40, "%lld", (long long)plan.step_ns);
    weft_problem_destroy(problem);
}

/* From the beginning where that is faster. With stage 2 all are gathered behind all updates. */
Test(twin_flow, takes_the_better_end)
{
    struct chain other = twin_flow_chain;
    other.update_ns[0] = 30;
    struct weft_problem *problem = chain_problem(&other);
    struct chain_plan plan = chain_plan(problem, "twin-flow", INT64_MAX);
    cr_assert_str_eq(plan.policies, "sdp+host-update sdp sdp sdp");
    cr_assert_eq(plan.step_ns, 30 + 5 + 10 + 1200 + 40 + 5, "%lld", (long long)plan.step_ns);
    plan = chain_plan(problem, "twin-flow:stage-2", INT64_MAX);
    cr_assert_str_eq(plan.policies, "sdp+host-update sdp sdp sdp");
    cr_assert_str_eq(plan.moves, "h0@open p0@open g3@fill g2@fill g1@fill g0@fill r3@B2>B2 "
                                 "r2@B1>drain r1@B0>drain r0@drain>drain d0@drain>drain");
    weft_problem_destroy(problem);
}
