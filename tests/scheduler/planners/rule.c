/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/rule.h"
#include "program/predict.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/program/random_model.h"

/* Rules that wait for no reduction. */
static const char *const rules[] = {"zero1", "zero2", "dear", "fairscale", "deepspeed"};
enum { N_RULES = sizeof rules / sizeof *rules };

/* The rule's decision for the problem's limit alone, as published. */
static struct weft_plan *plan_by(const struct weft_problem *problem, const char *rule)
{
    struct weft_schedule_options options = {.planner = rule, .draft = true};
    struct weft_pool pool = {0};
    struct weft_outcome outcome = {.pool = &pool};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    struct weft_candidate made = {
        weft_pool_array(&pool, (size_t)problem->n_decisions + 1, sizeof *made.strategies),
        weft_pool_array(&pool, (size_t)weft_problem_count_blocks(problem) + 1, sizeof *made.moves),
        0};
    cr_assert(made.strategies && made.moves);
    cr_assert_eq(weft_planner_decide(weft_planner_find(rule, &options.setting), problem, &options,
                                     &made, &outcome, &err),
                 WEFT_OK, "%s: %s", rule, err.text);
    cr_assert_eq(
        weft_plan_create(problem, rule, made.strategies, made.moves, made.n_moves, &plan, &err),
        WEFT_OK, "%s: %s", rule, err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    weft_pool_finish(&pool);
    return plan;
}

/* The same blocks in the same order, with every reduction due behind the end of its backward. */
static struct weft_plan *waiting_for_nothing(const struct weft_plan *plan)
{
    const struct weft_problem *problem = plan->problem;
    struct weft_plan *late = NULL;
    struct weft_error err = {0};
    struct weft_move *moves = calloc((size_t)plan->n_placements + 1, sizeof *moves);
    int32_t drain = 0;
    cr_assert_not_null(moves);
    while (problem->slots[drain].kind != WEFT_SLOT_DRAIN)
        drain++;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &problem->items[at->item].item;
        int32_t end = item->first <= drain && drain < item->last ? drain : item->last;
        bool gathers = item->acquires;
        moves[i] = (struct weft_move){at->item, gathers ? at->launch : end, at->launch};
    }
    cr_assert_eq(weft_plan_create(problem, plan->planner, plan->strategies, moves,
                                  plan->n_placements, &late, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_predict(late, &err), WEFT_OK);
    free(moves);
    return late;
}

/* Sets all times to 0. */
static void forget_times(struct weft_problem *problem)
{
    memset(problem->slot_ns, 0, (size_t)problem->n_slots * sizeof *problem->slot_ns);
    for (int32_t i = 0; i < problem->n_items; i++)
        problem->items[i].block_ns = 0;
    for (int32_t u = 0; u < problem->n_decisions; u++)
        for (int32_t k = 0; k < problem->decisions[u].n_strategies; k++)
            problem->decisions[u].strategies[k].n_times = 0;
}

/* A deadline is where the product would have been done anyway: no step is longer for it, and memory
 * that nobody asked to be saved does not make a rule hold more than its product. */
Test(rule, reductions_that_nothing_waits_for_hold_what_they_must_and_cost_no_time)
{
    int n_less = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(60, 20); seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        if (seed % 4 == 0) forget_times(problem);
        for (int r = 0; r < N_RULES; r++) {
            problem->tiers[0].limit_bytes = INT64_MAX;
            struct weft_plan *plan = plan_by(problem, rules[r]);
            struct weft_plan *late = waiting_for_nothing(plan);
            int64_t step_ns = plan->prediction.step_ns, peak_bytes = plan->prediction.peak_bytes;
            cr_assert_eq(step_ns, late->prediction.step_ns, "seed %d, %s", (int)seed, rules[r]);
            cr_assert_leq(peak_bytes, late->prediction.peak_bytes, "seed %d, %s", (int)seed,
                          rules[r]);
            n_less += peak_bytes < late->prediction.peak_bytes;
            weft_plan_destroy(late);
            weft_plan_destroy(plan);
            problem->tiers[0].limit_bytes = peak_bytes;
            plan = plan_by(problem, rules[r]);
            cr_assert_eq(plan->prediction.step_ns, step_ns, "its own peak is all that it needs");
            weft_plan_destroy(plan);
        }
        random_case_finish(&random);
    }
    cr_assert_gt(n_less, 0);
}

/* A reduction may be complete before the slot in which its rule waits for it, because of later work
 * in its channel. Then it is not held until that slot. */
Test(rule, what_a_rule_holds_is_all_that_it_needs)
{
    static const char *const all[] = {"ddp",   "zero1",     "zero2",      "dear",   "fairscale",
                                      "fsdp2", "deepspeed", "fsdp2:kept", "mg-wfbp"};
    for (uint64_t seed = 1; seed <= TEST_CASES(60, 20); seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        for (size_t r = 0; r < sizeof all / sizeof *all; r++) {
            problem->tiers[0].limit_bytes = INT64_MAX;
            struct weft_schedule_options options = {.planner = all[r], .draft = true};
            struct weft_plan *plan = NULL;
            if (weft_schedule(problem, NULL, &options, &plan, NULL, NULL) != WEFT_OK) continue;
            int64_t step_ns = plan->prediction.step_ns;
            problem->tiers[0].limit_bytes = plan->prediction.peak_bytes;
            weft_plan_destroy(plan);
            cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, NULL), WEFT_OK);
            cr_assert_eq(plan->prediction.step_ns, step_ns, "seed %d, %s", (int)seed, all[r]);
            weft_plan_destroy(plan);
        }
        random_case_finish(&random);
    }
}
