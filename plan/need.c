/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/need.h"

#include <stdlib.h>

#include "memory_model/life.h"
#include "plan/placement.h"

static bool is_transient(enum weft_category category)
{
    return category == WEFT_CATEGORY_GATHERED_PARAMETERS ||
           category == WEFT_CATEGORY_FULL_GRADIENTS;
}

/* Adds the bytes of each unit's blocks in the slot. The unit's holds are counted already. */
static void add_blocks(const struct weft_plan *plan, int32_t slot, int64_t *bytes)
{
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        const struct weft_item *item = &plan->problem->items[at->item].item;
        int32_t first = item->acquires ? at->launch : item->first;
        if (weft_placement_blocks(at) || !is_transient(item->stair_category)) continue;
        if (item->stair_tier != 0) continue;
        if (first <= slot && slot < at->deadline) bytes[item->decision] += item->stair_bytes;
    }
}

/* The unit with the most gathered parameters and full gradients in the slot; -1 if none has any.
 * Sets *ok to false, and returns -1, without memory. */
static int32_t largest_unit(const struct weft_plan *plan, int32_t slot, bool *ok)
{
    const struct weft_problem *problem = plan->problem;
    int32_t largest = -1;
    int64_t *bytes = calloc((size_t)problem->n_decisions + 1, sizeof *bytes);
    *ok = bytes != NULL;
    if (!bytes) return -1;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        const struct weft_problem_strategy *of = weft_plan_chosen(plan, u);
        for (int32_t i = 0; i < of->n_holds; i++) {
            const struct weft_hold *hold = &of->holds[i];
            bool held = weft_life_has((struct weft_life){hold->first, hold->last}, slot);
            if (held && hold->tier == 0 && is_transient(hold->category)) bytes[u] += hold->bytes;
        }
    }
    add_blocks(plan, slot, bytes);
    for (int32_t u = 0; u < problem->n_decisions; u++)
        if (bytes[u] > (largest < 0 ? 0 : bytes[largest])) largest = u;
    free(bytes);
    return largest;
}

enum weft_status weft_need_of_plan(const struct weft_plan *plan, struct weft_need *need,
                                   struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    const struct weft_prediction *p = &plan->prediction;
    bool ok;
    int64_t *rows = calloc((size_t)problem->n_slots * WEFT_CATEGORY_COUNT, sizeof *rows);
    if (!rows) return weft_fail_memory(err, "memory rows");
    weft_plan_rows(plan, 0, rows);
    for (int c = 0; c < WEFT_CATEGORY_COUNT; c++)
        need->categories[c] = rows[(size_t)p->peak_slot * WEFT_CATEGORY_COUNT + (size_t)c];
    free(rows);
    need->applies = true;
    need->bytes = p->peak_bytes;
    need->slot = p->peak_slot;
    need->unit = largest_unit(plan, p->peak_slot, &ok);
    if (!ok) return weft_fail_memory(err, "memory rows");
    need->slot_name = problem->slot_names[need->slot];
    need->unit_name = need->unit < 0 ? "" : problem->decisions[need->unit].name;
    need->period = problem->period;
    need->step_ns = p->step_ns;
    need->exposed_ns = p->exposed_ns;
    need->channel_ns = p->channel_ns;
    return WEFT_OK;
}
