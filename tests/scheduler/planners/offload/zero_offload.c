/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/scheduler/chain.h"

static const struct chain zero_offload_chain = {.n_layers = 3,
                                                .n_blocks = {1, 1, 1},
                                                .block_bytes = {10 * MIB, 10 * MIB, 10 * MIB},
                                                .gather_ns = {10, 10, 10},
                                                .host_ns = {5, 5, 5},
                                                .update_ns = {30, 30, 30}};

/* The host updates from 0 to 90, unit 0 last, whose parameters are up at 95. Unit 2's and 1's are
 * gathered by then, so that F0 begins at 105 and backward ends at 1005; unit 0's gradient is
 * reduced at 1015 and down at 1020. Updates take no time of the device. In MiB there are 60 in B1:
 * slices 15, units 20, gradients of units 1 and 2, and half of that to go down; in B0 45, and 5
 * that goes down late, but not 10 that are reduced late. */
Test(zero_offload, updates_all_before_forward)
{
    struct weft_problem *problem = chain_problem(&zero_offload_chain);
    struct chain_plan plan = chain_plan(problem, "zero-offload", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp+host-update sdp+host-update sdp+host-update");
    cr_assert_str_eq(plan.moves, "h2@open p2@open h1@open p1@open h0@open p0@open g2@fill g1@fill "
                                 "g0@fill r2@B1>B1 d2@B1>drain r1@B0>drain d1@B0>drain "
                                 "r0@drain>drain d0@drain>drain");
    cr_assert_eq(plan.step_ns, 1020, "%lld", (long long)plan.step_ns);
    weft_problem_destroy(problem);
}

/* Gathers and reductions are deepspeed's. F0 waits for its own gather, from 95 to 105, which is
 * prefetched behind by the others'. Behind backward, 1005, are three reductions, and the last
 * gradient's copy. */
Test(zero_offload, has_parameters_of_stage_3)
{
    struct weft_problem *problem = chain_problem(&zero_offload_chain);
    struct chain_plan plan = chain_plan(problem, "zero-offload:stage-3", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.moves, "h2@open p2@open h1@open p1@open h0@open p0@open g0@F0! g1@F0 "
                                 "g2@F0 r2@drain>drain r1@drain>drain r0@drain>drain "
                                 "d2@drain>drain d1@drain>drain d0@drain>drain");
    cr_assert_eq(plan.step_ns, 1005 + 30 + 5, "%lld", (long long)plan.step_ns);
    weft_problem_destroy(problem);
}

/* One of unit 2's gradients may be reduced late. Blocks go down as each is reduced, and come up as
 * each is updated: 2 * 30 a unit, 5 for the last block up, 10 to gather it. */
Test(zero_offload, goes_by_blocks)
{
    struct chain other = zero_offload_chain;
    for (int32_t u = 0; u < other.n_layers; u++)
        other.n_blocks[u] = 2;
    struct weft_problem *problem = chain_problem(&other);
    struct chain_plan plan = chain_plan(problem, "zero-offload", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(
        plan.moves,
        "h2x2@open p2x2@open h1x2@open p1x2@open h0x2@open p0x2@open g2x2@fill "
        "g1x2@fill g0x2@fill r2@B1>B1 r2@B1>drain d2x2@B1>drain r1x2@B0>drain d1x2@B0>drain "
        "r0x2@drain>drain d0x2@drain>drain");
    cr_assert_eq(plan.step_ns, 180 + 5 + 10 + 900 + 20 + 5, "%lld", (long long)plan.step_ns);
    weft_problem_destroy(problem);
}

Test(zero_offload, needs_updates_on_the_host)
{
    struct chain without = zero_offload_chain;
    memset(without.update_ns, 0, sizeof without.update_ns);
    struct weft_problem *problem = chain_problem(&without);
    struct chain_plan plan = chain_plan(problem, "zero-offload", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_E_INFEASIBLE);
    cr_assert(strstr(plan.err.text, "tier host that is updated on the host") != NULL, "%s",
              plan.err.text);
    weft_problem_destroy(problem);
}
