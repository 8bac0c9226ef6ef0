/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/digest/digest.h"

#include <stdlib.h>
#include <string.h>

/* Insertion sorts: a few hundred items, once. */
static void sort_items(const struct weft_problem *problem, int32_t *items, int32_t n, bool by_last)
{
    for (int32_t i = 1; i < n; i++) {
        int32_t moving = items[i], at = i;
        const struct weft_item *item = &problem->items[moving].item;
        while (at > 0) {
            const struct weft_item *before = &problem->items[items[at - 1]].item;
            int32_t order = by_last ? before->last - item->last : 0;
            if (order == 0) order = before->first - item->first;
            if (order == 0)
                order = weft_problem_depth(problem, items[at - 1]) -
                        weft_problem_depth(problem, moving);
            if (order <= 0) break;
            items[at] = items[at - 1];
            at--;
        }
        items[at] = moving;
    }
}

static enum weft_status make_arrays(struct weft_digest *table, struct weft_error *err)
{
    size_t n_rows = (size_t)table->n_rows, n_decisions = (size_t)table->n_decisions;
    table->common = weft_pool_array(&table->pool, n_rows, sizeof *table->common);
    table->first_item = weft_pool_array(&table->pool, n_decisions + 1, sizeof *table->first_item);
    table->gathers = weft_pool_array(&table->pool, (size_t)table->n_items, sizeof *table->gathers);
    table->reductions =
        weft_pool_array(&table->pool, (size_t)table->n_items, sizeof *table->reductions);
    table->leanest = weft_pool_array(&table->pool, n_decisions, sizeof *table->leanest);
    table->slotwise_least = weft_pool_array(&table->pool, n_rows, sizeof *table->slotwise_least);
    bool ok = table->slotwise_least && table->common && table->first_item && table->gathers &&
              table->reductions && table->leanest;
    return ok ? WEFT_OK : weft_fail_memory(err, "a scheduler's table");
}

static void fill_items(struct weft_digest *table)
{
    const struct weft_problem *problem = table->problem;
    table->n_blocks = weft_problem_count_blocks(problem);
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        table->first_item[item->decision + 1] = i + 1;
        if (item->acquires) {
            table->gathers[table->n_gathers++] = i;
        } else {
            table->reductions[table->n_reductions++] = i;
        }
    }
    for (int32_t u = 0; u < table->n_decisions; u++) /* some have no items */
        if (table->first_item[u + 1] < table->first_item[u])
            table->first_item[u + 1] = table->first_item[u];
    sort_items(problem, table->gathers, table->n_gathers, true);
    sort_items(problem, table->reductions, table->n_reductions, false);
}

static void fill_common(struct weft_digest *table)
{
    const struct weft_problem *problem = table->problem;
    for (int32_t i = 0; i < problem->n_common; i++)
        weft_hold_add(&problem->common[i], table->n_slots, table->common);
    for (int32_t tier = 1; tier < problem->n_tiers; tier++) {
        int64_t limit_bytes = problem->tiers[tier].limit_bytes;
        int64_t *rows = table->common + weft_problem_tier_at(problem, tier);
        if (limit_bytes > WEFT_DIGEST_MOST_LIMIT) limit_bytes = WEFT_DIGEST_MOST_LIMIT;
        for (int32_t s = 0; s < table->n_slots; s++)
            rows[s] += weft_digest_limit_bytes(table) - limit_bytes;
    }
}

/* Most fixed bytes of a strategy in the tier with this first row. */
static int64_t most_of_rows(const struct weft_digest *table, size_t strategy, int32_t first)
{
    const struct weft_row_steps *of = &table->fixed;
    int64_t most = weft_row_steps_at(of, strategy, first);
    for (int64_t k = of->start[strategy]; k < of->start[strategy + 1]; k++) {
        const struct weft_row_step *step = &of->steps[k];
        if (step->row >= first && step->row < first + table->n_slots && step->bytes > most)
            most = step->bytes;
    }
    return most;
}

/* Most bytes of a tier: for each decision its largest strategy, summed, in the fullest row.
 * `stairs` [n_strategies] is scratch. */
static int64_t most_of_tier(const struct weft_digest *table, int32_t tier, int64_t *stairs)
{
    const struct weft_problem *problem = table->problem;
    int32_t first = weft_problem_tier_at(problem, tier);
    int64_t most = tier == 0 ? 0 : INT64_MIN;
    memset(stairs, 0, (size_t)problem->n_strategies * sizeof *stairs);
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        for (int32_t p = 0; p < weft_digest_count(table, item->decision); p++)
            if (item->stair_tier == tier && item->strategies >> p & 1u)
                stairs[weft_digest_at(table, item->decision, p)] +=
                    item->n_blocks * item->stair_bytes;
    }
    for (int32_t s = 0; s < table->n_slots; s++)
        if (table->common[first + s] > most) most = table->common[first + s];
    for (int32_t u = 0; u < table->n_decisions; u++) {
        int64_t most_bytes = 0;
        for (int32_t p = 0; p < weft_digest_count(table, u); p++) {
            int64_t bytes = most_of_rows(table, weft_digest_at(table, u, p), first);
            bytes += stairs[weft_digest_at(table, u, p)];
            if (bytes > most_bytes) most_bytes = bytes;
        }
        most += most_bytes;
    }
    return most;
}

/* Most lane time in ns: for each decision the strategy with the most time of its items. */
static int64_t most_lane_time(const struct weft_digest *table, int64_t *lane_ns)
{
    const struct weft_problem *problem = table->problem;
    int64_t most = 0;
    memset(lane_ns, 0, (size_t)problem->n_strategies * sizeof *lane_ns);
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_problem_item *item = &problem->items[i];
        for (int32_t p = 0; p < weft_digest_count(table, item->item.decision); p++)
            if (item->item.strategies >> p & 1u)
                lane_ns[weft_digest_at(table, item->item.decision, p)] +=
                    item->item.n_blocks * item->block_ns;
    }
    for (int32_t u = 0; u < table->n_decisions; u++) {
        int64_t most_ns = 0;
        for (int32_t p = 0; p < weft_digest_count(table, u); p++)
            if (lane_ns[weft_digest_at(table, u, p)] > most_ns)
                most_ns = lane_ns[weft_digest_at(table, u, p)];
        most += most_ns;
    }
    return most;
}

static enum weft_status fill_most(struct weft_digest *table, struct weft_error *err)
{
    int64_t *scratch = calloc((size_t)table->problem->n_strategies + 1, sizeof *scratch);
    if (!scratch) return weft_fail_memory(err, "a scheduler's table");
    for (int32_t tier = 0; tier < table->problem->n_tiers; tier++) {
        int64_t bytes = most_of_tier(table, tier, scratch);
        table->tier_most_bytes[tier] = bytes;
        if (bytes > table->most_bytes) table->most_bytes = bytes;
    }
    table->most_lane_ns = most_lane_time(table, scratch);
    free(scratch);
    return WEFT_OK;
}

enum weft_status weft_digest_create(const struct weft_problem *problem, struct weft_digest **out,
                                    struct weft_error *err)
{
    enum weft_status status;
    struct weft_digest *table = calloc(1, sizeof *table);
    if (!table) return weft_fail_memory(err, "a scheduler's table");
    table->problem = problem;
    table->n_slots = problem->n_slots;
    table->n_rows = weft_problem_n_rows(problem);
    table->n_decisions = problem->n_decisions;
    table->n_items = problem->n_items;
    WEFT_TRY_GOTO(fail, make_arrays(table, err));
    WEFT_TRY_GOTO(fail,
                  weft_row_steps_make(problem, &table->pool, &table->fixed, &table->lean, err));
    fill_common(table);
    fill_items(table);
    WEFT_TRY_GOTO(fail, fill_most(table, err));
    WEFT_TRY_GOTO(fail, weft_digest_find_least(table, err));
    *out = table;
    return WEFT_OK;
fail:
    weft_digest_destroy(table);
    return status;
}

/* True if the problems differ at most in their only limit, which no array depends on. */
static bool differ_by_limit(const struct weft_problem *a, const struct weft_problem *b)
{
    return a->n_tiers == 1 && b->n_tiers == 1 && a->decisions == b->decisions &&
           a->items == b->items && a->common == b->common;
}

enum weft_status weft_digest_create_like(const struct weft_digest *like,
                                         const struct weft_problem *problem,
                                         struct weft_digest **out, struct weft_error *err)
{
    if (!like || !differ_by_limit(like->problem, problem))
        return weft_digest_create(problem, out, err);
    struct weft_digest *table = malloc(sizeof *table);
    if (!table) return weft_fail_memory(err, "a scheduler's table");
    *table = *like;
    table->pool = (struct weft_pool){0};
    table->problem = problem;
    *out = table;
    return WEFT_OK;
}

void weft_digest_destroy(struct weft_digest *table)
{
    if (!table) return;
    weft_pool_finish(&table->pool);
    free(table);
}

static void sum_rows(const struct weft_digest *table, const int32_t *strategies,
                     const struct weft_row_steps *of, int64_t *rows)
{
    int64_t held = 0;
    memset(rows, 0, (size_t)table->n_rows * sizeof *rows);
    for (int32_t u = 0; u < table->n_decisions; u++) {
        size_t row = weft_digest_at(table, u, strategies[u]);
        int64_t before = 0;
        for (int64_t k = of->start[row]; k < of->start[row + 1]; k++) {
            rows[of->steps[k].row] += of->steps[k].bytes - before;
            before = of->steps[k].bytes;
        }
    }
    for (int32_t r = 0; r < table->n_rows; r++) {
        held += rows[r];
        rows[r] = table->common[r] + held;
    }
}

int64_t weft_digest_lean_rows(const struct weft_digest *table, const int32_t *strategies,
                              int64_t *rows, int32_t *peak)
{
    int32_t most = 0;
    sum_rows(table, strategies, &table->lean, rows);
    for (int32_t r = 1; r < table->n_rows; r++)
        if (rows[r] > rows[most]) most = r;
    if (peak) *peak = most;
    return rows[most];
}

void weft_digest_fixed_rows(const struct weft_digest *table, const int32_t *strategies,
                            int64_t *rows)
{
    sum_rows(table, strategies, &table->fixed, rows);
}

void weft_moves_add_rows(const struct weft_problem *problem, const struct weft_move *moves,
                         int32_t n_moves, int64_t *rows)
{
    for (int32_t k = 0; k < n_moves; k++) {
        const struct weft_item *item = &problem->items[moves[k].item].item;
        int32_t first = item->acquires ? moves[k].slot : item->first;
        int32_t last = item->acquires ? item->last : moves[k].slot;
        int32_t at = weft_problem_stair_at(problem, item);
        for (int32_t s = first; s <= last; s++)
            rows[at + s] += item->stair_bytes;
    }
}

void weft_digest_move_rows(const struct weft_digest *table, const int32_t *strategies,
                           const struct weft_move *moves, int32_t n_moves, int64_t *rows)
{
    sum_rows(table, strategies, &table->fixed, rows);
    weft_moves_add_rows(table->problem, moves, n_moves, rows);
}
