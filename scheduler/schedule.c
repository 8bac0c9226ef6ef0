#include "scheduler/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "scheduler/digest/infeasible.h"
#include "scheduler/planners/table.h"
#include "scheduler/rounds/rounds.h"
#include "scheduler/rounds/tight.h"
#include "scheduler/tree/proof.h"

static enum weft_status finish(struct weft_packed *run, struct weft_error *err)
{
    const struct weft_outcome *outcome = &run->outcome;
    struct weft_plan *plan = run->plan;
    if (outcome->certificate.n_nodes == 0 && !run->options->draft)
        WEFT_TRY(weft_proof_trivial(run->table, &run->pool, &run->outcome, err));
    plan->bound_ns = outcome->bound_ns;
    plan->bound_by = outcome->bound_by;
    plan->first_work = outcome->first_work;
    WEFT_TRY(weft_certificate_copy(&outcome->certificate, run->problem, &plan->pool,
                                   &plan->certificate, err));
    plan->solver_gap = outcome->solver_gap;
    plan->solver_stop = weft_pool_string(&plan->pool, outcome->solver_stop);
    if (!plan->solver_stop) return weft_fail_memory(err, "a plan");
    if (run->program) WEFT_TRY(weft_program_keep_layout(run->program, plan, err));
    char packing[WEFT_UNITS_TEXT_BYTES];
    weft_log(
        WEFT_LOG_DEBUG, "planner %s: packing costs %s above the largest row", run->planner->name,
        weft_units_show_bytes(plan->prediction.total_bytes - plan->prediction.peak_bytes, packing));
    return WEFT_OK;
}

static bool make_candidate(const struct weft_digest *table, struct weft_candidate *candidate)
{
    candidate->strategies = calloc((size_t)table->n_decisions + 1, sizeof *candidate->strategies);
    candidate->moves = calloc((size_t)table->n_blocks + 1, sizeof *candidate->moves);
    return candidate->strategies && candidate->moves;
}

static enum weft_status make_candidates(struct weft_packed *run, struct weft_error *err)
{
    run->room_bytes = calloc((size_t)run->table->n_slots, sizeof *run->room_bytes);
    bool made = run->room_bytes && make_candidate(run->table, &run->candidate) &&
                make_candidate(run->table, &run->shortest.candidate);
    for (int32_t i = 0; i < WEFT_NEAR_MISSES; i++)
        made = made && make_candidate(run->table, &run->near[i].candidate);
    if (!made) return weft_fail_memory(err, "a candidate");
    run->most_room_bytes = weft_tight_room(run->table, run->room_bytes);
    return WEFT_OK;
}

/* The least limit that the leanest plan fits after layout: packing it stops at its rows, which
 * nothing is below. They count a base of any size rounded up, so that base + arena may be less. */
static enum weft_status find_least_packed(struct weft_packed *run, int64_t *bytes,
                                          struct weft_error *err)
{
    struct weft_problem problem = *run->problem;
    const struct weft_problem *asked = run->problem;
    problem.memory_limit_bytes = run->table->least_bytes;
    run->problem = &problem;
    enum weft_status status = weft_packed_leanest(run, err);
    run->problem = asked;
    if (status == WEFT_OK) *bytes = weft_packed_total_bytes(run);
    if (status == WEFT_OK && *bytes < problem.memory_limit_bytes)
        *bytes = problem.memory_limit_bytes;
    weft_packed_keep(run, NULL, NULL);
    return status;
}

/* A rule that decides nothing even where memory is no matter cannot be applied to this problem:
 * WEFT_E_DATA with its reason, for no limit would help. */
static enum weft_status check_rule_applies(struct weft_packed *run, struct weft_error *err)
{
    struct weft_error refusal = {0};
    struct weft_outcome outcome = {.pool = &run->pool};
    if (!weft_planner_is_rule(run->planner)) return WEFT_OK;
    struct weft_problem ample = *run->problem;
    ample.memory_limit_bytes = INT64_MAX;
    enum weft_status status =
        run->planner->decide(&ample, run->options, &run->candidate, &outcome, &refusal);
    if (status == WEFT_E_INFEASIBLE) status = WEFT_E_DATA;
    return status == WEFT_OK ? WEFT_OK : weft_fail(err, status, "%s", refusal.text);
}

/* Refuses, with the limit at which the leanest plan does fit, if it is the limit's fault. */
static enum weft_status refuse(struct weft_packed *run, const char *refusal, struct weft_error *err)
{
    int64_t bytes;
    WEFT_TRY(check_rule_applies(run, err));
    WEFT_TRY(find_least_packed(run, &bytes, err));
    return weft_fail_infeasible(run->table, run->planner->name, refusal, run->inputs ? bytes : 0,
                                err);
}

static enum weft_status schedule(struct weft_packed *run, struct weft_error *err)
{
    struct weft_error refusal = {0};
    int64_t limit_bytes = run->problem->memory_limit_bytes;
    run->budget = run->options->budget;
    if (run->inputs) {
        run->limited = *run->inputs;
        run->limited.budget =
            weft_may_retreat(run->planner) ? run->budget : weft_budget_unlimited(run->budget.work);
        run->inputs = &run->limited;
    }
    WEFT_TRY(weft_digest_create(run->problem, &run->table, err));
    WEFT_TRY(make_candidates(run, err));
    if (run->table->least_bytes > limit_bytes) return refuse(run, "", err);
    enum weft_status status = weft_plan_in_rounds(run, &refusal);
    if (status == WEFT_E_INFEASIBLE) return refuse(run, refusal.text, err);
    if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
    if (weft_packed_total_bytes(run) > limit_bytes) return refuse(run, "", err);
    return finish(run, err);
}

static void free_candidate(struct weft_candidate *candidate)
{
    free(candidate->strategies);
    free(candidate->moves);
}

static void finish_run(struct weft_packed *run)
{
    weft_plan_destroy(run->plan);
    weft_program_destroy(run->program);
    weft_plan_destroy(run->best);
    weft_program_destroy(run->best_program);
    free_candidate(&run->candidate);
    free_candidate(&run->shortest.candidate);
    for (int32_t i = 0; i < WEFT_NEAR_MISSES; i++)
        free_candidate(&run->near[i].candidate);
    free(run->room_bytes);
    weft_pool_finish(&run->pool);
    weft_digest_destroy(run->table);
}

enum weft_status weft_least_packed_limit(const struct weft_problem *problem,
                                         const struct weft_lower_inputs *inputs, int64_t *bytes,
                                         struct weft_error *err)
{
    struct weft_schedule_options options = {.planner = "ilp"};
    struct weft_packed run = {.problem = problem, .inputs = inputs, .options = &options};
    run.planner = weft_planner_find(options.planner, NULL);
    enum weft_status status = weft_digest_create(problem, &run.table, err);
    if (status == WEFT_OK) status = make_candidates(&run, err);
    if (status == WEFT_OK) status = find_least_packed(&run, bytes, err);
    finish_run(&run);
    return status;
}

enum weft_status weft_schedule(const struct weft_problem *problem,
                               const struct weft_lower_inputs *inputs,
                               const struct weft_schedule_options *options, struct weft_plan **plan,
                               struct weft_program **program, struct weft_error *err)
{
    struct weft_packed run = {.problem = problem, .inputs = inputs};
    struct weft_schedule_options own = *options;
    if (!own.planner) own.planner = "ilp";
    WEFT_TRY(weft_planner_need(own.planner, err));
    run.planner = weft_planner_find(own.planner, &own.setting);
    run.options = &own;
    enum weft_status status = schedule(&run, err);
    if (status == WEFT_OK) {
        *plan = run.plan;
        run.plan = NULL;
        if (program) {
            *program = run.program;
            run.program = NULL;
        }
    }
    finish_run(&run);
    return status;
}
