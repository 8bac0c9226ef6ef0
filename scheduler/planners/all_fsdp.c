/* Full sharding of every unit, gathers one use ahead, reductions at once. A unit that fsdp would
 * never release has no fsdp policy; its sdp is the same thing. */
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_all_fsdp(const struct weft_problem *problem, int64_t limit_bytes,
                                       const struct weft_schedule_options *options,
                                       struct weft_candidate *out, struct weft_outcome *outcome,
                                       struct weft_error *err)
{
    (void)options;
    (void)outcome;
    return weft_fixed_decide(&weft_fixed_rules[WEFT_POLICY_FSDP], problem, limit_bytes, out, err);
}
