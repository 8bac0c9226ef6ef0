/* SPDX-License-Identifier: Apache-2.0 */
/* Policies first, placement second, as other systems plan. Policies have the least sum of times
 * without overlap, and their leanest placement is within a limit of their own. List scheduling then
 * places blocks within the whole limit. The result shows the worth of deciding both together. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "scheduler/place/list.h"
#include "scheduler/planners/knapsack.h"
#include "scheduler/planners/planners.h"

/* The first weight is the bytes in the slot with the leanest plan's peak. The second is the most
 * bytes in any other slot that exceeded the limit so far. */
struct run {
    const struct weft_digest *table;
    const struct weft_problem *problem;   /* of the choice of policies */
    struct weft_knapsack_option *options; /* [n_decisions][n_options] */
    int32_t n_options;                    /* the most strategies of a decision */
    int32_t *choice;
    int32_t *strategies;
    int64_t *rows, *least; /* [n_tiers][n_slots]: of the choice, of the leanest policies */
    int64_t capacity[WEFT_KNAPSACK_WEIGHTS];
    int32_t n_watched[WEFT_KNAPSACK_WEIGHTS]; /* slots */
    struct weft_work *work;                   /* its alarm ends the choice; NULL: no alarm does */
};

static struct weft_knapsack_option *option_of(struct run *run, int32_t unit, int32_t strategy)
{
    return &run->options[(size_t)unit * (size_t)run->n_options + (size_t)strategy];
}

static int64_t more_than_leanest(const struct run *run, int32_t unit, int32_t strategy, int32_t row)
{
    const struct weft_digest *table = run->table;
    return weft_digest_lean(table, unit, strategy, row) -
           weft_digest_lean(table, unit, table->leanest[unit], row);
}

static void fill_costs(struct run *run)
{
    for (int32_t u = 0; u < run->problem->n_decisions; u++) {
        for (int32_t p = 0; p < run->problem->decisions[u].n_strategies; p++) {
            struct weft_knapsack_option *option = option_of(run, u, p);
            const struct weft_problem_strategy *of = &run->problem->decisions[u].strategies[p];
            option->allowed = true;
            for (int32_t i = 0; i < of->n_times; i++)
                option->cost += of->times[i].ns;
        }
    }
    for (int32_t i = 0; i < run->problem->n_items; i++) {
        const struct weft_problem_item *item = &run->problem->items[i];
        for (int32_t p = 0; p < run->n_options; p++)
            if (item->item.strategies >> p & 1u)
                option_of(run, item->item.decision, p)->cost +=
                    item->item.n_blocks * item->block_ns;
    }
}

/* Makes the memory row count from now on: alone in the first weight, or with others in the
 * second. */
static void watch_row(struct run *run, int weight, int32_t row)
{
    int64_t room = weft_digest_limit_bytes(run->table) - run->least[row];
    bool first = run->n_watched[weight]++ == 0;
    if (room < run->capacity[weight]) run->capacity[weight] = room;
    for (int32_t u = 0; u < run->problem->n_decisions; u++) {
        for (int32_t p = 0; p < weft_digest_count(run->table, u); p++) {
            int64_t more = more_than_leanest(run, u, p, row);
            int64_t *to = &option_of(run, u, p)->weight[weight];
            if (first || more > *to) *to = more;
        }
    }
}

/* Each round watches one more row, in which the last choice exceeded the limit. */
static enum weft_status choose_strategies(struct run *run, struct weft_error *err)
{
    int32_t peak = 0;
    bool exact = true;
    run->capacity[0] = run->capacity[1] = INT64_MAX;
    fill_costs(run);
    weft_digest_lean_rows(run->table, run->table->leanest, run->least, &peak);
    for (int round = 0; round <= run->table->n_rows; round++) {
        watch_row(run, round > 0, peak);
        WEFT_TRY(weft_knapsack(run->options, run->problem->n_decisions, run->n_options,
                               run->capacity, run->choice, &exact, run->work, err));
        for (int32_t u = 0; u < run->problem->n_decisions; u++)
            run->strategies[u] = run->choice[u];
        if (weft_digest_lean_rows(run->table, run->strategies, run->rows, &peak) <=
            weft_digest_limit_bytes(run->table))
            break;
    }
    if (!exact) weft_log(WEFT_LOG_INFO, "planner two-stage: its knapsack was solved by halves");
    return WEFT_OK;
}

static enum weft_status place_choice(struct run *run, struct weft_candidate *out,
                                     struct weft_error *err)
{
    struct weft_list *list = NULL;
    int32_t rule = 0;
    WEFT_TRY(weft_list_create(run->table, &list, err));
    int64_t ns = weft_list_best(list, out->strategies, &rule);
    if (ns >= 0)
        ns = weft_list_place(list, out->strategies, weft_list_rules[rule], out->moves,
                             &out->n_moves);
    weft_list_destroy(list);
    if (ns >= 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_INFEASIBLE, "planner two-stage: its policies do not fit");
}

static enum weft_status prepare_options(struct run *run, struct weft_pool *pool,
                                        struct weft_error *err)
{
    size_t n_units = (size_t)run->problem->n_decisions, n_rows = (size_t)run->table->n_rows;
    run->n_options = weft_problem_most_strategies(run->problem);
    run->options = weft_pool_array(pool, n_units * (size_t)run->n_options, sizeof *run->options);
    run->choice = weft_pool_array(pool, n_units, sizeof *run->choice);
    run->rows = weft_pool_array(pool, n_rows, sizeof *run->rows);
    run->least = weft_pool_array(pool, n_rows, sizeof *run->least);
    if (!run->options || !run->choice || !run->rows || !run->least)
        return weft_fail_memory(err, "a knapsack");
    return WEFT_OK;
}

enum weft_status weft_planner_two_stage(const struct weft_problem *problem,
                                        const struct weft_schedule_options *options,
                                        struct weft_candidate *out, struct weft_outcome *outcome,
                                        struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct weft_digest *table = NULL;
    struct weft_problem first = *problem;
    struct run run = {.problem = &first,
                      .strategies = out->strategies,
                      .work = options->may_stop ? options->budget.work : NULL};
    int64_t own = options->policy_limit_bytes;
    enum weft_status status;
    (void)outcome;
    if (own > 0 && own < first.tiers[0].limit_bytes) first.tiers[0].limit_bytes = own;
    WEFT_TRY_GOTO(done, weft_digest_create_like(options->table, &first, &table, err));
    run.table = table;
    if (table->least_bytes > weft_digest_limit_bytes(table)) {
        char least[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES];
        WEFT_TRY_GOTO(done,
                      weft_fail(err, WEFT_E_INFEASIBLE,
                                "planner two-stage: the leanest policies need %s, above %s for the "
                                "choice of policies",
                                weft_units_show_bytes(table->least_bytes, least),
                                weft_units_show_bytes(first.tiers[0].limit_bytes, limit)));
    }
    WEFT_TRY_GOTO(done, prepare_options(&run, &pool, err));
    WEFT_TRY_GOTO(done, choose_strategies(&run, err));
    if (first.tiers[0].limit_bytes < problem->tiers[0].limit_bytes) {
        /* The placement may use the whole limit. */
        weft_digest_destroy(table);
        table = NULL;
        WEFT_TRY_GOTO(done, weft_digest_create_like(options->table, problem, &table, err));
        run.table = table;
    }
    WEFT_TRY_GOTO(done, place_choice(&run, out, err));
done:
    weft_digest_destroy(table);
    weft_pool_finish(&pool);
    return status;
}
