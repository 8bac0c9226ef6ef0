/* SPDX-License-Identifier: Apache-2.0 */
/* DeAR cuts a gradient's AllReduce in two. Its ReduceScatter runs in backward. After a barrier, its
 * AllGather runs one group of layers ahead in the next forward. Here it gathers the updated
 * parameters, which are as many bytes. */
#include "scheduler/planners/planners.h"

/* Groups of neighbouring units: the group of each unit, and the slot that enters each group. */
struct groups {
    struct weft_draft *draft;
    int32_t *of, *entered;
    int32_t n;
};

/* Forms groups in forward order. A group ends before the unit with which it would reach
 * `most_bytes`. */
static void group_gathers(struct groups *groups, int64_t most_bytes)
{
    struct weft_draft *draft = groups->draft;
    int64_t held = 0;
    for (int32_t i = 0; i < draft->n_gathers; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->gathers[i]);
        int64_t bytes = item->n_blocks * item->block_bytes;
        if (item->gather > 0) continue;
        if (groups->n == 0 || (held > 0 && held + bytes >= most_bytes)) {
            groups->entered[groups->n++] = item->last + 1;
            held = 0;
        }
        held += bytes;
        groups->of[item->decision] = groups->n - 1;
    }
}

static void launch_gathers(struct groups *groups)
{
    struct weft_draft *draft = groups->draft;
    for (int32_t i = 0; i < draft->n_gathers; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->gathers[i]);
        int32_t own = groups->of[item->decision];
        /* The first group is gathered at once: slot 0 is clamped to the slot after the update. */
        weft_draft_gather_all(draft, draft->gathers[i], own > 0 ? groups->entered[own - 1] : 0);
    }
}

/* Reduces a group's gradients together, when the last of them is ready. */
static void launch_reductions(struct groups *groups)
{
    struct weft_draft *draft = groups->draft;
    for (int32_t i = 0; i < draft->n_reductions; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->reductions[i]);
        int32_t launch = item->first;
        for (int32_t j = 0; j < draft->n_reductions; j++) {
            const struct weft_item *other = weft_draft_item(draft, draft->reductions[j]);
            if (groups->of[other->decision] == groups->of[item->decision] &&
                other->first > launch &&
                draft->micro[other->first - 1] == draft->micro[item->first - 1])
                launch = other->first;
        }
        weft_draft_reduce_all(draft, draft->reductions[i], launch, WEFT_DRAFT_NOT_WAITED_FOR);
    }
}

enum weft_status weft_rule_dear(struct weft_draft *draft, const int64_t *values,
                                struct weft_error *err)
{
    const size_t n_units = (size_t)draft->problem->n_decisions;
    struct groups groups = {.draft = draft};
    for (int32_t u = 0; u < draft->problem->n_decisions; u++)
        WEFT_TRY(weft_draft_choose_resident(draft, u, err));
    groups.of = weft_pool_array(&draft->pool, n_units, sizeof *groups.of);
    groups.entered = weft_pool_array(&draft->pool, n_units, sizeof *groups.entered);
    if (!groups.of || !groups.entered) return weft_fail_memory(err, "groups");
    weft_draft_take(draft);
    group_gathers(&groups, values[0]);
    launch_gathers(&groups);
    launch_reductions(&groups);
    return WEFT_OK;
}
