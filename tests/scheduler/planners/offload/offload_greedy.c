/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "tests/scheduler/chain.h"

/* Four units of 1024, whose moments are as large. Moving unit 1's takes 80, unit 2's 100, the
 * others' 200. The peak is in B1: moments 4096, slices 2048; units 0 and 1 are gathered, 2048;
 * gradients of unit 1, of unit 2, which is reduced there, and of unit 3, which waits for the
 * root's, 3072; reduced ones of units 3 and 2, 1024: 12288. Each unit that is away is 1024 less. */
static const struct chain offload_greedy_chain = {.n_layers = 4,
                                                  .n_blocks = {1, 1, 1, 1},
                                                  .block_bytes = {1024, 1024, 1024, 1024},
                                                  .gather_ns = {10, 10, 10, 10},
                                                  .disk_ns = {100, 40, 50, 100}};

Test(offload_greedy, moves_what_frees_most_for_its_time)
{
    static const struct {
        int64_t limit_bytes;
        const char *policies;
    } cases[] = {
        {INT64_MAX, "sdp fsdp fsdp sdp"},
        {12288, "sdp fsdp fsdp sdp"},
        {12287, "sdp fsdp+disk fsdp sdp"},
        {11264, "sdp fsdp+disk fsdp sdp"},
        {11263, "sdp fsdp+disk fsdp+disk sdp"},
        {10240, "sdp fsdp+disk fsdp+disk sdp"},
        {10239, "sdp+disk fsdp+disk fsdp+disk sdp"},
        {9215, "sdp+disk fsdp+disk fsdp+disk sdp+disk"},
        {8192, "sdp+disk fsdp+disk fsdp+disk sdp+disk"},
    };
    struct weft_problem *problem = chain_problem(&offload_greedy_chain);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct chain_plan plan = chain_plan(problem, "offload-greedy", cases[i].limit_bytes);
        cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
        cr_assert_str_eq(plan.policies, cases[i].policies);
    }
    cr_assert_eq(chain_plan(problem, "offload-greedy", 8191).status, WEFT_E_INFEASIBLE);
    weft_problem_destroy(problem);
}

/* State streams by as zero-infinity's does, parameters and gradients as fsdp2's. */
Test(offload_greedy, streams_what_is_offloaded)
{
    struct weft_problem *problem = chain_problem(&offload_greedy_chain);
    cr_assert_str_eq(chain_plan(problem, "offload-greedy", 11263).moves,
                     "in1@U0 in2@U1 out1@U2>U2 out2@U3>U3 g3@F0 g0@F0! g1@F0 g2@F1 g2@B3 g1@B2 "
                     "r2@B1>B1 r1@B0>B0 r3@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}
