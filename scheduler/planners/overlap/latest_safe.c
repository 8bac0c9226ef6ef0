/* SPDX-License-Identifier: Apache-2.0 */
/* MagiCompiler's reorder pass over ZeRO 3. It goes over the gathers of a forward or backward from
 * the last to the first, and over compute from its end to its begin. Each gather is launched in the
 * latest slot from which compute hides it. Compute that hides one gather hides no other, and no
 * memory is counted. */
#include "scheduler/planners/planners.h"

const struct weft_setting weft_latest_safe_settings[] = {
    {"published", {100}},
    {"150%", {150}},
    {NULL, {0}},
};

/* The source adds this to the time that must be hidden. */
static const double SLACK_NS = 5000;

/* Compute that must run from the launch of a gather to its use; `percent` of its time alone, which
 * compute next to it makes longer. */
static double hiding_ns(const struct weft_draft *draft, int32_t gather, int64_t percent)
{
    const struct weft_problem_item *it = &draft->problem->items[gather];
    const double alone_ns = (double)it->item.n_blocks * (double)it->block_ns;
    return alone_ns * (double)percent / 100 + SLACK_NS;
}

/* Fills launch [n_gathers]. */
static void find_launches(const struct weft_draft *draft, int64_t percent, int32_t *launch)
{
    int32_t unclaimed = draft->problem->n_slots; /* compute from this slot on hides later gathers */
    for (int32_t i = draft->n_gathers - 1; i >= 0; i--) {
        const struct weft_item *item = weft_draft_item(draft, draft->gathers[i]);
        const int32_t use = item->last + 1, begin = weft_draft_begin(draft, use);
        const int32_t earliest = item->first > begin ? item->first : begin;
        double missing_ns = hiding_ns(draft, draft->gathers[i], percent);
        int32_t slot = use < unclaimed ? use : unclaimed;
        while (slot > earliest && missing_ns > 0)
            missing_ns -=
                (double)weft_problem_slot_ns(draft->problem, draft->out->strategies, --slot);
        unclaimed = launch[i] = slot > earliest ? slot : earliest;
    }
}

/* Gathers of one slot keep the order of their uses. */
enum weft_status weft_rule_latest_safe(struct weft_draft *draft, const int64_t *values,
                                       struct weft_error *err)
{
    int32_t *launch;
    WEFT_TRY(weft_draft_choose_all(draft, weft_draft_sharded, err));
    weft_draft_take(draft);
    launch = weft_pool_array(&draft->pool, (size_t)draft->n_gathers + 1, sizeof *launch);
    if (launch == NULL) return weft_fail_memory(err, "a rule's draft");
    find_launches(draft, values[0], launch);
    for (int32_t i = 0; i < draft->n_gathers; i++)
        weft_draft_gather_all(draft, draft->gathers[i], launch[i]);
    weft_draft_reduce_at_once(draft);
    return WEFT_OK;
}
