/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/scheduler/chain.h"

/* Units of 1000, t = 20 + 0.01 s for gather and reduction. Everything hides but the root's gather
 * and reduction and the first unit's. Units 1 and 2: root 40 + 40, unit 1 30 + 30: 140. One of
 * them: 50 + 50 + 60 = 160. None: 60 + 60 = 120. max_m without the root is in B1: moments and
 * slices 6000, unit 1 and its gradient, slices of gradients 3 and 2: 9000. With both as units the
 * root's parameters and gradients are 4000, and 2 max_p 4000: 17000. With none 8000 and 8000:
 * 25000. */
static const struct chain fsdp_milp_chain = {.n_layers = 4,
                                             .n_blocks = {1, 1, 1, 1},
                                             .block_bytes = {1000, 1000, 1000, 1000},
                                             .gather_ns = {30, 30, 30, 30},
                                             .agree_ns = 20};

Test(fsdp_milp, chooses_units_by_exposed_time)
{
    struct weft_problem *problem = chain_problem(&fsdp_milp_chain);
    struct chain_plan plan = chain_plan(problem, "fsdp-milp", 25000);
    cr_assert_eq(plan.status, WEFT_OK, "%s", plan.err.text);
    cr_assert_str_eq(plan.policies, "sdp sdp sdp sdp");
    cr_assert_str_eq(plan.moves, "g3@F0 g2@F0 g1@F0 g0@F0! r3@drain>drain r2@drain>drain "
                                 "r1@drain>drain r0@drain>drain");
    plan = chain_plan(problem, "fsdp-milp", 24999);
    cr_assert_str_eq(plan.policies, "sdp fsdp fsdp sdp");
    cr_assert_str_eq(plan.moves, chain_plan(problem, "fsdp2", 24999).moves);
    plan = chain_plan(problem, "fsdp-milp", 17000);
    cr_assert_str_eq(plan.policies, "sdp fsdp fsdp sdp");
    weft_problem_destroy(problem);
}

Test(fsdp_milp, reserves_two_of_the_largest)
{
    struct weft_problem *problem = chain_problem(&fsdp_milp_chain);
    struct chain_plan plan = chain_plan(problem, "fsdp-milp", 16999);
    cr_assert_eq(plan.status, WEFT_E_INFEASIBLE);
    cr_assert_not_null(strstr(plan.err.text, "max_m + 2 max_p is"), "%s", plan.err.text);
    cr_assert_not_null(strstr(plan.err.text, "(17000 bytes)"), "%s", plan.err.text);
    weft_problem_destroy(problem);
}

/* t = 20 + 0.28 s. In the root all five gather and reduce in 1420 each: 2840. With 1, 2, 3 as units
 * the root takes 580 each and unit 1 300 each; forward exposes 2 * (300 - F), backward 300 - B, 600
 * - B and 300 - B: with F 150 and B 300 2360, with 50 and 100 3160. */
Test(fsdp_milp, gives_the_root_what_would_be_exposed)
{
    struct chain slow = {.n_layers = 5,
                         .n_blocks = {1, 1, 1, 1, 1},
                         .block_bytes = {1000, 1000, 1000, 1000, 1000},
                         .forward_ns = {150, 150, 150, 150, 150},
                         .gather_ns = {300, 300, 300, 300, 300},
                         .agree_ns = 20};
    struct weft_problem *problem = chain_problem(&slow);
    cr_assert_str_eq(chain_plan(problem, "fsdp-milp", INT64_MAX).policies,
                     "sdp fsdp fsdp fsdp sdp");
    weft_problem_destroy(problem);
    for (int32_t l = 0; l < slow.n_layers; l++)
        slow.forward_ns[l] = 50;
    problem = chain_problem(&slow);
    cr_assert_str_eq(chain_plan(problem, "fsdp-milp", INT64_MAX).policies, "sdp sdp sdp sdp sdp");
    weft_problem_destroy(problem);
}
