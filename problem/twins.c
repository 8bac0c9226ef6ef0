/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/twins.h"

#include "problem/target.h"

bool weft_problem_has_twins(const struct weft_problem *problem)
{
    return weft_problem_target(problem)->in_order && problem->period.n_micro > 1;
}

static bool is_of_layer(const struct weft_slot *slot)
{
    return slot->kind == WEFT_SLOT_FORWARD || slot->kind == WEFT_SLOT_BACKWARD;
}

static int32_t *slot_of(const struct weft_twins *twins, int32_t micro, bool forward, int32_t layer)
{
    return &twins->slots[(2 * micro + (forward ? 0 : 1)) * twins->n_layers + layer];
}

/* The same slot of another micro-step. */
static int32_t same_slot(const struct weft_problem *problem, const struct weft_twins *twins,
                         int32_t slot, int32_t micro)
{
    const struct weft_slot *at = &problem->slots[slot];
    if (!is_of_layer(at)) return *slot_of(twins, micro, true, 0);
    return *slot_of(twins, micro, at->kind == WEFT_SLOT_FORWARD, at->index);
}

static void list_slots(const struct weft_problem *problem, const struct weft_twins *twins)
{
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const struct weft_slot *at = &problem->slots[s];
        if (is_of_layer(at))
            *slot_of(twins, at->micro, at->kind == WEFT_SLOT_FORWARD, at->index) = s;
    }
}

/* Gathers of a decision are in order of time, so the search for a leader begins at the decision's
 * first item. */
static int32_t find_leader(const struct weft_problem *problem, const struct weft_twins *twins,
                           int32_t first, int32_t i)
{
    const struct weft_item *item = &problem->items[i].item;
    const struct weft_slot *use = &problem->slots[item->last + 1];
    if (!item->acquires || use->micro == 0 || !is_of_layer(use)) return i;
    const int32_t like = same_slot(problem, twins, item->last + 1, 0);
    for (int32_t k = first; k < i; k++) {
        const struct weft_item *other = &problem->items[k].item;
        if (other->acquires && other->kind == item->kind && other->last + 1 == like &&
            other->strategies == item->strategies)
            return k;
    }
    return i;
}

enum weft_status weft_twins_find(const struct weft_problem *problem, struct weft_pool *pool,
                                 struct weft_twins *out, struct weft_error *err)
{
    const size_t n_items = (size_t)problem->n_items;
    struct weft_twins twins = {0};
    int32_t first = 0;
    for (int32_t s = 0; s < problem->n_slots; s++)
        if (is_of_layer(&problem->slots[s]) && problem->slots[s].index >= twins.n_layers)
            twins.n_layers = problem->slots[s].index + 1;
    const size_t n_slots = 2 * (size_t)problem->period.n_micro * (size_t)twins.n_layers;
    twins.slots = weft_pool_array(pool, n_slots, sizeof *twins.slots);
    twins.leader = weft_pool_array(pool, 2 * n_items + 1, sizeof *twins.leader);
    if (twins.slots == NULL || twins.leader == NULL) return weft_fail_memory(err, "twins");
    twins.next = twins.leader + n_items;
    list_slots(problem, &twins);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->decision != problem->items[first].item.decision) first = i;
        twins.leader[i] = find_leader(problem, &twins, first, i);
        twins.next[i] = -1;
        if (twins.leader[i] == i) continue;
        int32_t last = twins.leader[i];
        while (twins.next[last] >= 0)
            last = twins.next[last];
        twins.next[last] = i;
    }
    *out = twins;
    return WEFT_OK;
}

int32_t weft_twins_launch(const struct weft_problem *problem, const struct weft_twins *twins,
                          int32_t item, int32_t leader_launch)
{
    const int32_t leader = twins->leader[item];
    const struct weft_item *at = &problem->items[item].item;
    const int32_t use = at->last + 1;
    if (leader == item) return leader_launch;
    if (leader_launch == problem->items[leader].item.last + 1) return use;
    const int32_t slot = same_slot(problem, twins, leader_launch, problem->slots[use].micro);
    return slot < at->first || slot > use ? use : slot;
}
