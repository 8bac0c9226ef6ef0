#include <criterion/criterion.h>
#include <stdlib.h>

#include "plan/random_model.h"
#include "scheduler/schedule.h"

/* What the random planner decides, as it is and relaxed. */
static void decide(const struct weft_problem *problem, int64_t *step_ns, int64_t *relaxed_ns)
{
    struct weft_schedule_options options = {.planner = "random", .seed = 5};
    struct weft_outcome outcome = {0};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    size_t n_blocks = 1;
    for (int32_t i = 0; i < problem->n_items; i++)
        n_blocks += (size_t)problem->items[i].item.n_blocks;
    struct weft_candidate candidate = {
        .policies = calloc((size_t)problem->n_units + 1, sizeof *candidate.policies),
        .moves = calloc(n_blocks, sizeof *candidate.moves)};
    cr_assert(candidate.policies != NULL && candidate.moves != NULL);
    cr_assert_eq(
        weft_planner_find("random", NULL)
            ->decide(problem, problem->memory_limit_bytes, &options, &candidate, &outcome, &err),
        WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_create(problem, "random", candidate.policies, candidate.moves,
                                  candidate.n_moves, &plan, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    *step_ns = plan->prediction.step_ns;
    cr_assert_eq(weft_plan_relax(plan, problem->memory_limit_bytes, &err), WEFT_OK);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    *relaxed_ns = plan->prediction.step_ns;
    weft_plan_destroy(plan);
    free(candidate.policies);
    free(candidate.moves);
}

/* With two channels a slot that waits for a gather before its start is late to launch reductions on
 * the other; with contention what overlaps more slows more. */
Test(packed, a_plan_is_relaxed_where_that_costs_nothing)
{
    int n_slower[2] = {0}; /* by whether there are two channels and no contention */
    for (uint64_t seed = 1; seed <= 3000; seed++) {
        struct random_case random;
        struct weft_schedule_options options = {.planner = "random", .seed = 5};
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        int64_t step_ns, relaxed_ns;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        bool slows = problem->compute_rate < WEFT_RATE_ONE || problem->channel_rate < WEFT_RATE_ONE;
        problem->memory_limit_bytes = weft_least_limit(problem, NULL) * 6 / 5;
        decide(problem, &step_ns, &relaxed_ns);
        if (!weft_problem_relaxing_may_slow(problem)) cr_assert_leq(relaxed_ns, step_ns);
        n_slower[!slows] += relaxed_ns > step_ns;
        cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_OK, "%s",
                     err.text);
        cr_assert_leq(plan->prediction.step_ns, step_ns, "seed %d", (int)seed);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert(n_slower[0] > 0 && n_slower[1] > 0, "%d %d", n_slower[0], n_slower[1]);
}
