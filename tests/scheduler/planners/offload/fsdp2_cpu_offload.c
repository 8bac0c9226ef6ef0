/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Nothing of forward begins before the host has updated all: 30 each, unit 0 last, 5 up. Then the
 * root is gathered, 20, the rest as fsdp2 does. B0 ends at 1015, and both gradients of the root are
 * reduced at 1035 and down at 1040. */
Test(fsdp2_cpu_offload, updates_all_before_forward)
{
    static const struct chain chain = {.n_layers = 3,
                                       .n_blocks = {1, 1, 1},
                                       .block_bytes = {1024, 1024, 1024},
                                       .gather_ns = {10, 10, 10},
                                       .host_ns = {5, 5, 5},
                                       .update_ns = {30, 30, 30}};
    struct weft_problem *problem = chain_problem(&chain);
    struct chain_plan plan = chain_plan(problem, "fsdp2-cpu-offload", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp+host-update fsdp+host-update sdp+host-update");
    cr_assert_str_eq(plan.moves,
                     "h2@open p2@open h1@open p1@open h0@open p0@open g2@F0 g0@F0! g1@F0 g1@B2 "
                     "r1@B0>B0 d1@B0>drain r2@drain>drain r0@drain>drain d2@drain>drain "
                     "d0@drain>drain");
    cr_assert_eq(plan.step_ns, 90 + 5 + 20 + 900 + 20 + 5, "%lld", (long long)plan.step_ns);
    weft_problem_destroy(problem);
}
