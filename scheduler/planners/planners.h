/* The planners' functions, one a file; the table of them is in schedule.c. */
#ifndef WEFT_SCHEDULER_PLANNERS_PLANNERS_H
#define WEFT_SCHEDULER_PLANNERS_PLANNERS_H

#include "scheduler/schedule.h"

#define WEFT_PLANNER_DECLARE(name)                                                                 \
    enum weft_status weft_planner_##name(const struct weft_problem *problem, int64_t limit_bytes,  \
                                         const struct weft_schedule_options *options,              \
                                         struct weft_candidate *out, struct weft_outcome *outcome, \
                                         struct weft_error *err)

WEFT_PLANNER_DECLARE(ilp);
WEFT_PLANNER_DECLARE(greedy);
WEFT_PLANNER_DECLARE(all_fsdp);
WEFT_PLANNER_DECLARE(all_sdp);
WEFT_PLANNER_DECLARE(all_zero1);
WEFT_PLANNER_DECLARE(all_dp);
WEFT_PLANNER_DECLARE(random);

#undef WEFT_PLANNER_DECLARE

#endif
