/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/scheduler/chain.h"

/* Gradients get ready in order 3, 2, 1, 0, each in the slot behind its backward. Of 25 MiB: unit 3
 * brings 20, unit 2 makes it 30: full, launched when 2 is ready, in B1. Unit 1 brings 20, unit 0
 * makes it 30, launched in drain. Nothing waits before the end, and dp holds the buffer anyway. */
static const struct chain ddp_chain = {.n_layers = 4,
                                       .n_blocks = {1, 2, 1, 2},
                                       .block_bytes = {10 * MIB, 10 * MIB, 10 * MIB, 10 * MIB},
                                       .gather_ns = {10, 10, 10, 10}};

Test(ddp, reduces_a_bucket_when_it_is_full)
{
    struct weft_problem *problem = chain_problem(&ddp_chain);
    struct chain_plan plan = chain_plan(problem, "ddp", INT64_MAX);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "dp dp dp dp");
    cr_assert_str_eq(plan.moves, "r3x2@B1>drain r2@B1>drain r1x2@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

/* Every block fills a bucket of 5 MiB by itself; one of 100 MiB is never full. */
Test(ddp, has_buckets_of_other_sizes)
{
    struct weft_problem *problem = chain_problem(&ddp_chain);
    cr_assert_str_eq(chain_plan(problem, "ddp:5MiB", INT64_MAX).moves,
                     "r3x2@B2>drain r2@B1>drain r1x2@B0>drain r0@drain>drain");
    cr_assert_str_eq(chain_plan(problem, "ddp:100MiB", INT64_MAX).moves,
                     "r3x2@drain>drain r2@drain>drain r1x2@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
}

Test(ddp, refuses_what_does_not_fit)
{
    struct weft_problem *problem = chain_problem(&ddp_chain);
    /* Parameters, two moments and gradient of 60 MiB, all at the end of backward. */
    struct chain_plan plan = chain_plan(problem, "ddp", 240 * MIB);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_eq(plan.peak_bytes, 240 * MIB);
    plan = chain_plan(problem, "ddp", 240 * MIB - 1);
    cr_assert_eq(plan.status, WEFT_E_INFEASIBLE);
    cr_assert_not_null(strstr(plan.err.text, "planner ddp: its plan holds 240 MiB"), "%s",
                       plan.err.text);
    weft_problem_destroy(problem);
}

/* 3 and 2 bring 12.5 MiB each: that is a bucket of 25 MiB, launched when 2 is ready. With less it
 * is not full before 1 and 0. */
Test(ddp, has_full_buckets_at_their_size)
{
    struct chain half = {.n_layers = 4,
                         .n_blocks = {1, 1, 1, 1},
                         .block_bytes = {25 * MIB / 2, 25 * MIB / 2, 25 * MIB / 2, 25 * MIB / 2},
                         .gather_ns = {10, 10, 10, 10}};
    struct weft_problem *problem = chain_problem(&half);
    cr_assert_str_eq(chain_plan(problem, "ddp", INT64_MAX).moves,
                     "r3@B1>drain r2@B1>drain r1@drain>drain r0@drain>drain");
    weft_problem_destroy(problem);
    half.block_bytes[2] -= 4;
    problem = chain_problem(&half);
    cr_assert_str_eq(chain_plan(problem, "ddp", INT64_MAX).moves,
                     "r3@B0>drain r2@B0>drain r1@B0>drain r0@drain>drain");
    weft_problem_destroy(problem);
}
