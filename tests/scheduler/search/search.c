/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/search.h"
#include "program/predict.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/effort.h"
#include "tests/scheduler/limit.h"
#include "tests/scheduler/tiny.h"

struct search_fixture {
    struct weft_problem *problem;
    struct weft_digest *table;
    struct weft_search *search;
};

static void init_search(struct search_fixture *f, uint64_t seed, double share)
{
    struct tiny_shape shape = {.n_units = 6, .most_blocks = 3, .policies = 15, .load = 2};
    f->problem = tiny_problem(&shape, seed);
    tiny_set_limit(f->problem, share);
    cr_assert_eq(weft_digest_create(f->problem, &f->table, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(f->table, &f->search, NULL), WEFT_OK);
}

static void finish_search(struct search_fixture *f)
{
    weft_search_destroy(f->search);
    weft_digest_destroy(f->table);
    weft_problem_destroy(f->problem);
}

/* The best is a plan of this time and peak, by the judge. */
static void check_best_search(const struct search_fixture *f)
{
    const struct weft_search *search = f->search;
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_geq(search->step_ns, 0);
    cr_assert_eq(weft_plan_create(f->problem, "search", search->strategies, search->moves,
                                  search->n_moves, &plan, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_predict(plan, NULL), WEFT_OK);
    cr_assert_eq(plan->prediction.step_ns, search->step_ns);
    cr_assert_leq(plan->prediction.peak_bytes, search->peak_bytes);
    cr_assert_leq(search->peak_bytes, weft_digest_limit_bytes(search->table));
    weft_plan_destroy(plan);
}

Test(search, every_step_keeps_a_true_plan_and_never_a_worse_one)
{
    enum { SEEDS = TEST_CASES(20, 8) };
    int n_improved = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct search_fixture f;
        init_search(&f, seed, 0.04 * (double)(seed % 10));
        weft_search_try(f.search, f.table->leanest);
        check_best_search(&f);
        int64_t before = f.search->step_ns;
        weft_search_improve(f.search, 1000, 0);
        check_best_search(&f);
        cr_assert_leq(f.search->step_ns, before);
        n_improved += f.search->step_ns < before;
        before = f.search->step_ns;
        weft_search_greedy(f.search);
        check_best_search(&f);
        cr_assert_leq(f.search->step_ns, before);
        before = f.search->step_ns;
        weft_search_patterns(f.search);
        check_best_search(&f);
        cr_assert_leq(f.search->step_ns, before);
        finish_search(&f);
    }
    cr_assert_gt(n_improved, SEEDS / 2);
}

Test(search, tries_no_more_than_it_may)
{
    struct search_fixture f;
    init_search(&f, 3, 0.3);
    weft_search_try(f.search, f.table->leanest);
    int64_t before = f.search->n_tried;
    weft_search_improve(f.search, 7, 0);
    cr_assert_leq(f.search->n_tried - before, 7);
    cr_assert_gt(f.search->n_tried - before, 0);
    before = f.search->n_tried;
    weft_search_improve(f.search, 7, f.search->step_ns);
    cr_assert_eq(f.search->n_tried, before, "it is fast enough already");
    finish_search(&f);
}

Test(search, moves_above_the_limit_are_not_taken)
{
    struct search_fixture f;
    init_search(&f, 5, 1);
    weft_search_try(f.search, f.table->leanest);
    weft_search_improve(f.search, 500, 0);
    struct weft_search *tight = NULL;
    int64_t peak = f.search->peak_bytes;
    cr_assert_eq(weft_search_create(with_limit(f.table, peak - 1), &tight, NULL), WEFT_OK);
    cr_assert_eq(weft_search_try_moves(tight, f.search->strategies, f.search->moves,
                                       f.search->n_moves, NULL),
                 WEFT_OK);
    cr_assert_eq(tight->step_ns, -1);
    weft_search_destroy(tight);
    cr_assert_eq(weft_search_create(with_limit(f.table, peak), &tight, NULL), WEFT_OK);
    cr_assert_eq(weft_search_try_moves(tight, f.search->strategies, f.search->moves,
                                       f.search->n_moves, NULL),
                 WEFT_OK);
    cr_assert_eq(tight->step_ns, f.search->step_ns);
    weft_search_destroy(tight);
    finish_search(&f);
}

Test(search, policies_that_do_not_fit_are_not_taken)
{
    struct search_fixture f;
    int32_t dp[6] = {0};
    init_search(&f, 2, 0);
    cr_assert_not(weft_search_fits(f.search, dp));
    cr_assert_eq(weft_search_try(f.search, dp), -1);
    cr_assert_eq(f.search->step_ns, -1);
    cr_assert_geq(weft_search_try(f.search, f.table->leanest), 0);
    cr_assert_eq(memcmp(f.search->strategies, f.table->leanest, sizeof dp), 0);
    finish_search(&f);
}

Test(search, a_budget_that_is_used_up_leaves_the_leanest_plan)
{
    struct search_fixture f;
    init_search(&f, 3, 0.3);
    struct weft_work work = {0};
    weft_search_begin(f.search, weft_budget_of(&work, 1));
    cr_assert_not(weft_search_is_spent(f.search));
    weft_work_spend(&work, 1);
    cr_assert(weft_search_is_spent(f.search));
    weft_search_patterns(f.search);
    weft_search_greedy(f.search);
    weft_search_improve(f.search, 1000, 0);
    check_best_search(&f);
    cr_assert_eq(f.search->n_tried, 2, "the leanest, by the patterns and by the greedy changes");
    cr_assert_arr_eq(f.search->strategies, f.table->leanest, 6 * sizeof *f.search->strategies);
    finish_search(&f);
}

Test(search, many_units_are_changed_many_at_a_time)
{
    struct search_fixture f;
    struct tiny_shape shape = {.n_units = 300, .most_blocks = 3, .policies = 15, .load = 2};
    f.problem = tiny_problem(&shape, 5);
    tiny_set_limit(f.problem, 0.5);
    cr_assert_eq(weft_digest_create(f.problem, &f.table, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(f.table, &f.search, NULL), WEFT_OK);
    int64_t leanest_ns = weft_search_try(f.search, f.table->leanest);
    weft_search_greedy(f.search);
    check_best_search(&f);
    cr_assert_lt(f.search->step_ns, leanest_ns);
    cr_assert_lt(f.search->n_tried, 300 * 3);
    finish_search(&f);
}

/* A plan for a higher limit is a start: most of its strategies that fit are faster than the leanest
 * ones. */
Test(search, starts_from_most_of_a_plan_that_does_not_fit)
{
    int n_faster = 0, n_not = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct search_fixture high, low;
        struct weft_plan *plan = NULL;
        init_search(&high, seed, 1);
        init_search(&low, seed, 0.1);
        weft_search_greedy(high.search);
        cr_assert_eq(weft_plan_create(high.problem, "high", high.search->strategies,
                                      high.search->moves, high.search->n_moves, &plan, NULL),
                     WEFT_OK);
        const bool fits = weft_search_fits(low.search, plan->strategies);
        cr_assert_eq(weft_search_start(low.search, plan, NULL), WEFT_OK);
        check_best_search(&low);
        const int64_t step_ns = low.search->step_ns;
        const int64_t lean_ns = weft_search_try(low.search, low.table->leanest);
        cr_assert_leq(step_ns, lean_ns);
        n_not += !fits;
        n_faster += !fits && step_ns < lean_ns;
        weft_plan_destroy(plan);
        finish_search(&high);
        finish_search(&low);
    }
    cr_assert(n_not > 4 && 2 * n_faster > n_not, "%d of %d", n_faster, n_not);
}
