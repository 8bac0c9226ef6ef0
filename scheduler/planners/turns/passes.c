/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/turns/passes.h"

static bool has_layer(const struct weft_draft *draft, int32_t slot)
{
    const enum weft_slot_kind kind = draft->problem->slots[slot].kind;
    return kind == WEFT_SLOT_FORWARD || kind == WEFT_SLOT_BACKWARD;
}

static int32_t group_of(const struct weft_draft *draft, int32_t slot)
{
    return draft->problem->slots[slot].index / draft->problem->period.layers;
}

static bool in_one_pass(const struct weft_draft *draft, const struct weft_passes *passes,
                        int32_t slot, int32_t other)
{
    const struct weft_slot *slots = draft->problem->slots;
    const int32_t group = group_of(draft, slot);
    return group == group_of(draft, other) &&
           (slots[slot].kind == slots[other].kind || group == passes->n_groups - 1);
}

enum weft_status weft_passes_list(struct weft_draft *draft, struct weft_passes *out,
                                  struct weft_error *err)
{
    const int32_t n_slots = draft->problem->n_slots;
    *out = (struct weft_passes){0};
    out->of = weft_pool_array(&draft->pool, (size_t)n_slots, sizeof *out->of);
    out->first = weft_pool_array(&draft->pool, (size_t)n_slots, sizeof *out->first);
    out->last = weft_pool_array(&draft->pool, (size_t)n_slots, sizeof *out->last);
    if (!out->of || !out->first || !out->last) return weft_fail_memory(err, "passes");
    for (int32_t s = 0; s < n_slots; s++)
        if (has_layer(draft, s) && group_of(draft, s) >= out->n_groups)
            out->n_groups = group_of(draft, s) + 1;
    for (int32_t s = 0; s < n_slots; s++) {
        if (has_layer(draft, s)) {
            if (out->n == 0 || !in_one_pass(draft, out, out->last[out->n - 1], s))
                out->first[out->n++] = s;
            out->last[out->n - 1] = s;
        }
        out->of[s] = out->n > 0 ? out->n - 1 : 0;
    }
    return WEFT_OK;
}

enum weft_status weft_passes_choose(struct weft_draft *draft, const struct weft_passes *passes,
                                    struct weft_error *err)
{
    static const enum weft_policy kept[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    const struct weft_problem *problem = draft->problem;
    int32_t *first = weft_pool_array(&draft->pool, (size_t)problem->n_decisions, sizeof *first);
    if (first == NULL) return weft_fail_memory(err, "groups of units");
    for (int32_t u = 0; u < problem->n_decisions; u++)
        first[u] = passes->n_groups;
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = weft_draft_item(draft, i);
        if (!item->acquires || !weft_item_is_collective(item)) continue;
        const int32_t group = group_of(draft, item->last + 1);
        if (group < first[item->decision]) first[item->decision] = group;
    }
    for (int32_t u = 0; u < problem->n_decisions; u++)
        WEFT_TRY(weft_draft_choose(
            draft, u, first[u] >= passes->n_groups - 2 ? kept : weft_draft_sharded, err));
    return WEFT_OK;
}

/* The launch slot of a gather. */
static int32_t launch_of(const struct weft_draft *draft, const struct weft_passes *passes,
                         int32_t gather)
{
    const struct weft_slot *slots = draft->problem->slots;
    const int32_t use = weft_draft_item(draft, gather)->last + 1, pass = passes->of[use];
    if (pass == 0) return passes->first[0];
    const int32_t before = passes->first[pass - 1];
    const bool begins = slots[use].kind == WEFT_SLOT_FORWARD &&
                        slots[passes->last[pass - 1]].kind == WEFT_SLOT_BACKWARD;
    return begins ? passes->first[pass] : before;
}

void weft_passes_gather(struct weft_draft *draft, const struct weft_passes *passes)
{
    for (int32_t i = 0; i < draft->n_gathers; i++) {
        const int32_t gather = draft->gathers[i];
        const int32_t slot = launch_of(draft, passes, gather);
        const int32_t fetch = draft->problem->items[gather].after;
        weft_draft_gather_all(draft, gather, slot);
        if (fetch < 0 || weft_draft_item(draft, fetch)->kind != WEFT_PARAMETERS_FETCH) continue;
        const int32_t last = weft_draft_item(draft, fetch)->last;
        weft_draft_gather_all(draft, fetch, slot < last ? slot : last);
    }
    draft->fetches = true;
}

void weft_passes_reduce(struct weft_draft *draft, const struct weft_passes *passes)
{
    for (int32_t i = 0; i < draft->n_reductions; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->reductions[i]);
        const int32_t pass = passes->of[item->first > 0 ? item->first - 1 : 0], next = pass + 1;
        const bool follows = next < passes->n &&
                             draft->problem->slots[passes->first[next]].kind == WEFT_SLOT_BACKWARD;
        weft_draft_reduce_all(draft, draft->reductions[i], passes->last[pass] + 1,
                              follows ? passes->last[next] : WEFT_DRAFT_NOT_WAITED_FOR);
    }
}
