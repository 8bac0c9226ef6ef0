/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/plain.h"

#include "scheduler/planners/ahead.h"
#include "scheduler/planners/bucket.h"
#include "scheduler/planners/locations.h"

const struct weft_setting weft_fsdp2_settings[] = {
    {"1", {1, 0}}, {"2", {2, 0}}, {"3", {3, 0}}, {"kept", {1, 1}}, {NULL, {0}},
};

static enum weft_status choose_plainly(const struct weft_plain_rule *rule, struct weft_draft *draft,
                                       const int64_t *values, struct weft_error *err)
{
    static const enum weft_policy dp[] = {WEFT_POLICY_DP, WEFT_POLICY_COUNT};
    static const enum weft_policy sdp[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    if (rule->choice == WEFT_PLAIN_AS_SET && values[1]) return weft_ahead_keep(draft, err);
    if (rule->choice >= WEFT_PLAIN_ROOT) return weft_ahead_choose(draft, err);
    if (rule->choice != WEFT_PLAIN_RESIDENT)
        return weft_draft_choose_all(draft, rule->choice == WEFT_PLAIN_DP ? dp : sdp, err);
    for (int32_t u = 0; u < draft->problem->n_decisions; u++)
        WEFT_TRY(weft_draft_choose_resident(draft, u, err));
    return WEFT_OK;
}

static void reduce_plainly(const struct weft_plain_rule *rule, struct weft_draft *draft,
                           const int64_t *values)
{
    if (rule->reducing == WEFT_PLAIN_AT_ONCE) {
        weft_draft_reduce_at_once(draft);
    } else if (rule->reducing == WEFT_PLAIN_ONE_AT_A_TIME) {
        weft_ahead_reduce(draft);
    } else {
        const bool before_overflow = rule->reducing == WEFT_PLAIN_BEFORE_OVERFLOW;
        weft_bucket_reduce(draft, &(struct weft_bucket_rule){.size = values[0],
                                                             .before_overflow = before_overflow});
    }
}

enum weft_status weft_plain_draft(const struct weft_plain_rule *rule, struct weft_draft *draft,
                                  const int64_t *values, struct weft_error *err)
{
    WEFT_TRY(choose_plainly(rule, draft, values, err));
    if (rule->streams_from_host) WEFT_TRY(weft_locations_move_all(draft, WEFT_LOCATION_HOST, err));
    if (rule->updated_on_host) WEFT_TRY(weft_locations_update_all(draft, err));
    weft_draft_take(draft);
    if (rule->gathering == WEFT_PLAIN_AFTER_UPDATES)
        weft_draft_gather_after_updates(draft, UINT32_MAX);
    if (rule->gathering == WEFT_PLAIN_ON_DEMAND) weft_ahead_gather(draft, 0);
    if (rule->gathering == WEFT_PLAIN_AHEAD) weft_ahead_gather(draft, (int32_t)values[0]);
    reduce_plainly(rule, draft, values);
    if (rule->streams_from_host) weft_locations_stream(draft);
    if (rule->updated_on_host) weft_locations_update(draft);
    return WEFT_OK;
}
