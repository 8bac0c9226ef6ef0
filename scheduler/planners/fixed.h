/* Fixed planners: one policy for all units and one rule for all blocks, as users of sharded data
 * parallelism have them today. Nothing is substituted: what does not fit is refused. */
#ifndef WEFT_SCHEDULER_PLANNERS_FIXED_H
#define WEFT_SCHEDULER_PLANNERS_FIXED_H

#include "scheduler/digest/digest.h"
#include "scheduler/digest/planner.h"

/* When gathers are launched: at the first slot of their window, one use ahead, or by the slot that
 * uses them, which waits. */
enum weft_fixed_gather { WEFT_GATHER_EARLY, WEFT_GATHER_ONE_AHEAD, WEFT_GATHER_BLOCKING };

struct weft_fixed_rule {
    const char *planner;
    /* The first of these that a unit may have: 0 is dp, so ends with WEFT_POLICY_COUNT. */
    enum weft_policy policies[WEFT_POLICY_COUNT + 1];
    enum weft_fixed_gather gather;
};

/* "all-dp" ... "all-fsdp", by policy. A unit that may not have it gets what is the same thing: a
 * frozen one, which has no state to shard, sdp for zero1; one that fsdp would never release, sdp
 * for fsdp. */
extern const struct weft_fixed_rule weft_fixed_rules[WEFT_POLICY_COUNT];

/* WEFT_E_INFEASIBLE when a unit may have none of the policies, or when it does not fit. */
WEFT_MUST_USE enum weft_status weft_fixed_decide(const struct weft_fixed_rule *rule,
                                                 const struct weft_problem *problem,
                                                 struct weft_candidate *out,
                                                 struct weft_error *err);

/* The blocks of the candidate's policies: gathers as said, reductions due at once. */
void weft_fixed_place(const struct weft_problem *problem, enum weft_fixed_gather gather,
                      struct weft_candidate *out);

#endif
