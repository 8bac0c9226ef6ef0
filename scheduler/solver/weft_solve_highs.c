/* SPDX-License-Identifier: Apache-2.0 */
/* weft-solve-highs: solves linear and integer programs with HiGHS, on one thread. It is a separate
 * program that shares only the protocol of lp.h with Weft (serve.h). WEFT_SOLVE names it to `weft`.
 */
#include <interfaces/highs_c_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/solver/serve.h"

struct solver {
    struct weft_serve serve; /* first */
    void *highs;
};

static const char *failed = "HiGHS refused the program, or out of memory";

static void *need_array(struct weft_serve *serve, int64_t n, size_t size)
{
    return weft_pool_array(&serve->pool, (size_t)n + 1, size);
}

/* The rows' first entries as HiGHS counts them; NULL: too many entries, or no memory. */
static HighsInt *row_starts(struct weft_serve *serve, const struct weft_lp_rows *rows)
{
    const int64_t first = rows->n > 0 ? rows->start[0] : 0;
    HighsInt *starts = need_array(serve, rows->n, sizeof *starts);
    if (!starts || (rows->n > 0 && rows->start[rows->n] - first > INT32_MAX)) return NULL;
    starts[rows->n] = 0;
    for (int32_t i = 0; rows->n > 0 && i <= rows->n; i++)
        starts[i] = (HighsInt)(rows->start[i] - first);
    return starts;
}

static bool load_program(struct solver *solver)
{
    const struct weft_lp *lp = &solver->serve.lp;
    const struct weft_lp_rows rows = weft_lp_rows(lp, 0);
    const HighsInt *starts = row_starts(&solver->serve, &rows);
    HighsInt *kinds = need_array(&solver->serve, lp->n_columns, sizeof *kinds);
    if (!starts || !kinds) return false;
    for (int32_t j = 0; j < lp->n_columns; j++)
        kinds[j] = lp->integer && lp->integer[j] ? kHighsVarTypeInteger : kHighsVarTypeContinuous;
    const HighsInt status = Highs_passMip(
        solver->highs, lp->n_columns, lp->n_rows, starts[lp->n_rows], kHighsMatrixFormatRowwise,
        kHighsObjSenseMinimize, 0, lp->cost, lp->lower, lp->upper, lp->row_lower, lp->row_upper,
        starts, lp->column, lp->value, kinds);
    if (status == kHighsStatusError) return false;
    if (!lp->integer) Highs_clearIntegrality(solver->highs);
    return true;
}

static bool change_program(struct solver *solver, const struct weft_lp_changes *changes)
{
    bool ok = true;
    const struct weft_lp_rows *added = &changes->added;
    for (int k = 0; k < changes->columns.n; k++)
        ok &= Highs_changeColBounds(solver->highs, changes->columns.index[k],
                                    changes->columns.lower[k],
                                    changes->columns.upper[k]) != kHighsStatusError;
    for (int k = 0; k < changes->rows.n; k++)
        ok &= Highs_changeRowBounds(solver->highs, changes->rows.index[k], changes->rows.lower[k],
                                    changes->rows.upper[k]) != kHighsStatusError;
    if (added->n == 0) return ok;
    const HighsInt *starts = row_starts(&solver->serve, added);
    return ok && starts &&
           Highs_addRows(solver->highs, added->n, added->lower, added->upper, starts[added->n],
                         starts, added->column + added->start[0],
                         added->value + added->start[0]) != kHighsStatusError;
}

static HighsInt run_highs(struct solver *solver, const char *presolve)
{
    const int64_t limit = solver->serve.limits.iterations;
    const bool is_limited = limit > 0 && limit < INT32_MAX;
    Highs_setStringOptionValue(solver->highs, "presolve", presolve);
    Highs_setIntOptionValue(solver->highs, "simplex_iteration_limit",
                            is_limited && !solver->serve.lp.integer ? (HighsInt)limit : INT32_MAX);
    if (Highs_run(solver->highs) == kHighsStatusError) return kHighsModelStatusSolveError;
    return Highs_getModelStatus(solver->highs);
}

/* From no basis the presolver runs first. Its answer on feasibility is no proof, so the simplex
 * method decides. */
static HighsInt solve_cold(struct solver *solver)
{
    const HighsInt status = run_highs(solver, "on");
    if (status != kHighsModelStatusInfeasible && status != kHighsModelStatusUnboundedOrInfeasible)
        return status;
    Highs_clearSolver(solver->highs);
    return run_highs(solver, "off");
}

static HighsInt solve_warm(struct solver *solver)
{
    const HighsInt status = run_highs(solver, "off");
    if (status == kHighsModelStatusOptimal || status == kHighsModelStatusInfeasible ||
        status == kHighsModelStatusIterationLimit)
        return status;
    Highs_clearSolver(solver->highs);
    return solve_cold(solver);
}

static const char *name_stop(HighsInt status)
{
    if (status == kHighsModelStatusOptimal) return "optimal";
    if (status == kHighsModelStatusInfeasible) return "infeasible";
    if (status == kHighsModelStatusIterationLimit || status == kHighsModelStatusInterrupt)
        return "iteration limit";
    return "the program was not solved";
}

/* The point at which HiGHS ended. An integer program has no multipliers. */
static void take_point(struct solver *solver, bool optimal)
{
    struct weft_serve *serve = &solver->serve;
    struct weft_lp_result *result = &serve->result;
    const struct weft_lp *lp = &serve->lp;
    double *x = need_array(serve, lp->n_columns, sizeof *x);
    double *duals = need_array(serve, lp->n_rows, sizeof *duals);
    double *unused = need_array(serve, lp->n_columns + (int64_t)lp->n_rows, sizeof *unused);
    if (!x || !duals || !unused ||
        Highs_getSolution(solver->highs, x, unused, unused + lp->n_columns, duals) ==
            kHighsStatusError) {
        result->stop = "out of memory";
        return;
    }
    result->x = x;
    result->duals = lp->integer ? NULL : duals;
    result->value = Highs_getObjectiveValue(solver->highs);
    if (optimal) result->bound = result->value;
    result->status = optimal ? WEFT_LP_OPTIMAL : WEFT_LP_FEASIBLE;
}

/* The dual method's objective rises to the optimum once its basis is feasible. */
static void take_bound(struct solver *solver)
{
    HighsInt n_faults = -1, is_valid = 0;
    Highs_getIntInfoValue(solver->highs, "num_dual_infeasibilities", &n_faults);
    Highs_getIntInfoValue(solver->highs, "basis_validity", &is_valid);
    if (n_faults == 0 && is_valid != 0)
        solver->serve.result.bound = Highs_getObjectiveValue(solver->highs);
}

static void take_answer(struct solver *solver, HighsInt status)
{
    struct weft_lp_result *result = &solver->serve.result;
    HighsInt iterations = 0, feasible = 0;
    Highs_getIntInfoValue(solver->highs, "simplex_iteration_count", &iterations);
    Highs_getIntInfoValue(solver->highs, "primal_solution_status", &feasible);
    result->iterations = iterations > 0 ? iterations : 0;
    result->stop = name_stop(status);
    if (status == kHighsModelStatusInfeasible) {
        result->status = WEFT_LP_INFEASIBLE;
    } else if (status == kHighsModelStatusOptimal) {
        take_point(solver, true);
    } else if (solver->serve.lp.integer) {
        Highs_getDoubleInfoValue(solver->highs, "mip_dual_bound", &result->bound);
        if (feasible == kHighsSolutionStatusFeasible) take_point(solver, false);
    } else {
        take_bound(solver);
    }
}

/* Ends the tree of an integer program at the limit of iterations. */
static void watch_tree(int kind, const char *message, const HighsCallbackDataOut *out,
                       HighsCallbackDataIn *in, void *info)
{
    const struct solver *solver = info;
    const int64_t limit = solver->serve.limits.iterations;
    (void)kind;
    (void)message;
    if (in) in->user_interrupt = limit > 0 && out->mip_total_lp_iterations >= limit;
}

static HighsInt solve_whole(struct solver *solver)
{
    if (solver->serve.lp.start)
        Highs_setSolution(solver->highs, solver->serve.lp.start, NULL, NULL, NULL);
    Highs_setCallback(solver->highs, watch_tree, solver);
    Highs_startCallback(solver->highs, kHighsCallbackMipInterrupt);
    const HighsInt status = run_highs(solver, "on");
    Highs_stopCallback(solver->highs, kHighsCallbackMipInterrupt);
    return status;
}

static void solve_question(struct weft_serve *serve, const struct weft_lp_changes *changes)
{
    struct solver *solver = (struct solver *)serve;
    if (!(changes ? change_program(solver, changes) : load_program(solver))) {
        serve->result.stop = failed;
        serve->n_columns = -1;
        return;
    }
    take_answer(solver, changes             ? solve_warm(solver)
                        : serve->lp.integer ? solve_whole(solver)
                                            : solve_cold(solver));
    /* No changes to an integer program are answered. */
    serve->n_columns = serve->lp.integer ? -1 : Highs_getNumCol(solver->highs);
    serve->n_rows = Highs_getNumRow(solver->highs);
}

static const struct weft_serve_solver highs = {
    .name = "HiGHS", .version = Highs_version, .is_named = true, .solve = solve_question};

int main(int argc, char **argv)
{
    static struct solver solver = {.serve = {.solver = &highs}};
    solver.highs = Highs_create();
    if (!solver.highs) {
        fprintf(stderr, "weft-solve-highs: HiGHS does not start: out of memory\n");
        return weft_status_exit_code(WEFT_E_SYSTEM);
    }
    Highs_setBoolOptionValue(solver.highs, "output_flag", 0);
    Highs_setStringOptionValue(solver.highs, "parallel", "off");
    Highs_setStringOptionValue(solver.highs, "solver", "simplex");
    Highs_setIntOptionValue(solver.highs, "threads", 1);
    const int code = weft_serve_main(&solver.serve, argc, argv);
    Highs_destroy(solver.highs);
    return code;
}
