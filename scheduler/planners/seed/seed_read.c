/* SPDX-License-Identifier: Apache-2.0 */
/* From a solver's point to moves, and their order within slots. */
#include <stdlib.h>
#include <string.h>

#include "program/predict.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/seed/seed.h"

/* Sorts an item's slots: blocks are alike, and those of a chain stay in order. */
static void sort_slots(struct weft_move *moves, int32_t n)
{
    for (int32_t i = 1; i < n; i++) {
        const struct weft_move at = moves[i];
        int32_t k = i;
        for (; k > 0 && moves[k - 1].slot > at.slot; k--)
            moves[k] = moves[k - 1];
        moves[k] = at;
    }
}

static enum weft_status read_blocks(const struct weft_seed *seed, const double *x,
                                    struct weft_move *moves, struct weft_error *err)
{
    for (int32_t k = 0; k < seed->n_blocks; k++) {
        const struct weft_seed_block *block = &seed->blocks[k];
        int32_t n = 0;
        for (int32_t i = 0; i < block->n; i++) {
            if (!(x[block->column + i] > 0.5)) continue;
            moves[k] = (struct weft_move){.item = block->item, .slot = block->first + i};
            n++;
        }
        if (n != 1)
            return weft_fail(err, WEFT_E_DATA, "its answer has block %d of item %d in %d slots",
                             (int)k, (int)block->item, (int)n);
    }
    return WEFT_OK;
}

static enum weft_status check_chains(const struct weft_seed *seed, const struct weft_move *moves,
                                     const int32_t *first, struct weft_error *err)
{
    for (int32_t k = 0; k < seed->n_blocks; k++) {
        const int32_t item = seed->blocks[k].item, after = seed->problem->items[item].after;
        if (after < 0 || first[after] < 0) continue;
        if (moves[k].slot < moves[first[after] + k - first[item]].slot)
            return weft_fail(err, WEFT_E_DATA,
                             "its answer has a block of item %d before its predecessor's",
                             (int)item);
    }
    return WEFT_OK;
}

static enum weft_status check_rows(const struct weft_seed *seed, const struct weft_move *moves,
                                   bool *over, struct weft_error *err)
{
    const struct weft_problem *problem = seed->problem;
    const size_t n = (size_t)weft_problem_n_rows(problem);
    int64_t *rows = malloc((n + 1) * sizeof *rows);
    if (!rows) return weft_fail_memory(err, "memory rows");
    memcpy(rows, seed->rows, n * sizeof *rows);
    weft_moves_add_rows(problem, moves, seed->n_blocks, rows);
    for (size_t r = 0; r < n && !*over; r++)
        *over = rows[r] > problem->tiers[r / (size_t)problem->n_slots].limit_bytes;
    free(rows);
    return *over ? weft_fail(err, WEFT_E_DATA, "its answer exceeds a memory limit") : WEFT_OK;
}

enum weft_status weft_seed_read(const struct weft_seed *seed, const double *x,
                                struct weft_move *moves, int32_t *n_moves, bool *over,
                                struct weft_error *err)
{
    int32_t *first = malloc(((size_t)seed->problem->n_items + 1) * sizeof *first);
    *over = false;
    if (!first) return weft_fail_memory(err, "moves");
    for (int32_t i = 0; i < seed->problem->n_items; i++)
        first[i] = -1;
    for (int32_t k = seed->n_blocks - 1; k >= 0; k--)
        first[seed->blocks[k].item] = k;
    enum weft_status status = read_blocks(seed, x, moves, err);
    if (status == WEFT_OK) {
        for (int32_t i = 0; i < seed->problem->n_items; i++)
            if (first[i] >= 0) sort_slots(moves + first[i], seed->problem->items[i].item.n_blocks);
        status = check_chains(seed, moves, first, err);
    }
    free(first);
    if (status == WEFT_OK) status = check_rows(seed, moves, over, err);
    if (status == WEFT_OK) *n_moves = seed->n_blocks;
    return status;
}

/* Orders of blocks in a slot. */
enum order { GATHERS_FIRST, REDUCTIONS_FIRST, BY_END, BY_ITEM, N_ORDERS };

struct key {
    int64_t major, minor;
    struct weft_move move;
};

static struct key key_of(const struct weft_seed *seed, enum order order, struct weft_move move,
                         int32_t index)
{
    const struct weft_item *item = &seed->problem->items[move.item].item;
    const int64_t n = seed->problem->n_slots + 1;
    int64_t major = 0, minor = item->acquires ? item->last : item->first;
    switch (order) {
    case GATHERS_FIRST:
        major = !item->acquires;
        break;
    case REDUCTIONS_FIRST:
        major = item->acquires;
        break;
    case BY_END:
        minor = item->last;
        break;
    case BY_ITEM:
    case N_ORDERS:
        minor = 0;
        break;
    }
    return (struct key){(move.slot * 2 + major) * n + minor, index, move};
}

static int compare_keys(const void *a, const void *b)
{
    const struct key *x = a, *y = b;
    if (x->major != y->major) return x->major < y->major ? -1 : 1;
    return (x->minor > y->minor) - (x->minor < y->minor);
}

/* The step of one order; -1 if it is no plan. */
static int64_t try_order(const struct weft_seed *seed, const struct weft_move *moves,
                         int32_t n_moves)
{
    struct weft_plan *plan = NULL;
    int64_t step_ns = -1;
    if (weft_plan_create(seed->problem, "seed-ilp", seed->strategies, moves, n_moves, &plan,
                         NULL) != WEFT_OK)
        return -1;
    if (weft_plan_predict(plan, NULL) == WEFT_OK) step_ns = plan->prediction.step_ns;
    weft_plan_destroy(plan);
    return step_ns;
}

enum weft_status weft_seed_order(const struct weft_seed *seed, struct weft_move *moves,
                                 int32_t n_moves, struct weft_error *err)
{
    struct key *keys = malloc(((size_t)n_moves + 1) * sizeof *keys);
    struct weft_move *trial = malloc(2 * ((size_t)n_moves + 1) * sizeof *trial);
    int64_t best_ns = -1;
    if (!keys || !trial) {
        free(keys);
        free(trial);
        return weft_fail_memory(err, "an order of moves");
    }
    struct weft_move *best = trial + n_moves + 1;
    for (int order = 0; order < N_ORDERS; order++) {
        for (int32_t m = 0; m < n_moves; m++)
            keys[m] = key_of(seed, (enum order)order, moves[m], m);
        qsort(keys, (size_t)n_moves, sizeof *keys, compare_keys);
        for (int32_t m = 0; m < n_moves; m++)
            trial[m] = keys[m].move;
        const int64_t step_ns = try_order(seed, trial, n_moves);
        if (step_ns < 0 || (best_ns >= 0 && step_ns >= best_ns)) continue;
        best_ns = step_ns;
        memcpy(best, trial, (size_t)n_moves * sizeof *best);
    }
    if (best_ns >= 0) memcpy(moves, best, (size_t)n_moves * sizeof *moves);
    free(keys);
    free(trial);
    if (best_ns >= 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner seed-ilp: no order of its blocks within slots is a plan");
}
