/* SPDX-License-Identifier: Apache-2.0 */
/* Policies by another planner, then blocks in slots by the integer program. */
#include <stdio.h>
#include <string.h>

#include "scheduler/planners/planners.h"
#include "scheduler/planners/seed/seed.h"

/* Most iterations of the solver, and the part of the remaining budget for them. An iteration looks
 * at all columns, and these programs have ten times as many columns as rows. */
enum { MOST_ITERATIONS = 3000, BUDGET_PART = 2, COLUMN_UNITS = 100 };

/* Part of a memory row's room that stays free in the second try. */
static const double SLACK = 1e-6;

const struct weft_setting weft_seed_settings[] = {
    {"two-stage", {0}},
    {"ilp", {1}},
    {NULL, {0}},
};

struct seed_run {
    const struct weft_problem *problem;
    const struct weft_schedule_options *options;
    struct weft_candidate *out;
    struct weft_outcome *outcome;
    const char *policies; /* the planner that chose them */
};

/* Chooses the policies, and a placement of them. */
static enum weft_status choose_policies(struct seed_run *run, struct weft_error *err)
{
    struct weft_schedule_options own = *run->options;
    struct weft_outcome none = {.pool = run->outcome->pool};
    const int64_t *values = weft_draft_values(run->options, weft_seed_settings);
    own.setting = NULL;
    own.draft = true;
    if (values[0] == 0) {
        run->policies = "two-stage";
        return weft_planner_two_stage(run->problem, &own, run->out, &none, err);
    }
    run->policies = "ilp";
    own.budget = weft_budget_part(own.budget, 0.5);
    return weft_planner_ilp(run->problem, &own, run->out, &none, err);
}

static enum weft_status ask_solver(const struct seed_run *run, struct weft_seed *seed,
                                   struct weft_lp_result *result, struct weft_error *err)
{
    const struct weft_solver *solver = &run->options->solver;
    const struct weft_budget budget = run->options->budget;
    struct weft_error failure = {0};
    const int64_t iteration_units =
        COLUMN_UNITS * ((int64_t)seed->lp.n_columns + seed->lp.n_rows) + 1;
    const int64_t left = weft_budget_left(budget) / BUDGET_PART / iteration_units + 1;
    const struct weft_lp_limits limits = {.iterations =
                                              left < MOST_ITERATIONS ? left : MOST_ITERATIONS,
                                          .patience_ns = weft_work_alarm_left_ns(budget.work)};
    const enum weft_status status =
        solver->solve(solver->context, &seed->lp, &limits, &seed->pool, result, &failure);
    if (status != WEFT_OK)
        return weft_fail(err, status, "planner seed-ilp: weft-solve: %s", failure.text);
    weft_work_spend(budget.work, result->iterations * iteration_units);
    return WEFT_OK;
}

/* Tells if the program was solved, and otherwise how far its overlap may be from the best. */
static void tell_gap(const struct seed_run *run, const struct weft_lp_result *result)
{
    char *stop = run->outcome->solver_stop;
    const size_t room = sizeof run->outcome->solver_stop;
    if (result->status == WEFT_LP_OPTIMAL) {
        snprintf(stop, room, "overlap solved for policies of %s", run->policies);
    } else if (result->status == WEFT_LP_FEASIBLE && result->value < 0) {
        snprintf(stop, room, "%.60s, overlap not solved for policies of %s: gap %.2f %%",
                 result->stop, run->policies, 100 * (result->bound / result->value - 1));
    } else {
        snprintf(stop, room, "%.60s, overlap not solved for policies of %s: its start is kept",
                 result->stop, run->policies);
    }
}

/* Solves the program. *over: its answer exceeds a memory row, by the solver's rounding. */
static enum weft_status solve_overlap(const struct seed_run *run, struct weft_seed *seed,
                                      bool *over, struct weft_error *err)
{
    struct weft_lp_result result = {0};
    struct weft_candidate *out = run->out;
    WEFT_TRY(weft_seed_start(seed, out->moves, out->n_moves, err));
    WEFT_TRY(ask_solver(run, seed, &result, err));
    tell_gap(run, &result);
    if (result.status == WEFT_LP_INFEASIBLE)
        return weft_fail(err, WEFT_E_INFEASIBLE,
                         "planner seed-ilp: no slots for the blocks of its policies keep every "
                         "memory row within the limit");
    if (result.x) {
        struct weft_error refusal = {0};
        struct weft_move *moves =
            weft_pool_array(&seed->pool, (size_t)seed->n_blocks + 1, sizeof *moves);
        int32_t n_moves = 0;
        if (!moves) return weft_fail_memory(err, "moves");
        const enum weft_status status =
            weft_seed_read(seed, result.x, moves, &n_moves, over, &refusal);
        if (*over) return WEFT_OK;
        if (status != WEFT_OK)
            return weft_fail(err, status, "planner seed-ilp: weft-solve: %s", refusal.text);
        memcpy(out->moves, moves, (size_t)n_moves * sizeof *moves);
        out->n_moves = n_moves;
        return weft_seed_order(seed, out->moves, out->n_moves, err);
    }
    return WEFT_OK;
}

enum weft_status weft_planner_seed(const struct weft_problem *problem,
                                   const struct weft_schedule_options *options,
                                   struct weft_candidate *out, struct weft_outcome *outcome,
                                   struct weft_error *err)
{
    struct seed_run run = {problem, options, out, outcome, ""};
    bool over = true;
    if (!options->solver.solve)
        return weft_fail(err, WEFT_E_ENVIRONMENT,
                         "planner seed-ilp: it needs weft-solve, and this program has no solver");
    enum weft_status status = choose_policies(&run, err);
    for (int i = 0; i < 2 && over && status == WEFT_OK; i++) {
        struct weft_seed seed;
        over = false;
        status = weft_seed_init(&seed, problem, out->strategies, i == 0 ? 0 : SLACK, err);
        if (status == WEFT_OK) status = solve_overlap(&run, &seed, &over, err);
        weft_seed_finish(&seed);
    }
    if (options->solver.release) options->solver.release(options->solver.context);
    if (status == WEFT_OK && over)
        status = weft_fail(err, WEFT_E_DATA,
                           "planner seed-ilp: weft-solve: its answer exceeds a memory limit");
    return status;
}
