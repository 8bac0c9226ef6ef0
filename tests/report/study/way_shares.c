/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/way_shares.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/report/small_plan.h"

/* Units a and b have 50 elements each; a is sdp and b, with its state on the host, dp. Of two
 * layers that save 300 and 100 bytes the first recomputes. */
static struct weft_way_shares small_shares(void)
{
    static struct weft_hold large[] = {{WEFT_CATEGORY_ACTIVATIONS, 3, 6, 300, 0}};
    static struct weft_hold small[] = {{WEFT_CATEGORY_ACTIVATIONS, 4, 5, 100, 0}};
    struct weft_problem problem = small_problem();
    struct weft_problem_decision decisions[4] = {problem.decisions[0], problem.decisions[1]};
    struct weft_problem_strategy there = problem.decisions[1].strategies[IS_DP];
    struct weft_problem_strategy of_a[] = {{"device", .n_holds = 1, .holds = large},
                                           {"whole", .recompute = WEFT_RECOMPUTE_WHOLE}};
    struct weft_problem_strategy of_b[] = {{"device", .n_holds = 1, .holds = small}};
    int32_t strategies[] = {IS_SDP, 0, 1, 0};
    there.location = WEFT_LOCATION_HOST;
    decisions[1].strategies = &there;
    decisions[2] = (struct weft_problem_decision){
        .name = "saved:a", .n_strategies = 2, .strategies = of_a, .is_of_layer = true};
    decisions[3] = (struct weft_problem_decision){
        .name = "saved:b", .n_strategies = 1, .strategies = of_b, .is_of_layer = true, .layer = 1};
    problem.decisions = decisions;
    problem.n_decisions = 4;
    const struct weft_plan plan = {.problem = &problem, .strategies = strategies};
    return weft_way_shares_of(&plan);
}

Test(way_shares, parameters_and_saved_activations_are_shared_by_their_sizes)
{
    const struct weft_layer_choice whole = {WEFT_LOCATION_DEVICE, WEFT_RECOMPUTE_WHOLE,
                                            WEFT_LOCATION_DEVICE};
    const struct weft_way_shares shares = small_shares();
    cr_assert_float_eq(shares.policies[WEFT_POLICY_SDP], 0.5, 1e-12);
    cr_assert_float_eq(shares.policies[WEFT_POLICY_DP], 0.5, 1e-12);
    cr_assert_float_eq(shares.keeps[WEFT_KEEP_DEVICE], 0.5, 1e-12);
    cr_assert_float_eq(shares.keeps[WEFT_KEEP_HOST], 0.5, 1e-12);
    cr_assert_float_eq(shares.saved[weft_layer_choice_number(whole)], 0.75, 1e-12);
    cr_assert_float_eq(shares.saved[0], 0.25, 1e-12);
}
