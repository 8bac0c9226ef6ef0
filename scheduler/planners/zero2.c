/* ZeRO stage 2: a ReduceScatter as soon as a unit's gradient is ready, then one AllGather of all
 * parameters behind the update. */
#include "scheduler/planners/planners.h"
#include "scheduler/planners/rule.h"

enum weft_status weft_planner_zero2(const struct weft_problem *problem, int64_t limit_bytes,
                                    const struct weft_schedule_options *options,
                                    struct weft_candidate *out, struct weft_outcome *outcome,
                                    struct weft_error *err)
{
    static const enum weft_policy policies[] = {WEFT_POLICY_SDP, WEFT_POLICY_COUNT};
    struct weft_draft draft;
    enum weft_status status;
    (void)options;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "zero2", problem, out, err));
    WEFT_TRY_GOTO(done, weft_draft_choose_all(&draft, policies, err));
    weft_draft_take(&draft);
    weft_draft_gather_after_updates(&draft, UINT32_MAX);
    weft_draft_reduce_at_once(&draft);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, limit_bytes, err));
done:
    weft_draft_finish(&draft);
    return status;
}
