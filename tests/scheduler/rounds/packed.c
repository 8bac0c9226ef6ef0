#include "scheduler/rounds/packed.h"
#include "program/predict.h"
#include "scheduler/schedule.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "tests/program/random_model.h"

/* What the random planner decides; its arrays are the caller's to free. */
static struct weft_candidate candidate_of(const struct weft_problem *problem)
{
    struct weft_schedule_options options = {.planner = "random", .seed = 5};
    struct weft_outcome outcome = {0};
    struct weft_error err = {0};
    size_t n_blocks = (size_t)weft_problem_count_blocks(problem) + 1;
    struct weft_candidate candidate = {
        .strategies = calloc((size_t)problem->n_decisions + 1, sizeof *candidate.strategies),
        .moves = calloc(n_blocks, sizeof *candidate.moves)};
    cr_assert(candidate.strategies != NULL && candidate.moves != NULL);
    cr_assert_eq(
        weft_planner_find("random", NULL)->decide(problem, &options, &candidate, &outcome, &err),
        WEFT_OK, "%s", err.text);
    return candidate;
}

/* The same as it is and relaxed. */
static void decide(const struct weft_problem *problem, int64_t *step_ns, int64_t *relaxed_ns)
{
    struct weft_candidate candidate = candidate_of(problem);
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_plan_create(problem, "random", candidate.strategies, candidate.moves,
                                  candidate.n_moves, &plan, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    *step_ns = plan->prediction.step_ns;
    cr_assert_eq(weft_plan_relax(plan, problem->memory_limit_bytes, &err), WEFT_OK);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    *relaxed_ns = plan->prediction.step_ns;
    weft_plan_destroy(plan);
    free(candidate.strategies);
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
        bool slows = weft_problem_contends(problem);
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

/* How many blocks the plan launches, or has due, in another slot than the candidate. */
static int n_moved(const struct weft_plan *plan, const struct weft_candidate *candidate)
{
    struct weft_plan *as_it_is = NULL;
    struct weft_error err = {0};
    int n = 0;
    cr_assert_eq(weft_plan_create(plan->problem, "random", candidate->strategies, candidate->moves,
                                  candidate->n_moves, &as_it_is, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(plan->n_placements, as_it_is->n_placements);
    for (int32_t k = 0; k < plan->n_placements; k++)
        n += plan->placements[k].launch != as_it_is->placements[k].launch ||
             plan->placements[k].deadline != as_it_is->placements[k].deadline;
    weft_plan_destroy(as_it_is);
    return n;
}

Test(packed, a_literal_candidate_stays_as_it_is)
{
    int n_relaxed = 0;
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct random_case random;
        struct weft_schedule_options options = {.planner = "random"};
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        int64_t limit_bytes = weft_least_limit(problem, NULL) * 2;
        problem->memory_limit_bytes = limit_bytes;
        struct weft_packed run = {.problem = problem,
                                  .inputs = &random.inputs,
                                  .options = &options,
                                  .candidate = candidate_of(problem)};
        cr_assert_eq(weft_packed_pack(&run, problem, true, false, &err), WEFT_OK);
        cr_assert_eq(n_moved(run.plan, &run.candidate), 0, "seed %d", (int)seed);
        weft_packed_keep(&run, NULL, NULL);
        cr_assert_eq(weft_packed_pack(&run, problem, false, false, &err), WEFT_OK);
        n_relaxed += n_moved(run.plan, &run.candidate) > 0;
        weft_packed_keep(&run, NULL, NULL);
        free(run.candidate.strategies);
        free(run.candidate.moves);
        random_case_finish(&random);
    }
    cr_assert_gt(n_relaxed, 10, "%d", n_relaxed);
}

/* The memory that a short search without a limit finds the candidate a layout in, as it is or
 * relaxed. */
static int64_t bytes_of(const struct weft_packed *run, const struct weft_lower_inputs *inputs,
                        bool relax)
{
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_packed_measure(run, &run->candidate, run->problem, relax, &plan, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_program_lower(plan, inputs, -1, &program, &err), WEFT_OK, "%s", err.text);
    int64_t bytes = program->base_bytes + program->arena_bytes;
    weft_program_destroy(program);
    weft_plan_destroy(plan);
    return bytes;
}

/* What comes when the budget is used up is short, and is done all the same. */
Test(packed, late_searches_are_short_and_have_no_limit)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct random_case random;
        struct weft_schedule_options options = {.planner = "ilp"};
        struct weft_work work = {.spent = 1};
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        problem->memory_limit_bytes = weft_least_limit(problem, NULL) * 6 / 5;
        struct weft_packed run = {.problem = problem,
                                  .limited = random.inputs,
                                  .options = &options,
                                  .candidate = candidate_of(problem),
                                  .budget = {&work, 1}};
        const struct weft_problem rows = *problem;
        int64_t as_it_is = bytes_of(&run, &random.inputs, false),
                relaxed = bytes_of(&run, &random.inputs, true);
        int64_t least = relaxed < as_it_is ? relaxed : as_it_is;
        problem->memory_limit_bytes = least - 1; /* not hopeless, but too little */
        run.limited.budget = run.budget;
        run.inputs = &run.limited;
        cr_assert_eq(weft_packed_pack_quick(&run, &rows, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(weft_packed_total_bytes(&run), least, "seed %d: %lld, not %lld", (int)seed,
                     (long long)weft_packed_total_bytes(&run), (long long)least);
        cr_assert_eq(run.limited.budget.until, 1, "it is the next search's");
        weft_packed_keep(&run, NULL, NULL);
        free(run.candidate.strategies);
        free(run.candidate.moves);
        random_case_finish(&random);
    }
}
