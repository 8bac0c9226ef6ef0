/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/ahead.h"

#include "problem/target.h"
#include "scheduler/planners/planners.h"

const struct weft_setting weft_ahead_settings[] = {
    {"1", {1}},
    {"2", {2}},
    {"3", {3}},
    {NULL, {0}},
};

enum weft_status weft_ahead_choose(struct weft_draft *draft, struct weft_error *err)
{
    static const enum weft_policy kept[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    for (int32_t u = 0; u < draft->problem->n_decisions; u++)
        WEFT_TRY(weft_draft_choose(draft, u, draft->root[u] ? kept : weft_draft_sharded, err));
    return WEFT_OK;
}

enum weft_status weft_ahead_keep(struct weft_draft *draft, struct weft_error *err)
{
    static const enum weft_policy kept[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    return weft_draft_choose_all(draft, kept, err);
}

/* The first forward use in the micro-step of this slot. */
static int32_t first_forward_of(const struct weft_draft *draft, int32_t slot)
{
    for (int32_t i = 0; i < draft->n_uses; i++) {
        int32_t use = draft->uses[i];
        if (draft->micro[use] == draft->micro[slot] &&
            draft->problem->slots[use].kind == WEFT_SLOT_FORWARD)
            return use;
    }
    return slot;
}

/* Whether a gather one unit ahead needs no list: the host runs ahead, and the unit's own gather in
 * forward waits for the same event (plan/events.h). */
static bool is_own(const struct weft_draft *draft, int32_t use, int32_t depth)
{
    return depth == 1 && weft_problem_target(draft->problem)->runs_ahead &&
           draft->problem->slots[use].kind == WEFT_SLOT_FORWARD;
}

void weft_ahead_gather(struct weft_draft *draft, int32_t depth)
{
    /* The first layer's gather comes last, so that it waits for all gathers of the root. */
    for (int32_t i = draft->n_gathers - 1; i >= 0; i--) {
        const struct weft_item *item = weft_draft_item(draft, draft->gathers[i]);
        if (draft->root[item->decision])
            weft_draft_gather_all(draft, draft->gathers[i],
                                  first_forward_of(draft, item->last + 1));
    }
    for (int32_t i = 0; i < draft->n_gathers; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->gathers[i]);
        int32_t use = item->last + 1;
        int32_t ahead =
            depth == 0 || is_own(draft, use, depth) ? -1 : weft_draft_use_before(draft, use, depth);
        if (!draft->root[item->decision])
            weft_draft_gather_all(draft, draft->gathers[i], ahead < 0 ? use : ahead);
    }
}

/* The launch slot of a reduction. All reductions of the root are launched when its last gradient is
 * ready. */
static int32_t launch_of(const struct weft_draft *draft, const struct weft_item *item)
{
    int32_t launch = item->first;
    if (!draft->root[item->decision]) return launch;
    for (int32_t i = 0; i < draft->n_reductions; i++) {
        const struct weft_item *other = weft_draft_item(draft, draft->reductions[i]);
        if (draft->root[other->decision] && other->first > launch &&
            draft->micro[other->first - 1] == draft->micro[item->first - 1])
            launch = other->first;
    }
    return launch;
}

void weft_ahead_reduce(struct weft_draft *draft)
{
    for (int32_t i = 0; i < draft->n_reductions; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->reductions[i]);
        int32_t launch = launch_of(draft, item), next = INT32_MAX;
        for (int32_t j = 0; j < draft->n_reductions; j++) {
            const struct weft_item *other = weft_draft_item(draft, draft->reductions[j]);
            int32_t after = launch_of(draft, other);
            if (after > launch && after < next) next = after;
        }
        weft_draft_reduce_all(draft, draft->reductions[i], launch,
                              next == INT32_MAX ? WEFT_DRAFT_NOT_WAITED_FOR : next - 1);
    }
}

void weft_ahead_place(struct weft_draft *draft, int32_t depth)
{
    weft_draft_take(draft);
    weft_ahead_gather(draft, depth);
    weft_ahead_reduce(draft);
}

/* Places fsdp2 with the last k units of policy fsdp kept gathered after forward. */
static enum weft_status place_kept(struct weft_draft *draft, int32_t k, int32_t depth,
                                   struct weft_error *err)
{
    static const enum weft_policy kept[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    WEFT_TRY(weft_ahead_choose(draft, err));
    for (int32_t u = draft->problem->n_decisions - 1; u >= 0 && k > 0; u--) {
        if (weft_draft_policy(draft, u) != WEFT_POLICY_FSDP) continue;
        WEFT_TRY(weft_draft_choose(draft, u, kept, err));
        k--;
    }
    weft_ahead_place(draft, depth);
    return WEFT_OK;
}

/* Finds the largest k that the limit allows, by bisection: one more unit never holds less in any
 * slot. */
enum weft_status weft_rule_fsdp2_mix(struct weft_draft *draft, const int64_t *values,
                                     struct weft_error *err)
{
    const int32_t depth = (int32_t)values[0];
    int32_t fits = 0, too_many = draft->problem->n_decisions + 1;
    while (too_many - fits > 1) {
        const int32_t k = fits + (too_many - fits) / 2;
        WEFT_TRY(place_kept(draft, k, depth, err));
        if (weft_draft_peak(draft, NULL) <= draft->problem->tiers[0].limit_bytes)
            fits = k;
        else
            too_many = k;
    }
    return place_kept(draft, fits, depth, err);
}
