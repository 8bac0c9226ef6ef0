/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/place/micro_steps.h"

#include <string.h>

#include "problem/target.h"
#include "program/predict.h"

struct aligner {
    struct weft_plan *plan;
    const struct weft_problem *problem;
    int32_t n_layers;
    int32_t root_slot; /* `fill`, if no unit begins with the first layer; -1: one does */
    int32_t *slots;    /* by micro-step, kind (forward, backward) and layer */
    int32_t *used_at;  /* by slot: the first gather of the plan that it uses; -1: none */
    int32_t *next;     /* by item: the next such gather; -1: none */
    int32_t *launches; /* by item: its launch in the plan */
    int32_t *twins; /* by item: the same gather in the first micro-step; itself if there is none */
    int32_t *gathers; /* of the plan, in the order of their launches */
    bool *listed;     /* by item: in `gathers` */
    bool *own;        /* by item of the first micro-step: its unit gathers it, not a list */
    int64_t *rows;
    struct weft_move *moves;
    struct weft_plan *best;
    struct weft_error *err;
};

static const struct weft_item *item_at(const struct aligner *a, int32_t item)
{
    return &a->problem->items[item].item;
}

static int32_t use_of(const struct aligner *a, int32_t item)
{
    return item_at(a, item)->last + 1;
}

static int32_t micro_of(const struct aligner *a, int32_t item)
{
    return a->problem->slots[use_of(a, item)].micro;
}

static int32_t *slot_of(const struct aligner *a, int32_t micro, bool forward, int32_t layer)
{
    return &a->slots[(2 * micro + (forward ? 0 : 1)) * a->n_layers + layer];
}

/* The same slot of another micro-step. The root's list is launched in `fill` in the first one, and
 * with the first forward in others. */
static int32_t same_slot(const struct aligner *a, int32_t slot, int32_t micro)
{
    const struct weft_slot *at = &a->problem->slots[slot];
    if (at->micro == micro) return slot;
    if (at->kind == WEFT_SLOT_FORWARD && at->index == 0 && micro == 0 && a->root_slot >= 0)
        return a->root_slot;
    if (at->kind != WEFT_SLOT_FORWARD && at->kind != WEFT_SLOT_BACKWARD)
        return *slot_of(a, micro, true, 0);
    return *slot_of(a, micro, at->kind == WEFT_SLOT_FORWARD, at->index);
}

/* The gather of a micro-step that is the same as `item` of another one; -1: none. */
static int32_t find_twin(const struct aligner *a, int32_t item, int32_t micro)
{
    if (micro_of(a, item) == micro) return item;
    int32_t i = a->used_at[same_slot(a, use_of(a, item), micro)];
    while (i >= 0 && item_at(a, i)->decision != item_at(a, item)->decision)
        i = a->next[i];
    return i;
}

static void read_plan(struct aligner *a)
{
    for (int32_t s = 0; s < a->problem->n_slots; s++) {
        const struct weft_slot *at = &a->problem->slots[s];
        a->used_at[s] = -1;
        if (at->kind == WEFT_SLOT_FILL) a->root_slot = s;
        if (at->kind == WEFT_SLOT_FORWARD || at->kind == WEFT_SLOT_BACKWARD)
            *slot_of(a, at->micro, at->kind == WEFT_SLOT_FORWARD, at->index) = s;
    }
    for (int32_t p = 0; p < a->plan->n_placements; p++) {
        const struct weft_placement *at = &a->plan->placements[p];
        if (!item_at(a, at->item)->acquires) continue;
        a->launches[at->item] = at->launch;
        a->next[at->item] = a->used_at[use_of(a, at->item)];
        a->used_at[use_of(a, at->item)] = at->item;
    }
    if (a->used_at[*slot_of(a, 0, true, 0)] >= 0) a->root_slot = -1;
    for (int32_t p = 0; p < a->plan->n_placements; p++) {
        const int32_t item = a->plan->placements[p].item;
        const int32_t twin = item_at(a, item)->acquires ? find_twin(a, item, 0) : -1;
        a->twins[item] = twin < 0 ? item : twin;
    }
}

/* The launch of a gather if it is launched as in micro-step `source`. */
static int32_t launch_as(const struct aligner *a, int32_t item, int32_t source)
{
    const int32_t like = find_twin(a, item, source), use = use_of(a, item);
    if (like < 0 || a->own[a->twins[item]] || a->launches[like] == use_of(a, like)) return use;
    const int32_t launch = same_slot(a, a->launches[like], micro_of(a, item));
    return launch < item_at(a, item)->first || launch > use ? use : launch;
}

/* Lists the gathers of the plan by micro-step, each time in the order of micro-step `source`. One
 * without a twin there comes last. */
static void list_gathers(const struct aligner *a, int32_t source)
{
    const struct weft_placement *all = a->plan->placements;
    int32_t n = 0;
    memset(a->listed, 0, (size_t)a->problem->n_items * sizeof *a->listed);
    for (int32_t micro = 0; micro <= a->problem->period.n_micro; micro++) {
        const bool is_rest = micro == a->problem->period.n_micro;
        for (int32_t p = 0; p < a->plan->n_placements; p++) {
            int32_t item = all[p].item;
            if (!item_at(a, item)->acquires) continue;
            if (!is_rest) item = micro_of(a, item) == source ? find_twin(a, item, micro) : -1;
            if (item < 0 || a->listed[item]) continue;
            a->listed[item] = true;
            a->gathers[n++] = item;
        }
    }
}

/* Makes the plan whose gathers are launched as in micro-step `source`, and in that order. */
static enum weft_status make_like(struct aligner *a, int32_t source, struct weft_plan **out)
{
    int32_t next = 0;
    list_gathers(a, source);
    for (int32_t p = 0; p < a->plan->n_placements; p++) {
        const int32_t item = a->plan->placements[p].item;
        if (item_at(a, item)->acquires) {
            const int32_t gather = a->gathers[next++], launch = launch_as(a, gather, source);
            a->moves[p] = (struct weft_move){.item = gather, .slot = launch, .launch = launch};
        } else {
            a->moves[p] = (struct weft_move){
                .item = item, .slot = item_at(a, item)->last, .launch = item_at(a, item)->first};
        }
    }
    WEFT_TRY(weft_plan_create(a->problem, a->plan->planner, a->plan->strategies, a->moves,
                              a->plan->n_placements, out, a->err));
    return weft_plan_predict(*out, a->err);
}

/* Lets a unit gather itself in place of the largest prefetch that is held in a slot. False if no
 * prefetch is. */
static bool drop_prefetch(struct aligner *a, const struct weft_plan *plan, int32_t slot)
{
    const struct weft_placement *dropped = NULL;
    for (int32_t p = 0; p < plan->n_placements; p++) {
        const struct weft_placement *at = &plan->placements[p];
        const struct weft_item *item = item_at(a, at->item);
        if (!item->acquires || weft_placement_blocks(at) || at->launch > slot ||
            slot >= at->deadline || a->own[a->twins[at->item]])
            continue;
        if (!dropped || item->block_bytes > item_at(a, dropped->item)->block_bytes) dropped = at;
    }
    if (dropped) a->own[a->twins[dropped->item]] = true;
    return dropped != NULL;
}

/* Drops a prefetch of each slot above the limit. False if there is none. */
static bool drop_prefetches(struct aligner *a, const struct weft_plan *plan)
{
    const int64_t limit_bytes = a->problem->tiers[0].limit_bytes;
    bool any = false;
    memset(a->rows, 0, (size_t)a->problem->n_slots * WEFT_CATEGORY_COUNT * sizeof *a->rows);
    weft_plan_rows(plan, 0, a->rows);
    for (int32_t s = 0; s < a->problem->n_slots; s++) {
        int64_t bytes = 0;
        for (int c = 0; c < WEFT_CATEGORY_COUNT; c++)
            bytes += a->rows[s * WEFT_CATEGORY_COUNT + c];
        if (bytes > limit_bytes) any |= drop_prefetch(a, plan, s);
    }
    return any;
}

/* Keeps the plan with the lists of micro-step `source` if it is the fastest that fits. */
static enum weft_status try_source(struct aligner *a, int32_t source)
{
    struct weft_plan *made = NULL;
    enum weft_status status;
    memset(a->own, 0, (size_t)a->problem->n_items * sizeof *a->own);
    for (;;) {
        status = make_like(a, source, &made);
        if (status != WEFT_OK) break;
        const struct weft_prediction *said = &made->prediction;
        const bool fits = said->peak_bytes <= a->problem->tiers[0].limit_bytes;
        if (!fits && drop_prefetches(a, made)) {
            weft_plan_destroy(made);
            made = NULL;
            continue;
        }
        if (fits && (!a->best || said->step_ns < a->best->prediction.step_ns)) {
            struct weft_plan *slower = a->best;
            a->best = made;
            made = slower;
        }
        break;
    }
    weft_plan_destroy(made);
    return status;
}

static enum weft_status align_gathers(struct aligner *a)
{
    const int32_t n = a->problem->period.n_micro;
    read_plan(a);
    WEFT_TRY(try_source(a, 0));
    if (n > 1) WEFT_TRY(try_source(a, 1));
    if (n > 2) WEFT_TRY(try_source(a, n - 1));
    if (!a->best) return WEFT_OK; /* the limit is below the rows of these strategies */
    memcpy(a->plan->placements, a->best->placements,
           (size_t)a->plan->n_placements * sizeof *a->plan->placements);
    a->plan->prediction = a->best->prediction;
    return WEFT_OK;
}

enum weft_status weft_place_micro_steps(struct weft_plan *plan, struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    const size_t n_items = (size_t)problem->n_items + 1, n_slots = (size_t)problem->n_slots;
    struct aligner a = {.plan = plan, .problem = problem, .root_slot = -1, .err = err};
    if (!weft_problem_target(problem)->in_order || problem->period.n_micro < 2) return WEFT_OK;
    for (size_t s = 0; s < n_slots; s++)
        if (problem->slots[s].kind == WEFT_SLOT_FORWARD && problem->slots[s].index >= a.n_layers)
            a.n_layers = problem->slots[s].index + 1;
    struct weft_pool pool = {0};
    const size_t n_layers = 2 * (size_t)problem->period.n_micro * (size_t)a.n_layers;
    a.slots = weft_pool_array(&pool, n_layers, sizeof *a.slots);
    a.used_at = weft_pool_array(&pool, n_slots, sizeof *a.used_at);
    a.next = weft_pool_array(&pool, n_items, sizeof *a.next);
    a.launches = weft_pool_array(&pool, n_items, sizeof *a.launches);
    a.twins = weft_pool_array(&pool, n_items, sizeof *a.twins);
    a.gathers = weft_pool_array(&pool, n_items, sizeof *a.gathers);
    a.listed = weft_pool_array(&pool, n_items, sizeof *a.listed);
    a.own = weft_pool_array(&pool, n_items, sizeof *a.own);
    a.rows = weft_pool_array(&pool, n_slots * WEFT_CATEGORY_COUNT, sizeof *a.rows);
    a.moves = weft_pool_array(&pool, (size_t)plan->n_placements + 1, sizeof *a.moves);
    const bool ready = a.slots && a.used_at && a.next && a.launches && a.twins && a.gathers &&
                       a.listed && a.own && a.rows && a.moves;
    const enum weft_status status = ready ? align_gathers(&a) : weft_fail_memory(err, "a plan");
    weft_pool_finish(&pool);
    weft_plan_destroy(a.best);
    return status;
}
