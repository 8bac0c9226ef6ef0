/* The joint plan. The relaxation proves a bound; its rounding, patterns, greedy changes and local
 * search make incumbents by list scheduling; branch and bound gets the best of them and whatever is
 * left of the gap. Every plan is judged by its simulated time, never by the program's objective. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/bound.h"
#include "scheduler/planners/planners.h"
#include "scheduler/search.h"

/* Columns of counts up to which the root relaxation takes about a second. */
enum { MOST_COLUMNS = 4000 };
/* Work limits; they stop a run at the same point on every machine, the time limit does not. Tries
 * of local search and nodes of the tree are these divided by the size of what one costs. */
enum { SEARCH_WORK = 4000000, ROOT_WORK = 60, NODE_WORK = 100000, TREE_ITERATIONS = 10000 };

struct run {
    const struct weft_digest *table;
    const struct weft_schedule_options *options;
    struct weft_search *search;
    struct weft_ilp *ilp;
    struct weft_outcome *outcome;
    struct weft_pool pool;
};

static void set_stop(struct weft_outcome *outcome, const char *what, const char *detail)
{
    snprintf(outcome->solver_stop, sizeof outcome->solver_stop, "%.60s%s%.180s", what,
             *detail ? ": " : "", detail);
}

/* Step time at which the gap is closed. */
static int64_t enough_ns(const struct run *run)
{
    return (int64_t)((double)run->outcome->bound_ns * (1 + run->options->gap));
}

static bool is_enough(const struct run *run)
{
    return run->search->step_ns <= enough_ns(run);
}

static int64_t time_share(const struct run *run)
{
    return run->options->time_limit_ns / 2;
}

/* The relaxation: a bound from its multipliers, plans from its solution. */
static enum weft_status solve_root(struct run *run, struct weft_error *err)
{
    struct weft_mip_result result = {0};
    struct weft_error failure = {0};
    const struct weft_mip *mip = &run->ilp->mip;
    struct weft_mip_limits limits = {
        .iterations = ROOT_WORK * ((int64_t)mip->n_rows + mip->n_columns),
        .nodes = -1,
        .time_ns = time_share(run),
        .gap = run->options->gap,
    };
    const struct weft_solver *solver = &run->options->solver;
    if (solver->solve(solver->context, mip, &limits, &run->pool, &result, &failure) != WEFT_OK) {
        set_stop(run->outcome, "solver failed", failure.text);
        return WEFT_OK;
    }
    if (!result.has_lp) {
        set_stop(run->outcome, "no relaxation", result.stop);
        return WEFT_OK;
    }
    long double bound;
    WEFT_TRY(weft_bound(mip, result.row_duals, &bound, err));
    if (isfinite(bound) && weft_ilp_ns(run->ilp, bound) > run->outcome->bound_ns) {
        run->outcome->bound_ns = weft_ilp_ns(run->ilp, bound);
        run->outcome->bound_by = "lp relaxation, weak duality";
    }
    weft_search_round(run->search, run->ilp, result.lp_x);
    double lp_ns = ldexp(result.lp_value, run->ilp->time_shift);
    if (lp_ns > 0) {
        double gap = (double)run->search->step_ns / lp_ns - 1;
        run->outcome->solver_gap = gap > 0 ? gap : 0;
    }
    set_stop(run->outcome, "gap closed at the root", "");
    return WEFT_OK;
}

static enum weft_status replay(struct run *run, const double *x, struct weft_error *err)
{
    struct weft_search *search = run->search;
    weft_ilp_policies(run->ilp, x, search->other);
    if (!weft_search_fits(search, search->other)) return WEFT_OK;
    weft_search_try(search, search->other);
    for (int order = 0; order < WEFT_ILP_ORDER_COUNT; order++) {
        int32_t n_moves = 0;
        if (weft_ilp_moves(run->ilp, x, search->other, (enum weft_ilp_order)order,
                           search->trial_moves, &n_moves))
            WEFT_TRY(
                weft_search_try_moves(search, search->other, search->trial_moves, n_moves, err));
    }
    return WEFT_OK;
}

static enum weft_status solve_tree(struct run *run, struct weft_error *err)
{
    struct weft_mip_result result = {0};
    struct weft_error failure = {0};
    struct weft_mip *mip = &run->ilp->mip;
    const struct weft_search *search = run->search;
    const struct weft_solver *solver = &run->options->solver;
    struct weft_mip_limits limits = {
        .iterations = TREE_ITERATIONS,
        .nodes = NODE_WORK / (mip->n_columns + 1) + 1,
        .time_ns = time_share(run),
        .gap = run->options->gap,
    };
    double *incumbent = weft_pool_array(&run->pool, (size_t)mip->n_columns, sizeof *incumbent);
    if (!incumbent) return weft_fail_memory(err, "an incumbent");
    if (weft_ilp_point(run->ilp, search->policies, search->moves, search->n_moves, incumbent)) {
        mip->incumbents = &incumbent;
        mip->n_incumbents = 1;
    }
    enum weft_status failed =
        solver->solve(solver->context, mip, &limits, &run->pool, &result, &failure);
    mip->incumbents = NULL;
    mip->n_incumbents = 0;
    if (failed != WEFT_OK) {
        set_stop(run->outcome, "solver failed", failure.text);
        return WEFT_OK;
    }
    set_stop(run->outcome, result.stop, "");
    if (!result.x) return WEFT_OK;
    if (result.objective > 0 && isfinite(result.objective) && isfinite(result.bound)) {
        double gap = (result.objective - result.bound) / result.objective;
        run->outcome->solver_gap = gap > 0 ? gap : 0;
    }
    return replay(run, result.x, err);
}

static enum weft_status decide(struct run *run, int64_t limit_bytes, struct weft_error *err)
{
    struct weft_search *search = run->search;
    weft_search_patterns(search);
    weft_search_greedy(search);
    if (search->step_ns < 0)
        return weft_fail(err, WEFT_E_INFEASIBLE, "planner ilp: not even the leanest plan fits");
    run->outcome->bound_ns = weft_bound_trivial(run->table->problem, &run->outcome->bound_by);
    const struct weft_digest *table = run->table;
    int64_t tries = SEARCH_WORK / (table->n_blocks + table->n_slots + 1) + 1;
    if (!run->options->solver.solve) {
        set_stop(run->outcome, "no solver", "");
        weft_search_improve(search, tries, enough_ns(run));
        return WEFT_OK;
    }
    WEFT_TRY(weft_ilp_create(table, limit_bytes, MOST_COLUMNS, &run->ilp, err));
    WEFT_TRY(solve_root(run, err));
    if (!is_enough(run)) weft_search_improve(search, tries, enough_ns(run));
    if (is_enough(run) || strncmp(run->outcome->solver_stop, "gap", 3) != 0) return WEFT_OK;
    return solve_tree(run, err);
}

enum weft_status weft_planner_ilp(const struct weft_problem *problem, int64_t limit_bytes,
                                  const struct weft_schedule_options *options,
                                  struct weft_candidate *out, struct weft_outcome *outcome,
                                  struct weft_error *err)
{
    struct weft_digest *table = NULL;
    struct run run = {.options = options, .outcome = outcome};
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_digest_create(problem, &table, err));
    run.table = table;
    WEFT_TRY_GOTO(done, weft_search_create(table, limit_bytes, &run.search, err));
    WEFT_TRY_GOTO(done, decide(&run, limit_bytes, err));
    weft_search_result(run.search, out);
done:
    weft_ilp_destroy(run.ilp);
    weft_search_destroy(run.search);
    weft_digest_destroy(table);
    weft_pool_finish(&run.pool);
    return status;
}
