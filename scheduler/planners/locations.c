/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/locations.h"

static bool choose_location(struct weft_draft *draft, int32_t unit, enum weft_location location,
                            bool on_host)
{
    const struct weft_problem_decision *it = &draft->problem->decisions[unit];
    const enum weft_policy policy = weft_draft_policy(draft, unit);
    for (int32_t k = 0; k < it->n_strategies && !it->is_of_layer; k++) {
        const struct weft_problem_strategy *of = &it->strategies[k];
        if (of->policy != policy || of->location != location || of->updates_on_host != on_host ||
            of->parameters != WEFT_LOCATION_DEVICE)
            continue;
        draft->out->strategies[unit] = k;
        return true;
    }
    return false;
}

bool weft_locations_move(struct weft_draft *draft, int32_t unit, enum weft_location location)
{
    return choose_location(draft, unit, location, false);
}

bool weft_locations_update_one(struct weft_draft *draft, int32_t unit)
{
    return choose_location(draft, unit, WEFT_LOCATION_HOST, true);
}

static enum weft_status choose_location_of_all(struct weft_draft *draft,
                                               enum weft_location location, bool on_host,
                                               struct weft_error *err)
{
    bool moved = false;
    for (int32_t u = 0; u < draft->problem->n_decisions; u++)
        moved |= choose_location(draft, u, location, on_host);
    if (moved) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_INFEASIBLE,
        "planner %s: its rule gives every unit a state in tier %s%s, which it may not have: give "
        "cluster.%s, and allow it in plan.offload, or use another planner",
        draft->planner, weft_location_names[location],
        on_host ? " that is updated on the host" : "", weft_location_names[location]);
}

enum weft_status weft_locations_move_all(struct weft_draft *draft, enum weft_location location,
                                         struct weft_error *err)
{
    return choose_location_of_all(draft, location, false, err);
}

enum weft_status weft_locations_update_all(struct weft_draft *draft, struct weft_error *err)
{
    return choose_location_of_all(draft, WEFT_LOCATION_HOST, true, err);
}

/* The slot of the nearest update before a slot, or after it; -1: none. */
static int32_t nearest_update(const struct weft_problem *problem, int32_t slot, bool before)
{
    int32_t nearest = -1;
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const int32_t at = problem->decisions[d].update_slot;
        if (at < 0 || (before ? at >= slot : at <= slot)) continue;
        if (nearest < 0 || (before ? at > nearest : at < nearest)) nearest = at;
    }
    return nearest;
}

void weft_locations_stream(struct weft_draft *draft)
{
    const struct weft_problem *problem = draft->problem;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (!weft_item_moves_state(item) || !weft_item_active(item, draft->out->strategies))
            continue;
        const int32_t update = problem->decisions[item->decision].update_slot;
        const int32_t nearest = nearest_update(problem, update, item->acquires);
        if (item->acquires)
            weft_draft_gather_all(draft, i, nearest < 0 ? item->last : nearest);
        else
            weft_draft_reduce_all(draft, i, item->first, nearest < 0 ? item->first : nearest);
    }
    draft->streams = true;
}

void weft_locations_update(struct weft_draft *draft)
{
    const struct weft_problem_item *items = draft->problem->items;
    for (int32_t i = draft->n_gathers - 1; i >= 0; i--) {
        const int32_t up = weft_draft_copy_up(draft, draft->gathers[i]);
        if (up < 0) continue;
        const int32_t update = items[up].after;
        weft_draft_gather_all(draft, update, items[update].item.first);
        weft_draft_gather_all(draft, up, items[up].item.first);
    }
    draft->updates_on_host = true;
}
