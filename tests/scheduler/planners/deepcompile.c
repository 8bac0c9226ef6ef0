/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Units of 1000: moments and slices 6000. Gathered on demand, with reductions at once: 7000 in F0
 * to F3; B3 8000 (unit, gradient), B2 9500 (and a slice 500, a gradient in flight 1000), B1 10000,
 * B0 10500. */
static const struct chain deepcompile_chain = {.n_layers = 4,
                                               .n_blocks = {1, 1, 1, 1},
                                               .block_bytes = {1000, 1000, 1000, 1000},
                                               .gather_ns = {10, 10, 10, 10}};

/* 0.9 * 12300 = 11070. Forward: up to three units beside 7000: all are launched in F0. Backward,
 * from its end: unit 0 beside B1 makes 11000; with unit 1 beside B2 11500: unit 0, the oldest, is
 * launched in B1; 1 and 2 beside B3 make 10000: launched there. That leaves 70 to keep units.
 * Reductions are complete in the slot in which they are launched, so that 11000 in B1 are the peak;
 * beside 10500 in B0 there is no room for another, but in drain for 1. */
Test(deepcompile, moves_gathers_ahead_while_a_profile_allows)
{
    struct weft_problem *problem = chain_problem(&deepcompile_chain);
    struct chain_plan plan = chain_plan(problem, "deepcompile", 12300);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "fsdp fsdp fsdp sdp");
    cr_assert_str_eq(plan.moves, "g0@F0! g1@F0 g2@F0 g3@F0 g2@B3 g1@B3 r3@B2>B2 r2@B1>B1 g0@B1 "
                                 "r1@B0>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* 0.9 * 14000 = 12600: in backward all are launched in B3, the most is 11500 in B2. That leaves
 * 1100: unit 0 is kept, of equal time a byte the first. */
Test(deepcompile, keeps_units_with_what_is_left)
{
    struct weft_problem *problem = chain_problem(&deepcompile_chain);
    struct chain_plan plan = chain_plan(problem, "deepcompile", 14000);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp fsdp fsdp sdp");
    weft_problem_destroy(problem);
}

/* Alone, keeping has 12600 - 10500 = 2100: units 0 and 1. Unit 1's gathers are slower: it is first.
 */
Test(deepcompile, keeps_the_slowest_a_byte_first)
{
    struct chain other = deepcompile_chain;
    other.gather_ns[1] = 11;
    struct weft_problem *problem = chain_problem(&other);
    cr_assert_str_eq(chain_plan(problem, "deepcompile:unshard", 14000).policies,
                     "sdp sdp fsdp sdp");
    cr_assert_str_eq(chain_plan(problem, "deepcompile:unshard", 13000).policies,
                     "fsdp sdp fsdp sdp");
    weft_problem_destroy(problem);
}

/* Gathers of t = 9 + 0.001 s: two together take 11, less than 1.2 * 10, so 0 and 1 are one group.
 * When 0 must go, as above, 1 goes with it, and is on demand. */
Test(deepcompile, launches_a_group_together)
{
    struct chain other = deepcompile_chain;
    other.agree_ns = 9;
    struct weft_problem *problem = chain_problem(&other);
    struct chain_plan plan = chain_plan(problem, "deepcompile:prefetch", 12300);
    cr_assert_str_eq(plan.moves, "g0@F0! g1@F0 g2@F0 g3@F0 g2@B3 r3@B2>B2 r2@B1>B1 g1@B1! g0@B1 "
                                 "r1@B0>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* In 1e6 bytes: units of 100, 100, 3000, 400, 400, 400; as to time any of them could be fused. From
 * F5: 5 and 4 are a group, with 3 they would be 1200, which is too large; with 2, 4200 are held:
 * in F2 the oldest group is launched. In backward 4000 are held in the end, which is not too much.
 */
Test(deepcompile, holds_and_fuses_so_many_bytes)
{
    enum { MB = 1000000 };
    static const struct chain large = {
        .n_layers = 6,
        .n_blocks = {1, 1, 1, 1, 1, 1},
        .block_bytes = {100 * MB, 100 * MB, INT64_C(3000) * MB, 400 * MB, 400 * MB, 400 * MB},
        .gather_ns = {100, 100, 100, 100, 100, 100},
        .agree_ns = 95};
    struct weft_problem *problem = chain_problem(&large);
    struct chain_plan plan = chain_plan(problem, "deepcompile:prefetch", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.moves,
                     "g0@F0! g1@F0 g2@F0 g3@F0 g4@F2 g5@F2 g4@B5 g3@B5 g2@B5 g1@B5 g0@B5 "
                     "r5@B4>B3 r4@B3>drain r3@B2>drain r2@B1>drain r1@B0>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* Gathers of t = 75 + 0.025 s: two together take 125, more than 1.2 * 100, so there are no groups.
 */
Test(deepcompile, does_not_group_what_takes_longer)
{
    struct chain other = deepcompile_chain;
    other.agree_ns = 75;
    for (int32_t l = 0; l < other.n_layers; l++)
        other.gather_ns[l] = 100;
    struct weft_problem *problem = chain_problem(&other);
    cr_assert_str_eq(chain_plan(problem, "deepcompile:prefetch", 12300).moves,
                     "g0@F0! g1@F0 g2@F0 g3@F0 g2@B3 g1@B3 r3@B2>B2 r2@B1>B1 g0@B1 r1@B0>drain "
                     "r0@drain>drain");
    weft_problem_destroy(problem);
}

/* Units of 500, 2000, 500, 500: moments and slices 5250, and in B1 units 1, its gradient, 2 in
 * flight and slices of 3 and 2, 500: 10250. 0.9 * 12500 leaves 1000: unit 1, the slowest a byte,
 * does not fit, and those behind it are not looked at. 0.9 * 13612 leaves 2000. */
Test(deepcompile, stops_at_the_first_that_does_not_fit)
{
    static const struct chain uneven = {.n_layers = 4,
                                        .n_blocks = {1, 1, 1, 1},
                                        .block_bytes = {500, 2000, 500, 500},
                                        .gather_ns = {10, 100, 10, 10}};
    struct weft_problem *problem = chain_problem(&uneven);
    cr_assert_str_eq(chain_plan(problem, "deepcompile:unshard", 12500).policies,
                     "fsdp fsdp fsdp sdp");
    cr_assert_str_eq(chain_plan(problem, "deepcompile:unshard", 13612).policies,
                     "fsdp sdp fsdp sdp");
    weft_problem_destroy(problem);
}
