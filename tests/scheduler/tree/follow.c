/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/follow.h"

#include <criterion/criterion.h>

#include "program/predict.h"
#include "scheduler/tree/grow.h"
#include "tests/effort.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/solver.h"
#include "tests/scheduler/tiny.h"

/* Follows the relaxation of the search's best and of drawn strategies. What becomes the best is a
 * plan within the limit, in the time that the search says. Returns whether one became it. */
static bool improves_plan(const struct weft_problem *problem, unsigned seed)
{
    struct branch_rig rig = {.options = {.solver = test_solver()}};
    struct weft_follow *follow = NULL;
    struct weft_error err = {0};
    struct weft_plan *plan = NULL;
    int32_t strategies[8];
    branch_rig_begin(&rig, problem, problem->tiers[0].limit_bytes);
    cr_assert_eq(weft_branch_root(rig.branch, NULL), WEFT_OK);
    cr_assert_eq(weft_follow_create(rig.branch, &follow, NULL), WEFT_OK);
    const int64_t before_ns = rig.search->step_ns;
    cr_assert_eq(weft_follow_try(follow, rig.search->strategies, &err), WEFT_OK, "%s", err.text);
    for (unsigned k = 0; k < 4; k++) {
        tiny_draw_strategies(problem, seed + k, strategies);
        cr_assert_eq(weft_follow_try(follow, strategies, &err), WEFT_OK, "%s", err.text);
    }
    const struct weft_search *search = rig.search;
    cr_assert_leq(search->step_ns, before_ns);
    cr_assert_geq(search->step_ns, weft_branch_bound_ns(rig.branch));
    cr_assert_eq(weft_plan_create(problem, "ilp", search->strategies, search->moves,
                                  search->n_moves, &plan, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    cr_assert_eq(plan->prediction.step_ns, search->step_ns);
    cr_assert_leq(plan->prediction.peak_bytes, problem->tiers[0].limit_bytes);
    const bool better = search->step_ns < before_ns;
    weft_plan_destroy(plan);
    weft_follow_destroy(follow);
    branch_rig_end(&rig);
    return better;
}

Test(follow, makes_valid_plans_over_two_lanes)
{
    int n_better = 0;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    for (uint64_t seed = 1; seed <= TEST_CASES(40, 20); seed++) {
        struct tiny_shape shape = {.n_units = 3 + (int32_t)(seed % 4),
                                   .most_blocks = 4,
                                   .policies = 15,
                                   .load = 0.2 + 0.1 * (double)(seed % 13),
                                   .contends = seed % 3 == 1,
                                   .two_networks = true};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.1 * (double)(seed % 8));
        n_better += improves_plan(problem, (unsigned)seed);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_better, 0);
}
