/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Reductions as ddp's: 20 + 10 MiB fill the first bucket in B1, 10 + 20 the second in drain. All is
 * gathered in fill, behind the last update; what F0 uses stands last, so F0 waits for all. With
 * 10 ns a block F0 starts at 4 * 10 + 6 * 10; F is 4 * 100 and B 4 * 200; three blocks are reduced
 * in drain, the others were while B1 ran: 100 + 1200 + 30 = 1330. What is complete in B1 may be due
 * in B0 as far as B0 holds no more than B1 then. */
static const struct chain zero1_chain = {.n_layers = 4,
                                         .n_blocks = {2, 1, 1, 2},
                                         .block_bytes = {10 * MIB, 10 * MIB, 10 * MIB, 10 * MIB},
                                         .gather_ns = {10, 10, 10, 10}};

Test(zero1, gathers_all_behind_the_update)
{
    struct weft_problem *problem = chain_problem(&zero1_chain);
    struct chain_plan plan = chain_plan(problem, "zero1", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "zero1 zero1 zero1 zero1");
    cr_assert_str_eq(plan.moves, "g3x2@fill g2@fill g1@fill g0x2@fill "
                                 "r3x2@B1>B1 r2@B1>B0 r1@drain>drain r0x2@drain>drain");
    cr_assert_eq(plan.step_ns, 1330);
    weft_problem_destroy(problem);
}

Test(zero1, is_not_sdp_where_zero1_may_not_be)
{
    struct chain other = zero1_chain;
    other.policies = 1 << WEFT_POLICY_DP | 1 << WEFT_POLICY_SDP;
    struct weft_problem *problem = chain_problem(&other);
    cr_assert_eq(chain_plan(problem, "zero1", INT64_MAX).status, WEFT_E_INFEASIBLE);
    weft_problem_destroy(problem);
}
