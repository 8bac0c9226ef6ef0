/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/relax/ilp.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "scheduler/digest/digest.h"
#include "scheduler/place/list.h"
#include "scheduler/relax/ilp_keeper.h"
#include "scheduler/schedule.h"
#include "scheduler/tree/proof.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/ilp_point.h"
#include "tests/scheduler/limit.h"
#include "tests/scheduler/solver.h"
#include "tests/scheduler/tiny.h"

/* Columns of counts allowed: fine, shared by equal blocks (on tiny problems nothing is), by some
 * that are not, and the coarsest. */
static const int32_t sizes[] = {100000, 60, 12, 0};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void check_feasible(const struct weft_lp *lp, const double *x)
{
    for (int32_t j = 0; j < lp->n_columns; j++) {
        double slack = 1e-9 * (1 + fabs(x[j]));
        cr_assert(x[j] >= lp->lower[j] - slack && x[j] <= lp->upper[j] + slack,
                  "column %d: %g not in [%g, %g]", j, x[j], lp->lower[j], lp->upper[j]);
    }
    for (int32_t i = 0; i < lp->n_rows; i++) {
        double sum = 0, size = 1;
        for (int64_t k = lp->row_start[i]; k < lp->row_start[i + 1]; k++) {
            sum += lp->value[k] * x[lp->column[k]];
            size += fabs(lp->value[k] * x[lp->column[k]]);
        }
        cr_assert(sum >= lp->row_lower[i] - 1e-9 * size && sum <= lp->row_upper[i] + 1e-9 * size,
                  "row %d: %g not in [%g, %g]", i, sum, lp->row_lower[i], lp->row_upper[i]);
    }
}

static int columns_repeat(const struct weft_lp *lp)
{
    int n = 0;
    int32_t *row_of = calloc((size_t)lp->n_columns, sizeof *row_of);
    for (int32_t i = 0; i < lp->n_rows; i++) {
        for (int64_t k = lp->row_start[i]; k < lp->row_start[i + 1]; k++) {
            n += row_of[lp->column[k]] == i + 1;
            row_of[lp->column[k]] = i + 1;
        }
    }
    free(row_of);
    return n;
}

static const int32_t *all_units(int32_t n_units)
{
    static int32_t units[64];
    cr_assert_leq(n_units, 64);
    for (int32_t u = 0; u < n_units; u++)
        units[u] = u;
    return units;
}

/* How many blocks of the item have moved by the slot. */
static int32_t moved_by(const struct weft_move *moves, int32_t n_moves, int32_t item, int32_t slot)
{
    int32_t n = 0;
    for (int32_t k = 0; k < n_moves; k++)
        n += moves[k].item == item && moves[k].slot <= slot;
    return n;
}

/* Facts of a plan do not cut it off: those of every item at the middle of its window, and how many
 * units have the policy of the first. */
static void check_restricted(struct weft_ilp *ilp, const int32_t *strategies,
                             const struct weft_move *moves, int32_t n_moves, const double *x)
{
    const struct weft_problem *problem = ilp->table->problem;
    size_t n_units = (size_t)problem->n_decisions;
    struct weft_milestone *milestones = calloc((size_t)problem->n_items + 1, sizeof *milestones);
    uint64_t *allowed = calloc(n_units, sizeof *allowed);
    struct weft_box *box = NULL;
    struct weft_dual *dual = NULL;
    struct weft_count counts[2] = {{0}};
    struct weft_facts facts = {.allowed = allowed, .milestones = milestones, .counts = counts};
    int32_t n_like = 0;
    cr_assert(milestones && allowed);
    cr_assert_eq(weft_box_create(problem, &box, NULL), WEFT_OK);
    cr_assert_eq(weft_box_set_groups(box, ilp->groups, ilp->n_groups, NULL), WEFT_OK);
    cr_assert_eq(weft_dual_create(ilp->table, &dual, NULL), WEFT_OK);
    cr_assert_eq(weft_dual_set_groups(dual, ilp->groups, ilp->n_groups, NULL), WEFT_OK);
    for (size_t u = 0; u < n_units; u++) {
        allowed[u] = weft_decision_all(&problem->decisions[u]);
        n_like += strategies[u] == strategies[0];
    }
    counts[0] = (struct weft_count){0, n_like, true};
    counts[1] = (struct weft_count){0, n_like + 1, false};
    facts.n_counts = n_like < problem->n_decisions ? 2 : 1;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        struct weft_milestone at = {.item = i,
                                    .n_blocks = (item->n_blocks + 1) / 2,
                                    .slot = (item->first + item->last) / 2};
        if (!weft_milestone_is_of(&at, problem)) continue;
        at.reached = moved_by(moves, n_moves, i, at.slot) >= at.n_blocks;
        milestones[facts.n_milestones++] = at;
    }
    weft_box_restrict(box, &facts);
    cr_assert(!box->empty);
    weft_ilp_restrict(ilp, box, dual);
    check_feasible(&ilp->lp, x);
    facts = (struct weft_facts){.allowed = allowed};
    weft_box_restrict(box, &facts);
    weft_ilp_restrict(ilp, box, dual);
    check_feasible(&ilp->lp, x);
    weft_dual_destroy(dual);
    weft_box_destroy(box);
    free(milestones);
    free(allowed);
}

/* Every plan that list scheduling makes is a point of the program, at every coarseness. */
static void check_points(const struct weft_problem *problem, int64_t limit_bytes)
{
    struct weft_digest *table = NULL;
    struct weft_list *list = NULL;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_list_create(table, &list, NULL), WEFT_OK);
    struct weft_move *moves = calloc((size_t)table->n_blocks, sizeof *moves);
    for (int k = 0; k < N_SIZES; k++) {
        struct weft_ilp *ilp = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_ilp_create(with_limit(table, limit_bytes), sizes[k], &ilp, &err), WEFT_OK,
                     "%s", err.text);
        const int32_t *units = all_units(table->n_decisions);
        struct weft_group group = {1u << table->leanest[0], table->n_decisions, units};
        cr_assert_eq(weft_ilp_set_groups(ilp, &group, 1, NULL), WEFT_OK);
        cr_assert_eq(columns_repeat(&ilp->lp), 0);
        double *x = calloc((size_t)ilp->lp.n_columns, sizeof *x);
        int32_t *back = calloc((size_t)table->n_decisions, sizeof *back);
        for (int rule = 0; rule < WEFT_LIST_RULES; rule++) {
            int32_t n_moves = 0;
            int64_t ns =
                weft_list_place(list, table->leanest, weft_list_rules[rule], moves, &n_moves);
            cr_assert_geq(ns, 0);
            if (!ilp_point_of(ilp, table->leanest, moves, n_moves, x)) continue;
            check_feasible(&ilp->lp, x);
            check_restricted(ilp, table->leanest, moves, n_moves, x);
            weft_ilp_strategies(ilp, x, back);
            cr_assert_eq(memcmp(back, table->leanest, (size_t)table->n_decisions * sizeof *back),
                         0);
        }
        free(back);
        free(x);
        weft_ilp_destroy(ilp);
    }
    free(moves);
    weft_list_destroy(list);
    weft_digest_destroy(table);
}

Test(ilp, plans_are_points_of_the_program)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 5),
                                   .most_blocks = 3,
                                   .policies = 15,
                                   .load = 0.1 * (double)(seed % 20),
                                   .contends = seed % 3 == 1,
                                   .two_networks = seed % 4 == 1};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.1 * (double)(seed % 11));
        check_points(problem, problem->tiers[0].limit_bytes);
        weft_problem_destroy(problem);
    }
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        int64_t least = weft_least_limit(random.stages.problem, 0, NULL);
        check_points(random.stages.problem, least);
        check_points(random.stages.problem, least + least / 5);
        random_case_finish(&random);
    }
}

/* The slots of an item's gathers, or of its reductions' ends, are in order in a list schedule. */
static void check_launches(const struct weft_problem *problem, int32_t item,
                           const struct weft_move *moves, int32_t n_moves, const int32_t *launch)
{
    const struct weft_item *it = &problem->items[item].item;
    int32_t n = 0;
    for (int32_t k = 0; k < n_moves; k++)
        if (moves[k].item == item) cr_assert_eq(launch[n++], moves[k].slot);
    cr_assert_eq(n, it->n_blocks);
}

static int64_t late_bytes_of(const struct weft_problem *problem, const struct weft_move *moves,
                             int32_t n_moves, int32_t slot)
{
    int64_t bytes = 0;
    for (int32_t k = 0; k < n_moves; k++) {
        const struct weft_item *it = &problem->items[moves[k].item].item;
        if (!it->acquires && it->first < slot && moves[k].slot >= slot) bytes += it->stair_bytes;
    }
    return bytes;
}

/* What the point of a plan says of when to launch is when the plan does, where every item has
 * columns of its own. */
static void check_guide(const struct weft_problem *problem, int64_t limit_bytes)
{
    struct weft_digest *table = NULL;
    struct weft_list *list = NULL;
    struct weft_ilp *ilp = NULL;
    int32_t n_moves = 0;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_list_create(table, &list, NULL), WEFT_OK);
    cr_assert_eq(weft_ilp_create(with_limit(table, limit_bytes), INT32_MAX, &ilp, NULL), WEFT_OK);
    struct weft_move *moves = calloc((size_t)table->n_blocks, sizeof *moves);
    double *x = calloc((size_t)ilp->lp.n_columns, sizeof *x);
    int32_t *launch = calloc((size_t)table->n_blocks, sizeof *launch);
    int32_t *order = calloc((size_t)table->n_blocks, sizeof *order);
    int64_t *late_bytes = calloc((size_t)table->n_slots, sizeof *late_bytes);
    const int32_t *first_block = weft_list_first_blocks(list);
    cr_assert_geq(weft_list_place(list, table->leanest, weft_list_rules[0], moves, &n_moves), 0);
    if (ilp_point_of(ilp, table->leanest, moves, n_moves, x)) {
        weft_ilp_guide(ilp, x, table->leanest, 1, first_block, launch, order, late_bytes);
        for (int32_t i = 0; i < table->n_items; i++) {
            const struct weft_item *it = &problem->items[i].item;
            if (!weft_item_active(it, table->leanest)) continue;
            if (!it->acquires)
                check_launches(problem, i, moves, n_moves, order + first_block[i]);
            else if (it->stair_bytes > 0)
                check_launches(problem, i, moves, n_moves, launch + first_block[i]);
        }
        for (int32_t s = 0; s < table->n_slots; s++)
            cr_assert_eq(late_bytes[s], late_bytes_of(problem, moves, n_moves, s));
    }
    free(moves);
    free(x);
    free(launch);
    free(order);
    free(late_bytes);
    weft_ilp_destroy(ilp);
    weft_list_destroy(list);
    weft_digest_destroy(table);
}

Test(ilp, guides_to_the_plan_that_the_point_is)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 5),
                                   .most_blocks = 3,
                                   .policies = 15,
                                   .load = 0.1 * (double)(seed % 20),
                                   .two_networks = seed % 4 == 1};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.1 * (double)(seed % 10));
        check_guide(problem, problem->tiers[0].limit_bytes);
        weft_problem_destroy(problem);
    }
}

/* The exact bound of a relaxation's multipliers, over the strategies that it has columns for. */
static int64_t bound_of(const struct weft_ilp *ilp, const double *row_duals)
{
    struct weft_dual *dual = NULL;
    struct weft_proof *proof = NULL;
    const struct weft_problem *problem = ilp->table->problem;
    cr_assert_eq(weft_dual_create(ilp->table, &dual, NULL), WEFT_OK);
    cr_assert_eq(weft_proof_create(problem, 1, &proof, NULL), WEFT_OK);
    cr_assert_eq(weft_ilp_prices(ilp, row_duals, dual, NULL), WEFT_OK);
    cr_assert_eq(weft_proof_offer(proof, 0, dual, NULL), WEFT_OK);
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        proof->allowed[u] = 0;
        for (int32_t p = 0; p < weft_digest_count(ilp->table, u); p++) {
            int32_t z = ilp->z[weft_digest_at(ilp->table, u, p)];
            if (z >= 0 && ilp->lp.upper[z] > 0) proof->allowed[u] |= UINT64_C(1) << p;
        }
    }
    int64_t bound_ns = weft_priced_bound_ns(problem, &proof->priced[0], proof->allowed);
    weft_proof_destroy(proof);
    weft_dual_destroy(dual);
    return bound_ns;
}

/* Coarser classes give lower bounds, the finest is below the best plan of all; and they are worth
 * having: on average close to it. */
Test(ilp, every_coarseness_bounds_all_plans, .timeout = 900)
{
    if (!test_solver_exists()) cr_skip("no weft-solve in this build");
    struct weft_solver solver = test_solver();
    double ratio_sum = 0, lp_sum[N_SIZES] = {0};
    int n = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(40, 15); seed++) {
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 2),
                                   .most_blocks = 1,
                                   .policies = seed % 2 ? 12 : 15,
                                   .load = 0.2 + 0.1 * (double)(seed % 15),
                                   .contends = seed % 3 == 1,
                                   .two_networks = seed % 4 == 1};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.04 * (double)(seed % 13));
        int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
        struct weft_digest *table = NULL;
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        double finer = INFINITY;
        for (int k = 0; k < N_SIZES; k++) {
            struct weft_pool pool = {0};
            struct weft_ilp *ilp = NULL;
            struct weft_lp_result result = {0};
            struct weft_lp_limits limits = {0};
            struct weft_error err = {0};
            cr_assert_eq(weft_ilp_create(table, sizes[k], &ilp, &err), WEFT_OK);
            cr_assert_eq(solver.solve(NULL, &ilp->lp, &limits, &pool, &result, &err), WEFT_OK, "%s",
                         err.text);
            cr_assert_eq(result.status, WEFT_LP_OPTIMAL, "%s", result.stop);
            double lp_ns = ldexp(result.value, ilp->time_shift);
            int64_t bound_ns = bound_of(ilp, result.duals);
            cr_assert_geq((double)bound_ns, lp_ns * (1 - 1e-6),
                          "seed %d size %d: prices prove no less than the relaxation", (int)seed,
                          k);
            cr_assert_leq(bound_ns, best_ns, "seed %d size %d", (int)seed, k);
            cr_assert_leq(lp_ns, finer * (1 + 1e-9));
            finer = lp_ns;
            lp_sum[k] += lp_ns / (double)best_ns;
            if (k == 0) ratio_sum += (double)bound_ns / (double)best_ns;
            weft_ilp_destroy(ilp);
            weft_pool_finish(&pool);
        }
        n++;
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(ratio_sum / n, 0.93);
}

static int64_t n_counts(const struct weft_ilp *ilp)
{
    int64_t n = 0;
    for (int32_t c = 0; c < ilp->n_classes; c++)
        n += ilp->classes[c].last - ilp->classes[c].first;
    return n;
}

/* The relaxation's value when its columns of counts are that part of the finest one's, which are
 * *n_finest and are found out when that is 0; in `value`. */
static void relax_with(const struct weft_digest *table, int part, int64_t *n_finest, double *value)
{
    struct weft_solver solver = test_solver();
    struct weft_pool pool = {0};
    struct weft_ilp *ilp = NULL;
    struct weft_lp_result result = {0};
    struct weft_lp_limits limits = {0};
    struct weft_error err = {0};
    int32_t most = *n_finest == 0 ? INT32_MAX : (int32_t)(*n_finest * part / 16);
    cr_assert_eq(weft_ilp_create(table, most, &ilp, &err), WEFT_OK);
    if (*n_finest == 0) *n_finest = n_counts(ilp);
    if (part >= 8 && n_counts(ilp) != *n_finest) cr_assert_leq(n_counts(ilp), most);
    cr_assert_eq(n_counts(ilp) == *n_finest, *n_finest <= (int64_t)most + most / 3);
    cr_assert_eq(solver.solve(NULL, &ilp->lp, &limits, &pool, &result, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(result.status, WEFT_LP_OPTIMAL, "%s", result.stop);
    *value = ldexp(result.value, ilp->time_shift);
    weft_ilp_destroy(ilp);
    weft_pool_finish(&pool);
}

/* With fewer columns less is seen, a little at a time. */
Test(ilp, columns_are_saved_where_little_is_lost, .timeout = 900)
{
    if (!test_solver_exists()) cr_skip("no weft-solve in this build");
    double lost[17] = {0};
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct tiny_shape shape = {.n_units = 8, .most_blocks = 3, .policies = 12, .load = 1.2};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        struct weft_digest *table = NULL;
        int64_t n_finest = 0;
        double finest = 0, finer = INFINITY;
        tiny_set_limit(problem, 0.05);
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        for (int part = 16; part >= 0; part--) {
            double value;
            relax_with(table, part, &n_finest, &value);
            cr_assert_leq(value, finer * (1 + 1e-9));
            if (part == 16) finest = value;
            finer = value;
            lost[part] += 1 - value / finest;
        }
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
    for (int part = 0; part <= 16; part++)
        cr_log_info("%d of 16 columns: %.3f %% lost", part, 10 * lost[part]);
    cr_assert_lt(lost[12], lost[0] / 4);
    cr_assert_lt(lost[8], lost[0] * 0.9);
}

/* zero1 with a slice of its own beside the full buffer would be sdp with more bytes. */
Test(ilp, leaves_out_what_is_nowhere_better)
{
    struct tiny_shape shape = {.n_units = 3, .most_blocks = 2, .policies = 15, .load = 0.5};
    struct weft_problem *problem = tiny_problem(&shape, 4);
    struct weft_digest *table = NULL;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    for (int32_t u = 0; u < 3; u++) {
        /* As it is, zero1 saves the slice wherever sdp holds slice and gathered buffer both. */
        cr_assert_not(weft_ilp_dominated(table, u, WEFT_POLICY_ZERO1, WEFT_POLICY_SDP));
        cr_assert_not(weft_ilp_dominated(table, u, WEFT_POLICY_SDP, WEFT_POLICY_ZERO1));
        cr_assert_not(weft_ilp_dominated(table, u, WEFT_POLICY_DP, WEFT_POLICY_SDP));
    }
    weft_digest_destroy(table);
    for (int32_t u = 0; u < 3; u++) {
        struct weft_problem_strategy *zero1 = &problem->decisions[u].strategies[WEFT_POLICY_ZERO1];
        const struct weft_problem_strategy *sdp =
            &problem->decisions[u].strategies[WEFT_POLICY_SDP];
        for (int32_t i = 0; i < sdp->n_holds; i++) {
            if (sdp->holds[i].category == WEFT_CATEGORY_SHARDED_PARAMETERS)
                zero1->holds[zero1->n_holds++] = sdp->holds[i];
        }
    }
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    struct weft_ilp *ilp = NULL;
    cr_assert_eq(weft_ilp_create(with_limit(table, table->least_bytes), 1000, &ilp, NULL), WEFT_OK);
    for (int32_t u = 0; u < 3; u++) {
        cr_assert(weft_ilp_dominated(table, u, WEFT_POLICY_ZERO1, WEFT_POLICY_SDP));
        cr_assert_not(weft_ilp_dominated(table, u, WEFT_POLICY_SDP, WEFT_POLICY_ZERO1));
        cr_assert_eq(ilp->z[weft_digest_at(table, u, WEFT_POLICY_ZERO1)], -1);
        cr_assert_geq(ilp->z[weft_digest_at(table, u, WEFT_POLICY_SDP)], 0);
    }
    weft_ilp_destroy(ilp);
    weft_digest_destroy(table);
    weft_problem_destroy(problem);
}

/* Blocks of a gather and of a reduction that hold more may do so in the same slot. */
Test(ilp, leaves_out_nothing_that_is_better_where_windows_meet)
{
    struct tiny_shape shape = {.n_units = 1,
                               .most_blocks = 2,
                               .policies = 1 << WEFT_POLICY_ZERO1 | 1 << WEFT_POLICY_SDP,
                               .load = 0.5};
    struct weft_problem *problem = tiny_problem(&shape, 3);
    enum { ZERO1, SDP }; /* the two that there are */
    struct weft_problem_strategy *zero1 = &problem->decisions[0].strategies[ZERO1];
    struct weft_digest *table = NULL;
    int32_t n = problem->n_items;
    for (int32_t i = 0; i < n; i++) {
        struct weft_item *item = &problem->items[i].item;
        if (item->kind != WEFT_REDUCE_SCATTER) continue;
        item->first = item->last = 1;
        problem->items[problem->n_items] = problem->items[i];
        item->strategies = 1 << SDP;
        problem->items[problem->n_items].item.strategies = 1 << ZERO1;
        problem->items[problem->n_items++].item.stair_bytes = 0;
    }
    const struct weft_item *gather = &problem->items[0].item;
    cr_assert(gather->first == 1 && gather->last == 1 && problem->n_items == n + 1);
    int64_t bytes = gather->n_blocks * gather->block_bytes;
    struct weft_hold *hold = &zero1->holds[zero1->n_holds++];
    *hold = (struct weft_hold){.category = WEFT_CATEGORY_TEMPORARY, .last = problem->n_slots - 1};
    for (int enough = 0; enough < 2; enough++) {
        hold->bytes = bytes / 2 + (enough ? bytes : 0);
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        cr_assert_eq(weft_ilp_dominated(table, 0, ZERO1, SDP), enough);
        weft_digest_destroy(table);
    }
    weft_problem_destroy(problem);
}

/* What a hostile or broken solver may hand over as multipliers. */
Test(ilp, no_multipliers_prove_too_much, .timeout = 900)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct tiny_shape shape = {
            .n_units = 2, .most_blocks = 1, .policies = 15, .load = 0.3 + 0.2 * (double)(seed % 5)};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.06 * (double)(seed % 9));
        int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
        struct weft_digest *table = NULL;
        cr_assert_geq(best_ns, 0);
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        for (int k = 0; k < N_SIZES; k++) {
            struct weft_ilp *ilp = NULL;
            cr_assert_eq(weft_ilp_create(table, sizes[k], &ilp, NULL), WEFT_OK);
            double *multipliers = calloc((size_t)ilp->lp.n_rows, sizeof *multipliers);
            for (uint64_t trial = 0; trial < 300; trial++) {
                double size = pow(10, (double)(trial % 13) - 6);
                for (int32_t i = 0; i < ilp->lp.n_rows; i++) {
                    double draw = weft_rng_uniform(seed, trial, (uint64_t)i);
                    multipliers[i] = draw < 0.3 ? 0 : size * (2 * draw - 1.3);
                }
                cr_assert_leq(bound_of(ilp, multipliers), best_ns, "seed %d size %d", (int)seed, k);
            }
            free(multipliers);
            weft_ilp_destroy(ilp);
        }
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
}

Test(ilp, refuses_a_limit_below_what_every_plan_holds)
{
    struct tiny_shape shape = {.n_units = 2, .most_blocks = 1, .policies = 15, .load = 0.5};
    struct weft_problem *problem = tiny_problem(&shape, 4);
    struct weft_digest *table = NULL;
    struct weft_ilp *ilp = NULL;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_ilp_create(with_limit(table, 10), 1000, &ilp, NULL), WEFT_E_INTERNAL);
    cr_assert_null(ilp);
    weft_digest_destroy(table);
    weft_problem_destroy(problem);
}
