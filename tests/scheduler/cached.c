/* SPDX-License-Identifier: Apache-2.0 */
/* Plans whose nodes cache their parameters in host memory. */
#include <criterion/criterion.h>
#include <string.h>

#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

/* fcdp caches the parameters of each unit that may be cached, and is refused without such a unit.
 * ilp is not slower. */
Test(cached, parameters_of_nodes_are_cached_where_they_may_be)
{
    int n_compared = 0, n_refused = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES_OF(60, 40, 20); seed++) {
        struct tiers_case c;
        (seed % 2 == 0 ? cached_case_init : tiers_case_init)(&c, seed);
        struct weft_problem *problem = c.random.stages.problem;
        struct weft_work work = {0};
        struct weft_schedule_options rule = {.planner = "fcdp"};
        struct weft_schedule_options options = {.planner = "ilp",
                                                .budget = weft_budget_of(&work, 1)};
        struct weft_plan *plan = NULL, *best = NULL;
        struct weft_error err = {0};
        bool crosses = false;
        for (int32_t k = 0; k < problem->n_kinds; k++)
            crosses |= strncmp(problem->kinds[k], "nodes", 5) == 0 &&
                       strstr(problem->kinds[k], "+host-parameters") != NULL;
        problem->tiers[0].limit_bytes = INT64_MAX;
        struct weft_program *program = NULL;
        enum weft_status status =
            weft_schedule(problem, &c.random.inputs, &rule, &plan, &program, &err);
        cr_assert_eq(status, crosses ? WEFT_OK : WEFT_E_DATA, "seed %d: %s", (int)seed, err.text);
        if (!crosses)
            cr_assert_not_null(strstr(err.text, "plan.offload.parameters"), "%s", err.text);
        n_refused += !crosses;
        if (crosses) {
            int n_cached = 0;
            for (int32_t u = 0; u < weft_problem_n_units(problem); u++)
                n_cached += weft_plan_chosen(plan, u)->parameters == WEFT_LOCATION_HOST;
            cr_assert_gt(n_cached, 0);
            cr_assert_eq(weft_program_verify(program, INT64_MAX, &err), WEFT_OK, "%s", err.text);
            cr_assert_eq(weft_schedule(problem, &c.random.inputs, &options, &best, NULL, &err),
                         WEFT_OK, "%s", err.text);
            cr_assert_leq(best->prediction.step_ns, plan->prediction.step_ns, "seed %d", (int)seed);
            n_compared++;
        }
        weft_program_destroy(program);
        weft_plan_destroy(best);
        weft_plan_destroy(plan);
        tiers_case_finish(&c);
    }
    cr_assert(n_compared > 0 && n_refused > 3, "%d, %d", n_compared, n_refused);
}
