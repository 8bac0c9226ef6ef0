#include "plan/events.h"

#include "problem/early.h"

/* Whether a gather of the plan is for the slot. */
static bool plan_copies(const void *context, int32_t slot)
{
    const int64_t *copies = context;
    return copies[slot] != 0;
}

void weft_events_find(const struct weft_plan *plan, int64_t *scratch, int64_t *begins)
{
    const struct weft_problem *problem = plan->problem;
    const size_t n_slots = (size_t)problem->n_slots;
    struct weft_event_slots slots = {scratch, scratch + n_slots};
    /* The list's slot of a copy-out is written after the copy-out is read. */
    for (size_t s = 0; s < n_slots; s++)
        slots.list[s] = 0;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        if (problem->items[at->item].item.acquires) slots.list[at->deadline] = 1;
    }
    weft_event_slots_find(problem, plan_copies, slots.list, &slots);
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        begins[i] = at->launch;
        if (!problem->items[at->item].item.acquires) continue;
        begins[i] = weft_placement_blocks(at) ? slots.own[at->launch] : slots.list[at->launch];
    }
}
