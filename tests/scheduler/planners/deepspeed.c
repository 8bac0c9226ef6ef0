/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

enum { MB = 1000000 };

/* In 1e6 elements: units of 25, 50, 0.025, 50, 25, blocks of 25. Unit 2 is below 0.1 and stays
 * whole; its one gather follows its update. */
static const struct chain deepspeed_chain = {
    .n_layers = 5,
    .n_blocks = {1, 2, 1, 2, 1},
    .block_bytes = {100 * MB, 100 * MB, 100000, 100 * MB, 100 * MB},
    .gather_ns = {10, 10, 10, 10, 10}};

/* All uses are within 1000 of each other, so that everything is kept. F0 waits for unit 0 and
 * prefetches 50, unit 1; F1 unit 3; F2 unit 4, and there is no more. A bucket of 500 is not full
 * before the end. */
Test(deepspeed, keeps_what_is_used_again_soon)
{
    struct weft_problem *problem = chain_problem(&deepspeed_chain);
    struct chain_plan plan = chain_plan(problem, "deepspeed", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp sdp zero1 sdp sdp");
    cr_assert_str_eq(plan.moves,
                     "g2@U3 g0@F0! g1x2@F0 g3x2@F1 g4@F2 r4@drain>drain r3x2@drain>drain "
                     "r2@drain>drain r1x2@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* With nothing kept, F2 prefetches unit 4 and 25 more: unit 3 is still to be used before it is
 * gathered again, so half of unit 1 for B1; F3 the other half, and unit 0 for B0; F4 unit 3. */
Test(deepspeed, prefetches_by_elements)
{
    struct weft_problem *problem = chain_problem(&deepspeed_chain);
    struct chain_plan plan = chain_plan(problem, "deepspeed:no-reuse", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "fsdp fsdp zero1 fsdp sdp");
    cr_assert_str_eq(plan.moves,
                     "g2@U3 g0@F0! g1x2@F0 g3x2@F1 g4@F2 g1@F2 g1@F3 g0@F3 g3x2@F4 r4@drain>drain "
                     "r3x2@drain>drain r2@drain>drain r1x2@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* A prefetch of 10 stops at one block; its layer waits for the missing blocks. */
Test(deepspeed, waits_for_what_is_missing)
{
    struct weft_problem *problem = chain_problem(&deepspeed_chain);
    cr_assert_str_eq(chain_plan(problem, "deepspeed:prefetch-1e7-no-reuse", INT64_MAX).moves,
                     "g2@U3 g0@F0! g1@F0 g1@F1! g3@F1 g3@F2 g4@F3 g3@F4 g3@B3! g1@B3 g1@B2 g0@B1 "
                     "r4@drain>drain r3x2@drain>drain r2@drain>drain r1x2@drain>drain "
                     "r0@drain>drain");
    weft_problem_destroy(problem);
}

/* Units of 200, 150 and 700: from F0 to B0 there are 150 + 700 + 150, which is 1000 and not near;
 * one element less is. Unit 1 has 700 between its uses. */
Test(deepspeed, keeps_nothing_across_1e9_elements)
{
    struct chain near = {.n_layers = 3,
                         .n_blocks = {1, 1, 1},
                         .block_bytes = {800 * MB, 600 * MB, INT64_C(2800) * MB},
                         .gather_ns = {10, 10, 10}};
    struct weft_problem *problem = chain_problem(&near);
    cr_assert_str_eq(chain_plan(problem, "deepspeed", INT64_MAX).policies, "fsdp sdp sdp");
    weft_problem_destroy(problem);
    near.block_bytes[2] -= 4;
    problem = chain_problem(&near);
    cr_assert_str_eq(chain_plan(problem, "deepspeed", INT64_MAX).policies, "sdp sdp sdp");
    weft_problem_destroy(problem);
}

/* Units of 200, 400, 150 and 850, blocks of 50. Units 2 and 3 are kept: in F3 1000 elements are
 * live, and nothing is prefetched. In B2 unit 3 is away, and unit 1 goes on. Unit 3 is more than a
 * bucket of 500 and is reduced by itself; 2 and 1 would be 550, so that 2 is launched when 1 is
 * ready; 1 and 0 would be 600. Unit 3's reductions are complete in B2, and as far as B1 and what
 * follows holds no more than B2 they are due later. */
Test(deepspeed, stops_at_live_elements_and_reduces_in_buckets)
{
    static const struct chain large = {.n_layers = 4,
                                       .n_blocks = {4, 8, 3, 17},
                                       .block_bytes = {200 * MB, 200 * MB, 200 * MB, 200 * MB},
                                       .gather_ns = {10, 10, 10, 10}};
    struct weft_problem *problem = chain_problem(&large);
    struct chain_plan plan = chain_plan(problem, "deepspeed", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "fsdp fsdp sdp sdp");
    cr_assert_str_eq(plan.moves,
                     "g0x4@F0! g1@F0 g1x7@F1! g2@F1 g2x2@F2! g3@F2 g3x16@F3! r3x10@B2>B2 "
                     "r3x3@B2>B1 r3x4@B2>drain g1@B2 g1x7@B1! g0@B1 r2x3@B0>drain g0x3@B0! "
                     "r1x8@drain>drain r0x4@drain>drain");
    weft_problem_destroy(problem);
}

/* Unit 1 has 100000 elements, and then one less. */
Test(deepspeed, keeps_small_units_whole)
{
    struct chain small = {.n_layers = 3,
                          .n_blocks = {1, 1, 1},
                          .block_bytes = {100 * MB, 400000, 100 * MB},
                          .gather_ns = {10, 10, 10}};
    struct weft_problem *problem = chain_problem(&small);
    cr_assert_str_eq(chain_plan(problem, "deepspeed", INT64_MAX).policies, "sdp sdp sdp");
    weft_problem_destroy(problem);
    small.block_bytes[1] -= 4;
    problem = chain_problem(&small);
    cr_assert_str_eq(chain_plan(problem, "deepspeed", INT64_MAX).policies, "sdp zero1 sdp");
    weft_problem_destroy(problem);
}
