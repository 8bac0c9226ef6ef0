/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Units of 1000. dp costs an AllReduce, twice a gather, and an update of 20; fsdp two gathers, a
 * ReduceScatter and an update of 10: dp is faster by 30 - 10 for unit 1, 40 - 10 for 2, and never
 * for the root, which is gathered once. dp holds 2000 more than fsdp in norm: 2 * 1000 moments,
 * 1000 parameters and 1000 gradient against 1000, 500 and 500. fsdp2 alone peaks in B1: moments and
 * slices 6000, units 0 and 1, gradient 1, gradients 3 and 2 in flight, slices of both 1000: 12000.
 */
static const struct chain osdp_chain = {.n_layers = 4,
                                        .n_blocks = {1, 1, 1, 1},
                                        .block_bytes = {1000, 1000, 1000, 1000},
                                        .gather_ns = {30, 30, 40, 30}};

Test(osdp, replicates_what_gains_most_within_the_limit)
{
    static const struct {
        int64_t limit_bytes;
        const char *policies;
    } cases[] = {{12000, "sdp fsdp fsdp sdp"}, {13999, "sdp fsdp fsdp sdp"},
                 {14000, "sdp fsdp dp sdp"},   {15999, "sdp fsdp dp sdp"},
                 {16000, "sdp dp dp sdp"},     {INT64_MAX, "sdp dp dp sdp"}};
    struct weft_problem *problem = chain_problem(&osdp_chain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct chain_plan plan = chain_plan(problem, "osdp", cases[i].limit_bytes);
        cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
        cr_assert_str_eq(plan.policies, cases[i].policies);
    }
    cr_assert_eq(chain_plan(problem, "osdp", 11999).status, WEFT_E_INFEASIBLE);
    weft_problem_destroy(problem);
}

/* fsdp2's schedule, with an AllReduce in the place of a ReduceScatter. */
Test(osdp, schedules_as_fsdp2)
{
    struct weft_problem *problem = chain_problem(&osdp_chain);
    cr_assert_str_eq(chain_plan(problem, "osdp", 14000).moves,
                     "g3@F0 g0@F0! g1@F0 g1@B2 r2@B1>B1 r1@B0>B0 r3@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* With gathers of 5 replicating unit 1 saves 5 on the channel, and its update takes 10 more. */
Test(osdp, counts_what_updates_take)
{
    struct chain fast = osdp_chain;
    fast.gather_ns[1] = 5;
    struct weft_problem *problem = chain_problem(&fast);
    cr_assert_str_eq(chain_plan(problem, "osdp", INT64_MAX).policies, "sdp fsdp dp sdp");
    weft_problem_destroy(problem);
}
