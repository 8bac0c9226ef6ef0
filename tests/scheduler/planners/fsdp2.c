/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Units 0 and 4 are the root: gathered when F0 is entered, reduced behind all others. Gather l + 1
 * is launched when l is entered, in backward l - 1; behind backward of l stands RS(l), then
 * AG(l - 2); RS(l) is complete before RS(l - 1) is launched. */
static const struct chain fsdp2_chain = {.n_layers = 5,
                                         .n_blocks = {1, 1, 1, 1, 1},
                                         .block_bytes = {1024, 1024, 1024, 1024, 1024},
                                         .gather_ns = {10, 10, 10, 10, 10}};

Test(fsdp2, gathers_one_unit_ahead_and_waits_for_the_reduction_before)
{
    struct weft_problem *problem = chain_problem(&fsdp2_chain);
    struct chain_plan plan = chain_plan(problem, "fsdp2", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp fsdp fsdp fsdp sdp");
    cr_assert_str_eq(plan.moves,
                     "g4@F0 g0@F0! g1@F0 g2@F1 g3@F2 g3@B4 g2@B3 r3@B2>B2 g1@B2 r2@B1>B1 r1@B0>B0 "
                     "r4@drain>drain r0@drain>drain");
    /* Updates 50, the root's gathers 20, compute 500 + 1000, the root's reductions 20. */
    cr_assert_eq(plan.step_ns, 50 + 20 + 1500 + 20);
    weft_problem_destroy(problem);
}

/* A reduction of 500 outlasts backward, which is 200. Unit 3's is launched in B2 and waited for
 * before B1: 300. So is 2's before B0 (behind g1, which is complete: 300), 1's before drain, where
 * the root's two of 10 follow. */
Test(fsdp2, waits_when_a_reduction_outlasts_a_backward)
{
    struct weft_problem *problem = chain_problem(&fsdp2_chain);
    for (int32_t i = 0; i < problem->n_items; i++) {
        struct weft_problem_item *item = &problem->items[i];
        bool root = item->item.decision == 0 || item->item.decision == 4;
        if (item->item.kind == WEFT_REDUCE_SCATTER && !root) item->block_ns = 500;
    }
    struct chain_plan plan = chain_plan(problem, "fsdp2", INT64_MAX);
    /* g1 stands behind r3 in the channel: B1 starts when it is complete, 310 late. */
    cr_assert_eq(plan.step_ns, 50 + 20 + 1500 + 310 + 300 + 300 + 20);
    weft_problem_destroy(problem);
}

Test(fsdp2, looks_further_ahead_when_set_so)
{
    struct weft_problem *problem = chain_problem(&fsdp2_chain);
    cr_assert_str_eq(chain_plan(problem, "fsdp2:2", INT64_MAX).moves,
                     "g4@F0 g0@F0! g1@F0 g2@F0 g3@F1 g3@B4 g2@B4 g1@B3 r3@B2>B2 r2@B1>B1 r1@B0>B0 "
                     "r4@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* Nothing is gathered for backward. */
Test(fsdp2, keeps_all_units_behind_forward_when_set_so)
{
    struct weft_problem *problem = chain_problem(&fsdp2_chain);
    struct chain_plan plan = chain_plan(problem, "fsdp2:kept", INT64_MAX);
    cr_assert_str_eq(plan.policies, "sdp sdp sdp sdp sdp");
    cr_assert_str_eq(plan.moves,
                     "g4@F0 g0@F0! g1@F0 g2@F1 g3@F2 r3@B2>B2 r2@B1>B1 r1@B0>B0 r4@drain>drain "
                     "r0@drain>drain");
    weft_problem_destroy(problem);
}
