/* The table of all planners, and what people call them. */
#ifndef WEFT_SCHEDULER_PLANNERS_TABLE_H
#define WEFT_SCHEDULER_PLANNERS_TABLE_H

#include <stdbool.h>

#include "base/status.h"
#include "scheduler/digest/planner.h"

/* NULL-name-terminated table of all planners, and one by "name" or "name:setting" (NULL when there
 * is none); *setting is NULL when none was named. `setting` may be NULL. */
const struct weft_planner *weft_planners(void);
const struct weft_planner *weft_planner_find(const char *name, const struct weft_setting **setting);

/* WEFT_E_USAGE for a name that weft_planner_find does not know, with what may have been meant: the
 * nearest planner, what a policy's name is for, or the planner's settings. */
WEFT_MUST_USE enum weft_status weft_planner_need(const char *name, struct weft_error *err);

/* True for a planner that does as its rule says; false for ilp and greedy, which search. */
bool weft_planner_is_rule(const struct weft_planner *planner);

/* Homes of which its rule gives state one (bits of enum weft_home); 0 if it knows the device's. */
int weft_planner_homes(const struct weft_planner *planner);

/* Whether some plan of the planner keeps something in the home, where the problem allows it. */
bool weft_planner_uses(const struct weft_planner *planner, enum weft_home home);

/* True for a rule that may apply to the problem: what keeps state away needs a tier for it. */
bool weft_planner_is_rule_for(const struct weft_planner *planner,
                              const struct weft_problem *problem);

/* The settings of a planner of the table, NULL-name-terminated, the published one first; NULL when
 * its rule has no parameters. */
const struct weft_setting *weft_planner_settings(const struct weft_planner *planner);

#endif
