/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

static const struct chain zero2_chain = {.n_layers = 3,
                                         .n_blocks = {1, 1, 1},
                                         .block_bytes = {1024, 1024, 1024},
                                         .gather_ns = {30, 30, 30}};

/* Updates take 3 * 10, gathers 3 * 30, and F0 waits for all; 3 * 100 + 3 * 200; of the reductions
 * only the last, of unit 0, is left when backward ends: 30 + 90 + 900 + 30 = 1050. */
Test(zero2, reduces_at_once_and_gathers_all_behind_the_update)
{
    struct weft_problem *problem = chain_problem(&zero2_chain);
    struct chain_plan plan = chain_plan(problem, "zero2", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp sdp sdp");
    cr_assert_str_eq(plan.moves, "g2@fill g1@fill g0@fill r2@B1>B1 r1@B0>drain r0@drain>drain");
    cr_assert_eq(plan.step_ns, 1050);
    weft_problem_destroy(problem);
}

/* Each reduction is complete in the slot in which it is launched. So the peak is in B1: moments
 * 3072, slices 1536, gathered units 1 and 0 2048, gradient 1 1024, the slice of gradient 2 512, and
 * gradient 2 in flight 1024: 9216. Drain leaves room below that for gradient 1, but B0, where 8704
 * are held, has none for 2. With reductions of 210 the one of unit 2 lasts into B0, and 9728 are
 * held there; with one byte less it is waited for before B0. */
Test(zero2, waits_for_a_reduction_when_memory_says_so)
{
    struct weft_problem *problem = chain_problem(&zero2_chain);
    cr_assert_eq(chain_plan(problem, "zero2", INT64_MAX).peak_bytes, 9216);
    weft_problem_destroy(problem);
    struct chain slow = zero2_chain;
    for (int32_t l = 0; l < slow.n_layers; l++)
        slow.gather_ns[l] = 210;
    problem = chain_problem(&slow);
    struct chain_plan plan = chain_plan(problem, "zero2", INT64_MAX);
    cr_assert_str_eq(plan.moves, "g2@fill g1@fill g0@fill r2@B1>drain r1@B0>drain r0@drain>drain");
    cr_assert_eq(plan.peak_bytes, 9728);
    struct chain_plan waits = chain_plan(problem, "zero2", 9727);
    cr_assert_str_eq(waits.moves, "g2@fill g1@fill g0@fill r2@B1>B1 r1@B0>drain r0@drain>drain");
    cr_assert_leq(waits.peak_bytes, 9727);
    weft_problem_destroy(problem);
}
