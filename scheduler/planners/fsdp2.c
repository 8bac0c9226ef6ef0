/* PyTorch's FSDP2: one unit gathered ahead, one reduction at a time, the root stays gathered. */
#include "scheduler/planners/fsdp2.h"

#include "scheduler/planners/ahead.h"
#include "scheduler/planners/planners.h"

const struct weft_setting weft_fsdp2_settings[] = {
    {"1", {1, 0}}, {"2", {2, 0}}, {"3", {3, 0}}, {"kept", {1, 1}}, {NULL, {0}},
};

enum weft_status weft_planner_fsdp2(const struct weft_problem *problem, int64_t limit_bytes,
                                    const struct weft_schedule_options *options,
                                    struct weft_candidate *out, struct weft_outcome *outcome,
                                    struct weft_error *err)
{
    const int64_t *values = weft_draft_values(options, weft_fsdp2_settings);
    struct weft_draft draft;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "fsdp2", problem, out, err));
    WEFT_TRY_GOTO(done, (values[1] ? weft_ahead_keep : weft_ahead_choose)(&draft, err));
    weft_ahead_place(&draft, (int32_t)values[0]);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, limit_bytes, err));
done:
    weft_draft_finish(&draft);
    return status;
}
