/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/near.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/scheduler/limit.h"
#include "tests/scheduler/tiny.h"

/* The best step time of all choices of strategies, each tried on its own. */
static int64_t try_all(const struct weft_digest *table, int64_t limit_bytes, int32_t *n_fit)
{
    struct weft_search *search = NULL;
    int32_t strategies[4];
    cr_assert_eq(weft_search_create(with_limit(table, limit_bytes), &search, NULL), WEFT_OK);
    *n_fit = 0;
    for (int code = 0; code < 1 << 2 * table->n_decisions; code++) {
        bool allowed = true;
        for (int32_t u = 0; u < table->n_decisions; u++) {
            strategies[u] = code >> 2 * u & 3;
            allowed = allowed && strategies[u] < weft_digest_count(table, u);
        }
        if (!allowed || !weft_search_fits(search, strategies)) continue;
        weft_search_try(search, strategies);
        ++*n_fit;
    }
    int64_t ns = search->step_ns;
    weft_search_destroy(search);
    return ns;
}

/* Whatever the prices: what costs less than the best known is tried, and what costs more cannot be
 * better. */
Test(near, finds_the_best_of_all_policies)
{
    int n_spared = 0;
    for (uint64_t seed = 1; seed <= 80; seed++) {
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 3),
                                   .most_blocks = 3,
                                   .policies = 15,
                                   .load = 0.2 + 0.1 * (double)(seed % 15)};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.05 * (double)(seed % 12));
        int64_t limit_bytes = problem->tiers[0].limit_bytes;
        struct weft_digest *table = NULL;
        struct weft_dual *dual = NULL;
        struct weft_box *box = NULL;
        struct weft_search *search = NULL;
        int32_t n_fit;
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        cr_assert_eq(weft_dual_create(with_limit(table, limit_bytes), &dual, NULL), WEFT_OK);
        cr_assert_eq(weft_box_create(problem, &box, NULL), WEFT_OK);
        cr_assert_eq(weft_search_create(with_limit(table, limit_bytes), &search, NULL), WEFT_OK);
        int64_t best_ns = try_all(table, limit_bytes, &n_fit);
        weft_search_try(search, table->leanest);
        weft_dual_reset(dual, WEFT_LANE_COMPUTE);
        weft_dual_ascend(dual, box, (double)search->step_ns, INFINITY, seed % 2 ? 200 : 1);
        int64_t before = search->n_tried;
        cr_assert_eq(weft_near_try(search, dual, box->allowed, 0, 1000, NULL), WEFT_OK);
        cr_assert_eq(search->step_ns, best_ns, "seed %d: %lld, the best is %lld", (int)seed,
                     (long long)search->step_ns, (long long)best_ns);
        n_spared += search->n_tried - before < n_fit;
        cr_assert_leq(search->n_tried - before, n_fit, "none twice, and none that does not fit");
        weft_search_destroy(search);
        weft_box_destroy(box);
        weft_dual_destroy(dual);
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_spared, 20);
}

Test(near, stops_after_the_tries_that_it_may_take)
{
    struct tiny_shape shape = {.n_units = 4, .most_blocks = 3, .policies = 15, .load = 1};
    struct weft_problem *problem = tiny_problem(&shape, 7);
    struct weft_digest *table = NULL;
    struct weft_dual *dual = NULL;
    struct weft_search *search = NULL;
    struct weft_box *box = NULL;
    tiny_set_limit(problem, 0.5);
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_dual_create(table, &dual, NULL), WEFT_OK);
    cr_assert_eq(weft_box_create(problem, &box, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(table, &search, NULL), WEFT_OK);
    weft_search_try(search, table->leanest);
    weft_dual_reset(dual, WEFT_LANE_COMPUTE);
    weft_dual_evaluate(dual, box);
    int64_t before = search->n_tried;
    cr_assert_eq(weft_near_try(search, dual, box->allowed, 0, 3, NULL), WEFT_OK);
    cr_assert_leq(search->n_tried - before, 3);
    before = search->n_tried;
    cr_assert_eq(weft_near_try(search, dual, box->allowed, search->step_ns, 3, NULL), WEFT_OK);
    cr_assert_eq(search->n_tried, before, "good enough");
    weft_search_destroy(search);
    weft_box_destroy(box);
    weft_dual_destroy(dual);
    weft_digest_destroy(table);
    weft_problem_destroy(problem);
}
