/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/seed/seed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "program/predict.h"

/* Rows of the program while they are written. */
struct rows {
    struct weft_lp *lp;
    int32_t room;
    int64_t entry_room;
    bool failed;
};

static void *grow_array(struct rows *rows, void *array, size_t count, size_t size)
{
    void *made = rows->failed ? NULL : realloc(array, count * size);
    if (!made) rows->failed = true;
    return made ? made : array;
}

static void add_entry(struct rows *rows, int32_t column, double value)
{
    struct weft_lp *lp = rows->lp;
    if (lp->n_entries == rows->entry_room) {
        const size_t room = 2 * (size_t)rows->entry_room + 64;
        lp->column = grow_array(rows, lp->column, room, sizeof *lp->column);
        lp->value = grow_array(rows, lp->value, room, sizeof *lp->value);
        if (rows->failed) return;
        rows->entry_room = (int64_t)room;
    }
    lp->column[lp->n_entries] = column;
    lp->value[lp->n_entries++] = value;
}

static void end_row(struct rows *rows, double lower, double upper)
{
    struct weft_lp *lp = rows->lp;
    if (lp->n_rows == rows->room) {
        const size_t room = 2 * (size_t)rows->room + 64;
        lp->row_lower = grow_array(rows, lp->row_lower, room, sizeof *lp->row_lower);
        lp->row_upper = grow_array(rows, lp->row_upper, room, sizeof *lp->row_upper);
        lp->row_start = grow_array(rows, lp->row_start, room + 1, sizeof *lp->row_start);
        if (rows->failed) return;
        rows->room = (int32_t)room;
    }
    if (rows->failed) return;
    lp->row_lower[lp->n_rows] = lower;
    lp->row_upper[lp->n_rows] = upper;
    lp->row_start[0] = 0;
    lp->row_start[++lp->n_rows] = lp->n_entries;
}

static const struct weft_item *item_of(const struct weft_seed *seed, int32_t item)
{
    return &seed->problem->items[item].item;
}

/* True if a block in slot `at` of its item holds its bytes in slot `s`. */
static bool is_held(const struct weft_item *item, int32_t at, int32_t s)
{
    return item->acquires ? at <= s && s <= item->last : item->first <= s && s <= at;
}

static int32_t overlap_column(const struct weft_seed *seed, int32_t lane, int32_t slot)
{
    const int32_t n = seed->problem->n_slots * weft_problem_n_moving(seed->problem);
    return seed->lp.n_columns - n + (int32_t)weft_problem_lane_at(seed->problem, lane) + slot;
}

/* Lists the blocks. Returns the number of their columns, or -1 above MOST_COLUMNS. */
static int32_t list_blocks(struct weft_seed *seed)
{
    enum { MOST_COLUMNS = 10000000 };
    int32_t n_columns = 0;
    for (int32_t i = 0; i < seed->problem->n_items; i++) {
        const struct weft_item *item = item_of(seed, i);
        if (!weft_item_active(item, seed->strategies)) continue;
        const int32_t n = item->last - item->first + 1 + (item->acquires && item->may_block);
        if ((int64_t)item->n_blocks * n > MOST_COLUMNS - n_columns) return -1;
        for (int32_t b = 0; b < item->n_blocks; b++) {
            seed->blocks[seed->n_blocks++] = (struct weft_seed_block){i, n_columns, item->first, n};
            n_columns += n;
        }
    }
    return n_columns;
}

static enum weft_status make_columns(struct weft_seed *seed, struct weft_error *err)
{
    const struct weft_problem *problem = seed->problem;
    struct weft_lp *lp = &seed->lp;
    seed->blocks = weft_pool_array(&seed->pool, (size_t)weft_problem_count_blocks(problem) + 1,
                                   sizeof *seed->blocks);
    if (!seed->blocks) return weft_fail_memory(err, "an integer program");
    const int32_t n_whole = list_blocks(seed);
    if (n_whole < 0)
        return weft_fail(err, WEFT_E_DATA,
                         "planner seed-ilp: its program has more than 10 million columns; larger "
                         "blocks (plan.block_size) make fewer");
    lp->n_columns = n_whole + weft_problem_n_moving(problem) * problem->n_slots;
    const size_t n = (size_t)lp->n_columns;
    lp->cost = weft_pool_array(&seed->pool, n, sizeof *lp->cost);
    lp->lower = weft_pool_array(&seed->pool, n, sizeof *lp->lower);
    lp->upper = weft_pool_array(&seed->pool, n, sizeof *lp->upper);
    lp->integer = weft_pool_array(&seed->pool, n, sizeof *lp->integer);
    if (!lp->cost || !lp->lower || !lp->upper || !lp->integer)
        return weft_fail_memory(err, "an integer program");
    for (int32_t j = 0; j < lp->n_columns; j++) {
        lp->integer[j] = j < n_whole;
        lp->cost[j] = j < n_whole ? 0 : -1;
        lp->lower[j] = 0;
        lp->upper[j] =
            j < n_whole ? 1
                        : (double)seed->slot_ns[(j - n_whole) % problem->n_slots] / seed->unit_ns;
    }
    return WEFT_OK;
}

static void add_once(struct weft_seed *seed, struct rows *rows)
{
    for (int32_t k = 0; k < seed->n_blocks; k++) {
        for (int32_t i = 0; i < seed->blocks[k].n; i++)
            add_entry(rows, seed->blocks[k].column + i, 1);
        end_row(rows, 1, 1);
    }
}

static void add_overlaps(struct weft_seed *seed, struct rows *rows)
{
    const struct weft_problem *problem = seed->problem;
    for (int32_t lane = WEFT_LANE_FIRST; lane < problem->n_lanes; lane++) {
        for (int32_t s = 0; s < problem->n_slots; s++) {
            if (seed->slot_ns[s] == 0) continue;
            add_entry(rows, overlap_column(seed, lane, s), 1);
            for (int32_t k = 0; k < seed->n_blocks; k++) {
                const struct weft_seed_block *block = &seed->blocks[k];
                const struct weft_problem_item *item = &problem->items[block->item];
                const bool blocks = item->item.acquires && s > item->item.last;
                if (item->lane != lane || s < block->first || s >= block->first + block->n ||
                    blocks)
                    continue;
                add_entry(rows, block->column + s - block->first,
                          -(double)item->block_ns / seed->unit_ns);
            }
            end_row(rows, -INFINITY, 0);
        }
    }
}

/* A row that all its blocks together cannot fill is left out. */
static void add_memory(struct weft_seed *seed, double slack, struct rows *rows)
{
    const struct weft_problem *problem = seed->problem;
    struct weft_lp *lp = rows->lp;
    for (int32_t r = 0; r < weft_problem_n_rows(problem); r++) {
        const int32_t tier = r / problem->n_slots, s = r % problem->n_slots;
        const int64_t limit_bytes = problem->tiers[tier].limit_bytes;
        const int64_t from = lp->n_entries, room_bytes = limit_bytes - seed->rows[r];
        int64_t most_bytes = 0;
        if (limit_bytes == INT64_MAX) continue;
        for (int32_t k = 0; k < seed->n_blocks && !rows->failed; k++) {
            const struct weft_seed_block *block = &seed->blocks[k];
            const struct weft_item *item = item_of(seed, block->item);
            if (item->stair_tier != tier || item->stair_bytes == 0) continue;
            bool any = false;
            for (int32_t i = 0; i < block->n; i++) {
                if (!is_held(item, block->first + i, s)) continue;
                add_entry(rows, block->column + i, (double)item->stair_bytes / (double)limit_bytes);
                any = true;
            }
            most_bytes += any ? item->stair_bytes : 0;
        }
        if (most_bytes <= room_bytes) {
            lp->n_entries = from;
        } else {
            end_row(rows, -INFINITY, (double)room_bytes * (1 - slack) / (double)limit_bytes);
        }
    }
}

/* A block is in no slot before the same block of the item before in its chain. */
static void add_chains(struct weft_seed *seed, struct rows *rows)
{
    int32_t first[2] = {0, 0};
    for (int32_t k = 0; k < seed->n_blocks; k += item_of(seed, seed->blocks[k].item)->n_blocks) {
        const int32_t after = seed->problem->items[seed->blocks[k].item].after;
        first[1] = k;
        for (first[0] = 0; first[0] < seed->n_blocks; first[0]++)
            if (seed->blocks[first[0]].item == after) break;
        if (after < 0 || first[0] == seed->n_blocks) continue;
        for (int32_t b = 0; b < item_of(seed, after)->n_blocks; b++) {
            const struct weft_seed_block *pair[2] = {&seed->blocks[first[0] + b],
                                                     &seed->blocks[first[1] + b]};
            for (int32_t s = pair[1]->first; s < pair[1]->first + pair[1]->n; s++) {
                for (int p = 0; p < 2; p++)
                    for (int32_t i = 0; i < pair[p]->n && pair[p]->first + i <= s; i++)
                        add_entry(rows, pair[p]->column + i, p == 0 ? -1 : 1);
                end_row(rows, -INFINITY, 0);
            }
        }
    }
}

static enum weft_status sum_slots(struct weft_seed *seed, struct weft_error *err)
{
    const struct weft_problem *problem = seed->problem;
    seed->slot_ns = weft_pool_array(&seed->pool, (size_t)problem->n_slots, sizeof *seed->slot_ns);
    seed->rows =
        weft_pool_array(&seed->pool, (size_t)weft_problem_n_rows(problem), sizeof *seed->rows);
    if (!seed->slot_ns || !seed->rows) return weft_fail_memory(err, "an integer program");
    memset(seed->rows, 0, (size_t)weft_problem_n_rows(problem) * sizeof *seed->rows);
    memcpy(seed->slot_ns, problem->slot_ns, (size_t)problem->n_slots * sizeof *seed->slot_ns);
    for (int32_t i = 0; i < problem->n_common; i++)
        weft_hold_add(&problem->common[i], problem->n_slots, seed->rows);
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const struct weft_problem_strategy *of = weft_problem_chosen(problem, seed->strategies, d);
        for (int32_t i = 0; i < of->n_times; i++)
            seed->slot_ns[of->times[i].slot] += of->times[i].ns;
        for (int32_t i = 0; i < of->n_holds; i++)
            weft_hold_add(&of->holds[i], problem->n_slots, seed->rows);
    }
    seed->unit_ns = 1;
    for (int32_t s = 0; s < problem->n_slots; s++)
        if ((double)seed->slot_ns[s] > seed->unit_ns) seed->unit_ns = (double)seed->slot_ns[s];
    return WEFT_OK;
}

enum weft_status weft_seed_init(struct weft_seed *seed, const struct weft_problem *problem,
                                const int32_t *strategies, double slack, struct weft_error *err)
{
    *seed = (struct weft_seed){.problem = problem, .strategies = strategies};
    struct rows rows = {.lp = &seed->lp};
    WEFT_TRY(sum_slots(seed, err));
    WEFT_TRY(make_columns(seed, err));
    add_once(seed, &rows);
    add_overlaps(seed, &rows);
    add_memory(seed, slack, &rows);
    add_chains(seed, &rows);
    return rows.failed ? weft_fail_memory(err, "an integer program") : WEFT_OK;
}

void weft_seed_finish(struct weft_seed *seed)
{
    free(seed->lp.row_lower);
    free(seed->lp.row_upper);
    free(seed->lp.row_start);
    free(seed->lp.column);
    free(seed->lp.value);
    weft_pool_finish(&seed->pool);
    *seed = (struct weft_seed){0};
}

/* Lane time that moves put into a slot. */
static int64_t lane_ns(const struct weft_seed *seed, const struct weft_move *moves, int32_t n_moves,
                       int32_t lane, int32_t slot)
{
    int64_t ns = 0;
    for (int32_t m = 0; m < n_moves; m++) {
        const struct weft_problem_item *item = &seed->problem->items[moves[m].item];
        const bool blocks = item->item.acquires && slot > item->item.last;
        if (item->lane == lane && moves[m].slot == slot && !blocks) ns += item->block_ns;
    }
    return ns;
}

static int64_t overlap_ns(const struct weft_seed *seed, const struct weft_move *moves,
                          int32_t n_moves, int32_t lane, int32_t slot)
{
    const int64_t ns = lane_ns(seed, moves, n_moves, lane, slot);
    return ns < seed->slot_ns[slot] ? ns : seed->slot_ns[slot];
}

int64_t weft_seed_overlap(const struct weft_seed *seed, const struct weft_move *moves,
                          int32_t n_moves)
{
    int64_t sum = 0;
    for (int32_t lane = WEFT_LANE_FIRST; lane < seed->problem->n_lanes; lane++)
        for (int32_t s = 0; s < seed->problem->n_slots; s++)
            sum += overlap_ns(seed, moves, n_moves, lane, s);
    return sum;
}

static bool keeps_rows(const struct weft_lp *lp, const double *x)
{
    static const double ROUNDING = 1e-9;
    for (int32_t i = 0; i < lp->n_rows; i++) {
        double sum = 0;
        for (int64_t e = lp->row_start[i]; e < lp->row_start[i + 1]; e++)
            sum += lp->value[e] * x[lp->column[e]];
        if (sum < lp->row_lower[i] - ROUNDING || sum > lp->row_upper[i] + ROUNDING) return false;
    }
    return true;
}

enum weft_status weft_seed_start(struct weft_seed *seed, const struct weft_move *moves,
                                 int32_t n_moves, struct weft_error *err)
{
    struct weft_lp *lp = &seed->lp;
    double *x = weft_pool_array(&seed->pool, (size_t)lp->n_columns + 1, sizeof *x);
    int32_t *used = weft_pool_array(&seed->pool, (size_t)seed->problem->n_items + 1, sizeof *used);
    if (!x || !used) return weft_fail_memory(err, "a start");
    memset(x, 0, ((size_t)lp->n_columns + 1) * sizeof *x);
    for (int32_t k = seed->n_blocks - 1; k >= 0; k--)
        used[seed->blocks[k].item] = k;
    for (int32_t m = 0; m < n_moves; m++) {
        const struct weft_seed_block *block = &seed->blocks[used[moves[m].item]++];
        const int32_t i = moves[m].slot - block->first;
        if (i < 0 || i >= block->n) return WEFT_OK;
        x[block->column + i] = 1;
    }
    for (int32_t lane = WEFT_LANE_FIRST; lane < seed->problem->n_lanes; lane++)
        for (int32_t s = 0; s < seed->problem->n_slots; s++)
            x[overlap_column(seed, lane, s)] =
                (double)overlap_ns(seed, moves, n_moves, lane, s) / seed->unit_ns;
    if (keeps_rows(lp, x)) lp->start = x;
    return WEFT_OK;
}
