/* Optimizer state of every unit sharded, parameters resident; a frozen unit, which has none, is
 * sdp. Gathers in order as soon as the update is done, reductions at once. */
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_all_zero1(const struct weft_problem *problem, int64_t limit_bytes,
                                        const struct weft_schedule_options *options,
                                        struct weft_candidate *out, struct weft_outcome *outcome,
                                        struct weft_error *err)
{
    (void)options;
    (void)outcome;
    return weft_fixed_decide(&weft_fixed_rules[WEFT_POLICY_ZERO1], problem, limit_bytes, out, err);
}
