/* ZeRO-Infinity: DeepSpeed's ZeRO 3 with all state on a disk. Updates stand behind backward, and
 * while one unit is updated, the next one's state is read and the last one's written. */
#include "scheduler/planners/deepspeed.h"
#include "scheduler/planners/offload/homes.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_zero_infinity(const struct weft_problem *problem,
                                            const struct weft_schedule_options *options,
                                            struct weft_candidate *out,
                                            struct weft_outcome *outcome, struct weft_error *err)
{
    struct weft_draft draft;
    struct weft_deepspeed deepspeed;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "zero-infinity", problem, out, err));
    WEFT_TRY_GOTO(done,
                  weft_deepspeed_choose(&draft, weft_draft_values(options, weft_deepspeed_settings),
                                        &deepspeed, err));
    WEFT_TRY_GOTO(done, weft_homes_move_all(&draft, WEFT_HOME_DISK, err));
    weft_deepspeed_place(&deepspeed);
    weft_homes_stream(&draft);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, err));
done:
    weft_draft_finish(&draft);
    return status;
}
