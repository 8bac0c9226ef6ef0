/* SPDX-License-Identifier: GPL-3.0-or-later */
/* weft-solve: solves linear and integer programs with GLPK. It is a separate program that shares
 * only the protocol of lp.h with Weft (serve.h).
 *
 * Copyright (C) 2026 The Weft authors
 *
 * This program is free software: you can redistribute it and/or modify it under the terms of the
 * GNU General Public License as published by the Free Software Foundation, either version 3 of the
 * License, or (at your option) any later version.
 *
 * This program is distributed in the hope that it will be useful, but WITHOUT ANY WARRANTY; without
 * even the implied warranty of MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the GNU
 * General Public License for more details.
 *
 * You should have received a copy of the GNU General Public License along with this program. If
 * not, see <https://www.gnu.org/licenses/>.
 *
 * SPDX-License-Identifier: GPL-3.0-or-later */
#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/solver/serve.h"

struct solver {
    struct weft_serve serve;  /* first */
    glp_prob *problem;        /* with its last basis; NULL: none that could be changed */
    int64_t start_iterations; /* of the problem's count */
    char complaint[160];      /* first line of GLPK's message when it gave up */
    const double *offer;      /* a feasible point that the tree has not been given; NULL: none */
    bool ended;               /* the tree, by its limit */
    jmp_buf broken;
};

/* Keeps GLPK's last message off stdout, which is the protocol. GLPK prints it despite glp_term_out.
 */
static int keep_complaint(void *info, const char *text)
{
    struct solver *solver = info;
    if (!solver->complaint[0])
        snprintf(solver->complaint, sizeof solver->complaint, "GLPK gave up: %.*s",
                 (int)strcspn(text, "\n"), text);
    return 1;
}

/* GLPK ends a program that runs out of memory or fails one of its assertions. This leaves its hook
 * instead. Afterwards only the environment may be freed. */
static void break_out(void *info)
{
    struct solver *solver = info;
    longjmp(solver->broken, 1);
}

/* Equal bounds need GLP_FX: with GLP_DB GLPK reports an error that reads like a proof. */
static int bounds_kind(double lower, double upper)
{
    if (isinf(lower)) return isinf(upper) ? GLP_FR : GLP_UP;
    if (isinf(upper)) return GLP_LO;
    return lower == upper ? GLP_FX : GLP_DB;
}

static void set_column_bounds(glp_prob *problem, int j, double lower, double upper)
{
    glp_set_col_bnds(problem, j + 1, bounds_kind(lower, upper), lower, upper);
}

static void set_row_bounds(glp_prob *problem, int i, double lower, double upper)
{
    glp_set_row_bnds(problem, i + 1, bounds_kind(lower, upper), lower, upper);
}

/* Adds rows after the present ones. New rows are basic, so the basis stays one. */
static bool add_rows(struct solver *solver, const struct weft_lp_rows *rows)
{
    glp_prob *problem = solver->problem;
    int n_columns = glp_get_num_cols(problem), first = glp_get_num_rows(problem);
    int *columns = weft_pool_array(&solver->serve.pool, (size_t)n_columns + 1, sizeof *columns);
    double *values = weft_pool_array(&solver->serve.pool, (size_t)n_columns + 1, sizeof *values);
    if (!columns || !values) return false;
    if (rows->n > 0) glp_add_rows(problem, rows->n);
    for (int i = 0; i < rows->n; i++) {
        set_row_bounds(problem, first + i, rows->lower[i], rows->upper[i]);
        int64_t n = rows->start[i + 1] - rows->start[i];
        if (n > n_columns) return false;
        for (int64_t k = 0; k < n; k++) {
            columns[k + 1] = rows->column[rows->start[i] + k] + 1;
            values[k + 1] = rows->value[rows->start[i] + k];
        }
        glp_set_mat_row(problem, first + i + 1, (int)n, columns, values);
    }
    return true;
}

static bool load_program(struct solver *solver)
{
    const struct weft_lp *lp = &solver->serve.lp;
    const struct weft_lp_rows rows = weft_lp_rows(lp, 0);
    glp_prob *problem = solver->problem;
    glp_set_obj_dir(problem, GLP_MIN);
    if (lp->n_columns > 0) glp_add_cols(problem, lp->n_columns);
    for (int j = 0; j < lp->n_columns; j++) {
        glp_set_obj_coef(problem, j + 1, lp->cost[j]);
        set_column_bounds(problem, j, lp->lower[j], lp->upper[j]);
    }
    if (!add_rows(solver, &rows)) return false;
    /* The presolver scales too. From a known basis, scaling halves the iterations. */
    glp_scale_prob(problem, GLP_SF_AUTO);
    return true;
}

static bool change_program(struct solver *solver, const struct weft_lp_changes *changes)
{
    for (int k = 0; k < changes->columns.n; k++)
        set_column_bounds(solver->problem, changes->columns.index[k], changes->columns.lower[k],
                          changes->columns.upper[k]);
    for (int k = 0; k < changes->rows.n; k++)
        set_row_bounds(solver->problem, changes->rows.index[k], changes->rows.lower[k],
                       changes->rows.upper[k]);
    return add_rows(solver, &changes->added);
}

static int run_simplex(struct solver *solver, int presolve)
{
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.meth = GLP_DUALP;
    options.presolve = presolve;
    if (solver->serve.limits.iterations > 0 && solver->serve.limits.iterations < 0x7fffffff)
        options.it_lim = (int)solver->serve.limits.iterations;
    return glp_simplex(solver->problem, &options);
}

static const char *simplex_stop(int code)
{
    switch (code) {
    case GLP_EITLIM:
        return "iteration limit";
    case GLP_EBADB:
    case GLP_ESING:
    case GLP_ECOND:
    case GLP_EFAIL:
        return "numeric trouble";
    default:
        return "the program was not solved";
    }
}

static int solve_cold(struct solver *solver)
{
    int code = run_simplex(solver, GLP_ON);
    /* The presolver's answer on feasibility is no proof, so the simplex method decides. */
    if (code == GLP_ENOPFS || code == GLP_ENODFS) {
        glp_std_basis(solver->problem);
        code = run_simplex(solver, GLP_OFF);
    }
    return code;
}

static bool is_solved(const struct solver *solver, int code)
{
    int status = code == 0 ? glp_get_status(solver->problem) : GLP_UNDEF;
    return status == GLP_OPT || status == GLP_NOFEAS;
}

/* Solves from the present basis, and without it if that fails. */
static int solve_warm(struct solver *solver)
{
    int code = run_simplex(solver, GLP_OFF);
    if (is_solved(solver, code) || code == GLP_EITLIM) return code;
    return solve_cold(solver);
}

/* Takes the answer of a simplex run that ended with `code`. */
static void take_answer(struct solver *solver, int code)
{
    struct weft_lp_result *result = &solver->serve.result;
    const struct weft_lp *lp = &solver->serve.lp;
    result->iterations = glp_get_it_cnt(solver->problem) - solver->start_iterations;
    if (!is_solved(solver, code)) {
        /* The dual method's objective rises to the optimum once its basis is feasible. */
        if (glp_get_dual_stat(solver->problem) == GLP_FEAS)
            result->bound = glp_get_obj_val(solver->problem);
        result->stop = simplex_stop(code);
        return;
    }
    if (glp_get_status(solver->problem) == GLP_NOFEAS) {
        result->status = WEFT_LP_INFEASIBLE;
        result->stop = "infeasible";
        return;
    }
    result->value = result->bound = glp_get_obj_val(solver->problem);
    result->duals = weft_pool_array(&solver->serve.pool, (size_t)lp->n_rows, sizeof(double));
    result->x = weft_pool_array(&solver->serve.pool, (size_t)lp->n_columns, sizeof(double));
    if (!result->duals || !result->x) {
        result->stop = "out of memory";
        return;
    }
    for (int i = 0; i < lp->n_rows; i++)
        result->duals[i] = glp_get_row_dual(solver->problem, i + 1);
    for (int j = 0; j < lp->n_columns; j++)
        result->x[j] = glp_get_col_prim(solver->problem, j + 1);
    result->status = WEFT_LP_OPTIMAL;
    result->stop = "optimal";
}

/* Bounds the value by the tree's weakest node. */
static void note_bound(struct solver *solver, glp_tree *tree)
{
    const int node = glp_ios_best_node(tree);
    if (node > 0) solver->serve.result.bound = glp_ios_node_bound(tree, node);
}

/* GLPK calls this at each step of its tree: it offers the start once, and ends the tree at the
 * limit. glp_intopt itself has no limit but time. */
static void watch_tree(glp_tree *tree, void *info)
{
    struct solver *solver = info;
    const int64_t limit = solver->serve.limits.iterations;
    const int64_t done = glp_get_it_cnt(glp_ios_get_prob(tree)) - solver->start_iterations;
    if (glp_ios_reason(tree) == GLP_IHEUR && solver->offer) {
        glp_ios_heur_sol(tree, solver->offer);
        solver->offer = NULL;
    }
    note_bound(solver, tree);
    if (limit > 0 && done >= limit) {
        solver->ended = true;
        glp_ios_terminate(tree);
    }
}

/* Takes the point at which the tree ended. */
static void take_whole(struct solver *solver, int code)
{
    struct weft_lp_result *result = &solver->serve.result;
    const int32_t n = solver->serve.lp.n_columns;
    const int status = glp_mip_status(solver->problem);
    result->iterations = glp_get_it_cnt(solver->problem) - solver->start_iterations;
    if (code == 0 && status == GLP_NOFEAS) {
        result->status = WEFT_LP_INFEASIBLE;
        result->stop = "infeasible";
        return;
    }
    const bool optimal = code == 0 && status == GLP_OPT;
    result->stop = optimal ? "optimal" : solver->ended ? "iteration limit" : "numeric trouble";
    if (!optimal && status != GLP_FEAS) return;
    result->x = weft_pool_array(&solver->serve.pool, (size_t)n, sizeof(double));
    if (!result->x) {
        result->stop = "out of memory";
        return;
    }
    for (int j = 0; j < n; j++)
        result->x[j] = glp_mip_col_val(solver->problem, j + 1);
    result->value = glp_mip_obj_val(solver->problem);
    if (optimal) result->bound = result->value;
    result->status = optimal ? WEFT_LP_OPTIMAL : WEFT_LP_FEASIBLE;
}

/* The start, numbered from 1 as GLPK does; NULL: none, or no memory. */
static const double *offer_of(struct solver *solver)
{
    const struct weft_lp *lp = &solver->serve.lp;
    if (!lp->start) return NULL;
    double *offer = weft_pool_array(&solver->serve.pool, (size_t)lp->n_columns + 1, sizeof *offer);
    if (offer) memcpy(offer + 1, lp->start, (size_t)lp->n_columns * sizeof *offer);
    return offer;
}

/* Solves the integer program from its optimal relaxation. Of GLPK's heuristics only rounding is on,
 * because the others end by time. */
static void solve_whole(struct solver *solver)
{
    const struct weft_lp *lp = &solver->serve.lp;
    glp_iocp options;
    for (int j = 0; j < lp->n_columns; j++)
        glp_set_col_kind(solver->problem, j + 1, lp->integer[j] ? GLP_IV : GLP_CV);
    glp_init_iocp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.br_tech = GLP_BR_MFV; /* others look at every column in each node */
    options.cb_func = watch_tree;
    options.cb_info = solver;
    solver->offer = offer_of(solver);
    solver->ended = false;
    take_whole(solver, glp_intopt(solver->problem, &options));
}

static void drop_problem(struct solver *solver)
{
    if (solver->problem) glp_delete_prob(solver->problem);
    solver->problem = NULL;
}

/* Solves the changed program, or the one in `lp` without changes. */
static void solve_program(struct solver *solver, const struct weft_lp_changes *changes)
{
    if (setjmp(solver->broken)) {
        solver->serve.result.status = WEFT_LP_UNKNOWN;
        solver->serve.result.stop =
            solver->complaint[0] ? solver->complaint : "GLPK failed an assertion of its own";
        solver->problem = NULL;
        solver->serve.over = true;
        glp_free_env();
        return;
    }
    if (!changes) {
        drop_problem(solver);
        solver->problem = glp_create_prob();
    }
    solver->start_iterations = glp_get_it_cnt(solver->problem);
    if (!(changes ? change_program(solver, changes) : load_program(solver))) {
        solver->serve.result.stop = "a row with too many entries, or out of memory";
        drop_problem(solver);
        return;
    }
    take_answer(solver, changes ? solve_warm(solver) : solve_cold(solver));
    if (!solver->serve.lp.integer) return;
    if (solver->serve.result.status == WEFT_LP_OPTIMAL) {
        solver->serve.result.status = WEFT_LP_UNKNOWN;
        solve_whole(solver);
    }
    drop_problem(solver); /* no changes to it are answered */
}

static void solve_question(struct weft_serve *serve, const struct weft_lp_changes *changes)
{
    struct solver *solver = (struct solver *)serve;
    solve_program(solver, changes);
    serve->n_columns = solver->problem ? glp_get_num_cols(solver->problem) : -1;
    serve->n_rows = solver->problem ? glp_get_num_rows(solver->problem) : 0;
}

static const struct weft_serve_solver glpk = {
    .name = "GLPK", .version = glp_version, .solve = solve_question};

int main(int argc, char **argv)
{
    static struct solver solver = {.serve = {.solver = &glpk}};
    glp_term_out(GLP_OFF);
    glp_term_hook(keep_complaint, &solver);
    glp_error_hook(break_out, &solver);
    const int code = weft_serve_main(&solver.serve, argc, argv);
    drop_problem(&solver);
    if (!solver.serve.over) glp_free_env();
    return code;
}
