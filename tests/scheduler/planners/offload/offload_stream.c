/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/scheduler/chain.h"

/* The chain's second tier is a disk, and this rule asks for the host. */
Test(offload_stream, needs_the_hosts_memory)
{
    static const struct chain disk = {.n_layers = 2,
                                      .n_blocks = {1, 1},
                                      .block_bytes = {1024, 1024},
                                      .gather_ns = {10, 10},
                                      .disk_ns = {30, 30}};
    struct weft_problem *problem = chain_problem(&disk);
    struct chain_plan plan = chain_plan(problem, "offload-stream", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_E_INFEASIBLE);
    cr_assert(strstr(plan.err.text, "give cluster.host") != NULL, "%s", plan.err.text);
    weft_problem_destroy(problem);
}

/* State goes up one update ahead, and down behind; fsdp2's root is gathered when F0 is entered. */
Test(offload_stream, streams_all_state)
{
    static const struct chain chain = {.n_layers = 3,
                                       .n_blocks = {1, 1, 1},
                                       .block_bytes = {1024, 1024, 1024},
                                       .gather_ns = {10, 10, 10},
                                       .host_ns = {30, 30, 30}};
    struct weft_problem *problem = chain_problem(&chain);
    struct chain_plan plan = chain_plan(problem, "offload-stream", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp+host fsdp+host sdp+host");
    cr_assert_str_eq(plan.moves, "in0@open in1@U0 out0@U1>U1 in2@U1 out1@U2>U2 out2@fill>fill "
                                 "g2@F0 g0@F0! g1@F0 g1@B2 r1@B0>B0 r2@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}
