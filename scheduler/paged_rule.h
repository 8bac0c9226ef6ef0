/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of a rule for one limit and all lower ones. A rule may plan worse with more memory: it may
 * keep parameters that leave no room to gather ahead, or miss the limit by the rounding of its
 * pages. A user would give the rule a lower limit then. So the rule decides for a series of limits,
 * and its fastest plan within the run's own limit counts.
 *
 * The series begins without a limit. Rungs follow: four from a power of two to the next, from the
 * one above the run's limit down. Between two rungs with different plans there are 32 to 256 more
 * limits: each is a byte below the largest row of the plan before, as far as their distances allow.
 * On a large problem two rungs with one decision have 32, which give its blocks other room. So no
 * limit of the series depends on the run's, and a step never rises with the limit. Private to
 * scheduler/. */
#ifndef WEFT_SCHEDULER_PAGED_RULE_H
#define WEFT_SCHEDULER_PAGED_RULE_H

#include "scheduler/paged_try.h"

/* True for planners with such a series: all that neither search, solve nor draw. */
bool weft_paged_has_series(const struct weft_planner *planner);

/* Fills run->plan with the fastest plan of the series that fits and is below run->below_ns; NULL if
 * there is none. A plan with pages above the limit also gets pages of the least size, if the config
 * leaves the size open. may_end: the series ends with the run's budget, and otherwise with the
 * alarm alone. */
WEFT_MUST_USE enum weft_status weft_paged_series(struct weft_paged *run, bool may_end,
                                                 struct weft_error *err);

#endif
