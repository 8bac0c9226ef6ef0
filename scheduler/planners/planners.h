/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of planners; table.c has the planners. */
#ifndef WEFT_SCHEDULER_PLANNERS_PLANNERS_H
#define WEFT_SCHEDULER_PLANNERS_PLANNERS_H

#include "scheduler/digest/digest.h"
#include "scheduler/digest/planner.h"
#include "scheduler/planners/rule.h"

/* Fills the candidate, in the caller's arrays. Every memory row is then within the problem's limit.
 * Returns WEFT_E_INFEASIBLE if it finds none. */
typedef enum weft_status weft_decide_fn(const struct weft_problem *problem,
                                        const struct weft_schedule_options *options,
                                        struct weft_candidate *out, struct weft_outcome *outcome,
                                        struct weft_error *err);
weft_decide_fn weft_planner_ilp, weft_planner_greedy, weft_planner_random, weft_planner_two_stage,
    weft_planner_seed, weft_planner_twin_flow;

/* Decides by the function of a planner, with its contract, for a target that runs ahead
 * (plan/events.h). `searches`: the planner searches, so a search by events follows. */
WEFT_MUST_USE enum weft_status weft_events_decide(weft_decide_fn *decide, bool searches,
                                                  const struct weft_problem *problem,
                                                  const struct weft_schedule_options *options,
                                                  struct weft_candidate *out,
                                                  struct weft_outcome *outcome,
                                                  struct weft_error *err);

/* Chooses the policies of a new draft and places its blocks. `values` are those of the wanted
 * setting; NULL if the planner has none. Returns WEFT_E_INFEASIBLE if the rule cannot be applied.
 */
typedef enum weft_status weft_draft_fn(struct weft_draft *draft, const int64_t *values,
                                       struct weft_error *err);
weft_draft_fn weft_rule_fsdp2_mix, weft_rule_deepspeed, weft_rule_zero_infinity,
    weft_rule_deepcompile, weft_rule_bytescheduler, weft_rule_mg_wfbp, weft_rule_dear,
    weft_rule_osdp, weft_rule_fsdp_milp, weft_rule_offload_greedy, weft_rule_deepcompile_offload,
    weft_rule_zero_offload, weft_rule_latest_safe, weft_rule_simple_overlap,
    weft_rule_largest_first_offload, weft_rule_recompute_all, weft_rule_recompute_selective,
    weft_rule_checkmate_budget, weft_rule_auto_perf_maxing, weft_rule_sac_ilp, weft_rule_galvatron,
    weft_rule_breadth_first, weft_rule_greedysnake;

/* Settings, the published one first. ByteScheduler's values[0]: credit in elements. */
extern const struct weft_setting weft_bytescheduler_settings[];
/* values[0]: layers of a group that all micro-steps run through in turn; 0: as the period has. */
extern const struct weft_setting weft_breadth_first_settings[];
/* The same; values[1]: parameters are on the host, where they may be. */
extern const struct weft_setting weft_greedysnake_settings[];
/* values[0]: equal units and layers have one choice (1), or a choice each (0). */
extern const struct weft_setting weft_greedy_settings[];
/* values[0]: policies of two-stage (0) or ilp (1). */
extern const struct weft_setting weft_seed_settings[];
/* values[0]: time of a gather next to compute, in percent of its time alone. */
extern const struct weft_setting weft_latest_safe_settings[];

/* Approximate units of work that a rule needs to decide. */
static inline int64_t weft_planner_rule_units(const struct weft_digest *table)
{
    return 1000 * (int64_t)table->n_slots + 50 * (int64_t)table->n_blocks;
}

#endif
