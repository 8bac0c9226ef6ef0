/* SPDX-License-Identifier: Apache-2.0 */
/* Levels of recomputation for rules that choose them: the strategy of each layer of a draft. A
 * layer's saved activations stay where its first strategy has them. */
#ifndef WEFT_SCHEDULER_PLANNERS_RECOMPUTE_LEVELS_H
#define WEFT_SCHEDULER_PLANNERS_RECOMPUTE_LEVELS_H

#include "scheduler/planners/rule.h"

/* Gives the level to each layer that may have it. WEFT_E_INFEASIBLE, with the reason, if none may.
 */
WEFT_MUST_USE enum weft_status weft_levels_all(struct weft_draft *draft, enum weft_recompute level,
                                               struct weft_error *err);

/* Chooses the policies of units and places their blocks. */
typedef enum weft_status weft_place_units_fn(struct weft_draft *draft, const int64_t *values,
                                             struct weft_error *err);

/* Chooses the levels with the least sum of compute times, for placed units, so that no row is above
 * `limit_bytes`. If even the deepest levels do not fit, they are chosen. The draft is placed with
 * the chosen levels. `one_budget`: as activation budgets do, only the bytes that are saved when
 * backward begins count. Their budget is the largest with which the rows fit. */
struct weft_levels_rule {
    weft_place_units_fn *place;
    const int64_t *values;
    int64_t limit_bytes;
    bool one_budget;
};
WEFT_MUST_USE enum weft_status weft_levels_choose(struct weft_draft *draft,
                                                  const struct weft_levels_rule *rule,
                                                  struct weft_error *err);

#endif
