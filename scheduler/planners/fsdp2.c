/* PyTorch's FSDP2: one unit gathered ahead, one reduction at a time, the root stays gathered. */
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_fsdp2(const struct weft_problem *problem, int64_t limit_bytes,
                                    const struct weft_schedule_options *options,
                                    struct weft_candidate *out, struct weft_outcome *outcome,
                                    struct weft_error *err)
{
    struct weft_draft draft;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "fsdp2", problem, out, err));
    WEFT_TRY_GOTO(done, weft_ahead_choose(&draft, err));
    weft_ahead_place(&draft, (int32_t)weft_draft_values(options, weft_ahead_settings)[0]);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, limit_bytes, err));
done:
    weft_draft_finish(&draft);
    return status;
}
