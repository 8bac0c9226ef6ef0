/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/digest/steps.h"

#include <stdlib.h>

/* Changes of one strategy's rows, while its steps are made. */
struct changes {
    int64_t *bytes; /* [n_rows + 1]: change from the row before; 0 but for the listed rows */
    int32_t *rows;  /* [most]: rows with a change, in any order, each possibly several times */
    int32_t n;
};

/* Steps of all strategies, as they grow. */
struct growing {
    struct weft_row_step *steps;
    int64_t n, room;
};

static void change_row(struct changes *changes, int32_t row, int64_t bytes)
{
    changes->bytes[row] += bytes;
    changes->rows[changes->n++] = row;
}

static void add_rows(struct changes *changes, int32_t first, int32_t last, int64_t bytes)
{
    change_row(changes, first, bytes);
    change_row(changes, last + 1, -bytes);
}

/* Adds a hold; one that ends before it begins goes around the end of the period. */
static void add_hold(struct changes *changes, const struct weft_problem *problem,
                     const struct weft_hold *hold)
{
    const int32_t at = weft_problem_tier_at(problem, hold->tier);
    if (hold->first <= hold->last) {
        add_rows(changes, at + hold->first, at + hold->last, hold->bytes);
        return;
    }
    add_rows(changes, at + hold->first, at + problem->n_slots - 1, hold->bytes);
    add_rows(changes, at, at + hold->last, hold->bytes);
}

/* Adds the blocks that cannot block: they are held in one slot at least. */
static void add_lean(struct changes *changes, const struct weft_problem *problem,
                     const struct weft_problem_item *of)
{
    const struct weft_item *item = &of->item;
    const int32_t slot = item->acquires ? item->last : item->first;
    const int32_t row = weft_problem_stair_at(problem, item) + slot;
    if (!item->may_block) add_rows(changes, row, row, item->n_blocks * item->stair_bytes);
}

static int compare_rows(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static bool grow_steps(struct growing *to, int64_t more)
{
    if (to->n + more <= to->room) return true;
    const int64_t room = 2 * (to->n + more);
    void *grown = realloc(to->steps, (size_t)room * sizeof *to->steps);
    if (!grown) return false;
    to->steps = grown;
    to->room = room;
    return true;
}

/* Appends the changes as steps, and clears them. */
static bool take_changes(struct changes *changes, int32_t n_rows, struct growing *to)
{
    int64_t bytes = 0;
    if (!grow_steps(to, changes->n)) return false;
    qsort(changes->rows, (size_t)changes->n, sizeof *changes->rows, compare_rows);
    for (int32_t k = 0; k < changes->n; k++) {
        const int32_t row = changes->rows[k];
        const int64_t change = changes->bytes[row];
        changes->bytes[row] = 0;
        bytes += change;
        if (change == 0 || row == n_rows) continue;
        to->steps[to->n++] = (struct weft_row_step){.bytes = bytes, .row = row};
    }
    changes->n = 0;
    return true;
}

/* Most changes of one strategy: two for each hold, doubled if it goes around, and for each item. */
static size_t most_changes(const struct weft_problem *problem)
{
    size_t most = 0;
    for (int32_t u = 0; u < problem->n_decisions; u++)
        for (int32_t p = 0; p < problem->decisions[u].n_strategies; p++)
            if ((size_t)problem->decisions[u].strategies[p].n_holds > most)
                most = (size_t)problem->decisions[u].strategies[p].n_holds;
    return 4 * most + 2 * (size_t)problem->n_items + 1;
}

/* Makes the steps of all strategies. Items are in order of their decisions. */
static bool make_steps(const struct weft_problem *problem, bool lean, struct changes *changes,
                       struct growing *to, int64_t *start)
{
    int32_t first = 0;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        int32_t end = first;
        while (end < problem->n_items && problem->items[end].item.decision == u)
            end++;
        for (int32_t p = 0; p < problem->decisions[u].n_strategies; p++) {
            const struct weft_problem_strategy *strategy = &problem->decisions[u].strategies[p];
            for (int32_t i = 0; i < strategy->n_holds; i++)
                add_hold(changes, problem, &strategy->holds[i]);
            for (int32_t i = first; i < end && lean; i++)
                if (problem->items[i].item.strategies >> p & 1u)
                    add_lean(changes, problem, &problem->items[i]);
            start[weft_strategy_at(problem, u, p)] = to->n;
            if (!take_changes(changes, weft_problem_n_rows(problem), to)) return false;
        }
        first = end;
    }
    start[problem->n_strategies] = to->n;
    return true;
}

static bool make_rows(const struct weft_problem *problem, bool lean, struct changes *changes,
                      struct weft_pool *pool, struct weft_row_steps *out)
{
    struct growing made = {0};
    int64_t *start = weft_pool_array(pool, (size_t)problem->n_strategies + 1, sizeof *start);
    bool ok = start && make_steps(problem, lean, changes, &made, start);
    struct weft_row_step *steps =
        ok ? weft_pool_array(pool, (size_t)made.n + 1, sizeof *steps) : NULL;
    for (int64_t k = 0; steps && k < made.n; k++)
        steps[k] = made.steps[k];
    free(made.steps);
    *out = (struct weft_row_steps){start, steps};
    return steps != NULL;
}

enum weft_status weft_row_steps_make(const struct weft_problem *problem, struct weft_pool *pool,
                                     struct weft_row_steps *fixed, struct weft_row_steps *lean,
                                     struct weft_error *err)
{
    struct changes changes = {
        .bytes = calloc((size_t)weft_problem_n_rows(problem) + 1, sizeof *changes.bytes),
        .rows = calloc(most_changes(problem), sizeof *changes.rows),
    };
    const bool ok = changes.bytes && changes.rows &&
                    make_rows(problem, false, &changes, pool, fixed) &&
                    make_rows(problem, true, &changes, pool, lean);
    free(changes.bytes);
    free(changes.rows);
    return ok ? WEFT_OK : weft_fail_memory(err, "a scheduler's table");
}

void weft_row_steps_add(const struct weft_row_steps *of, size_t strategy, int64_t sign,
                        int32_t n_rows, int64_t *rows)
{
    for (int64_t k = of->start[strategy]; k < of->start[strategy + 1]; k++) {
        const int32_t end = k + 1 < of->start[strategy + 1] ? of->steps[k + 1].row : n_rows;
        const int64_t bytes = sign * of->steps[k].bytes;
        for (int32_t r = of->steps[k].row; r < end && bytes != 0; r++)
            rows[r] += bytes;
    }
}
