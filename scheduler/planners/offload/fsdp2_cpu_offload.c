/* FSDP2's CPUOffloadPolicy: fsdp2 with state in the host's memory, updated there by a step of the
 * optimizer that nothing else runs beside. The product has the shards of parameters on the host
 * too, and copies them up before each of their gathers; here shards are always on the device, so a
 * plan holds them there and copies them up once a step, behind their update. */
#include "scheduler/planners/ahead.h"
#include "scheduler/planners/offload/homes.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_fsdp2_cpu_offload(const struct weft_problem *problem,
                                                const struct weft_schedule_options *options,
                                                struct weft_candidate *out,
                                                struct weft_outcome *outcome,
                                                struct weft_error *err)
{
    struct weft_draft draft;
    enum weft_status status;
    (void)outcome;
    WEFT_TRY_GOTO(done, weft_draft_init(&draft, "fsdp2-cpu-offload", problem, out, err));
    WEFT_TRY_GOTO(done, weft_ahead_choose(&draft, err));
    WEFT_TRY_GOTO(done, weft_homes_update_all(&draft, err));
    weft_ahead_place(&draft, (int32_t)weft_draft_values(options, weft_ahead_settings)[0]);
    weft_homes_update(&draft);
    WEFT_TRY_GOTO(done, weft_draft_end(&draft, err));
done:
    weft_draft_finish(&draft);
    return status;
}
