/* ZeRO stage 1: ddp's buckets as ReduceScatters, every rank updates its slice, then one AllGather
 * of all parameters that nothing overlaps. A frozen unit has no state to shard and stays whole. */
#include "scheduler/planners/bucket.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_zero1(const struct weft_problem *problem, int64_t limit_bytes,
                                    const struct weft_schedule_options *options,
                                    struct weft_candidate *out, struct weft_outcome *outcome,
                                    struct weft_error *err)
{
    struct weft_bucket_rule rule = {.size = weft_draft_values(options, weft_bucket_settings)[0]};
    struct weft_draft draft;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "zero1", problem, out, err));
    for (int32_t u = 0; u < problem->n_units; u++)
        WEFT_TRY_GOTO(done, weft_draft_choose_resident(&draft, u, err));
    weft_draft_take(&draft);
    weft_draft_gather_after_updates(&draft, UINT32_MAX);
    weft_bucket_reduce(&draft, &rule);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, limit_bytes, err));
done:
    weft_draft_finish(&draft);
    return status;
}
