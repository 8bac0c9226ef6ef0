/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/early.h"

#include <stdlib.h>

#include "problem/target.h"

static bool begins_forward(const struct weft_problem *problem, int32_t s)
{
    const struct weft_slot *slot = &problem->slots[s];
    return slot->kind == WEFT_SLOT_FILL ||
           (slot->kind == WEFT_SLOT_FORWARD && slot->index == 0 && slot->micro > 0);
}

void weft_event_slots_find(const struct weft_problem *problem,
                           int (*find)(const void *context, int32_t slot), const void *context,
                           struct weft_event_slots *out)
{
    int64_t passed = 0; /* the slot whose copy-out or start the stream of gathers has passed */
    int64_t copied = 0; /* of the last copy-out of a forward */
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const enum weft_slot_kind kind = problem->slots[s].kind;
        const int events = find(context, s);
        if (begins_forward(problem, s)) passed = copied = s;
        if (kind == WEFT_SLOT_BACKWARD && copied > passed) passed = copied;
        out->own[s] = passed;
        if (kind == WEFT_SLOT_FORWARD && (events & WEFT_EVENT_COPIES) != 0) {
            if (copied > passed) passed = copied;
            copied = s;
        }
        if (kind == WEFT_SLOT_BACKWARD && (events & WEFT_EVENT_COPIES) != 0) passed = s;
        out->list[s] = passed;
        if ((events & WEFT_EVENT_SYNCS) != 0) passed = s + 1;
    }
}

bool weft_problem_is_early(const struct weft_problem *problem)
{
    return weft_problem_target(problem)->runs_ahead;
}

/* The events that every plan has. */
static int find_certain(const void *context, int32_t slot)
{
    const int *certain = context;
    return certain[slot];
}

static void mark_certain(const struct weft_problem *problem, int *certain)
{
    for (int32_t s = 0; s < problem->n_slots; s++)
        certain[s] = problem->slots[s].syncs && problem->slots[s].kind == WEFT_SLOT_FORWARD
                         ? WEFT_EVENT_SYNCS
                         : 0;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        const uint64_t all = weft_decision_all(&problem->decisions[item->decision]);
        if (item->acquires && (item->strategies & all) == all)
            certain[item->last + 1] |= WEFT_EVENT_COPIES;
    }
}

/* The first event that a gather may begin at: that of its own launch, or of the first hook that may
 * launch it for later. */
static int64_t first_event(const struct weft_problem *problem, const struct weft_event_slots *slots,
                           const bool *hooks, const struct weft_item *item)
{
    const int64_t own = slots->own[item->last + 1];
    if (weft_problem_must_block(problem, item)) return own;
    int32_t hook = item->first;
    while (hook <= item->last && !hooks[hook])
        hook++;
    return hook <= item->last && slots->list[hook] < own ? slots->list[hook] : own;
}

/* Sets an item's window to all that events allow it. */
static void free_item(const struct weft_problem *problem, const struct weft_event_slots *slots,
                      const bool *hooks, struct weft_item *item)
{
    if (!item->acquires) {
        if (weft_problem_n_moving(problem) < 2 || item->first == 0) return;
        item->first--;
        item->stair_bytes = 0;
        return;
    }
    item->stair_bytes = 0;
    const int64_t event = first_event(problem, slots, hooks, item);
    item->first = event < item->last ? (int32_t)event : item->last;
}

static enum weft_status free_items(const struct weft_problem *problem, struct weft_problem *to,
                                   struct weft_error *err)
{
    const size_t n_slots = (size_t)problem->n_slots, n_items = (size_t)problem->n_items;
    to->items = weft_pool_array(&to->pool, n_items, sizeof *to->items);
    int *certain = calloc(n_slots, sizeof *certain);
    int64_t *all = calloc(2 * n_slots, sizeof *all);
    bool *hooks = calloc(n_slots, sizeof *hooks);
    const bool made = to->items && certain && all && hooks;
    if (made) {
        struct weft_event_slots slots = {all, all + n_slots};
        weft_problem_hooks(problem, hooks);
        mark_certain(problem, certain);
        weft_event_slots_find(problem, find_certain, certain, &slots);
        for (size_t i = 0; i < n_items; i++) {
            to->items[i] = problem->items[i];
            free_item(problem, &slots, hooks, &to->items[i].item);
        }
    }
    free(hooks);
    free(certain);
    free(all);
    return made ? WEFT_OK : weft_fail_memory(err, "a problem's early form");
}

/* Fails if two lanes gather: the slot in which one of them waits could free the other one. */
static enum weft_status check_lanes(const struct weft_problem *problem, struct weft_error *err)
{
    int32_t lane = -1;
    for (int32_t i = 0; i < problem->n_items; i++) {
        if (!problem->items[i].item.acquires) continue;
        if (lane < 0) lane = problem->items[i].lane;
        if (problem->items[i].lane != lane)
            return weft_fail(err, WEFT_E_DATA,
                             "items[%d]: gathers of a host that runs ahead must be on one lane",
                             (int)i);
    }
    return WEFT_OK;
}

enum weft_status weft_problem_early(const struct weft_problem *problem, struct weft_problem **out,
                                    struct weft_error *err)
{
    WEFT_TRY(check_lanes(problem, err));
    struct weft_problem *to = calloc(1, sizeof *to);
    if (to == NULL) return weft_fail_memory(err, "a problem's early form");
    *to = *problem;
    to->pool = (struct weft_pool){0};
    to->target = WEFT_FOR_WEFT;
    enum weft_status status = free_items(problem, to, err);
    if (status == WEFT_OK) status = weft_problem_check(to, "the problem's early form", err);
    if (status != WEFT_OK) {
        weft_problem_destroy(to);
        return status;
    }
    *out = to;
    return WEFT_OK;
}
