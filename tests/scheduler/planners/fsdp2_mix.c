/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/scheduler/chain.h"

/* Five units of 1024; moments and slices 5 * 1536 = 7680; each layer saves 2048. The peak is in B4
 * with five layers' 10240: root 2048, gradient 1024, and unit 3, gathered ahead or kept, 1024:
 * 22016 for k = 0 and 1. Unit 2 and then unit 1 kept as well add 1024 each. (B3 has 13312 and, with
 * unit 1, 14336 beside 8192 of activations; B2 has 14848 and 6144.) */
static const struct chain fsdp2_mix_chain = {.n_layers = 5,
                                             .n_blocks = {1, 1, 1, 1, 1},
                                             .block_bytes = {1024, 1024, 1024, 1024, 1024},
                                             .gather_ns = {10, 10, 10, 10, 10},
                                             .activation_bytes = 2048};

Test(fsdp2_mix, keeps_as_many_of_the_last_units_as_fit)
{
    static const struct {
        int64_t limit_bytes;
        const char *policies;
    } cases[] = {
        {22016, "sdp fsdp fsdp sdp sdp"}, {23039, "sdp fsdp fsdp sdp sdp"},
        {23040, "sdp fsdp sdp sdp sdp"},  {24063, "sdp fsdp sdp sdp sdp"},
        {24064, "sdp sdp sdp sdp sdp"},   {INT64_MAX, "sdp sdp sdp sdp sdp"},
    };
    struct weft_problem *problem = chain_problem(&fsdp2_mix_chain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct chain_plan plan = chain_plan(problem, "fsdp2-mix", cases[i].limit_bytes);
        cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
        cr_assert_str_eq(plan.policies, cases[i].policies);
    }
    cr_assert_eq(chain_plan(problem, "fsdp2-mix", 22015).status, WEFT_E_INFEASIBLE);
    weft_problem_destroy(problem);
}

/* fsdp2's placements without the gathers of backward. */
Test(fsdp2_mix, does_not_gather_again_what_it_keeps)
{
    struct weft_problem *problem = chain_problem(&fsdp2_mix_chain);
    cr_assert_str_eq(chain_plan(problem, "fsdp2-mix", 22016).moves,
                     "g4@F0 g0@F0! g1@F0 g2@F1 g3@F2 g2@B3 r3@B2>B2 g1@B2 r2@B1>B1 r1@B0>B0 "
                     "r4@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}
