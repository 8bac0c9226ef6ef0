/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/paged_rule.h"

#include <criterion/criterion.h>
#include <string.h>

#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

enum { N_LIMITS = 10 };

/* The step of a rule's plan within a limit; 0: none. */
static int64_t step_within(struct random_case *random, const char *planner, int64_t limit_bytes)
{
    struct weft_schedule_options options = {.planner = planner, .draft = true};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    random->stages.problem->tiers[0].limit_bytes = limit_bytes;
    const enum weft_status status =
        weft_schedule(random->stages.problem, &random->inputs, &options, &plan, NULL, &err);
    if (status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA) return 0;
    cr_assert_eq(status, WEFT_OK, "%s: %s", planner, err.text);
    cr_assert_leq(plan->prediction.total_bytes, limit_bytes, "%s", planner);
    const int64_t step_ns = plan->prediction.step_ns;
    weft_plan_destroy(plan);
    return step_ns;
}

/* Limits from the least to four times as much, dense near the least one. */
static int64_t limit_of(int64_t least_bytes, int i)
{
    return least_bytes + (int64_t)((double)least_bytes * 3 * i * i / (N_LIMITS * N_LIMITS));
}

/* True if the step of some limit is shorter than the one before. */
static bool check_rule(struct random_case *random, const char *planner, int64_t least_bytes)
{
    int64_t last_ns = 0;
    bool fell = false;
    for (int i = 0; i < N_LIMITS; i++) {
        const int64_t limit_bytes = limit_of(least_bytes, i);
        const int64_t step_ns = step_within(random, planner, limit_bytes);
        cr_assert(last_ns == 0 || step_ns > 0,
                  "seed %llu, %s: none within %lld bytes, and one within less",
                  (unsigned long long)random->seed, planner, (long long)limit_bytes);
        cr_assert(last_ns == 0 || step_ns <= last_ns,
                  "seed %llu, %s: %lld ns within %lld bytes, and %lld within less",
                  (unsigned long long)random->seed, planner, (long long)step_ns,
                  (long long)limit_bytes, (long long)last_ns);
        fell |= last_ns > 0 && step_ns < last_ns;
        last_ns = step_ns;
    }
    return fell;
}

/* More memory never lengthens a rule's step, and never loses its plan. */
static void check_rules(uint64_t seed, bool tiers, int *n_fell)
{
    struct random_case random;
    struct weft_error err = {0};
    int64_t least_bytes = 0;
    if (tiers)
        random_case_init_tiers(&random, seed);
    else
        random_case_init(&random, seed);
    cr_assert_eq(weft_least_paged_limit(random.stages.problem, &random.inputs, &least_bytes, &err),
                 WEFT_OK);
    for (const struct weft_planner *rule = weft_planners(); rule->name; rule++)
        if (weft_paged_has_series(rule) && weft_planner_is_rule_for(rule, random.stages.problem))
            *n_fell += check_rule(&random, rule->name, least_bytes);
    random_case_finish(&random);
}

/* It always runs: more memory shortens steps of its rules. */
static const uint64_t SEED_WITH_SHORTER_STEPS = 11;

Test(paged_rule, a_step_never_rises_with_the_limit, .timeout = 900)
{
    int n_fell = 0;
    for (uint64_t seed = 1; seed <= 100; seed++)
        if (seed == SEED_WITH_SHORTER_STEPS || test_draws(seed, 10, 25))
            check_rules(seed, seed % 4 == 0, &n_fell);
    cr_assert_gt(n_fell, TEST_CASES_OF(100, 0, 0), "%d", n_fell);
}

Test(paged_rule, searches_and_draws_have_no_series)
{
    for (const struct weft_planner *planner = weft_planners(); planner->name; planner++)
        cr_assert_eq(weft_paged_has_series(planner),
                     !planner->searches && !planner->solves && strcmp(planner->name, "random") != 0,
                     "%s", planner->name);
}
