/* SPDX-License-Identifier: Apache-2.0 */
/* DeepSpeed's ZeRO 3. Entering a layer gathers its missing parameters and waits for them. Then it
 * prefetches the next parameters, by elements. Parameters used again soon are kept, and small units
 * stay whole. */
#include "scheduler/planners/deepspeed.h"

#include <stdlib.h>

#include "scheduler/planners/bucket.h"
#include "scheduler/planners/locations.h"
#include "scheduler/planners/planners.h"

const struct weft_setting weft_deepspeed_settings[] = {
    {"published", {50000000, 1000000000, 1000000000}},
    {"no-reuse", {50000000, 1000000000, 0}},
    {"prefetch-5e8", {500000000, 1000000000, 1000000000}},
    {"prefetch-5e8-no-reuse", {500000000, 1000000000, 0}},
    {"prefetch-1e7-no-reuse", {10000000, 1000000000, 0}},
    {NULL, {0}},
};

/* A slot that enters a layer with the unit. */
struct weft_deepspeed_use {
    int32_t slot, unit;
};

static int64_t elements_of(const struct weft_deepspeed *run, int32_t unit)
{
    return run->draft->problem->decisions[unit].elements;
}

static int compare_uses(const void *a, const void *b)
{
    const struct weft_deepspeed_use *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Lists each use once: by the gathers of fsdp, or of sdp for a unit without these. */
static void list_uses(struct weft_deepspeed *run)
{
    const struct weft_problem *problem = run->draft->problem;
    for (int pass = 0; pass < 2; pass++) {
        int32_t n = run->n_uses;
        for (int32_t i = 0; i < problem->n_items; i++) {
            const struct weft_item *item = &problem->items[i].item;
            enum weft_policy policy = pass == 0 ? WEFT_POLICY_FSDP : WEFT_POLICY_SDP;
            uint64_t of = weft_decision_policies(&problem->decisions[item->decision], 1u << policy);
            bool counts =
                item->acquires && weft_item_is_collective(item) && (item->strategies & of) != 0;
            for (int32_t k = 0; counts && pass == 1 && k < n; k++)
                counts = run->uses[k].unit != item->decision;
            if (counts)
                run->uses[run->n_uses++] =
                    (struct weft_deepspeed_use){item->last + 1, item->decision};
        }
    }
    qsort(run->uses, (size_t)run->n_uses, sizeof *run->uses, compare_uses);
}

/* True if the next use in the micro-step is near after each use. Near means that uses of fewer
 * elements than the distance of reuse lie between. */
static bool is_kept(const struct weft_deepspeed *run, int32_t unit)
{
    int64_t between = -1; /* none yet */
    int32_t micro = 0;
    for (int32_t i = 0; i < run->n_uses; i++) {
        const struct weft_deepspeed_use *use = &run->uses[i];
        if (use->unit != unit) {
            if (between >= 0) between += elements_of(run, use->unit);
            continue;
        }
        bool again = between >= 0 && run->draft->micro[use->slot] == micro;
        if (again && between >= run->values[2]) return false;
        between = 0;
        micro = run->draft->micro[use->slot];
    }
    return true;
}

static enum weft_status choose_policies(struct weft_deepspeed *run, struct weft_error *err)
{
    static const enum weft_policy kept[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    for (int32_t u = 0; u < run->draft->problem->n_decisions; u++) {
        if (elements_of(run, u) < WEFT_DEEPSPEED_PERSISTENT) {
            WEFT_TRY(weft_draft_choose_resident(run->draft, u, err));
        } else {
            WEFT_TRY(
                weft_draft_choose(run->draft, u, is_kept(run, u) ? kept : weft_draft_sharded, err));
        }
    }
    return WEFT_OK;
}

/* Gathered elements that slot `slot` or a later one still reads. */
static int64_t live_elements(const struct weft_deepspeed *run, int32_t slot)
{
    int64_t live = 0;
    for (int32_t i = 0; i < run->draft->n_gathers; i++) {
        int32_t index = run->draft->gathers[i];
        const struct weft_item *item = weft_draft_item(run->draft, index);
        if (weft_draft_release(run->draft, item) < slot) continue;
        live += (item->n_blocks - run->left[i]) * weft_draft_block_elements(run->draft, index);
    }
    return live;
}

/* Prefetches blocks in order of use until the prefetch is full. Skips gathers of units that are
 * still in use. */
static void prefetch_blocks(struct weft_deepspeed *run, int32_t slot)
{
    int64_t room = run->values[1] - live_elements(run, slot);
    if (room > run->values[0]) room = run->values[0];
    for (int32_t i = 0; i < run->draft->n_gathers; i++) {
        int32_t index = run->draft->gathers[i];
        const struct weft_item *item = weft_draft_item(run->draft, index);
        if (item->last + 1 <= slot || item->first > slot) continue;
        if (run->draft->micro[item->last + 1] != run->draft->micro[slot]) continue;
        for (; run->left[i] > 0 && room > 0; run->left[i]--) {
            weft_draft_gather(run->draft, index, slot, 1);
            room -= weft_draft_block_elements(run->draft, index);
        }
    }
}

static void walk_uses(struct weft_deepspeed *run)
{
    struct weft_draft *draft = run->draft;
    for (int32_t i = 0; i < draft->n_gathers; i++) {
        const struct weft_item *item = weft_draft_item(draft, draft->gathers[i]);
        bool small = weft_draft_policy(draft, item->decision) == WEFT_POLICY_ZERO1;
        run->left[i] = small ? 0 : item->n_blocks - (draft->gathers[i] == run->ahead);
    }
    for (int32_t k = 0; k < draft->n_uses; k++) {
        int32_t slot = draft->uses[k];
        for (int32_t i = 0; i < draft->n_gathers; i++) {
            const struct weft_item *item = weft_draft_item(draft, draft->gathers[i]);
            if (item->last + 1 != slot || run->left[i] == 0) continue;
            weft_draft_gather(draft, draft->gathers[i], slot, run->left[i]);
            run->left[i] = 0;
        }
        prefetch_blocks(run, slot);
    }
}

enum weft_status weft_deepspeed_choose(struct weft_draft *draft, const int64_t *values,
                                       struct weft_deepspeed *out, struct weft_error *err)
{
    const size_t n_items = (size_t)draft->problem->n_items;
    *out = (struct weft_deepspeed){.draft = draft, .values = values, .ahead = -1};
    out->uses = weft_pool_array(&draft->pool, n_items, sizeof *out->uses);
    out->left = weft_pool_array(&draft->pool, n_items, sizeof *out->left);
    if (!out->uses || !out->left) return weft_fail_memory(err, "uses");
    list_uses(out);
    return choose_policies(out, err);
}

static void launch_ahead(const struct weft_deepspeed *run)
{
    const struct weft_problem *problem = run->draft->problem;
    int32_t fill = 0;
    while (problem->slots[fill].kind != WEFT_SLOT_FILL)
        fill++;
    weft_draft_gather(run->draft, run->ahead, fill, 1);
}

void weft_deepspeed_place(struct weft_deepspeed *deepspeed)
{
    static const struct weft_bucket_rule bucket = {
        .size = WEFT_DEEPSPEED_BUCKET, .in_elements = true, .before_overflow = true};
    weft_draft_take(deepspeed->draft);
    if (deepspeed->ahead >= 0) launch_ahead(deepspeed);
    weft_draft_gather_after_updates(deepspeed->draft, 1u << WEFT_POLICY_ZERO1);
    walk_uses(deepspeed);
    weft_bucket_reduce(deepspeed->draft, &bucket);
}

/* Applies the rule with all state in that tier. */
static enum weft_status draft_deepspeed(struct weft_draft *draft, const int64_t *values,
                                        enum weft_location location, struct weft_error *err)
{
    struct weft_deepspeed run;
    WEFT_TRY(weft_deepspeed_choose(draft, values, &run, err));
    if (location != WEFT_LOCATION_DEVICE) WEFT_TRY(weft_locations_move_all(draft, location, err));
    weft_deepspeed_place(&run);
    if (location != WEFT_LOCATION_DEVICE) weft_locations_stream(draft);
    return WEFT_OK;
}

enum weft_status weft_rule_deepspeed(struct weft_draft *draft, const int64_t *values,
                                     struct weft_error *err)
{
    return draft_deepspeed(draft, values, WEFT_LOCATION_DEVICE, err);
}

/* Updates come after backward. During a unit's update the next one's state is read, and the last
 * one's is written. */
enum weft_status weft_rule_zero_infinity(struct weft_draft *draft, const int64_t *values,
                                         struct weft_error *err)
{
    return draft_deepspeed(draft, values, WEFT_LOCATION_DISK, err);
}
