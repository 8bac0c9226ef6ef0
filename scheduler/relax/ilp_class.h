/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of the integer program: sets of items that share columns. Internal to relax/.
 *
 * RESULTS.md: planner-ideas/merged-classes. */
#ifndef WEFT_SCHEDULER_RELAX_ILP_CLASS_H
#define WEFT_SCHEDULER_RELAX_ILP_CLASS_H

#include "scheduler/relax/ilp.h"

/* Puts items into classes as fine as most_columns allows, and fills the classes except for their
 * columns. An item has a class if it exists under a strategy with a column in ilp->z. */
WEFT_MUST_USE enum weft_status weft_ilp_classify(struct weft_ilp *ilp, int32_t most_columns,
                                                 struct weft_error *err);

/* Work of an item in units of its class's A. */
double weft_ilp_work(const struct weft_ilp *ilp, const struct weft_ilp_class *of, int32_t item);

/* The strategies under which the item exists and that have a column. */
uint64_t weft_ilp_strategy_mask(const struct weft_ilp *ilp, int32_t item);

/* Blocks of the class's i-th item that do not block at a point. The last of the items that are due
 * together block first. */
int32_t weft_ilp_staged(const struct weft_ilp *ilp, const struct weft_ilp_class *of,
                        const double *x, const int32_t *strategies, int32_t i);

#endif
