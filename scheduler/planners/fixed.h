/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed planners have one policy for all units and one rule for all blocks, like most sharded data
 * parallelism today. Nothing is substituted: a plan that does not fit is refused. */
#ifndef WEFT_SCHEDULER_PLANNERS_FIXED_H
#define WEFT_SCHEDULER_PLANNERS_FIXED_H

#include "scheduler/digest/digest.h"
#include "scheduler/digest/planner.h"

/* Launches of gathers: in the first slot of their window, one use ahead, or in the slot of their
 * use, which waits. */
enum weft_fixed_gather { WEFT_GATHER_EARLY, WEFT_GATHER_ONE_AHEAD, WEFT_GATHER_BLOCKING };

struct weft_fixed_rule {
    const char *planner;
    /* A unit gets the first of these that it may have. 0 is dp, so WEFT_POLICY_COUNT ends the
     * list. */
    enum weft_policy policies[WEFT_POLICY_COUNT + 1];
    enum weft_fixed_gather gather;
    bool caches; /* parameters on the host, of all units that may have them there */
};

/* "all-dp" ... "all-nodes", by policy. A unit that may not have the policy gets an equal one. For
 * zero1 a frozen unit gets sdp, because it has no state to shard. For fsdp a unit that would never
 * be released gets sdp. For central a frozen unit gets dp, for nodes hsdp. */
extern const struct weft_fixed_rule weft_fixed_rules[WEFT_POLICY_COUNT];

/* "fcdp": all-nodes with each node's slices cached on the host. */
extern const struct weft_fixed_rule weft_fixed_cached;

/* Whether a problem has strategies that a rule with a cache needs; true for other rules. */
bool weft_fixed_is_for(const struct weft_fixed_rule *rule, const struct weft_problem *problem);

/* WEFT_E_INFEASIBLE if a unit may have none of the policies, or if the plan does not fit. */
WEFT_MUST_USE enum weft_status weft_fixed_decide(const struct weft_fixed_rule *rule,
                                                 const struct weft_problem *problem,
                                                 struct weft_candidate *out,
                                                 struct weft_error *err);

/* Places the blocks of the candidate's policies: gathers by `gather`, reductions due at once. */
void weft_fixed_place(const struct weft_problem *problem, enum weft_fixed_gather gather,
                      struct weft_candidate *out);

#endif
