/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/events.h"

#include "problem/early.h"

static int find_events(const void *context, int32_t slot)
{
    const int64_t *events = context;
    return (int)events[slot];
}

/* Marks the slots that the host waits for: layers that recompute run their forward in backward. */
static void mark_syncs(const struct weft_plan *plan, int64_t *events)
{
    const struct weft_problem *problem = plan->problem;
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const struct weft_slot *slot = &problem->slots[s];
        const int32_t d = problem->slot_decisions[s];
        const bool again = slot->kind == WEFT_SLOT_BACKWARD && d >= 0 &&
                           weft_plan_chosen(plan, d)->recompute != WEFT_RECOMPUTE_NONE;
        const bool syncs = slot->kind == WEFT_SLOT_BACKWARD ? again && slot->syncs : slot->syncs;
        events[s] = syncs ? WEFT_EVENT_SYNCS : 0;
    }
}

void weft_events_find(const struct weft_plan *plan, int64_t *scratch, int64_t *begins)
{
    const struct weft_problem *problem = plan->problem;
    const size_t n_slots = (size_t)problem->n_slots;
    struct weft_event_slots slots = {scratch, scratch + n_slots};
    /* The list's place of a slot has its events until they are read. */
    mark_syncs(plan, slots.list);
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        if (problem->items[at->item].item.acquires) slots.list[at->deadline] |= WEFT_EVENT_COPIES;
    }
    weft_event_slots_find(problem, find_events, slots.list, &slots);
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        begins[i] = at->launch;
        if (!problem->items[at->item].item.acquires) continue;
        begins[i] = weft_placement_blocks(at) ? slots.own[at->launch] : slots.list[at->launch];
    }
}
