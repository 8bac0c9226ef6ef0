/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/scheduler/chain.h"

static const struct chain zero_infinity_chain = {.n_layers = 3,
                                                 .n_blocks = {1, 1, 1},
                                                 .block_bytes = {10 * MIB, 10 * MIB, 10 * MIB},
                                                 .gather_ns = {10, 10, 10},
                                                 .disk_ns = {30, 30, 30}};

/* While U1 is updated, unit 2's state is read and unit 0's written; what U2 leaves is written
 * behind it. The rest is deepspeed's: F0 waits for its own unit and prefetches the others. */
Test(zero_infinity, reads_one_update_ahead_and_writes_one_behind)
{
    struct weft_problem *problem = chain_problem(&zero_infinity_chain);
    struct chain_plan plan = chain_plan(problem, "zero-infinity", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp+disk sdp+disk sdp+disk");
    cr_assert_str_eq(plan.moves, "in0@open in1@U0 out0@U1>U1 in2@U1 out1@U2>U2 out2@fill>fill "
                                 "g0@F0! g1@F0 g2@F0 r2@drain>drain r1@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* The disk is never idle: in0, in1 beside U0, out0 and in2 beside U1, out1 beside U2, out2 in fill,
 * 180, and then F0 begins. Where a block takes 1, that is at 1 + 10 + 10 + 10 + 1. */
Test(zero_infinity, waits_for_its_disk)
{
    struct chain ample = zero_infinity_chain;
    struct weft_problem *problem = chain_problem(&zero_infinity_chain);
    const int64_t slow_ns = chain_plan(problem, "zero-infinity", INT64_MAX).step_ns;
    weft_problem_destroy(problem);
    for (int u = 0; u < 3; u++)
        ample.disk_ns[u] = 1;
    problem = chain_problem(&ample);
    const int64_t fast_ns = chain_plan(problem, "zero-infinity", INT64_MAX).step_ns;
    weft_problem_destroy(problem);
    cr_assert_eq(slow_ns - fast_ns, 180 - 32, "%lld and %lld", (long long)slow_ns,
                 (long long)fast_ns);
}

Test(zero_infinity, needs_a_disk)
{
    struct chain without = zero_infinity_chain;
    memset(without.disk_ns, 0, sizeof without.disk_ns);
    struct weft_problem *problem = chain_problem(&without);
    struct chain_plan plan = chain_plan(problem, "zero-infinity", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_E_INFEASIBLE);
    cr_assert(strstr(plan.err.text, "give cluster.disk") != NULL, "%s", plan.err.text);
    weft_problem_destroy(problem);
}
