/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Units of 1000: slices 2000, moments 4000. With all moments away and gathers on demand there are,
 * of slices, a unit and what layers saved, 5000 in F0, 7000 in F1, 9000 in F2, 11000 in F3; with
 * gradients 12000 in B3, 11500 in B2, 10000 in B1, 8500 in B0. */
static const struct chain deepcompile_offload_chain = {.n_layers = 4,
                                                       .n_blocks = {1, 1, 1, 1},
                                                       .block_bytes = {1000, 1000, 1000, 1000},
                                                       .gather_ns = {10, 10, 10, 10},
                                                       .activation_bytes = 2000,
                                                       .host_ns = {30, 30, 30, 30}};

/* F3 has 0.8 * 18750 = 15000 with all moments. */
Test(deepcompile_offload, keeps_state_that_has_room)
{
    struct weft_problem *problem = chain_problem(&deepcompile_offload_chain);
    struct chain_plan plan = chain_plan(problem, "deepcompile-offload", 18750);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "fsdp fsdp fsdp sdp");
    cr_assert_str_eq(plan.moves,
                     "g0@F0! g1@F1! g2@F2! g3@F3! r3@B2>drain g2@B2! r2@B1>drain g1@B1! "
                     "r1@B0>drain g0@B0! r0@drain>drain");
    cr_assert_str_eq(chain_plan(problem, "deepcompile-offload", 18749).policies,
                     "fsdp+host fsdp fsdp sdp");
    weft_problem_destroy(problem);
}

/* 0.8 * 15000 = 12000. F1 has 11000 with all moments; F2 would have 13000, so unit 0's are gone
 * before it; F3 14000 with three, so those of units 1 and 2 are gone before that. All come back
 * when the period begins, those of the first update last. */
Test(deepcompile_offload, sends_offloaded_what_forward_has_no_room_for)
{
    struct weft_problem *problem = chain_problem(&deepcompile_offload_chain);
    struct chain_plan plan = chain_plan(problem, "deepcompile-offload", 15000);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "fsdp+host fsdp+host fsdp+host sdp");
    cr_assert_str_eq(plan.moves,
                     "in2@open in1@open in0@open out0@F0>F1 out1@F0>F2 out2@F0>F2 g0@F0! g1@F1! "
                     "g2@F2! g3@F3! r3@B2>drain g2@B2! r2@B1>drain g1@B1! r1@B0>drain g0@B0! "
                     "r0@drain>drain");
    weft_problem_destroy(problem);
}

/* Within all of 13000 there is room for all moments in F2, and for two units' in F3; in B3 for one
 * unit's: unit 2's are gone before it. */
Test(deepcompile_offload, asks_backward_where_it_is_set_to)
{
    struct weft_problem *problem = chain_problem(&deepcompile_offload_chain);
    struct chain_plan plan = chain_plan(problem, "deepcompile-offload:100%", 13000);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "fsdp+host fsdp+host fsdp+host sdp");
    cr_assert_str_eq(plan.moves,
                     "in2@open in1@open in0@open out0@F0>F2 out1@F0>F2 out2@F0>F3 g0@F0! g1@F1! "
                     "g2@F2! g3@F3! r3@B2>drain g2@B2! r2@B1>drain g1@B1! r1@B0>drain g0@B0! "
                     "r0@drain>drain");
    cr_assert_eq(plan.peak_bytes, 13000);
    cr_assert_str_eq(chain_plan(problem, "deepcompile-offload:100%", 12000).policies,
                     "fsdp+host fsdp+host fsdp+host sdp+host");
    cr_assert_eq(chain_plan(problem, "deepcompile-offload:100%", 11999).status, WEFT_E_INFEASIBLE);
    weft_problem_destroy(problem);
}

/* 0.9 * 15000 = 13500 beside the rows above: 9000 in F0, 11000, 12000, 12000 in F3, 13000 in B3,
 * 12500, 11000, 9500 in B0. Forward's gathers are all launched in F0. In backward unit 0's fits
 * into B1 and B2, unit 1's into B2 when unit 0's does not go there, and none into B3. */
Test(deepcompile_offload, moves_gathers_ahead_beside_state)
{
    struct weft_problem *problem = chain_problem(&deepcompile_offload_chain);
    struct chain_plan plan = chain_plan(problem, "deepcompile-offload:prefetch", 15000);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(
        plan.moves,
        "in2@open in1@open in0@open out0@F0>F1 out1@F0>F2 out2@F0>F2 g0@F0! g1@F0 "
        "g2@F0 g3@F0 r3@B2>drain g2@B2! g1@B2 r2@B1>drain g0@B1 r1@B0>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* Copies of 30: the first update waits for three, 90 more than with all at location, and none makes
 * forward wait. Of 300: it waits for 900; F0 begins with its gather at 0 and F1 ends at 220, F2
 * waits for out0 until 300, and ends at 410; F3 waits for out2 until 900: 570 more in all. */
Test(deepcompile_offload, waits_for_what_must_be_gone)
{
    struct chain other = deepcompile_offload_chain;
    struct weft_problem *problem = chain_problem(&other);
    const int64_t ample_ns = chain_plan(problem, "deepcompile-offload", 18750).step_ns;
    const int64_t offloaded_ns = chain_plan(problem, "deepcompile-offload", 15000).step_ns;
    cr_assert_eq(offloaded_ns - ample_ns, 90, "%lld", (long long)(offloaded_ns - ample_ns));
    weft_problem_destroy(problem);
    for (int32_t u = 0; u < other.n_layers; u++)
        other.host_ns[u] = 300;
    problem = chain_problem(&other);
    const int64_t slow_ns = chain_plan(problem, "deepcompile-offload", 15000).step_ns;
    cr_assert_eq(slow_ns - ample_ns, 900 + 570, "%lld", (long long)(slow_ns - ample_ns));
    weft_problem_destroy(problem);
}
