/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* An AllReduce of 1000 bytes takes 150, the smallest (agree) 50: t = 50 + 0.1 s. From the start of
 * B4 gradients are ready at 200, 240, 280, 480, 620.
 *   4 would run 200 to 350; 3 is ready at 240: waiting costs 40 < 50: merged, 2000 bytes, 250.
 *   3 would run 240 to 490; 2 is ready at 280: 40 < 50: merged, 3000 bytes, 350.
 *   2 would run 280 to 630; 1 is ready at 480: waiting costs 200: not merged.
 *   1 would run 630 to 780; 0 is ready at 620, before 1 has started: merged. */
Test(mg_wfbp, merges_where_waiting_costs_less)
{
    static const struct chain chain = {.n_layers = 5,
                                       .n_blocks = {1, 1, 1, 1, 1},
                                       .block_bytes = {1000, 1000, 1000, 1000, 1000},
                                       .forward_ns = {70, 100, 20, 20, 100},
                                       .gather_ns = {75, 75, 75, 75, 75},
                                       .agree_ns = 50};
    struct weft_problem *problem = chain_problem(&chain);
    struct chain_plan plan = chain_plan(problem, "mg-wfbp", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "dp dp dp dp dp");
    cr_assert_str_eq(plan.moves,
                     "r4@B1>drain r3@B1>drain r2@B1>drain r1@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* With 0 ready at 680, 1 has started by then (630), and waiting costs 50, as much as is saved. */
Test(mg_wfbp, does_not_merge_where_it_costs_as_much)
{
    static const struct chain chain = {.n_layers = 5,
                                       .n_blocks = {1, 1, 1, 1, 1},
                                       .block_bytes = {1000, 1000, 1000, 1000, 1000},
                                       .forward_ns = {100, 100, 20, 20, 100},
                                       .gather_ns = {75, 75, 75, 75, 75},
                                       .agree_ns = 50};
    struct weft_problem *problem = chain_problem(&chain);
    cr_assert_str_eq(chain_plan(problem, "mg-wfbp", INT64_MAX).moves,
                     "r4@B1>drain r3@B1>drain r2@B1>drain r1@B0>drain r0@drain>drain");
    weft_problem_destroy(problem);
}
