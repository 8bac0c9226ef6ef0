/* Optimizer state of every unit sharded, parameters resident; a frozen unit, which has none, is
 * sdp. Gathers in order as soon as the update is done, reductions at once. */
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/planners.h"

enum weft_status weft_planner_all_zero1(const struct weft_problem *problem, int64_t limit_bytes,
                                        const struct weft_schedule_options *options,
                                        struct weft_candidate *out, struct weft_outcome *outcome,
                                        struct weft_error *err)
{
    static const struct weft_fixed_rule rule = {
        .planner = "all-zero1",
        .policies = {WEFT_POLICY_ZERO1, WEFT_POLICY_SDP, WEFT_POLICY_COUNT},
        .gather_early = true,
    };
    (void)options;
    (void)outcome;
    return weft_fixed_decide(&rule, problem, limit_bytes, out, err);
}
