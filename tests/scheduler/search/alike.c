/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/search/alike.h"

#include <criterion/criterion.h>

#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/problem/small_problem.h"
#include "tests/scheduler/tiny.h"

enum { MOST_UNITS = 8 };

struct alike_fixture {
    struct weft_problem *problem;
    struct weft_digest *table;
    struct weft_search *search;
    int32_t class_of[MOST_UNITS];
};

/* The last unit is a class of its own, since it has fewer strategies. */
static void init_alike(struct alike_fixture *f, uint64_t seed, int32_t n_units, int32_t n_classes,
                       double share)
{
    const struct tiny_shape shape = {
        .n_units = n_units, .most_blocks = 2, .policies = 15, .load = 2};
    f->problem = tiny_problem(&shape, seed);
    tiny_set_limit(f->problem, share);
    for (int32_t u = 0; u < n_units - 1; u++)
        f->class_of[u] = u % n_classes;
    f->class_of[n_units - 1] = n_units - 1;
    cr_assert_eq(weft_digest_create(f->problem, &f->table, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(f->table, &f->search, NULL), WEFT_OK);
}

static void finish_alike(struct alike_fixture *f)
{
    weft_search_destroy(f->search);
    weft_digest_destroy(f->table);
    weft_problem_destroy(f->problem);
}

static bool is_alike(const struct alike_fixture *f, const int32_t *strategies)
{
    for (int32_t u = 0; u < f->problem->n_decisions; u++) {
        const int32_t leader = f->class_of[u];
        if (weft_problem_chosen(f->problem, strategies, u)->kind !=
            weft_problem_chosen(f->problem, strategies, leader)->kind)
            return false;
    }
    return true;
}

/* Sets strategies to the next ones in order. False after the last. */
static bool next_strategies(const struct weft_problem *problem, int32_t *strategies)
{
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        if (++strategies[u] < problem->decisions[u].n_strategies) return true;
        strategies[u] = 0;
    }
    return false;
}

/* The fastest step by the first rule over all alike strategies; -1: none fits. */
static int64_t fastest_alike(struct alike_fixture *f)
{
    int32_t strategies[MOST_UNITS] = {0};
    int64_t best_ns = -1;
    do {
        if (!is_alike(f, strategies) || !weft_search_fits(f->search, strategies)) continue;
        const int64_t ns =
            weft_list_place(f->search->list, strategies, weft_list_rules[0], NULL, NULL);
        if (ns >= 0 && (best_ns < 0 || ns < best_ns)) best_ns = ns;
    } while (next_strategies(f->problem, strategies));
    return best_ns;
}

static void check_alike(const struct alike_fixture *f, int64_t most_ns, uint64_t seed)
{
    const struct weft_search *search = f->search;
    cr_assert_leq(search->step_ns, most_ns, "seed %d", (int)seed);
    cr_assert(is_alike(f, search->strategies), "seed %d", (int)seed);
    cr_assert_leq(search->peak_bytes, weft_digest_limit_bytes(f->table));
}

/* A limit below the least one has no plan. */
Test(alike, finds_the_best_of_all_combinations)
{
    enum { SEEDS = TEST_CASES(40, 10) };
    int n_none = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct alike_fixture f;
        init_alike(&f, seed, 6, 1 + (int32_t)(seed % 3), 0.2 * (double)(seed % 5) - 0.05);
        const int64_t wanted = fastest_alike(&f);
        cr_assert_eq(weft_search_alike(f.search, f.class_of, NULL), WEFT_OK);
        cr_assert_eq(f.search->step_ns >= 0, wanted >= 0, "seed %d", (int)seed);
        n_none += wanted < 0;
        if (wanted >= 0) check_alike(&f, wanted, seed);
        finish_alike(&f);
    }
    cr_assert(n_none > 0 && n_none < SEEDS / 2, "%d", n_none);
}

/* Seven classes of four strategies are too many to try all. */
Test(alike, climbs_if_combinations_are_many)
{
    enum { SEEDS = TEST_CASES(20, 5) };
    int n_improved = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct alike_fixture f;
        int32_t leanest[MOST_UNITS];
        struct weft_search *first = NULL;
        init_alike(&f, seed, MOST_UNITS, MOST_UNITS - 1, 0.4);
        for (int32_t u = 0; u < MOST_UNITS; u++)
            leanest[u] = f.table->leanest[u];
        cr_assert_eq(weft_search_create(f.table, &first, NULL), WEFT_OK);
        weft_search_try(first, leanest);
        cr_assert_eq(weft_search_alike(f.search, f.class_of, NULL), WEFT_OK);
        check_alike(&f, first->step_ns, seed);
        n_improved += f.search->step_ns < first->step_ns;
        weft_search_destroy(first);
        finish_alike(&f);
    }
    cr_assert_gt(n_improved, SEEDS / 2);
}

/* Two equal units, for which dp is faster. Within some limits only one of them has room for it. */
Test(alike, equal_units_of_a_plan_have_one_policy)
{
    struct weft_hold state = {WEFT_CATEGORY_OPTIMIZER_STATE, 0, N_SMALL_SLOTS - 1, 1000, 0};
    struct weft_problem problem = small_problem();
    int n_alike = 0, n_mixed = 0;
    for (int32_t u = 0; u < 2; u++) {
        problem.decisions[u].strategies[IS_DP].holds = &state;
        problem.decisions[u].strategies[IS_DP].n_holds = 1;
    }
    for (int64_t limit = 800; limit <= 4000; limit += 100) {
        static const char *const planners[] = {"greedy:alike", "greedy"};
        problem.tiers[0].limit_bytes = limit;
        for (int p = 0; p < 2; p++) {
            const struct weft_schedule_options options = {.planner = planners[p]};
            struct weft_plan *plan = NULL;
            const enum weft_status status =
                weft_schedule(&problem, NULL, &options, &plan, NULL, NULL);
            if (status == WEFT_E_INFEASIBLE) continue;
            cr_assert_eq(status, WEFT_OK);
            const bool equal = weft_plan_chosen(plan, 0)->kind == weft_plan_chosen(plan, 1)->kind;
            cr_assert(p == 1 || equal, "limit %d", (int)limit);
            n_alike += p == 0;
            n_mixed += !equal;
            weft_plan_destroy(plan);
        }
    }
    cr_assert(n_alike > 0 && n_mixed > 0, "%d alike, %d mixed", n_alike, n_mixed);
}
