/* SPDX-License-Identifier: Apache-2.0 */
/* ZeRO-Offload keeps the state of every unit in the host's memory, and the host updates it.
 * Gradients are copied down as they are reduced. When all are there, the host updates unit by unit.
 * Parameters are copied up after their update. Forward begins when all are back. */
#include "scheduler/planners/offload/zero_offload.h"

#include "scheduler/planners/locations.h"
#include "scheduler/planners/planners.h"

const struct weft_setting weft_zero_offload_settings[] = {
    {"stage-2", {2}},
    {"stage-3", {3}},
    {NULL, {0}},
};

enum weft_status weft_zero_offload_choose(struct weft_draft *draft, int64_t stage,
                                          struct weft_zero_offload *out, struct weft_error *err)
{
    static const enum weft_policy kept[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    *out = (struct weft_zero_offload){.draft = draft, .stage = stage};
    if (stage == 2) return weft_draft_choose_all(draft, kept, err);
    return weft_deepspeed_choose(draft, weft_deepspeed_settings->values, &out->deepspeed, err);
}

/* Finds the gather with a block that is launched ahead of all, so that forward waits for the host;
 * -1: none. It is needed if the device updates the unit used first. The gather is of the unit that
 * forward uses first among the ones updated on the host. Its parameters are copied up last. */
static int32_t find_ahead(const struct weft_draft *draft)
{
    for (int32_t i = 0; i < draft->n_gathers && !draft->problem->period.rotated; i++) {
        const int32_t item = draft->gathers[i];
        if (weft_draft_copy_up(draft, item) < 0) continue;
        const int32_t unit = weft_draft_item(draft, item)->decision;
        return i == 0 || weft_draft_policy(draft, unit) == WEFT_POLICY_ZERO1 ? -1 : item;
    }
    return -1;
}

void weft_zero_offload_place(struct weft_zero_offload *run)
{
    struct weft_draft *draft = run->draft;
    if (run->stage == 2) {
        weft_draft_take(draft);
        weft_draft_gather_after_updates(draft, UINT32_MAX);
        weft_draft_reduce_at_once(draft);
    } else {
        weft_draft_take(draft);
        run->deepspeed.ahead = find_ahead(draft);
        weft_deepspeed_place(&run->deepspeed);
    }
    weft_locations_update(draft);
}

enum weft_status weft_rule_zero_offload(struct weft_draft *draft, const int64_t *values,
                                        struct weft_error *err)
{
    struct weft_zero_offload run;
    WEFT_TRY(weft_zero_offload_choose(draft, values[0], &run, err));
    WEFT_TRY(weft_locations_update_all(draft, err));
    weft_zero_offload_place(&run);
    return WEFT_OK;
}
