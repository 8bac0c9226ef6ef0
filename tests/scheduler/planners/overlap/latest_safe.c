/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Forwards take 10000, backwards 20000. A gather asks for 5000 more than it takes: 9000, unit 1's
 * 17000. Forward, from the end: unit 3 gets F2, unit 2 F1. Unit 1 gets F0, which is too short, so
 * nothing is left for unit 0. Backward, from the end: unit 0 gets B1, unit 1 B2, unit 2 B3. The
 * last unit stays gathered. */
static const struct chain latest_safe_chain = {.n_layers = 4,
                                               .n_blocks = {1, 1, 1, 1},
                                               .block_bytes = {1024, 1024, 1024, 1024},
                                               .forward_ns = {10000, 10000, 10000, 10000},
                                               .gather_ns = {4000, 12000, 4000, 4000}};

static void check_moves(const char *planner, const char *moves)
{
    struct weft_problem *problem = chain_problem(&latest_safe_chain);
    struct chain_plan plan = chain_plan(problem, planner, INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "fsdp fsdp fsdp sdp");
    cr_assert_str_eq(plan.moves, moves);
    weft_problem_destroy(problem);
}

Test(latest_safe, hides_from_the_last_gather_to_the_first)
{
    check_moves("latest-safe", "g0@F0! g1@F0 g2@F1 g3@F2 g2@B3 r3@B2>B2 g1@B2 r2@B1>B1 g0@B1 "
                               "r1@B0>drain r0@drain>drain");
}

/* All but unit 1 ask for 11000, two slots of forward: unit 3 gets F1 and F2, unit 2 F0. In backward
 * unit 1 asks for 23000 and gets B2 and B3, so unit 2, which is used before, goes with it. */
Test(latest_safe, counts_the_time_that_compute_adds)
{
    check_moves("latest-safe:150%", "g0@F0! g1@F0 g2@F0 g3@F1 g2@B3 g1@B3 r3@B2>B2 r2@B1>B1 g0@B1 "
                                    "r1@B0>drain r0@drain>drain");
}
