/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all planners. */
#ifndef WEFT_SCHEDULER_PLANNERS_TABLE_H
#define WEFT_SCHEDULER_PLANNERS_TABLE_H

#include <stdbool.h>

#include "base/status.h"
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/plain.h"
#include "scheduler/planners/planners.h"

struct weft_planner {
    const char *name;
    const char *text; /* one line: its rule */
    bool literal;     /* blocks stay exactly as placed (weft_plan_relax). Otherwise they may move
                         apart in the same order, as far as memory allows */
    bool searches;    /* ilp and greedy; other planners follow a rule */
    bool solves;      /* asks the solver for placements, so each decision takes long */
    bool recomputes;  /* the rule chooses levels of recomputation */
    bool fills_batch; /* of the splits of a batch, the one with the largest micro-batch is taken */
    bool turns;       /* all micro-steps run through groups of layers in turn. The first value of
                         a setting is the layers of a group, 0: as the config says */
    bool all_locations; /* state may be in every tier that the problem has */
    int locations;      /* locations of state or parameters in the rule: a bit for each */
    const struct weft_setting
        *settings; /* end with a NULL name, the published one first; or NULL */
    /* One of these decides; `plain`, if the others are NULL. */
    weft_decide_fn *decide;
    weft_draft_fn *draft;
    const struct weft_fixed_rule *fixed;
    struct weft_plain_rule plain;
};

/* weft_planners returns all planners; the last has a NULL name. weft_planner_find returns one by
 * "name" or "name:setting", or NULL. It sets *setting, if not NULL, to the named setting or
 * NULL. */
const struct weft_planner *weft_planners(void);
const struct weft_planner *weft_planner_find(const char *name, const struct weft_setting **setting);

/* WEFT_E_USAGE for a name that weft_planner_find does not know. The message names the nearest
 * planner, explains a policy's name, or lists the planner's settings. */
WEFT_MUST_USE enum weft_status weft_planner_need(const char *name, struct weft_error *err);

/* False for a published rule where units are updated in backward. A user gets no plan of the rule
 * there, but other planners may start from one. */
bool weft_planner_knows_updates(const struct weft_planner *planner,
                                const struct weft_problem *problem);

/* Decides by the planner, with the contract of weft_decide_fn. */
WEFT_MUST_USE enum weft_status weft_planner_decide(const struct weft_planner *planner,
                                                   const struct weft_problem *problem,
                                                   const struct weft_schedule_options *options,
                                                   struct weft_candidate *out,
                                                   struct weft_outcome *outcome,
                                                   struct weft_error *err);

/* True if some plan of the planner keeps something in the location, where the problem allows it. */
bool weft_planner_uses(const struct weft_planner *planner, enum weft_location location);

/* True for a rule that may apply to the problem: one that moves state needs a tier for it, one
 * that recomputes a layer that may, and one that fills the batch an open split. */
bool weft_planner_is_rule_for(const struct weft_planner *planner,
                              const struct weft_problem *problem);

#endif
