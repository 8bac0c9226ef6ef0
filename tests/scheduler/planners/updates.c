/* SPDX-License-Identifier: Apache-2.0 */
/* Rules where units are updated in backward: a published rule is refused to a user, and ilp starts
 * from its plan. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "problem/stages.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"

static bool makes_plan(const struct random_case *random, const struct weft_planner *rule)
{
    const struct weft_problem *problem = random->stages.problem;
    const struct weft_schedule_options options = {.planner = rule->name, .draft = true};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    const enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
    weft_plan_destroy(plan);
    if (rule->literal)
        cr_assert(status == WEFT_E_DATA && strstr(err.text, "plan.update_in") != NULL, "%s: %s",
                  rule->name, err.text);
    else
        cr_assert(status == WEFT_OK || status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA,
                  "%s: %s", rule->name, err.text);
    return status == WEFT_OK;
}

/* Decides by a rule as ilp does. Its plan is whole, or the rule does not apply. */
static bool is_start(const struct random_case *random, const struct weft_planner *rule)
{
    const struct weft_problem *problem = random->stages.problem;
    int32_t moves = 0;
    for (int32_t i = 0; i < problem->n_items; i++)
        moves += problem->items[i].item.n_blocks;
    struct weft_candidate candidate = {
        .strategies = calloc((size_t)problem->n_decisions, sizeof *candidate.strategies),
        .moves = calloc((size_t)moves + 1, sizeof *candidate.moves)};
    const struct weft_schedule_options options = {
        .planner = "ilp", .setting = rule->settings, .draft = true, .may_stop = true};
    struct weft_pool pool = {0};
    struct weft_outcome outcome = {.pool = &pool};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status =
        weft_planner_decide(rule, problem, &options, &candidate, &outcome, &err);
    const bool decided = status == WEFT_OK;
    if (decided)
        status = weft_plan_create(problem, rule->name, candidate.strategies, candidate.moves,
                                  candidate.n_moves, &plan, &err);
    cr_assert(status == WEFT_OK || status == WEFT_E_INFEASIBLE, "%s, seed %d: %s", rule->name,
              (int)random->seed, err.text);
    weft_plan_destroy(plan);
    weft_pool_finish(&pool);
    free(candidate.strategies);
    free(candidate.moves);
    return decided;
}

Test(updates, ilp_starts_from_rules_and_a_user_gets_none_in_backward, .timeout = 300)
{
    int starts = 0, plans = 0, cases = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(60, 15); seed++, cases++) {
        struct random_case random;
        random_case_init_backward(&random, seed);
        random.stages.problem->tiers[0].limit_bytes = INT64_MAX;
        for (const struct weft_planner *rule = weft_planners(); rule->name; rule++) {
            if (rule->searches || rule->solves ||
                !weft_planner_is_rule_for(rule, random.stages.problem))
                continue;
            plans += makes_plan(&random, rule);
            starts += rule->literal && is_start(&random, rule);
        }
        random_case_finish(&random);
    }
    cr_assert(starts > 2 * cases && plans > cases, "%d starts, %d plans", starts, plans);
}
