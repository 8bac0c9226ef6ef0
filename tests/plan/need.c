/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/need.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/report/small_plan.h"

/* Rows of the small plan are 1200 1100 1200 1400 1400 1600 1700 1400 1200: the peak is in slot 6,
 * of 1000 base, 200 gathered, 100 and 400 gradients. */
Test(need, is_the_fullest_slot_of_a_plan_and_the_unit_that_holds_most_there)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_need need = {.policy = WEFT_POLICY_SDP, .way = WEFT_NEED_PUBLISHED, .rule = "test"};
    struct weft_error err = {0};
    cr_assert_eq(weft_need_of_plan(plan, &need, &err), WEFT_OK);
    cr_assert(need.applies);
    cr_assert_eq(need.bytes, 1700);
    cr_assert_eq(need.slot, 6);
    cr_assert_str_eq(need.slot_name, "B:a");
    cr_assert_eq(need.categories[WEFT_CATEGORY_BASE], 1000);
    cr_assert_eq(need.categories[WEFT_CATEGORY_GATHERED_PARAMETERS], 200);
    cr_assert_eq(need.categories[WEFT_CATEGORY_FULL_GRADIENTS], 400);
    cr_assert_eq(need.categories[WEFT_CATEGORY_SHARDED_GRADIENTS], 100);
    cr_assert_str_eq(need.unit_name, "a", "its parameters and its gradient, and of b the gradient");
    cr_assert_eq(need.step_ns, plan->prediction.step_ns);
    cr_assert_eq(need.rule[0], 't', "who asks says which rule it was");
    weft_plan_destroy(plan);
}

/* Bytes in another tier do not count as the device's need. */
Test(need, counts_what_the_device_holds_alone)
{
    struct weft_problem problem = small_problem();
    struct weft_problem_item items[N_SMALL_ITEMS];
    struct weft_hold holds[] = {{WEFT_CATEGORY_GATHERED_PARAMETERS, 6, 6, 5000, 1}};
    struct weft_hold *of_b = problem.decisions[1].strategies[IS_SDP].holds;
    struct weft_need need = {0};
    struct weft_error err = {0};
    memcpy(items, problem.items, sizeof items);
    items[B_REDUCE].item.stair_tier = 1;
    items[B_REDUCE].item.stair_bytes = 5000;
    problem.items = items;
    problem.n_tiers = 2;
    problem.tiers[1] = (struct weft_problem_tier){"host", WEFT_LOCATION_HOST, INT64_MAX};
    struct weft_plan *plan = small_plan(&problem);
    plan->prediction.peak_slot = 6;
    cr_assert_eq(weft_need_of_plan(plan, &need, &err), WEFT_OK);
    cr_assert_str_eq(need.unit_name, "a", "b's blocks are in the other tier");
    problem.decisions[1].strategies[IS_SDP].holds = holds;
    problem.decisions[1].strategies[IS_SDP].n_holds = 1;
    cr_assert_eq(weft_need_of_plan(plan, &need, &err), WEFT_OK);
    cr_assert_str_eq(need.unit_name, "a", "so is what b holds");
    problem.decisions[1].strategies[IS_SDP].holds = of_b;
    problem.decisions[1].strategies[IS_SDP].n_holds = 3;
    weft_plan_destroy(plan);
}

Test(need, no_unit_is_named_where_none_holds_anything_that_passes)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_need need = {0};
    struct weft_error err = {0};
    for (int32_t u = 0; u < problem.n_decisions; u++)
        problem.decisions[u].strategies[IS_SDP].n_holds = 0;
    plan->n_placements = 0;
    cr_assert_eq(weft_need_of_plan(plan, &need, &err), WEFT_OK);
    cr_assert_eq(need.unit, -1);
    cr_assert_str_eq(need.unit_name, "");
    weft_plan_destroy(plan);
}
