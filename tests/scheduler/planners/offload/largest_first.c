/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Moments are as large as units, and B2 has the peak of 28160. Unit 2 is the largest; units 1 and 3
 * are equal and go by name. Each frees its moments. */
static const struct chain largest_first_chain = {.n_layers = 4,
                                                 .n_blocks = {1, 1, 1, 1},
                                                 .block_bytes = {1024, 2048, 4096, 2048},
                                                 .gather_ns = {10, 20, 40, 20},
                                                 .host_ns = {10, 20, 40, 20},
                                                 .update_ns = {100, 200, 400, 200}};

Test(largest_first, takes_the_largest_until_the_peak_fits)
{
    static const struct {
        int64_t limit_bytes;
        const char *policies;
    } cases[] = {
        {28160, "sdp fsdp fsdp sdp"},
        {28159, "sdp fsdp fsdp+host-update sdp"},
        {28160 - 4096, "sdp fsdp fsdp+host-update sdp"},
        {28160 - 4096 - 1, "sdp fsdp+host-update fsdp+host-update sdp"},
        {28160 - 4096 - 2048 - 1, "sdp fsdp+host-update fsdp+host-update sdp+host-update"},
        {28160 - 4096 - 2 * 2048, "sdp fsdp+host-update fsdp+host-update sdp+host-update"},
    };
    struct weft_problem *problem = chain_problem(&largest_first_chain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct chain_plan plan = chain_plan(problem, "largest-first-offload", cases[i].limit_bytes);
        cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
        cr_assert_str_eq(plan.policies, cases[i].policies);
    }
    cr_assert_eq(chain_plan(problem, "largest-first-offload", 28160 - 9 * 1024 - 1).status,
                 WEFT_E_INFEASIBLE);
    weft_problem_destroy(problem);
}

/* Parameters and gradients go as fsdp2's, the host's updates as fsdp2-cpu-offload's. */
Test(largest_first, updates_there_and_copies_back)
{
    struct weft_problem *problem = chain_problem(&largest_first_chain);
    cr_assert_str_eq(chain_plan(problem, "largest-first-offload", 28159).moves,
                     "h2@open p2@open g3@F0 g0@F0! g1@F0 g2@F1 g2@B3 g1@B2 r2@B1>B1 d2@B1>B0 "
                     "r1@B0>B0 r3@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}
