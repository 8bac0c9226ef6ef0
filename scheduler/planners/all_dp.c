/* Plain data parallelism: nothing sharded, an AllReduce a unit as soon as its gradient is whole. */
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_all_dp(const struct weft_problem *problem, int64_t limit_bytes,
                                     const struct weft_schedule_options *options,
                                     struct weft_candidate *out, struct weft_outcome *outcome,
                                     struct weft_error *err)
{
    (void)options;
    (void)outcome;
    return weft_fixed_decide(&weft_fixed_rules[WEFT_POLICY_DP], problem, limit_bytes, out, err);
}
