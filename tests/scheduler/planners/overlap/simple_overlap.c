/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Layers save 512 from forward to backward. Their slots of forward hold, next to the rest, 1536,
 * 2048, 2560 and 3072: a unit and the saved bytes so far. So the peak of forward leaves 1536, 1024,
 * 512 and nothing for gathers ahead. Unit 1 is gathered in F0, unit 2 in F1, and unit 3 blocks. */
static const struct chain simple_overlap_chain = {.n_layers = 4,
                                                  .n_blocks = {1, 1, 1, 1},
                                                  .block_bytes = {1024, 1024, 1024, 1024},
                                                  .gather_ns = {10, 10, 10, 10},
                                                  .activation_bytes = 512};

/* In backward a gather stays after the reduction before it. The wait for a reduction stays before
 * the next gather's. */
Test(simple_overlap, moves_within_the_peak_and_never_past_a_collective)
{
    struct weft_problem *problem = chain_problem(&simple_overlap_chain);
    struct chain_plan plan = chain_plan(problem, "simple-overlap", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "fsdp fsdp fsdp sdp");
    cr_assert_str_eq(plan.moves, "g0@F0! g1@F0 g2@F1 g3@F3! r3@B2>B2 g2@B2! r2@B1>B1 g1@B1! "
                                 "r1@B0>B0 g0@B0! r0@drain>drain");
    weft_problem_destroy(problem);
}

/* Units that stay gathered fill memory towards the end of forward, so all gathers move to its
 * begin. No use in backward waits, so waits for reductions move to its end. */
Test(simple_overlap, moves_waits_to_the_end_of_backward)
{
    struct chain chain = simple_overlap_chain;
    chain.policies = 1u << WEFT_POLICY_SDP;
    struct weft_problem *problem = chain_problem(&chain);
    struct chain_plan plan = chain_plan(problem, "simple-overlap", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.moves, "g0@F0! g1@F0 g2@F0 g3@F0 r3@B2>B0 r2@B1>B0 r1@B0>B0 "
                                 "r0@drain>drain");
    weft_problem_destroy(problem);
}
