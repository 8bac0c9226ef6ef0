/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/placed.h"

#include <inttypes.h>
#include <stdio.h>

#include "plan/chain.h"

enum { PLACE_BYTES = 256 };

const struct weft_key_table weft_placement_keys = WEFT_KEY_TABLE(
    "The place of a block.", WEFT_KEY_COUNT(weft_placement, item, "of the problem"),
    WEFT_KEY_COUNT(weft_placement, block, "of the item"),
    WEFT_KEY_COUNT(weft_placement, launch, "slot that launches it at its start"),
    WEFT_KEY_COUNT(weft_placement, deadline,
                   "slot that needs it complete at its start; its launch: it blocks"));

static enum weft_status read_strategies(const struct weft_json_value *root, const char *source,
                                        struct weft_plan *plan, struct weft_error *err)
{
    const struct weft_problem *problem = plan->problem;
    const struct weft_json_value *array;
    WEFT_TRY(weft_json_need(root, source, "strategies", WEFT_JSON_ARRAY, &array, err));
    const size_t n = weft_json_count(array);
    if (n != (size_t)problem->n_decisions)
        return weft_fail(err, WEFT_E_DATA, "%s: %zu strategies for %d decisions", source, n,
                         problem->n_decisions);
    plan->strategies = weft_pool_array(&plan->pool, n, sizeof *plan->strategies);
    if (plan->strategies == NULL) return weft_fail_memory(err, "plan");
    int32_t u = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it), u++) {
        const char *name = "";
        const bool is_text = weft_json_string(it, &name);
        plan->strategies[u] = is_text ? weft_decision_of_name(&problem->decisions[u], name) : -1;
        if (plan->strategies[u] < 0)
            return weft_fail(err, WEFT_E_DATA, "%s: strategies[%d]: \"%.64s\" is no strategy of %s",
                             source, u, name, problem->decisions[u].name);
    }
    return WEFT_OK;
}

static enum weft_status read_placement(const struct weft_json_value *value, const char *source,
                                       int32_t index, struct weft_plan *plan,
                                       struct weft_error *err)
{
    char where[PLACE_BYTES];
    struct weft_placement *at = &plan->placements[index];
    const int32_t n_slots = plan->problem->n_slots;
    snprintf(where, sizeof where, "%s: placements[%d]", source, index);
    at->after = -1;
    WEFT_TRY(weft_keys_read(&weft_placement_keys, value, where, &plan->pool, at, err));
    if (at->item >= plan->problem->n_items)
        return weft_fail(err, WEFT_E_DATA, "%s: there is no item %d", where, at->item);
    if (at->block >= plan->problem->items[at->item].item.n_blocks)
        return weft_fail(err, WEFT_E_DATA, "%s: item %d has no block %d", where, at->item,
                         at->block);
    if (at->launch < n_slots && at->deadline < n_slots) return WEFT_OK;
    return weft_fail(err, WEFT_E_DATA,
                     "%s: launch %d or deadline %d is not in the period of %d slots", where,
                     at->launch, at->deadline, n_slots);
}

static enum weft_status read_placements(const struct weft_json_value *root, const char *source,
                                        struct weft_plan *plan, struct weft_error *err)
{
    const struct weft_json_value *array;
    WEFT_TRY(weft_json_need(root, source, "placements", WEFT_JSON_ARRAY, &array, err));
    const size_t n = weft_json_count(array);
    int64_t needed = 0;
    for (int32_t i = 0; i < plan->problem->n_items; i++)
        if (weft_problem_needs(plan->problem, plan->strategies, i))
            needed += plan->problem->items[i].item.n_blocks;
    if ((int64_t)n != needed)
        return weft_fail(err, WEFT_E_DATA, "%s: %zu placements; the strategies need %" PRId64,
                         source, n, needed);
    plan->placements = weft_pool_array(&plan->pool, n, sizeof *plan->placements);
    if (plan->placements == NULL) return weft_fail_memory(err, "plan");
    plan->n_placements = (int32_t)n;
    int32_t i = 0;
    for (const struct weft_json_value *it = weft_json_first(array); it != NULL;
         it = weft_json_next(it), i++)
        WEFT_TRY(read_placement(it, source, i, plan, err));
    return WEFT_OK;
}

enum weft_status weft_plan_read_placed(const struct weft_json_value *root, const char *source,
                                       struct weft_plan *plan, struct weft_error *err)
{
    WEFT_TRY(read_strategies(root, source, plan, err));
    WEFT_TRY(read_placements(root, source, plan, err));
    return weft_placements_chain(plan->problem, plan->placements, plan->n_placements, source,
                                 WEFT_E_DATA, err);
}
