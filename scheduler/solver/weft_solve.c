/* weft-solve: solves mixed-integer linear programs with GLPK. A program of its own: it reads
 * programs, or what differs in one from the one before, on stdin, until that ends, and writes the
 * result of each on stdout, in the protocol of mip.h; it shares nothing else with Weft.
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
#include <errno.h>
#include <float.h>
#include <glpk.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/text.h"
#include "scheduler/solver/mip_changes.h"

enum { MOST_DOCUMENT_BYTES = 1 << 30 };

struct solver {
    struct weft_pool pool; /* of one document: */
    struct weft_mip mip;   /* of changes only its sizes */
    struct weft_mip_limits limits;
    struct weft_mip_result result;
    glp_prob *problem; /* with the basis of its relaxation; NULL: none that could be changed */
    int64_t start_iterations, root_iterations; /* of the problem's count */
    bool offered;                              /* the incumbents were given to the search */
    const char *limit_met;                     /* by the search; NULL: none */
    char complaint[160];                       /* why GLPK gave up, first line */
    jmp_buf broken;
    bool over; /* GLPK is in no state to go on */
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

static void set_column_bounds(glp_prob *problem, int j, double lower, double upper)
{
    glp_set_col_bnds(problem, j + 1, bounds_kind(lower, upper), lower, upper);
}

static void set_row_bounds(glp_prob *problem, int i, double lower, double upper)
{
    glp_set_row_bnds(problem, i + 1, bounds_kind(lower, upper), lower, upper);
}

/* Behind those that there are; in the basis, as new ones, they leave it one. */
static bool add_rows(struct solver *solver, const struct weft_mip_rows *rows)
{
    glp_prob *problem = solver->problem;
    int n_columns = glp_get_num_cols(problem), first = glp_get_num_rows(problem);
    int *columns = weft_pool_array(&solver->pool, (size_t)n_columns + 1, sizeof *columns);
    double *values = weft_pool_array(&solver->pool, (size_t)n_columns + 1, sizeof *values);
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

static bool load(struct solver *solver)
{
    const struct weft_mip *mip = &solver->mip;
    const struct weft_mip_rows rows = weft_mip_rows(mip, 0);
    glp_prob *problem = solver->problem;
    glp_set_obj_dir(problem, GLP_MIN);
    if (mip->n_columns > 0) glp_add_cols(problem, mip->n_columns);
    for (int j = 0; j < mip->n_columns; j++) {
        glp_set_obj_coef(problem, j + 1, mip->cost[j]);
        set_column_bounds(problem, j, mip->lower[j], mip->upper[j]);
        glp_set_col_kind(problem, j + 1, mip->integer[j] ? GLP_IV : GLP_CV);
    }
    if (!add_rows(solver, &rows)) return false;
    /* The presolver does so too; from a basis that is known it takes half the steps of without. */
    glp_scale_prob(problem, GLP_SF_AUTO);
    return true;
}

static bool change(struct solver *solver, const struct weft_mip_changes *changes)
{
    for (int k = 0; k < changes->columns.n; k++)
        set_column_bounds(solver->problem, changes->columns.index[k], changes->columns.lower[k],
                          changes->columns.upper[k]);
    for (int k = 0; k < changes->rows.n; k++)
        set_row_bounds(solver->problem, changes->rows.index[k], changes->rows.lower[k],
                       changes->rows.upper[k]);
    return add_rows(solver, &changes->added);
}

static int simplex(struct solver *solver, int presolve)
{
    glp_smcp options;
    glp_init_smcp(&options);
    options.msg_lev = GLP_MSG_OFF;
    options.meth = GLP_DUALP;
    options.presolve = presolve;
    if (solver->limits.iterations > 0 && solver->limits.iterations < 0x7fffffff)
        options.it_lim = (int)solver->limits.iterations;
    return glp_simplex(solver->problem, &options);
}

static const char *simplex_stop(int code)
{
    switch (code) {
    case GLP_EITLIM:
        return "iteration limit in the relaxation";
    case GLP_EBADB:
    case GLP_ESING:
    case GLP_ECOND:
    case GLP_EFAIL:
        return "numeric trouble in the relaxation";
    default:
        return "the relaxation was not solved";
    }
}

static int solve_cold(struct solver *solver)
{
    int code = simplex(solver, GLP_ON);
    /* The presolver's word on feasibility is no proof: ask the simplex method itself. */
    if (code == GLP_ENOPFS || code == GLP_ENODFS) {
        glp_std_basis(solver->problem);
        code = simplex(solver, GLP_OFF);
    }
    return code;
}

static bool is_solved(const struct solver *solver, int code)
{
    int status = code == 0 ? glp_get_status(solver->problem) : GLP_UNDEF;
    return status == GLP_OPT || status == GLP_NOFEAS;
}

/* From the basis that there is; without one, or when it leads nowhere, from none. */
static int solve_warm(struct solver *solver)
{
    int code = simplex(solver, GLP_OFF);
    if (is_solved(solver, code) || code == GLP_EITLIM) return code;
    return solve_cold(solver);
}

/* True when the relaxation was solved to optimality, as `code` says. */
static bool take_relaxation(struct solver *solver, int code)
{
    struct weft_mip_result *result = &solver->result;
    const struct weft_mip *mip = &solver->mip;
    solver->root_iterations = glp_get_it_cnt(solver->problem);
    result->iterations = solver->root_iterations - solver->start_iterations;
    if (!is_solved(solver, code)) {
        /* The dual method's objective rises to the optimum once its basis is feasible. */
        if (glp_get_dual_stat(solver->problem) == GLP_FEAS)
            result->bound = glp_get_obj_val(solver->problem);
        result->stop = simplex_stop(code);
        return false;
    }
    if (glp_get_status(solver->problem) == GLP_NOFEAS) {
        result->status = WEFT_MIP_INFEASIBLE;
        result->stop = "infeasible";
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
    result->stop = "root only";
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

/* Branches on the most fractional of the columns with the highest priority. */
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
    options.cb_func = on_event;
    options.cb_info = solver;
    int code = glp_intopt(solver->problem, &options);
    int status = glp_mip_status(solver->problem);
    result->stop = code == 0             ? "optimal"
                   : code == GLP_EMIPGAP ? "gap"
                   : solver->limit_met   ? solver->limit_met
                                         : "the search failed";
    result->iterations = glp_get_it_cnt(solver->problem) - solver->start_iterations;
    if (code == 0 && status == GLP_NOFEAS) {
        result->status = WEFT_MIP_INFEASIBLE;
        result->stop = "infeasible";
    } else if (status == GLP_OPT || status == GLP_FEAS) {
        if (code == 0 && status == GLP_OPT) result->bound = glp_mip_obj_val(solver->problem);
        take_solution(solver);
    }
}

static void drop_problem(struct solver *solver)
{
    if (solver->problem) glp_delete_prob(solver->problem);
    solver->problem = NULL;
}

/* Solves the changed program, or, when there are no changes, the one in `mip`. */
static void solve(struct solver *solver, const struct weft_mip_changes *changes)
{
    if (setjmp(solver->broken)) {
        /* What was found before stays valid: it lies in our pool. */
        solver->result.status = WEFT_MIP_UNKNOWN;
        solver->result.stop =
            solver->complaint[0] ? solver->complaint : "GLPK failed an assertion of its own";
        solver->result.x = NULL;
        solver->problem = NULL;
        solver->over = true;
        glp_free_env();
        return;
    }
    if (!changes) {
        drop_problem(solver);
        solver->problem = glp_create_prob();
    }
    solver->start_iterations = glp_get_it_cnt(solver->problem);
    if (!(changes ? change(solver, changes) : load(solver))) {
        solver->result.stop = "a row with too many entries, or out of memory";
        drop_problem(solver);
        return;
    }
    bool solved = take_relaxation(solver, changes ? solve_warm(solver) : solve_cold(solver));
    if (solver->limits.nodes < 0) return;
    if (solved) search(solver);
    drop_problem(solver); /* its basis is that of some node */
}

static enum weft_status answer_changes(struct solver *solver, const struct weft_text *document,
                                       struct weft_error *err)
{
    struct weft_mip_changes changes;
    if (!solver->problem)
        return weft_fail(err, WEFT_E_DATA, "solver protocol: changes of no program");
    WEFT_TRY(weft_mip_changes_parse(
        document->data, document->length, glp_get_num_cols(solver->problem),
        glp_get_num_rows(solver->problem), &solver->pool, &changes, &solver->limits, err));
    solver->mip = (struct weft_mip){.n_columns = changes.n_columns,
                                    .n_rows = changes.n_rows + changes.added.n};
    solve(solver, &changes);
    return WEFT_OK;
}

static enum weft_status answer(struct solver *solver, const struct weft_text *document,
                               struct weft_error *err)
{
    struct weft_text out = {0};
    enum weft_status status = WEFT_OK;
    solver->result = (struct weft_mip_result){
        .status = WEFT_MIP_UNKNOWN, .stop = "not solved", .bound = -INFINITY};
    solver->offered = false;
    solver->limit_met = NULL;
    if (weft_mip_is_changes(weft_text_chars(document), document->length)) {
        status = answer_changes(solver, document, err);
    } else {
        status = weft_mip_parse(weft_text_chars(document), document->length, &solver->pool,
                                &solver->mip, &solver->limits, err);
        if (status == WEFT_OK) solve(solver, NULL);
    }
    if (status == WEFT_OK) {
        weft_mip_result_write(&solver->mip, &solver->result, &out);
        if (!weft_text_ok(&out)) {
            status = weft_fail_memory(err, "the result");
        } else if (fwrite(out.data, 1, out.length, stdout) != out.length || fflush(stdout) != 0) {
            status = weft_fail(err, WEFT_E_IO, "cannot write the result to stdout");
        }
    }
    weft_text_finish(&out);
    weft_pool_finish(&solver->pool);
    return status;
}

/* Lines up to the one that ends a document; *ended says that there are none. */
static enum weft_status read_document(struct weft_text *out, bool *ended, struct weft_error *err)
{
    char *line = NULL;
    size_t capacity = 0;
    bool whole = false;
    out->length = 0;
    while (!whole && out->length <= MOST_DOCUMENT_BYTES) {
        ssize_t length = getline(&line, &capacity, stdin);
        if (length < 0) break;
        weft_text_append(out, line, (size_t)length);
        whole = strcmp(line, "end\n") == 0;
    }
    free(line);
    *ended = out->length == 0;
    if (!weft_text_ok(out)) return weft_fail_memory(err, "the problem");
    if (!whole && !feof(stdin))
        return weft_fail(err, WEFT_E_IO, "cannot read stdin: %s",
                         ferror(stdin) ? strerror(errno) : "a problem of more than 1 GiB");
    return WEFT_OK;
}

static enum weft_status answer_all(struct solver *solver, struct weft_error *err)
{
    struct weft_text document = {0};
    bool ended = false;
    enum weft_status status = read_document(&document, &ended, err);
    do {
        if (status == WEFT_OK) status = answer(solver, &document, err);
        if (status == WEFT_OK && !solver->over) status = read_document(&document, &ended, err);
    } while (status == WEFT_OK && !ended && !solver->over);
    weft_text_finish(&document);
    return status;
}

int main(int argc, char **argv)
{
    static struct solver solver;
    struct weft_error err = {0};
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        return printf("weft-solve " WEFT_VERSION ", GLPK %s\n", glp_version()) < 0;
    if (argc > 1) {
        fprintf(stderr,
                "usage: %s < problems > results\nSolves the programs that `weft` writes; it is "
                "not meant to be run by hand. GLPK %s.\n",
                argv[0], glp_version());
        return strcmp(argv[1], "--help") == 0 ? 0 : 64;
    }
    glp_term_out(GLP_OFF);
    glp_term_hook(listen, &solver);
    glp_error_hook(break_out, &solver);
    enum weft_status status = answer_all(&solver, &err);
    if (status != WEFT_OK) fprintf(stderr, "weft-solve: %s\n", err.text);
    drop_problem(&solver);
    if (!solver.over) glp_free_env();
    return weft_status_exit_code(status);
}
