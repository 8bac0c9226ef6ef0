/* PyTorch's DistributedDataParallel: nothing sharded, gradients in buckets in backward order, an
 * AllReduce when a bucket is full. */
#include "scheduler/planners/bucket.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_ddp(const struct weft_problem *problem, int64_t limit_bytes,
                                  const struct weft_schedule_options *options,
                                  struct weft_candidate *out, struct weft_outcome *outcome,
                                  struct weft_error *err)
{
    static const enum weft_policy policies[] = {WEFT_POLICY_DP, WEFT_POLICY_COUNT};
    struct weft_bucket_rule rule = {.size = weft_draft_values(options, weft_bucket_settings)[0]};
    struct weft_draft draft;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "ddp", problem, out, err));
    WEFT_TRY_GOTO(done, weft_draft_choose_all(&draft, policies, err));
    weft_draft_take(&draft);
    weft_bucket_reduce(&draft, &rule);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, limit_bytes, err));
done:
    weft_draft_finish(&draft);
    return status;
}
