#include "scheduler/digest/digest.h"

#include <stdlib.h>
#include <string.h>

static bool is_gather(const struct weft_item *item)
{
    return item->acquires;
}

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
    size_t n_slots = (size_t)table->n_slots, n_decisions = (size_t)table->n_decisions;
    size_t rows = (size_t)table->problem->n_strategies * n_slots;
    table->common = weft_pool_array(&table->pool, n_slots, sizeof *table->common);
    table->fixed = weft_pool_array(&table->pool, rows, sizeof *table->fixed);
    table->lean = weft_pool_array(&table->pool, rows, sizeof *table->lean);
    table->gathers = weft_pool_array(&table->pool, (size_t)table->n_items, sizeof *table->gathers);
    table->reductions =
        weft_pool_array(&table->pool, (size_t)table->n_items, sizeof *table->reductions);
    table->leanest = weft_pool_array(&table->pool, n_decisions, sizeof *table->leanest);
    table->slotwise_least = weft_pool_array(&table->pool, n_slots, sizeof *table->slotwise_least);
    bool ok = table->slotwise_least && table->common && table->fixed && table->lean &&
              table->gathers && table->reductions && table->leanest;
    return ok ? WEFT_OK : weft_fail_memory(err, "a scheduler's table");
}

static void fill_items(struct weft_digest *table)
{
    const struct weft_problem *problem = table->problem;
    table->n_blocks = weft_problem_count_blocks(problem);
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (is_gather(item)) {
            table->gathers[table->n_gathers++] = i;
        } else {
            table->reductions[table->n_reductions++] = i;
        }
    }
    sort_items(problem, table->gathers, table->n_gathers, true);
    sort_items(problem, table->reductions, table->n_reductions, false);
}

static void fill_rows(struct weft_digest *table)
{
    const struct weft_problem *problem = table->problem;
    size_t n_rows = (size_t)table->problem->n_strategies * (size_t)table->n_slots;
    for (int32_t i = 0; i < problem->n_common; i++)
        weft_hold_add(&problem->common[i], table->n_slots, table->common);
    weft_problem_fixed_rows(problem, table->fixed);
    memcpy(table->lean, table->fixed, n_rows * sizeof *table->lean);
    weft_problem_add_lean(problem, table->lean);
}

/* Upper limits of memory and of lane time: the sum over decisions of the worst of their
 * strategies. */
static enum weft_status fill_most(struct weft_digest *table, struct weft_error *err)
{
    const struct weft_problem *problem = table->problem;
    size_t n_rows = (size_t)table->problem->n_strategies;
    /* For a decision's items under a strategy: */
    int64_t *stairs = calloc(2 * n_rows + 1, sizeof *stairs), *lane_ns = stairs + n_rows;
    if (!stairs) return weft_fail_memory(err, "a scheduler's table");
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_problem_item *item = &problem->items[i];
        for (int32_t p = 0; p < weft_digest_count(table, item->item.decision); p++) {
            size_t row = weft_digest_at(table, item->item.decision, p);
            if (!(item->item.strategies >> p & 1u)) continue;
            stairs[row] += item->item.n_blocks * item->item.stair_bytes;
            lane_ns[row] += item->item.n_blocks * item->block_ns;
        }
    }
    for (int32_t s = 0; s < table->n_slots; s++)
        if (table->common[s] > table->most_bytes) table->most_bytes = table->common[s];
    for (int32_t u = 0; u < table->n_decisions; u++) {
        int64_t most_bytes = 0, most_ns = 0;
        for (int32_t p = 0; p < weft_digest_count(table, u); p++) {
            size_t at = weft_digest_at(table, u, p);
            const int64_t *row = &table->fixed[weft_digest_row(table, u, p)];
            int64_t bytes = 0;
            for (int32_t s = 0; s < table->n_slots; s++)
                if (row[s] > bytes) bytes = row[s];
            if (bytes + stairs[at] > most_bytes) most_bytes = bytes + stairs[at];
            if (lane_ns[at] > most_ns) most_ns = lane_ns[at];
        }
        table->most_bytes += most_bytes;
        table->most_lane_ns += most_ns;
    }
    free(stairs);
    return WEFT_OK;
}

/* Steps of one row; how many. `steps` may be NULL. */
static int64_t find_steps(const int64_t *row, int32_t n_slots, struct weft_row_step *steps)
{
    int64_t n = 0, before = 0;
    for (int32_t s = 0; s < n_slots; s++) {
        if (row[s] == before) continue;
        if (steps) steps[n] = (struct weft_row_step){.bytes = row[s] - before, .slot = s};
        before = row[s];
        n++;
    }
    return n;
}

static enum weft_status make_steps(struct weft_digest *table, const int64_t *of,
                                   struct weft_row_steps *out, struct weft_error *err)
{
    size_t n_rows = (size_t)table->problem->n_strategies, n_slots = (size_t)table->n_slots;
    out->start = weft_pool_array(&table->pool, n_rows + 1, sizeof *out->start);
    if (!out->start) return weft_fail_memory(err, "a scheduler's table");
    for (size_t r = 0; r < n_rows; r++)
        out->start[r + 1] = out->start[r] + find_steps(&of[r * n_slots], table->n_slots, NULL);
    out->steps = weft_pool_array(&table->pool, (size_t)out->start[n_rows] + 1, sizeof *out->steps);
    if (!out->steps) return weft_fail_memory(err, "a scheduler's table");
    for (size_t r = 0; r < n_rows; r++)
        find_steps(&of[r * n_slots], table->n_slots, &out->steps[out->start[r]]);
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
    table->n_decisions = problem->n_decisions;
    table->n_items = problem->n_items;
    WEFT_TRY_GOTO(fail, make_arrays(table, err));
    fill_rows(table);
    fill_items(table);
    WEFT_TRY_GOTO(fail, fill_most(table, err));
    WEFT_TRY_GOTO(fail, make_steps(table, table->fixed, &table->fixed_steps, err));
    WEFT_TRY_GOTO(fail, make_steps(table, table->lean, &table->lean_steps, err));
    WEFT_TRY_GOTO(fail, weft_digest_find_least(table, err));
    *out = table;
    return WEFT_OK;
fail:
    weft_digest_destroy(table);
    return status;
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
    memset(rows, 0, (size_t)table->n_slots * sizeof *rows);
    for (int32_t u = 0; u < table->n_decisions; u++) {
        size_t row = weft_digest_at(table, u, strategies[u]);
        for (int64_t k = of->start[row]; k < of->start[row + 1]; k++)
            rows[of->steps[k].slot] += of->steps[k].bytes;
    }
    for (int32_t s = 0; s < table->n_slots; s++) {
        held += rows[s];
        rows[s] = table->common[s] + held;
    }
}

int64_t weft_digest_lean_rows(const struct weft_digest *table, const int32_t *strategies,
                              int64_t *rows, int32_t *peak_slot)
{
    int32_t peak = 0;
    sum_rows(table, strategies, &table->lean_steps, rows);
    for (int32_t s = 1; s < table->n_slots; s++)
        if (rows[s] > rows[peak]) peak = s;
    if (peak_slot) *peak_slot = peak;
    return rows[peak];
}

void weft_digest_fixed_rows(const struct weft_digest *table, const int32_t *strategies,
                            int64_t *rows)
{
    sum_rows(table, strategies, &table->fixed_steps, rows);
}

void weft_moves_add_rows(const struct weft_problem *problem, const struct weft_move *moves,
                         int32_t n_moves, int64_t *rows)
{
    for (int32_t k = 0; k < n_moves; k++) {
        const struct weft_item *item = &problem->items[moves[k].item].item;
        int32_t first = is_gather(item) ? moves[k].slot : item->first;
        int32_t last = is_gather(item) ? item->last : moves[k].slot;
        for (int32_t s = first; s <= last; s++)
            rows[s] += item->stair_bytes;
    }
}

void weft_digest_move_rows(const struct weft_digest *table, const int32_t *strategies,
                           const struct weft_move *moves, int32_t n_moves, int64_t *rows)
{
    sum_rows(table, strategies, &table->fixed_steps, rows);
    weft_moves_add_rows(table->problem, moves, n_moves, rows);
}
