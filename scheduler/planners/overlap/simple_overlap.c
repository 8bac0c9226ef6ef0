/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's pass simple_overlap over ZeRO 3. It changes the order of a graph by swaps of
 * neighbours: launches move to its begin, and waits move to its end. A collective never passes
 * another one, a wait never passes another wait, and the graph's peak stays. Forward and backward
 * are graphs. */
#include "scheduler/planners/planners.h"

/* A forward or backward: its slots, and its largest row before any move. */
struct graph {
    int32_t begin, end;
    int64_t peak_bytes;
};

static struct graph find_graph(const struct weft_draft *draft, int32_t slot)
{
    const struct weft_problem *problem = draft->problem;
    const enum weft_slot_kind kind = problem->slots[slot].kind;
    struct graph graph = {weft_draft_begin(draft, slot), slot, 0};
    while (graph.end < problem->n_slots && problem->slots[graph.end].kind == kind &&
           draft->micro[graph.end] == draft->micro[slot])
        graph.end++;
    for (int32_t s = graph.begin; s < graph.end; s++)
        if (draft->rows[s] > graph.peak_bytes) graph.peak_bytes = draft->rows[s];
    return graph;
}

static int64_t held_bytes(const struct weft_item *item)
{
    return item->stair_tier == 0 ? item->n_blocks * item->stair_bytes : 0;
}

/* The order of the graph before any move: each gather next to its use, each reduction in the slot
 * in which its gradient is ready. */
static void place_in_order(struct weft_draft *draft)
{
    weft_draft_take(draft);
    for (int32_t i = 0; i < draft->n_gathers; i++)
        weft_draft_gather_all(draft, draft->gathers[i],
                              weft_draft_item(draft, draft->gathers[i])->last + 1);
    for (int32_t i = 0; i < draft->n_reductions; i++) {
        const int32_t ready = weft_draft_item(draft, draft->reductions[i])->first;
        weft_draft_reduce_all(draft, draft->reductions[i], ready, ready);
    }
}

/* Fills launch [n_gathers]. Reductions are launched before gathers of the same slot, and have no
 * earlier place. */
static void move_launches(struct weft_draft *draft, int32_t *launch)
{
    int32_t before = 0, r = 0; /* the slot of the last collective; the next reduction */
    for (int32_t i = 0; i < draft->n_gathers; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->gathers[i]);
        const int32_t use = item->last + 1;
        const struct graph graph = find_graph(draft, use);
        for (; r < draft->n_reductions; r++) {
            const int32_t ready = weft_draft_item(draft, draft->reductions[r])->first;
            if (ready > use) break;
            if (ready > before) before = ready;
        }
        int32_t least = before > graph.begin ? before : graph.begin, slot = use;
        if (item->first > least) least = item->first;
        while (slot > least && draft->rows[slot - 1] + held_bytes(item) <= graph.peak_bytes)
            draft->rows[--slot] += held_bytes(item);
        launch[i] = slot;
        if (slot > before) before = slot;
    }
}

/* True if compute waits for a gather before this slot. */
static bool has_use(const struct weft_draft *draft, int32_t slot)
{
    for (int32_t i = 0; i < draft->n_gathers; i++)
        if (weft_draft_item(draft, draft->gathers[i])->last + 1 == slot) return true;
    return false;
}

/* Fills due [n_reductions]: each slot has the wait that nothing else of the graph stops. */
static void move_waits(struct weft_draft *draft, int32_t *due)
{
    int32_t next = draft->problem->n_slots; /* the slot of the next reduction's wait */
    for (int32_t i = draft->n_reductions - 1; i >= 0; i--) {
        const struct weft_item *item = weft_draft_item(draft, draft->reductions[i]);
        const int32_t end = find_graph(draft, item->first > 0 ? item->first - 1 : 0).end;
        const int64_t peak_bytes = find_graph(draft, item->first).peak_bytes;
        int32_t slot = item->first;
        while (slot + 1 < end && slot < item->last && slot < next && !has_use(draft, slot + 1) &&
               draft->rows[slot + 1] + held_bytes(item) <= peak_bytes)
            draft->rows[++slot] += held_bytes(item);
        due[i] = slot;
        next = slot;
    }
}

enum weft_status weft_rule_simple_overlap(struct weft_draft *draft, const int64_t *values,
                                          struct weft_error *err)
{
    int32_t *launch, *due;
    (void)values;
    WEFT_TRY(weft_draft_choose_all(draft, weft_draft_sharded, err));
    place_in_order(draft);
    launch = weft_pool_array(&draft->pool, (size_t)draft->n_gathers + 1, sizeof *launch);
    due = weft_pool_array(&draft->pool, (size_t)draft->n_reductions + 1, sizeof *due);
    if (!launch || !due) return weft_fail_memory(err, "a rule's draft");
    (void)weft_draft_peak(draft, NULL);
    move_launches(draft, launch);
    move_waits(draft, due);
    weft_draft_take(draft);
    for (int32_t i = 0; i < draft->n_gathers; i++)
        weft_draft_gather_all(draft, draft->gathers[i], launch[i]);
    for (int32_t i = 0; i < draft->n_reductions; i++)
        weft_draft_reduce_all(draft, draft->reductions[i],
                              weft_draft_item(draft, draft->reductions[i])->first, due[i]);
    return WEFT_OK;
}
