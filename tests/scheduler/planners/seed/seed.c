/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/seed/seed.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "program/predict.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/scheduler/solver.h"
#include "tests/scheduler/tiny.h"

enum { MOST_PLACEMENTS = 100000, MOST_BLOCKS = 16 };

/* All placements of a tiny problem, tried one after the other: the oracle. It uses the definitions
 * of items and none of the code under test. */
struct oracle {
    const struct weft_problem *problem;
    const int32_t *strategies;
    int32_t n, item[MOST_BLOCKS], number[MOST_BLOCKS], slot[MOST_BLOCKS];
    int64_t best_ns; /* -1: no placement fits */
};

static int32_t last_slot(const struct weft_item *item)
{
    return item->last + (item->acquires && item->may_block);
}

static void list_all(struct oracle *oracle)
{
    for (int32_t i = 0; i < oracle->problem->n_items; i++) {
        const struct weft_item *item = &oracle->problem->items[i].item;
        if ((item->strategies >> oracle->strategies[item->decision] & 1) == 0) continue;
        for (int32_t b = 0; b < item->n_blocks && oracle->n < MOST_BLOCKS; b++) {
            oracle->item[oracle->n] = i;
            oracle->number[oracle->n++] = b;
        }
    }
}

static double count_placements(const struct oracle *oracle)
{
    double n = 1;
    for (int32_t k = 0; k < oracle->n; k++) {
        const struct weft_item *item = &oracle->problem->items[oracle->item[k]].item;
        n *= last_slot(item) - item->first + 1;
    }
    return n;
}

static int64_t held_bytes(const struct oracle *oracle, int32_t k, int32_t s)
{
    const struct weft_item *item = &oracle->problem->items[oracle->item[k]].item;
    const int32_t at = oracle->slot[k];
    const bool holds = item->acquires ? s >= at && s <= item->last : s >= item->first && s <= at;
    return holds ? item->stair_bytes : 0;
}

static int64_t bytes_without_blocks(const struct oracle *oracle, int32_t s)
{
    const struct weft_problem *problem = oracle->problem;
    int64_t bytes = 0;
    for (int32_t i = 0; i < problem->n_common; i++)
        if (problem->common[i].first <= s && s <= problem->common[i].last)
            bytes += problem->common[i].bytes;
    for (int32_t d = 0; d < problem->n_decisions; d++)
        bytes += weft_strategy_held(&problem->decisions[d].strategies[oracle->strategies[d]], 0, s);
    return bytes;
}

static bool keeps_limit(const struct oracle *oracle)
{
    for (int32_t s = 0; s < oracle->problem->n_slots; s++) {
        int64_t bytes = bytes_without_blocks(oracle, s);
        for (int32_t k = 0; k < oracle->n; k++)
            bytes += held_bytes(oracle, k, s);
        if (bytes > oracle->problem->tiers[0].limit_bytes) return false;
    }
    return true;
}

static int64_t overlap_of(const struct oracle *oracle)
{
    const struct weft_problem *problem = oracle->problem;
    int64_t sum = 0;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        for (int32_t s = 0; s < problem->n_slots; s++) {
            int64_t ns = 0, compute_ns = problem->slot_ns[s];
            for (int32_t d = 0; d < problem->n_decisions; d++)
                compute_ns +=
                    weft_strategy_ns(&problem->decisions[d].strategies[oracle->strategies[d]], s);
            for (int32_t k = 0; k < oracle->n; k++) {
                const struct weft_problem_item *item = &problem->items[oracle->item[k]];
                const bool blocks = item->item.acquires && oracle->slot[k] > item->item.last;
                if (item->lane == lane && oracle->slot[k] == s && !blocks) ns += item->block_ns;
            }
            sum += ns < compute_ns ? ns : compute_ns;
        }
    }
    return sum;
}

static void try_all(struct oracle *oracle, int32_t k)
{
    if (k == oracle->n) {
        const int64_t ns = keeps_limit(oracle) ? overlap_of(oracle) : -1;
        if (ns > oracle->best_ns) oracle->best_ns = ns;
        return;
    }
    const struct weft_item *item = &oracle->problem->items[oracle->item[k]].item;
    for (int32_t s = item->first; s <= last_slot(item); s++) {
        oracle->slot[k] = s;
        try_all(oracle, k + 1);
    }
}

/* A tiny problem with some strategies, few enough placements, and a limit that some fit. */
static struct weft_problem *draw_problem(uint64_t seed, struct oracle *oracle, int32_t *strategies)
{
    const struct tiny_shape shape = {.n_units = 2,
                                     .most_blocks = 2,
                                     .policies = 15,
                                     .load = 0.5 + (double)(seed % 5) / 2,
                                     .two_networks = seed % 3 == 0};
    struct weft_problem *problem = tiny_problem(&shape, seed);
    tiny_draw_strategies(problem, (unsigned)seed, strategies);
    tiny_set_limit(problem, (double)(seed % 7) / 6);
    *oracle = (struct oracle){.problem = problem, .strategies = strategies, .best_ns = -1};
    list_all(oracle);
    return problem;
}

static enum weft_status solve_all(struct weft_seed *seed, struct weft_lp_result *result,
                                  struct weft_error *err)
{
    const struct weft_lp_limits limits = {0};
    return test_solver().solve(NULL, &seed->lp, &limits, &seed->pool, result, err);
}

/* The program's optimum is the most overlap of all placements. */
Test(seed, overlaps_as_much_as_the_best_of_all_placements, .timeout = 600)
{
    int n = 0, n_none = 0, n_tight = 0;
    if (!test_solver_exists()) cr_skip("no weft-solve in this build");
    for (uint64_t k = 1; n < TEST_CASES(200, 30); k++) {
        struct oracle oracle;
        struct weft_seed seed;
        struct weft_lp_result result = {0};
        struct weft_error err = {0};
        struct weft_move moves[MOST_BLOCKS];
        int32_t strategies[8], n_moves = 0;
        bool over = false;
        struct weft_problem *problem = draw_problem(k, &oracle, strategies);
        if (oracle.n > 0 && count_placements(&oracle) <= MOST_PLACEMENTS) {
            n++;
            try_all(&oracle, 0);
            cr_assert_eq(weft_seed_init(&seed, problem, strategies, 0, &err), WEFT_OK);
            cr_assert_eq(seed.n_blocks, oracle.n);
            cr_assert_eq(solve_all(&seed, &result, &err), WEFT_OK, "%s", err.text);
            if (oracle.best_ns < 0) {
                n_none++;
                cr_assert_eq(result.status, WEFT_LP_INFEASIBLE, "case %d", (int)k);
            } else {
                cr_assert_eq(result.status, WEFT_LP_OPTIMAL, "case %d: %s", (int)k, result.stop);
                cr_assert_eq(weft_seed_read(&seed, result.x, moves, &n_moves, &over, &err), WEFT_OK,
                             "case %d: %s", (int)k, err.text);
                cr_assert_eq(weft_seed_overlap(&seed, moves, n_moves), oracle.best_ns, "case %d",
                             (int)k);
                n_tight += seed.lp.n_rows > oracle.n + problem->n_slots;
            }
            weft_seed_finish(&seed);
        }
        weft_problem_destroy(problem);
    }
    cr_assert(n_none > 0 && n_none < n / 2 && n_tight > 0, "%d of %d, %d", n_none, n, n_tight);
}

static struct weft_plan *plan_of(const struct weft_problem *problem, const char *planner,
                                 struct weft_solver solver, enum weft_status wanted,
                                 struct weft_error *err)
{
    struct weft_work work = {0};
    const struct weft_schedule_options options = {
        .planner = planner, .budget = weft_budget_of(&work, 1000000000), .solver = solver};
    struct weft_plan *plan = NULL;
    *err = (struct weft_error){0};
    const enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, err);
    cr_assert_eq(status, wanted, "%s: %d, %s", planner, (int)status, err->text);
    return plan;
}

/* Both forms make the same plan twice, which says how it was solved, and ilp is not slower. */
Test(seed, plans_are_checked_alike_twice_and_no_faster_than_ilp, .timeout = 600)
{
    static const char *const planners[] = {"seed-ilp", "seed-ilp:two-stage", "seed-ilp:ilp"};
    int n_slower = 0;
    if (!test_solver_exists()) cr_skip("no weft-solve in this build");
    for (uint64_t k = 1; k <= TEST_CASES(30, 10); k++) {
        struct weft_problem *problem = tiny_problem_of(k, 2);
        struct weft_error err;
        struct weft_plan *best = plan_of(problem, "ilp", test_solver(), WEFT_OK, &err);
        for (int p = 0; p < 3; p++) {
            struct weft_plan *plan = plan_of(problem, planners[p], test_solver(), WEFT_OK, &err);
            struct weft_plan *again = plan_of(problem, planners[p], test_solver(), WEFT_OK, &err);
            cr_assert_eq(weft_plan_check_rows(plan, "seed-ilp", &err), WEFT_OK, "%s", err.text);
            cr_assert_eq(plan->n_placements, again->n_placements);
            cr_assert_eq(memcmp(plan->placements, again->placements,
                                (size_t)plan->n_placements * sizeof *plan->placements),
                         0);
            cr_assert_str_eq(plan->solver_stop, again->solver_stop);
            cr_assert_not_null(strstr(plan->solver_stop, "overlap solved for policies of"), "%s",
                               plan->solver_stop);
            cr_assert_not_null(strstr(plan->solver_stop, p == 2 ? "ilp" : "two-stage"));
            cr_assert_leq(best->prediction.step_ns, plan->prediction.step_ns, "%s", planners[p]);
            cr_assert_leq(plan->bound_ns, best->prediction.step_ns);
            n_slower += plan->prediction.step_ns > best->prediction.step_ns;
            weft_plan_destroy(again);
            weft_plan_destroy(plan);
        }
        weft_plan_destroy(best);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_slower, 0);
}

/* A solver that lies: its point is the start, changed. */
struct liar {
    int turn; /* 0: no block moves; 1: the first block moves twice; 2: all are as early as can be */
};

static enum weft_status tell_lie(void *context, const struct weft_lp *lp,
                                 const struct weft_lp_limits *limits, struct weft_pool *pool,
                                 struct weft_lp_result *result, struct weft_error *err)
{
    const struct liar *liar = context;
    double *x = weft_pool_array(pool, (size_t)lp->n_columns + 1, sizeof *x);
    (void)limits;
    (void)err;
    cr_assert(x != NULL && lp->integer != NULL);
    memset(x, 0, ((size_t)lp->n_columns + 1) * sizeof *x);
    for (int32_t i = 0; i < lp->n_rows && liar->turn > 0; i++)
        if (lp->row_lower[i] == 1) x[lp->column[lp->row_start[i]]] = 1;
    if (liar->turn == 1) x[lp->column[lp->row_start[0] + 1]] = 1;
    *result = (struct weft_lp_result){
        .status = WEFT_LP_OPTIMAL, .stop = "optimal", .x = x, .value = -1e9, .bound = -1e9};
    return WEFT_OK;
}

Test(seed, refuses_what_a_solver_cannot_mean)
{
    static const char *const said[] = {"in 0 slots", "in 2 slots", "exceeds a memory limit"};
    struct weft_error err;
    const struct tiny_shape shape = {.n_units = 3,
                                     .most_blocks = 2,
                                     .policies = 1u << WEFT_POLICY_FSDP | 1u << WEFT_POLICY_SDP,
                                     .load = 1};
    struct weft_problem *problem = tiny_problem(&shape, 3);
    tiny_set_limit(problem, 0);
    for (int turn = 0; turn < 3; turn++) {
        struct liar liar = {turn};
        cr_assert_null(plan_of(problem, "seed-ilp", (struct weft_solver){tell_lie, NULL, &liar},
                               WEFT_E_DATA, &err));
        cr_assert_not_null(strstr(err.text, said[turn]), "%s", err.text);
        cr_assert_not_null(strstr(err.text, "planner seed-ilp: weft-solve"), "%s", err.text);
    }
    cr_assert_null(plan_of(problem, "seed-ilp", (struct weft_solver){0}, WEFT_E_ENVIRONMENT, &err));
    cr_assert_not_null(strstr(err.text, "it needs weft-solve"), "%s", err.text);
    weft_problem_destroy(problem);
}

static enum weft_status stop_at_root(void *context, const struct weft_lp *lp,
                                     const struct weft_lp_limits *limits, struct weft_pool *pool,
                                     struct weft_lp_result *result, struct weft_error *err)
{
    (void)context;
    (void)pool;
    (void)err;
    cr_assert(lp->start != NULL && limits->iterations > 0);
    *result = (struct weft_lp_result){.status = WEFT_LP_UNKNOWN, .stop = "iteration limit"};
    return WEFT_OK;
}

/* The placement of the first planner is kept if the solver ends before it has one. */
Test(seed, keeps_its_start_if_the_root_is_not_solved)
{
    struct weft_error err;
    struct weft_problem *problem = tiny_problem_of(5, 2);
    struct weft_plan *plan =
        plan_of(problem, "seed-ilp", (struct weft_solver){stop_at_root, NULL, NULL}, WEFT_OK, &err);
    cr_assert_str_eq(
        plan->solver_stop,
        "iteration limit, overlap not solved for policies of two-stage: its start is kept");
    weft_plan_destroy(plan);
    weft_problem_destroy(problem);
}
