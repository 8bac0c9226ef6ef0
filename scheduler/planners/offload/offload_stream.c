/* All state in the host's memory, from where it streams through the device's for its update, which
 * is the device's. Policies and the rest are fsdp2's. */
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/offload/homes.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_offload_stream(const struct weft_problem *problem,
                                             const struct weft_schedule_options *options,
                                             struct weft_candidate *out,
                                             struct weft_outcome *outcome, struct weft_error *err)
{
    struct weft_draft draft;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "offload-stream", problem, out, err));
    WEFT_TRY_GOTO(done, weft_ahead_choose(&draft, err));
    WEFT_TRY_GOTO(done, weft_homes_move_all(&draft, WEFT_HOME_HOST, err));
    weft_ahead_place(&draft, (int32_t)weft_draft_values(options, weft_ahead_settings)[0]);
    weft_homes_stream(&draft);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, err));
done:
    weft_draft_finish(&draft);
    return status;
}
