/* FairScale's FullyShardedDataParallel: every unit is gathered on demand, before each of its uses;
 * ReduceScatters go through buckets. The root unit stays gathered. */
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/bucket.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_fairscale(const struct weft_problem *problem, int64_t limit_bytes,
                                        const struct weft_schedule_options *options,
                                        struct weft_candidate *out, struct weft_outcome *outcome,
                                        struct weft_error *err)
{
    struct weft_bucket_rule rule = {.size = weft_draft_values(options, weft_bucket_settings)[0],
                                    .before_overflow = true};
    struct weft_draft draft;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "fairscale", problem, out, err));
    WEFT_TRY_GOTO(done, weft_ahead_choose(&draft, err));
    weft_draft_take(&draft);
    weft_ahead_gather(&draft, 0);
    weft_bucket_reduce(&draft, &rule);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, limit_bytes, err));
done:
    weft_draft_finish(&draft);
    return status;
}
