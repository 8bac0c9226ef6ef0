/* Full sharding of every unit, gathers one use ahead, reductions at once. A unit that fsdp would
 * never release has no fsdp policy; its sdp is the same thing. */
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_all_fsdp(const struct weft_problem *problem, int64_t limit_bytes,
                                       const struct weft_schedule_options *options,
                                       struct weft_candidate *out, struct weft_outcome *outcome,
                                       struct weft_error *err)
{
    static const struct weft_fixed_rule rule = {
        .planner = "all-fsdp",
        .policies = {WEFT_POLICY_FSDP, WEFT_POLICY_SDP, WEFT_POLICY_COUNT},
        .gather_early = false,
    };
    (void)options;
    (void)outcome;
    return weft_fixed_decide(&rule, problem, limit_bytes, out, err);
}
