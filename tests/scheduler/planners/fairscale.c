/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Units 0 and 3 are the root. It is gathered when F0 is entered, which waits for both; 1 and 2 wait
 * for their own gathers in each of their uses. Buckets of 25 MiB: unit 3 brings 10, and 2 makes it
 * 20; unit 1 is larger than a bucket and goes by itself when it is ready, in B0; unit 0 makes it
 * 30, so that 3 and 2 are launched when it is ready, in drain, and it is at the end of backward. */
static const struct chain fairscale_chain = {
    .n_layers = 4,
    .n_blocks = {1, 3, 1, 1},
    .block_bytes = {10 * MIB, 10 * MIB, 10 * MIB, 10 * MIB},
    .gather_ns = {10, 10, 10, 10}};

Test(fairscale, gathers_on_demand)
{
    struct weft_problem *problem = chain_problem(&fairscale_chain);
    struct chain_plan plan = chain_plan(problem, "fairscale", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp fsdp fsdp sdp");
    cr_assert_str_eq(plan.moves, "g3@F0 g0@F0! g1x3@F1! g2@F2! g2@B2! g1x3@B1! r1x3@B0>drain "
                                 "r3@drain>drain r2@drain>drain r0@drain>drain");
    /* Updates 40; compute 400 + 800; waits 20 (root), 30, 10, 10, 30 and 30 at the end. */
    cr_assert_eq(plan.step_ns, 40 + 1200 + 20 + 30 + 10 + 10 + 30 + 30);
    weft_problem_destroy(problem);
}

/* 3 and 2 bring 12.5 MiB each and fill a bucket, which is launched before 1 would overflow it. */
Test(fairscale, fills_buckets)
{
    static const struct chain half = {
        .n_layers = 4,
        .n_blocks = {1, 1, 1, 1},
        .block_bytes = {25 * MIB / 2, 25 * MIB / 2, 25 * MIB / 2, 25 * MIB / 2},
        .gather_ns = {10, 10, 10, 10}};
    struct weft_problem *problem = chain_problem(&half);
    cr_assert_str_eq(chain_plan(problem, "fairscale", INT64_MAX).moves,
                     "g3@F0 g0@F0! g1@F1! g2@F2! g2@B2! g1@B1! r3@B0>drain r2@B0>drain "
                     "r1@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}
