/* SPDX-License-Identifier: Apache-2.0 */
/* A random plan that fits, for tests. Strategies and slots are drawn. Decisions and blocks that do
 * not fit return to the leanest plan. The same seed gives the same plan everywhere. */
#include <stdbool.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/rng.h"
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/planners.h"

struct draw {
    uint64_t seed, stream, counter;
};

static int32_t draw_below(struct draw *draw, int32_t n)
{
    return (int32_t)weft_rng_below(draw->seed, draw->stream, draw->counter++, (uint64_t)n);
}

static void draw_strategies(struct draw *draw, const struct weft_digest *table, int32_t *strategies,
                            int64_t *rows)
{
    for (int32_t u = 0; u < table->n_decisions; u++)
        strategies[u] = draw_below(draw, weft_digest_count(table, u));
    int32_t start = table->n_decisions > 0 ? draw_below(draw, table->n_decisions) : 0;
    for (int32_t i = 0; i < table->n_decisions; i++) {
        if (weft_digest_lean_rows(table, strategies, rows, NULL) <= weft_digest_limit_bytes(table))
            return;
        int32_t u = (start + i) % table->n_decisions;
        strategies[u] = table->leanest[u];
    }
}

/* Finds the slots in which the block holds more than its least: [*first, *last], empty for the
 * least. */
static void extra_slots(const struct weft_item *item, int32_t slot, int32_t *first, int32_t *last)
{
    bool gathers = item->acquires;
    *first = gathers ? slot : item->first + 1;
    *last = gathers ? item->last : slot;
}

static int32_t draw_slot(struct draw *draw, const struct weft_item *item, int64_t limit_bytes,
                         int64_t *rows)
{
    bool gathers = item->acquires;
    int32_t end = item->last + item->may_block;
    int32_t slot = item->first + draw_below(draw, end - item->first + 1), first, last;
    extra_slots(item, slot, &first, &last);
    for (int32_t s = first; s <= last; s++) {
        if (rows[s] + item->stair_bytes > limit_bytes) return gathers ? end : item->first;
    }
    for (int32_t s = first; s <= last; s++)
        rows[s] += item->stair_bytes;
    return slot;
}

/* A place in the channel order: by the slot of issue, then by lot. */
struct place {
    int32_t slot;
    uint64_t lot;
    struct weft_move move;
};

static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    if (x->lot != y->lot) return x->lot < y->lot ? -1 : 1;
    return x->move.item < y->move.item ? -1 : x->move.item > y->move.item;
}

/* Finds the places of an item's blocks in an array by item; NULL if the strategies do not need the
 * item. */
static struct place *places_of(const struct weft_digest *table, const int32_t *strategies,
                               struct place *places, int32_t item)
{
    for (int32_t i = 0; i < item; i++) {
        const struct weft_item *before = &table->problem->items[i].item;
        if (weft_item_active(before, strategies)) places += before->n_blocks;
    }
    return weft_item_active(&table->problem->items[item].item, strategies) ? places : NULL;
}

/* Blocks stand on their lane in order of issue, so none may be issued before the block that it
 * follows. An acquiring block is launched later. A releasing block is not moved: the block before
 * it is issued earlier. True if anything changed. */
static bool follow_chain(const struct weft_problem_item *of, struct place *places,
                         struct place *after)
{
    bool changed = false;
    for (int32_t b = 0; b < of->item.n_blocks; b++) {
        if (after[b].slot <= places[b].slot) continue;
        changed = true;
        if (of->item.acquires) {
            places[b].slot = places[b].move.slot = after[b].slot;
        } else {
            after[b].slot = places[b].slot;
            if (after[b].move.launch > after[b].slot) after[b].move.launch = after[b].slot;
        }
    }
    return changed;
}

static void follow_all(const struct weft_digest *table, const int32_t *strategies,
                       struct place *places)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int32_t i = 0; i < table->n_items; i++) {
            const struct weft_problem_item *of = &table->problem->items[i];
            if (of->after < 0) continue;
            struct place *own = places_of(table, strategies, places, i);
            struct place *after = places_of(table, strategies, places, of->after);
            if (own != NULL && after != NULL) changed |= follow_chain(of, own, after);
        }
    }
}

static void draw_moves(struct draw *draw, const struct weft_digest *table,
                       struct weft_candidate *out, int64_t *rows, struct place *places)
{
    out->n_moves = 0;
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_item *item = &table->problem->items[i].item;
        if (!weft_item_active(item, out->strategies)) continue;
        for (int32_t b = 0; b < item->n_blocks; b++) {
            int32_t slot = draw_slot(draw, item, weft_digest_limit_bytes(table),
                                     rows + weft_problem_stair_at(table->problem, item)),
                    issue = slot, launch = 0;
            if (!item->acquires) {
                issue = item->first + draw_below(draw, slot - item->first + 1);
                launch = item->first + draw_below(draw, issue - item->first + 1);
            }
            places[out->n_moves++] =
                (struct place){.slot = issue,
                               .lot = weft_rng_u64(draw->seed, draw->stream, draw->counter++),
                               .move = {.item = i, .slot = slot, .launch = launch}};
        }
    }
    follow_all(table, out->strategies, places);
    qsort(places, (size_t)out->n_moves, sizeof *places, compare_places);
    for (int32_t k = 0; k < out->n_moves; k++)
        out->moves[k] = places[k].move;
}

enum weft_status weft_planner_random(const struct weft_problem *problem,
                                     const struct weft_schedule_options *options,
                                     struct weft_candidate *out, struct weft_outcome *outcome,
                                     struct weft_error *err)
{
    struct draw draw = {.seed = options->seed, .stream = weft_hash_string("planner random")};
    struct weft_digest *table = NULL;
    struct place *places = NULL;
    int64_t *rows = calloc((size_t)weft_problem_n_rows(problem), sizeof *rows);
    enum weft_status status = WEFT_OK;
    (void)outcome;
    if (!rows) return weft_fail_memory(err, "memory rows");
    WEFT_TRY_GOTO(done, weft_digest_create_like(options->table, problem, &table, err));
    places = calloc((size_t)table->n_blocks + 1, sizeof *places);
    if (!places) WEFT_TRY_GOTO(done, weft_fail_memory(err, "a random plan"));
    draw_strategies(&draw, table, out->strategies, rows);
    if (weft_digest_lean_rows(table, out->strategies, rows, NULL) > weft_digest_limit_bytes(table))
        WEFT_TRY_GOTO(done, weft_fail(err, WEFT_E_INFEASIBLE,
                                      "planner random: not even the leanest plan fits"));
    draw_moves(&draw, table, out, rows, places);
done:
    free(places);
    free(rows);
    weft_digest_destroy(table);
    return status;
}
