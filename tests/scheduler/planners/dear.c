/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Groups below 25 MiB in forward order: 10 + 10; 20, which 10 more would make too large; 10. The
 * first is gathered at once, each behind its own update; the others when the first layer of the
 * group before is entered, in F0 and F2. In backward groups 2 and 1 are reduced when 3 and 2 are
 * ready, group 0 when 0 is. What is reduced is complete in the same slot. */
Test(dear, gathers_one_group_ahead_in_forward)
{
    static const struct chain chain = {.n_layers = 4,
                                       .n_blocks = {1, 1, 2, 1},
                                       .block_bytes = {10 * MIB, 10 * MIB, 10 * MIB, 10 * MIB},
                                       .gather_ns = {10, 10, 10, 10}};
    struct weft_problem *problem = chain_problem(&chain);
    struct chain_plan plan = chain_plan(problem, "dear", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "zero1 zero1 zero1 zero1");
    cr_assert_str_eq(plan.moves, "g0@U1 g1@U2 g2x2@F0 g3@F2 "
                                 "r3@B2>B2 r2x2@B1>B1 r1@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* Two of 12.5 MiB are 25 MiB, and not below it. */
Test(dear, has_groups_below_their_size)
{
    static const struct chain half = {.n_layers = 3,
                                      .n_blocks = {1, 1, 1},
                                      .block_bytes = {25 * MIB / 2, 25 * MIB / 2, 25 * MIB / 2},
                                      .gather_ns = {10, 10, 10}};
    struct weft_problem *problem = chain_problem(&half);
    cr_assert_str_eq(chain_plan(problem, "dear", INT64_MAX).moves,
                     "g0@U1 g1@F0 g2@F1 r2@B1>B1 r1@B0>B0 r0@drain>drain");
    weft_problem_destroy(problem);
}
