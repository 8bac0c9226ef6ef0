/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "program/predict.h"
#include "program/trace.h"
#include "scheduler/place/list.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/limit.h"
#include "tests/scheduler/tiny.h"

/* Some blocks wait, past their windows too; reductions have an order; and some slots are clear, or
 * wait for reductions. */
static void draw_changes(const struct weft_digest *table, const int32_t *first_block,
                         int32_t *launch, int32_t *order, bool *clear, int64_t *late_bytes)
{
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &table->problem->items[i].item;
        for (int32_t b = 0, at = rand() % 3; b < item->n_blocks; b++)
            order[first_block[i] + b] = at += rand() % 2;
        if (rand() % 2 == 0) continue;
        int32_t until = item->first + rand() % (item->last - item->first + 3);
        for (int32_t b = rand() % (item->n_blocks + 1); b < item->n_blocks; b++)
            launch[first_block[i] + b] = until;
    }
    for (int32_t s = 0; s < table->n_slots; s++) {
        clear[s] = rand() % 3 == 0;
        late_bytes[s] = rand() % 3 == 0 ? rand() % 2000 : INT64_MAX;
    }
}

/* With launches behind their windows all gathers that hold bytes block, however much room there is;
 * how many there are. */
static int32_t check_blocking(const struct weft_problem *problem)
{
    struct weft_digest *table = NULL;
    struct weft_list *list = NULL;
    int32_t n_moves = 0, n_blocking = 0;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_list_create(with_limit(table, table->most_bytes), &list, NULL), WEFT_OK);
    struct weft_move *moves = calloc((size_t)table->n_blocks, sizeof *moves);
    int32_t *launch = calloc((size_t)table->n_blocks + 1, sizeof *launch);
    const int32_t *first_block = weft_list_first_blocks(list);
    for (int32_t i = 0; i < table->n_items; i++)
        for (int32_t b = first_block[i]; b < first_block[i + 1]; b++)
            launch[b] = problem->items[i].item.last + 1;
    for (int i = 0; i < WEFT_LIST_RULES; i++) {
        struct weft_list_rule rule = weft_list_rules[i];
        rule.launch = launch;
        cr_assert_geq(weft_list_place(list, table->leanest, rule, moves, &n_moves), 0);
        for (int32_t k = 0; k < n_moves; k++) {
            const struct weft_item *item = &problem->items[moves[k].item].item;
            if (!item->acquires || item->stair_bytes == 0) continue;
            cr_assert_eq(moves[k].slot, item->last + 1);
            n_blocking++;
        }
    }
    free(launch);
    free(moves);
    weft_list_destroy(list);
    weft_digest_destroy(table);
    return n_blocking;
}

/* Places random strategies at `limit` by every rule, as it is and with changes, and holds the
 * result to plan/. */
static void check_all_rules(const struct weft_problem *problem, const int32_t *strategies,
                            int64_t limit_bytes, bool must_fit)
{
    struct weft_digest *table = NULL;
    struct weft_list *list = NULL;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_list_create(with_limit(table, limit_bytes), &list, NULL), WEFT_OK);
    struct weft_move *moves = calloc((size_t)table->n_blocks, sizeof *moves);
    int64_t *rows = calloc((size_t)problem->n_slots, sizeof *rows);
    int32_t *launch = calloc((size_t)table->n_blocks + 1, sizeof *launch);
    int32_t *order = calloc((size_t)table->n_blocks + 1, sizeof *order);
    int64_t *late_bytes = calloc((size_t)table->n_slots, sizeof *late_bytes);
    bool *clear = calloc((size_t)table->n_slots, sizeof *clear);
    int64_t best_ns = -1;
    draw_changes(table, weft_list_first_blocks(list), launch, order, clear, late_bytes);
    for (int i = 0; i < 2 * WEFT_LIST_RULES; i++) {
        int32_t n_moves = 0;
        struct weft_list_rule rule = weft_list_rules[i % WEFT_LIST_RULES];
        bool plain = i < WEFT_LIST_RULES;
        if (!plain) {
            rule.launch = launch, rule.order = order;
            rule.clear = clear, rule.late_bytes = late_bytes;
        }
        int64_t ns = weft_list_place(list, strategies, rule, moves, &n_moves);
        int64_t lean = weft_digest_lean_rows(table, strategies, rows, NULL);
        cr_assert_eq(ns >= 0, lean <= limit_bytes, "placed exactly when the leanest rows fit");
        cr_assert(!must_fit || ns >= 0);
        if (ns < 0) continue;
        if (plain && (best_ns < 0 || ns < best_ns)) best_ns = ns;
        struct weft_plan *plan = NULL;
        struct weft_error err = {0};
        cr_assert_eq(weft_plan_create(problem, "list", strategies, moves, n_moves, &plan, &err),
                     WEFT_OK, "%s", err.text);
        cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
        cr_assert_eq(plan->prediction.step_ns, ns, "event-exact");
        cr_assert_leq(plan->prediction.peak_bytes, limit_bytes);
        weft_digest_move_rows(table, strategies, moves, n_moves, rows);
        for (int32_t s = 0; s < problem->n_slots; s++)
            cr_assert_leq(rows[s], limit_bytes);
        weft_plan_destroy(plan);
    }
    cr_assert_eq(weft_list_best(list, strategies, NULL), best_ns);
    free(launch);
    free(order);
    free(late_bytes);
    free(clear);
    free(rows);
    free(moves);
    weft_list_destroy(list);
    weft_digest_destroy(table);
}

Test(list, is_event_exact_and_within_the_limit_on_models)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        const struct weft_problem *problem = random.stages.problem;
        int32_t *strategies = calloc((size_t)problem->n_decisions, sizeof *strategies);
        struct weft_digest *table = NULL;
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        for (int step = 0; step <= 8; step++) {
            int64_t limit =
                table->least_bytes + (table->most_bytes - table->least_bytes) * step / 8;
            tiny_draw_strategies(problem, (unsigned)(seed * 31 + (uint64_t)step), strategies);
            check_all_rules(problem, strategies, limit, false);
        }
        check_all_rules(problem, table->leanest, table->least_bytes, true);
        check_all_rules(problem, table->leanest, table->least_bytes - 1, false);
        weft_digest_destroy(table);
        free(strategies);
        random_case_finish(&random);
    }
}

Test(list, is_event_exact_and_within_the_limit_on_tiny_problems)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 6),
                                   .most_blocks = 4,
                                   .policies = 15,
                                   .load = 0.1 * (double)(seed % 23),
                                   .contends = seed % 3 == 1,
                                   .two_networks = seed % 4 == 1};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        int32_t strategies[8];
        tiny_set_limit(problem, (double)(seed % 10) * 0.1);
        tiny_draw_strategies(problem, (unsigned)seed, strategies);
        check_all_rules(problem, strategies, problem->tiers[0].limit_bytes, false);
        weft_problem_destroy(problem);
    }
}

/* Reductions that were released before a slot hold no more than its rule lets them. */
Test(list, waits_for_reductions_before_a_slot)
{
    int n_waits = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct tiny_shape shape = {
            .n_units = 5, .most_blocks = 4, .policies = 15, .load = 0.1 * (double)(seed % 23)};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        struct weft_digest *table = NULL;
        struct weft_list *list = NULL;
        struct weft_list_rule rule = weft_list_rules[0];
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        cr_assert_eq(weft_list_create(with_limit(table, table->most_bytes), &list, NULL), WEFT_OK);
        struct weft_move *moves = calloc((size_t)table->n_blocks, sizeof *moves);
        int64_t *late_bytes = calloc((size_t)table->n_slots, sizeof *late_bytes);
        int32_t n_moves = 0, slot = table->n_slots - 4;
        for (int32_t s = 0; s < table->n_slots; s++)
            late_bytes[s] = s == slot ? 0 : INT64_MAX;
        int64_t plain_ns = weft_list_place(list, table->leanest, rule, NULL, NULL);
        rule.late_bytes = late_bytes;
        int64_t ns = weft_list_place(list, table->leanest, rule, moves, &n_moves);
        n_waits += ns > plain_ns;
        for (int32_t k = 0; k < n_moves; k++) {
            const struct weft_item *item = &problem->items[moves[k].item].item;
            bool before = !item->acquires && item->first < slot;
            cr_assert(!before || moves[k].slot < slot);
        }
        free(late_bytes);
        free(moves);
        weft_list_destroy(list);
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_waits, 0);
}

/* Two units of one block, times by hand: U0 U1 fill F0 F1 B1 B0 drain norm. */
Test(list, overlaps_what_it_can)
{
    struct tiny_shape shape = {
        .n_units = 2, .most_blocks = 1, .policies = 1 << WEFT_POLICY_SDP, .load = 0};
    struct weft_problem *problem = tiny_problem(&shape, 3);
    int32_t strategies[2] = {0, 0};
    const int64_t ns[] = {0, 0, 0, 100, 200, 400, 300, 0, 7};
    for (int s = 0; s < 9; s++)
        problem->slot_ns[s] = ns[s];
    for (int i = 0; i < problem->n_items; i++)
        problem->items[i].block_ns = 150;
    problem->decisions[0].strategies[0].times[0].ns = 10;
    problem->decisions[1].strategies[0].times[0].ns = 20;
    problem->agree_ns = 5;
    struct weft_digest *table = NULL;
    struct weft_list *list = NULL;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_list_create(with_limit(table, table->most_bytes), &list, NULL), WEFT_OK);
    /* U0 0-10, gather 0 at 10-160, gather 1 at 160-310; U1 to 30; F0 waits to 160, to 260; F1 waits
     * to 310, to 510; B1 to 910; reduce 1 at 910-1060; B0 to 1210; reduce 0 to 1360; norm 1367. */
    cr_assert_eq(weft_list_best(list, strategies, NULL), 1372);
    weft_list_destroy(list);
    weft_digest_destroy(table);
    weft_problem_destroy(problem);
}

Test(list, gathers_that_a_rule_launches_behind_their_window_block)
{
    int32_t n_blocking = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 4),
                                   .most_blocks = 3,
                                   .policies = 15,
                                   .load = 0.1 * (double)(seed % 20)};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        n_blocking += check_blocking(problem);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_blocking, 0);
}

/* Limits from used to that of the placement, all others of a row of random ones. */
Test(list, a_placement_is_the_same_down_to_what_it_used)
{
    int32_t n_same = 0, n_below = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random_case random;
        struct weft_digest *table = NULL;
        struct weft_list *list = NULL;
        random_case_init(&random, seed);
        srand((unsigned)seed + 1);
        cr_assert_eq(weft_digest_create(random.stages.problem, &table, NULL), WEFT_OK);
        cr_assert_eq(weft_list_create(table, &list, NULL), WEFT_OK);
        struct weft_move *moves = calloc((size_t)table->n_blocks + 1, sizeof *moves);
        struct weft_move *again = calloc((size_t)table->n_blocks + 1, sizeof *again);
        const int64_t least = table->least_bytes, most = table->most_bytes;
        for (int i = 0; i < 3 * WEFT_LIST_RULES; i++) {
            const struct weft_list_rule rule = weft_list_rules[i % WEFT_LIST_RULES];
            const int64_t limit = least + (most - least) / 8 * (rand() % 9);
            int32_t n_moves = 0, n_again = 0;
            with_limit(table, limit);
            int64_t ns = weft_list_place(list, table->leanest, rule, moves, &n_moves);
            const int64_t used = weft_list_used(list);
            cr_assert(used >= 0 && used <= limit, "used %lld of %lld", (long long)used,
                      (long long)limit);
            n_below += used < limit;
            for (int k = 0; k < 4 && ns >= 0; k++) {
                with_limit(table, k == 0 ? used : used + (limit - used) / 4 * k);
                cr_assert_eq(weft_list_place(list, table->leanest, rule, again, &n_again), ns);
                cr_assert_eq(n_again, n_moves);
                for (int32_t m = 0; m < n_moves; m++)
                    cr_assert(again[m].item == moves[m].item && again[m].slot == moves[m].slot &&
                              again[m].launch == moves[m].launch);
                n_same++;
            }
        }
        free(moves);
        free(again);
        weft_list_destroy(list);
        weft_digest_destroy(table);
        random_case_finish(&random);
    }
    cr_assert(n_same > 1000 && n_below > 200, "%d and %d", n_same, n_below);
}
