/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Blocks of 8e6 elements take 150, backward slots 200; from the start of B2. A credit of 16e6 lets
 * two be on their way. Unit 2 is ready at 200: two blocks go until 350 and 500, and when the first
 * has arrived, at 350, a third until 650. Unit 1 is ready at 400 and goes before the rest of 2: one
 * block when there is credit, at 500. Unit 0 is ready at 600 and goes before the rest of 1, at 650;
 * then what is left, by layer. */
static const struct chain bytescheduler_chain = {.n_layers = 3,
                                                 .n_blocks = {1, 2, 4},
                                                 .block_bytes = {32000000, 32000000, 32000000},
                                                 .gather_ns = {75, 75, 75}};

Test(bytescheduler, sends_the_first_layer_first_as_credit_allows)
{
    struct weft_problem *problem = chain_problem(&bytescheduler_chain);
    struct chain_plan plan = chain_plan(problem, "bytescheduler", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "dp dp dp");
    cr_assert_str_eq(plan.moves, "r2x3@B1>drain r1@B0>drain r0@drain>drain r1@drain>drain "
                                 "r2@drain>drain");
    weft_problem_destroy(problem);
}

/* Eight blocks of 64e6 may be on their way: all of 2, then all of 1, then 0, as they get ready. */
Test(bytescheduler, overtakes_nothing_with_credit_for_all)
{
    struct weft_problem *problem = chain_problem(&bytescheduler_chain);
    cr_assert_str_eq(chain_plan(problem, "bytescheduler:64e6", INT64_MAX).moves,
                     "r2x4@B1>drain r1x2@B0>drain r0@drain>drain");
    weft_problem_destroy(problem);
}
