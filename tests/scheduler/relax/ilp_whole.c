/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"
#include "scheduler/relax/ilp.h"
#include "scheduler/search/search.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/ilp_point.h"
#include "tests/scheduler/limit.h"
#include "tests/scheduler/solver.h"
#include "tests/scheduler/tiny.h"

struct ilp_whole_fixture {
    struct weft_problem *problem;
    struct weft_digest *table;
    struct weft_dual *dual;
    struct weft_search *search;
    struct weft_ilp *ilp;
};

static void init_ilp_whole(struct ilp_whole_fixture *f, uint64_t seed)
{
    struct tiny_shape shape = {.n_units = 3,
                               .most_blocks = 1 + (int32_t)(seed % 3),
                               .policies = seed % 2 ? 12 : 15,
                               .load = 0.3 + 0.2 * (double)(seed % 6)};
    f->problem = tiny_problem(&shape, seed);
    tiny_set_limit(f->problem, 0.05 * (double)(seed % 8));
    int64_t limit_bytes = f->problem->tiers[0].limit_bytes;
    cr_assert_eq(weft_digest_create(f->problem, &f->table, NULL), WEFT_OK);
    cr_assert_eq(weft_dual_create(with_limit(f->table, limit_bytes), &f->dual, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(with_limit(f->table, limit_bytes), &f->search, NULL), WEFT_OK);
    cr_assert_eq(
        weft_ilp_create(with_limit(f->table, limit_bytes), seed % 4 ? 4000 : 1, &f->ilp, NULL),
        WEFT_OK);
}

static void finish_ilp_whole(struct ilp_whole_fixture *f)
{
    weft_ilp_destroy(f->ilp);
    weft_search_destroy(f->search);
    weft_dual_destroy(f->dual);
    weft_digest_destroy(f->table);
    weft_problem_destroy(f->problem);
}

static double row_value(const struct weft_lp *lp, int32_t row, const double *x)
{
    double value = 0;
    for (int64_t k = lp->row_start[row]; k < lp->row_start[row + 1]; k++)
        value += lp->value[k] * x[lp->column[k]];
    return value;
}

/* How many whole rows the plan that the search placed last keeps to; fails where it exceeds one. */
static int32_t rows_kept(const struct ilp_whole_fixture *f)
{
    const struct weft_lp *lp = &f->ilp->lp;
    double *x = calloc((size_t)lp->n_columns, sizeof *x);
    cr_assert_not_null(x);
    bool known =
        ilp_point_of(f->ilp, f->search->strategies, f->search->moves, f->search->n_moves, x);
    for (int32_t i = lp->n_rows - f->ilp->n_whole; known && i < lp->n_rows; i++)
        cr_assert_leq(row_value(lp, i, x), lp->row_upper[i] + 1e-6 * fabs(lp->row_upper[i]),
                      "row %d", i);
    free(x);
    return known ? f->ilp->n_whole : 0;
}

/* Rows that the relaxation's solution exceeds, again and again, and no plan does: plans of
 * strategies at random, placed under the limit. The relaxation never falls, and somewhere it rises.
 */
Test(ilp_whole, rows_cut_the_relaxation_and_no_plan, .timeout = 900)
{
    int32_t n_rows = 0, n_kept = 0, n_raised = 0;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct ilp_whole_fixture f;
        struct weft_solver solver = test_solver();
        struct weft_pool pool = {0};
        double least = 0;
        init_ilp_whole(&f, seed);
        for (int round = 0; round < 3; round++) {
            struct weft_lp_result result = {0};
            struct weft_lp_limits limits = {0};
            int32_t n_added = 0;
            cr_assert_eq(solver.solve(solver.context, &f.ilp->lp, &limits, &pool, &result, NULL),
                         WEFT_OK);
            cr_assert_eq(result.status, WEFT_LP_OPTIMAL);
            cr_assert_geq(result.value, least * (1 - 1e-7));
            n_raised += round > 0 && result.value > least * (1 + 1e-6);
            least = result.value;
            cr_assert_eq(weft_ilp_add_whole(f.ilp, f.dual, result.x, &n_added, NULL), WEFT_OK);
            n_rows += n_added;
            if (n_added == 0) break;
        }
        for (uint64_t trial = 0; trial < 60; trial++) {
            int32_t strategies[3];
            for (int32_t u = 0; u < 3; u++) {
                int32_t p = (int32_t)weft_rng_below(seed, trial, (uint64_t)u, WEFT_POLICY_COUNT);
                bool may = p < weft_digest_count(f.table, u);
                strategies[u] = may ? p : f.table->leanest[u];
            }
            f.search->step_ns = -1; /* so that whatever fits is kept */
            if (weft_search_try(f.search, strategies) >= 0) n_kept += rows_kept(&f);
        }
        weft_pool_finish(&pool);
        finish_ilp_whole(&f);
    }
    cr_assert_gt(n_rows, 60, "%d rows", n_rows);
    cr_assert_gt(n_kept, 1500, "kept %d times", n_kept);
    cr_assert_gt(n_raised, 12, "raised %d times", n_raised);
}

/* Without a limit that binds there is nothing to cut. */
Test(ilp_whole, adds_none_where_every_plan_fits)
{
    struct tiny_shape shape = {.n_units = 2, .most_blocks = 1, .policies = 15, .load = 0.5};
    struct weft_problem *problem = tiny_problem(&shape, 4);
    struct weft_digest *table = NULL;
    struct weft_dual *dual = NULL;
    struct weft_ilp *ilp = NULL;
    int32_t n_added = 1;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_dual_create(table, &dual, NULL), WEFT_OK);
    cr_assert_eq(weft_ilp_create(table, 4000, &ilp, NULL), WEFT_OK);
    double *x = calloc((size_t)ilp->lp.n_columns, sizeof *x);
    cr_assert_not_null(x);
    cr_assert_eq(weft_ilp_add_whole(ilp, dual, x, &n_added, NULL), WEFT_OK);
    cr_assert_eq(n_added, 0);
    free(x);
    weft_ilp_destroy(ilp);
    weft_dual_destroy(dual);
    weft_digest_destroy(table);
    weft_problem_destroy(problem);
}
