/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/paged_try.h"

#include <stdlib.h>

#include "problem/early.h"
#include "program/predict.h"
#include "scheduler/place/micro_steps.h"
#include "scheduler/planners/table.h"

int64_t weft_paged_total_bytes(const struct weft_paged *run)
{
    return run->plan->prediction.total_bytes;
}

bool weft_paged_fits(const struct weft_paged *run)
{
    return run->plan && weft_paged_total_bytes(run) <= run->problem->tiers[0].limit_bytes;
}

bool weft_paged_is_late(const struct weft_paged *run)
{
    return weft_budget_has_rung(run->budget) || weft_work_is_late(run->budget.work);
}

int64_t weft_paged_plan_units(const struct weft_paged *run)
{
    /* Costs of a block and of a slot: a placement, four passes over it, and its pages. */
    enum { BLOCK_UNITS = 500, SLOT_UNITS = 3000 };
    return BLOCK_UNITS * (int64_t)run->table->n_blocks + SLOT_UNITS * (int64_t)run->table->n_slots;
}

bool weft_paged_is_small(const struct weft_paged *run)
{
    /* Work after a small budget has this end at least, so that rules of little problems follow. */
    enum { FEW_OF_ALL = 32, FEW = 8, LEAST_UNITS = 100000000 };
    const struct weft_work *work = run->budget.work;
    const int64_t units = weft_paged_plan_units(run);
    if (run->inputs == NULL || work == NULL || work->limit <= 0) return false;
    const int64_t most = work->limit > LEAST_UNITS ? work->limit : LEAST_UNITS;
    return most / FEW_OF_ALL < units && weft_budget_left(run->budget) / FEW < units;
}

const struct weft_outcome *weft_paged_bound_of(const struct weft_paged *run, int64_t page_bytes)
{
    if (page_bytes == run->bound_page_bytes) return &run->paged_outcome;
    return page_bytes == run->large_page_bytes ? &run->large_outcome : NULL;
}

static bool is_above(const struct weft_paged *run, int64_t bound_ns)
{
    const double gap = run->options->gap > 1e-4 ? run->options->gap : 1e-4;
    return (double)run->plan->prediction.step_ns > (double)bound_ns * (1 + gap);
}

bool weft_paged_is_open_in_rows(const struct weft_paged *run)
{
    return is_above(run, run->outcome.bound_ns);
}

bool weft_paged_is_open(const struct weft_paged *run)
{
    const struct weft_outcome *paged =
        run->program ? weft_paged_bound_of(run, run->program->paging->page_bytes) : NULL;
    return weft_paged_is_open_in_rows(run) && (!paged || is_above(run, paged->bound_ns));
}

void weft_paged_keep(struct weft_paged *run, struct weft_plan *plan, struct weft_program *program)
{
    weft_plan_destroy(run->plan);
    weft_program_destroy(run->program);
    run->plan = plan;
    run->program = program;
}

struct weft_paged_aside weft_paged_put_aside(struct weft_paged *run)
{
    struct weft_paged_aside aside = {run->plan, run->program};
    run->plan = NULL;
    run->program = NULL;
    return aside;
}

void weft_paged_drop_aside(struct weft_paged_aside aside)
{
    weft_plan_destroy(aside.plan);
    weft_program_destroy(aside.program);
}

void weft_paged_keep_faster(struct weft_paged *run, struct weft_paged_aside aside)
{
    bool better = weft_paged_fits(run) &&
                  (!aside.plan || run->plan->prediction.step_ns <
                                      aside.plan->prediction.step_ns + run->takes_equal);
    if (better)
        weft_paged_drop_aside(aside);
    else
        weft_paged_keep(run, aside.plan, aside.program);
}

/* The problem with the rows for planners' decisions. */
static const struct weft_problem *rows_of(const struct weft_paged *run)
{
    return run->rows ? run->rows : run->problem;
}

/* Makes the candidate's plan. Moves its blocks apart as far as rows stay within `rows_bytes`; 0:
 * leaves them. */
static enum weft_status measure_plan(const struct weft_paged *run, int64_t rows_bytes,
                                     struct weft_plan **out, struct weft_error *err)
{
    const struct weft_candidate *candidate = &run->candidate;
    struct weft_plan *plan = NULL;
    enum weft_status status;
    const int64_t passes = rows_bytes > 0 ? 4 : 1; /* moving apart takes several passes */
    weft_work_spend(run->budget.work, passes * (100 * (int64_t)candidate->n_moves +
                                                300 * (int64_t)run->problem->n_slots));
    WEFT_TRY(weft_plan_create(rows_of(run), run->options->planner, candidate->strategies,
                              candidate->moves, candidate->n_moves, &plan, err));
    if (rows_bytes > 0) WEFT_TRY_GOTO(fail, weft_plan_relax(plan, rows_bytes, err));
    plan->problem = run->problem; /* it has the same decisions and items */
    WEFT_TRY_GOTO(fail, weft_plan_predict(plan, err));
    *out = plan;
    return WEFT_OK;
fail:
    weft_plan_destroy(plan);
    return status;
}

/* The same, but leaves the blocks if moving them apart makes the step longer. */
static enum weft_status measure_faster(const struct weft_paged *run, int64_t rows_bytes,
                                       struct weft_plan **out, struct weft_error *err)
{
    struct weft_plan *relaxed = NULL, *plain = NULL;
    WEFT_TRY(measure_plan(run, rows_bytes, &relaxed, err));
    *out = relaxed;
    if (rows_bytes == 0 || !weft_problem_relaxing_may_slow(run->problem)) return WEFT_OK;
    enum weft_status status = measure_plan(run, 0, &plain, err);
    if (status == WEFT_OK && plain->prediction.step_ns < relaxed->prediction.step_ns) {
        *out = plain;
        plain = relaxed;
    }
    weft_plan_destroy(plain);
    if (status != WEFT_OK) weft_plan_destroy(relaxed);
    return status;
}

/* Makes the candidate's plan, with blocks in place of micro-steps. */
static enum weft_status place_plan(const struct weft_paged *run, int64_t rows_bytes,
                                   struct weft_plan **out, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    /* If the host runs ahead, own gathers are early without a byte. */
    if (weft_problem_is_early(run->problem)) rows_bytes = 0;
    WEFT_TRY(measure_faster(run, rows_bytes, &plan, err));
    const enum weft_status placed = weft_place_micro_steps(plan, err);
    if (placed != WEFT_OK) {
        weft_plan_destroy(plan);
        return placed;
    }
    *out = plan;
    return WEFT_OK;
}

/* Lowers a plan, if there are pages, and predicts its bytes. */
static enum weft_status page_plan(const struct weft_paged *run, struct weft_plan *plan,
                                  struct weft_program **program, struct weft_error *err)
{
    plan->prediction.total_bytes = plan->prediction.peak_bytes;
    *program = NULL;
    if (!run->inputs) return WEFT_OK;
    weft_work_spend(run->budget.work,
                    1000 * (int64_t)run->problem->n_slots + 60 * (int64_t)plan->n_placements);
    WEFT_TRY(weft_program_lower(plan, run->inputs, program, err));
    plan->prediction.arena_bytes = (*program)->arena_bytes;
    plan->prediction.total_bytes = weft_program_outside_bytes(*program) + (*program)->arena_bytes;
    return WEFT_OK;
}

static bool is_below(const struct weft_paged *run, const struct weft_plan *plan)
{
    return run->below_ns == 0 || plan->prediction.step_ns < run->below_ns;
}

/* Lowers the candidate's plan, and keeps it if it takes less than the one kept before. Drops a plan
 * that is not below run->below_ns. */
static enum weft_status lower_plan(struct weft_paged *run, int64_t rows_bytes,
                                   struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    WEFT_TRY(place_plan(run, rows_bytes, &plan, err));
    const enum weft_status status =
        is_below(run, plan) ? page_plan(run, plan, &program, err) : WEFT_OK;
    if (status != WEFT_OK || !is_below(run, plan)) {
        weft_plan_destroy(plan);
        return status;
    }
    if (!run->plan || plan->prediction.total_bytes < weft_paged_total_bytes(run)) {
        weft_paged_keep(run, plan, program);
    } else {
        weft_plan_destroy(plan);
        weft_program_destroy(program);
    }
    return WEFT_OK;
}

enum weft_status weft_paged_within(struct weft_paged *run, int64_t rows_bytes, int64_t *peak_bytes,
                                   struct weft_error *err)
{
    const int64_t limit_bytes = run->problem->tiers[0].limit_bytes;
    struct weft_plan *plan = NULL;
    struct weft_program *program = NULL;
    WEFT_TRY(place_plan(run, rows_bytes, &plan, err));
    *peak_bytes = plan->prediction.peak_bytes;
    const bool counts = is_below(run, plan) && *peak_bytes <= limit_bytes;
    const enum weft_status status = counts ? page_plan(run, plan, &program, err) : WEFT_OK;
    if (status != WEFT_OK || !counts) {
        weft_plan_destroy(plan);
        return status;
    }
    weft_paged_keep(run, plan, program);
    return WEFT_OK;
}

enum weft_status weft_paged_measure(const struct weft_paged *run, int64_t rows_bytes,
                                    int64_t *step_ns, int64_t *peak_bytes, struct weft_error *err)
{
    struct weft_plan *plan = NULL;
    WEFT_TRY(place_plan(run, rows_bytes, &plan, err));
    *step_ns = plan->prediction.step_ns;
    *peak_bytes = plan->prediction.peak_bytes;
    weft_plan_destroy(plan);
    return WEFT_OK;
}

enum weft_status weft_paged_again(struct weft_paged *run, int64_t page_bytes,
                                  struct weft_error *err)
{
    const int64_t own_bytes = run->counted.page_bytes;
    struct weft_program *program = NULL;
    run->counted.page_bytes = page_bytes;
    const enum weft_status status = page_plan(run, run->plan, &program, err);
    run->counted.page_bytes = own_bytes;
    WEFT_TRY(status);
    weft_program_destroy(run->program);
    run->program = program;
    return WEFT_OK;
}

enum weft_status weft_paged_candidate(struct weft_paged *run, int64_t rows_bytes, bool literal,
                                      struct weft_error *err)
{
    for (int i = 0; i < 2 && !literal && rows_bytes > 0; i++) {
        if (weft_budget_has_rung(run->budget)) break;
        if (run->is_small && weft_paged_is_late(run)) break;
        WEFT_TRY(lower_plan(run, rows_bytes, err));
        if (!run->plan || weft_paged_fits(run)) return WEFT_OK;
        rows_bytes -= weft_paged_total_bytes(run) - run->problem->tiers[0].limit_bytes;
    }
    return lower_plan(run, 0, err);
}

enum weft_status weft_paged_ask(struct weft_paged *run, const struct weft_paged_question *question,
                                struct weft_outcome *outcome, struct weft_error *err)
{
    struct weft_schedule_options options = *run->options;
    struct weft_problem rows = *rows_of(run);
    const bool has_start = question->start != NULL;
    if (run->planner->decide != weft_planner_ilp) options.n_starts = 0;
    const struct weft_plan **starts = calloc((size_t)options.n_starts + 1, sizeof *starts);
    if (!starts) return weft_fail_memory(err, "plans to start from");
    if (has_start) starts[0] = question->start;
    for (int32_t i = 0; i < options.n_starts; i++)
        starts[has_start + i] = options.starts[i];
    options.n_starts += has_start;
    options.starts = starts;
    rows.tiers[0].limit_bytes = question->rows_bytes;
    options.budget = weft_budget_part(run->budget, run->inputs ? question->part : 1);
    options.draft = options.draft || question->draft;
    options.table = run->table;
    options.hidden = options.hidden || question->hidden;
    *outcome = (struct weft_outcome){.pool = &run->pool};
    weft_paged_keep(run, NULL, NULL);
    enum weft_status status =
        weft_planner_decide(run->planner, &rows, &options, &run->candidate, outcome, err);
    free(starts);
    if (status != WEFT_OK) return status;
    return weft_paged_candidate(run, question->rows_bytes, run->planner->literal, err);
}
