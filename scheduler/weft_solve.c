/* weft-solve: solves a mixed-integer linear program with GLPK. A program of its own: it reads the
 * problem on stdin and writes the result on stdout, in the protocol of mip_text.c, and shares
 * nothing else with Weft.
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
#include <float.h>
#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/pool.h"
#include "base/text.h"
#include "scheduler/mip.h"

enum { MOST_INPUT_BYTES = 1 << 30 };

struct solver {
    struct weft_pool pool;
    struct weft_mip mip;
    struct weft_mip_limits limits;
    struct weft_mip_result result;
    glp_prob *problem;
    int64_t start_ns;
    int64_t root_iterations;
    bool offered;          /* the incumbents were given to the search */
    const char *limit_met; /* by the search; NULL: none */
    char complaint[160];   /* why GLPK gave up, first line */
    jmp_buf broken;
};

/* What GLPK prints before it gives up, which it does whatever glp_term_out says: our output is a
 * protocol. */
static int listen(void *info, const char *text)
{
    struct solver *solver = info;
    if (!solver->complaint[0])
        snprintf(solver->complaint, sizeof solver->complaint, "GLPK gave up: %.*s",
                 (int)strcspn(text, "\n"), text);
    return 1;
}

/* GLPK ends a program that runs out of memory or hits one of its assertions; this returns from
 * the hook instead, after which only the environment may be freed. */
static void break_out(void *info)
{
    struct solver *solver = info;
    longjmp(solver->broken, 1);
}

/* GLPK wants GLP_FX for equal bounds: GLP_DB with them is an error that reads like a proof. */
static int bounds_kind(double lower, double upper)
{
    if (isinf(lower)) return isinf(upper) ? GLP_FR : GLP_UP;
    if (isinf(upper)) return GLP_LO;
    return lower == upper ? GLP_FX : GLP_DB;
}

static bool load(struct solver *solver)
{
    const struct weft_mip *mip = &solver->mip;
    glp_prob *problem = solver->problem;
    int *columns = weft_pool_array(&solver->pool, (size_t)mip->n_columns + 1, sizeof *columns);
    double *values = weft_pool_array(&solver->pool, (size_t)mip->n_columns + 1, sizeof *values);
    if (!columns || !values) return false;
    glp_set_obj_dir(problem, GLP_MIN);
    if (mip->n_columns > 0) glp_add_cols(problem, mip->n_columns);
    if (mip->n_rows > 0) glp_add_rows(problem, mip->n_rows);
    for (int j = 0; j < mip->n_columns; j++) {
        glp_set_obj_coef(problem, j + 1, mip->cost[j]);
        glp_set_col_bnds(problem, j + 1, bounds_kind(mip->lower[j], mip->upper[j]), mip->lower[j],
                         mip->upper[j]);
        glp_set_col_kind(problem, j + 1, mip->integer[j] ? GLP_IV : GLP_CV);
    }
    for (int i = 0; i < mip->n_rows; i++) {
        glp_set_row_bnds(problem, i + 1, bounds_kind(mip->row_lower[i], mip->row_upper[i]),
                         mip->row_lower[i], mip->row_upper[i]);
        int64_t n = mip->row_start[i + 1] - mip->row_start[i];
        if (n > mip->n_columns) return false;
        for (int64_t k = 0; k < n; k++) {
            columns[k + 1] = mip->column[mip->row_start[i] + k] + 1;
            values[k + 1] = mip->value[mip->row_start[i] + k];
        }
        glp_set_mat_row(problem, i + 1, (int)n, columns, values);
    }
    return true;
}

/* Milliseconds left of the time limit, at least 1; INT_MAX without one. */
static int left_ms(const struct solver *solver)
{
    if (solver->limits.time_ns <= 0) return 0x7fffffff;
    int64_t left = (solver->limits.time_ns - (weft_clock_now_ns() - solver->start_ns)) / 1000000;
    if (left < 1) return 1;
    return left > 0x7fffffff ? 0x7fffffff : (int)left;
}

static int simplex(struct solver *solver, int presolve)
{
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.meth = GLP_DUALP;
    options.presolve = presolve;
    options.tm_lim = left_ms(solver);
    if (solver->limits.iterations > 0 && solver->limits.iterations < 0x7fffffff)
        options.it_lim = (int)solver->limits.iterations;
    return glp_simplex(solver->problem, &options);
}

static const char *simplex_stop(int code)
{
    switch (code) {
    case GLP_EITLIM:
        return "iteration limit in the relaxation";
    case GLP_ETMLIM:
        return "time limit in the relaxation";
    case GLP_EBADB:
    case GLP_ESING:
    case GLP_ECOND:
    case GLP_EFAIL:
        return "numeric trouble in the relaxation";
    default:
        return "the relaxation was not solved";
    }
}

/* True when the relaxation was solved to optimality. */
static bool solve_relaxation(struct solver *solver)
{
    struct weft_mip_result *result = &solver->result;
    const struct weft_mip *mip = &solver->mip;
    int code = simplex(solver, GLP_ON);
    /* The presolver's word on feasibility is no proof: ask the simplex method itself. */
    if (code == GLP_ENOPFS || code == GLP_ENODFS) {
        glp_std_basis(solver->problem);
        code = simplex(solver, GLP_OFF);
    }
    result->iterations = solver->root_iterations = glp_get_it_cnt(solver->problem);
    if (code == 0 && glp_get_status(solver->problem) == GLP_NOFEAS) {
        result->status = WEFT_MIP_INFEASIBLE;
        result->stop = "infeasible";
        return false;
    }
    if (code != 0 || glp_get_status(solver->problem) != GLP_OPT) {
        result->stop = simplex_stop(code);
        return false;
    }
    result->lp_value = glp_get_obj_val(solver->problem);
    result->bound = result->lp_value;
    result->row_duals = weft_pool_array(&solver->pool, (size_t)mip->n_rows, sizeof(double));
    result->lp_x = weft_pool_array(&solver->pool, (size_t)mip->n_columns, sizeof(double));
    if (!result->row_duals || !result->lp_x) {
        result->stop = "out of memory";
        return false;
    }
    for (int i = 0; i < mip->n_rows; i++)
        result->row_duals[i] = glp_get_row_dual(solver->problem, i + 1);
    for (int j = 0; j < mip->n_columns; j++)
        result->lp_x[j] = glp_get_col_prim(solver->problem, j + 1);
    result->has_lp = true;
    return true;
}

/* glp_ios_heur_sol believes what it is given. */
static bool is_feasible(const struct weft_mip *mip, const double *x)
{
    for (int j = 0; j < mip->n_columns; j++) {
        double slack = 1e-9 * (1 + fabs(x[j]));
        if (x[j] < mip->lower[j] - slack || x[j] > mip->upper[j] + slack) return false;
        if (mip->integer[j] && fabs(x[j] - round(x[j])) > 1e-9) return false;
    }
    for (int i = 0; i < mip->n_rows; i++) {
        double sum = 0, size = 1;
        for (int64_t k = mip->row_start[i]; k < mip->row_start[i + 1]; k++) {
            double term = mip->value[k] * x[mip->column[k]];
            sum += term;
            size += fabs(term);
        }
        if (sum < mip->row_lower[i] - 1e-9 * size || sum > mip->row_upper[i] + 1e-9 * size)
            return false;
    }
    return true;
}

static void offer_incumbents(struct solver *solver, glp_tree *tree)
{
    const struct weft_mip *mip = &solver->mip;
    solver->offered = true;
    for (int i = 0; i < mip->n_incumbents; i++) {
        /* 1-based: x[0] of the copy is not used. */
        double *x = weft_pool_array(&solver->pool, (size_t)mip->n_columns + 1, sizeof *x);
        if (!x || !is_feasible(mip, mip->incumbents[i])) continue;
        memcpy(x + 1, mip->incumbents[i], (size_t)mip->n_columns * sizeof *x);
        glp_ios_heur_sol(tree, x);
    }
}

/* Of the columns with the highest priority that can be branched on, the most fractional one. */
static void branch_by_priority(struct solver *solver, glp_tree *tree)
{
    const struct weft_mip *mip = &solver->mip;
    int best = -1;
    double best_distance = 0;
    for (int j = 0; j < mip->n_columns; j++) {
        if (mip->priority[j] <= 0 || !glp_ios_can_branch(tree, j + 1)) continue;
        double value = glp_get_col_prim(solver->problem, j + 1);
        double distance = fabs(value - floor(value) - 0.5);
        bool higher = best >= 0 && mip->priority[j] > mip->priority[best];
        bool as_high = best >= 0 && mip->priority[j] == mip->priority[best];
        if (best < 0 || higher || (as_high && distance < best_distance)) {
            best = j;
            best_distance = distance;
        }
    }
    if (best >= 0) glp_ios_branch_upon(tree, best + 1, GLP_NO_BRNCH);
}

static void on_event(glp_tree *tree, void *info)
{
    struct solver *solver = info;
    int active = 0, current = 0, total = 0;
    switch (glp_ios_reason(tree)) {
    case GLP_IHEUR:
        if (!solver->offered) offer_incumbents(solver, tree);
        break;
    case GLP_IBRANCH:
        branch_by_priority(solver, tree);
        break;
    case GLP_ISELECT:
    case GLP_IBINGO:
        break;
    default:
        break;
    }
    glp_ios_tree_size(tree, &active, &current, &total);
    solver->result.nodes = total;
    int best = glp_ios_best_node(tree);
    if (best != 0) {
        /* GLPK says -DBL_MAX of a node that it has not solved yet. */
        double bound = glp_ios_node_bound(tree, best);
        if (bound > -DBL_MAX) solver->result.bound = bound;
    }
    int64_t iterations = glp_get_it_cnt(solver->problem) - solver->root_iterations;
    if (solver->limits.nodes > 0 && total > solver->limits.nodes) {
        solver->limit_met = "node limit";
        glp_ios_terminate(tree);
    } else if (solver->limits.iterations > 0 && iterations > solver->limits.iterations) {
        solver->limit_met = "iteration limit";
        glp_ios_terminate(tree);
    }
}

static void take_solution(struct solver *solver)
{
    struct weft_mip_result *result = &solver->result;
    result->x = weft_pool_array(&solver->pool, (size_t)solver->mip.n_columns, sizeof(double));
    if (!result->x) {
        result->stop = "out of memory";
        return;
    }
    for (int j = 0; j < solver->mip.n_columns; j++)
        result->x[j] = glp_mip_col_val(solver->problem, j + 1);
    result->objective = glp_mip_obj_val(solver->problem);
    double gap = result->objective - result->bound;
    bool closed = gap <= solver->limits.gap * fabs(result->objective);
    result->status = closed ? WEFT_MIP_OPTIMAL : WEFT_MIP_FEASIBLE;
}

static void search(struct solver *solver)
{
    struct weft_mip_result *result = &solver->result;
    glp_iocp options;
    glp_init_iocp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.br_tech = GLP_BR_PCH;
    options.bt_tech = GLP_BT_BLB;
    options.gmi_cuts = options.mir_cuts = options.cov_cuts = options.clq_cuts = GLP_ON;
    options.presolve = GLP_OFF;
    options.mip_gap = solver->limits.gap;
    options.tm_lim = left_ms(solver);
    options.cb_func = on_event;
    options.cb_info = solver;
    int code = glp_intopt(solver->problem, &options);
    int status = glp_mip_status(solver->problem);
    result->stop = code == 0             ? "optimal"
                   : code == GLP_EMIPGAP ? "gap"
                   : code == GLP_ETMLIM  ? "time limit"
                   : solver->limit_met   ? solver->limit_met
                                         : "the search failed";
    result->iterations = glp_get_it_cnt(solver->problem);
    if (code == 0 && status == GLP_NOFEAS) {
        result->status = WEFT_MIP_INFEASIBLE;
        result->stop = "infeasible";
    } else if (status == GLP_OPT || status == GLP_FEAS) {
        if (code == 0 && status == GLP_OPT) result->bound = glp_mip_obj_val(solver->problem);
        take_solution(solver);
    }
}

static void solve(struct solver *solver)
{
    solver->result = (struct weft_mip_result){
        .status = WEFT_MIP_UNKNOWN, .stop = "not solved", .bound = -INFINITY};
    solver->start_ns = weft_clock_now_ns();
    glp_term_out(GLP_OFF);
    glp_term_hook(listen, solver);
    glp_error_hook(break_out, solver);
    if (setjmp(solver->broken)) {
        /* What was found before stays valid: it lies in our pool. */
        solver->result.status = WEFT_MIP_UNKNOWN;
        solver->result.stop =
            solver->complaint[0] ? solver->complaint : "GLPK failed an assertion of its own";
        solver->result.x = NULL;
        glp_free_env();
        return;
    }
    solver->problem = glp_create_prob();
    if (!load(solver)) {
        solver->result.stop = "a row with too many entries, or out of memory";
    } else if (solve_relaxation(solver)) {
        if (solver->limits.nodes >= 0) {
            search(solver);
        } else {
            solver->result.stop = "root only";
        }
    }
    glp_delete_prob(solver->problem);
    glp_free_env();
}

int main(int argc, char **argv)
{
    struct solver *solver = calloc(1, sizeof *solver);
    struct weft_error err = {0};
    struct weft_text out = {0};
    char *input = NULL;
    size_t length = 0;
    if (argc > 1) {
        fprintf(stderr,
                "usage: %s < problem > result\nSolves the program that `weft` writes; it is "
                "not meant to be run by hand. GLPK %s.\n",
                argv[0], glp_version());
        free(solver);
        return strcmp(argv[1], "--help") == 0 ? 0 : 64;
    }
    if (!solver) return 71;
    enum weft_status status = weft_file_read("-", MOST_INPUT_BYTES, &input, &length, &err);
    if (status == WEFT_OK)
        status = weft_mip_parse(input, length, &solver->pool, &solver->mip, &solver->limits, &err);
    if (status == WEFT_OK) {
        solve(solver);
        weft_mip_result_write(&solver->mip, &solver->result, &out);
        if (!weft_text_ok(&out)) {
            status = weft_fail_memory(&err, "the result");
        } else if (fwrite(out.data, 1, out.length, stdout) != out.length || fflush(stdout) != 0) {
            status = weft_fail(&err, WEFT_E_IO, "cannot write the result to stdout");
        }
    }
    if (status != WEFT_OK) fprintf(stderr, "weft-solve: %s\n", err.text);
    weft_text_finish(&out);
    free(input);
    weft_pool_finish(&solver->pool);
    free(solver);
    return weft_status_exit_code(status);
}
