/* SPDX-License-Identifier: Apache-2.0 */
/* A coarse problem stands for one with too many slots for its relaxation. A run of slots is one
 * slot, and decisions with windows in the same runs are one decision. Its rows are averages over
 * runs, and its windows are rounded to runs. So it is neither a relaxation nor a restriction. But
 * any prices prove a bound. Prices of the coarse relaxation, spread over the slots of each run, are
 * near the best ones.
 *
 * A second coarse problem has shorter runs where the first one's prices change.
 *
 * RESULTS.md: planner-ideas/coarse. */
#ifndef WEFT_SCHEDULER_RELAX_COARSE_H
#define WEFT_SCHEDULER_RELAX_COARSE_H

#include "scheduler/relax/ilp.h"

struct weft_coarse {
    struct weft_pool pool;
    const struct weft_digest *fine; /* borrowed */
    struct weft_problem *problem;   /* borrows lanes, tiers and names from that of `fine` */
    struct weft_digest *table;
    struct weft_dual *dual; /* prices of the last answer */
    struct weft_ilp *ilp;
    int32_t *run_of;      /* [slots of `fine`]: the slot of `problem` */
    int32_t *length;      /* [slots of `problem`]: slots of the run */
    int32_t *decision_of; /* [decisions of `fine`]: the decision of `problem` */
};

/* Makes the coarse problem and its relaxation. `before` has an answer, and its prices say which
 * runs become shorter. NULL: all runs are about as long. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_coarse_create(const struct weft_digest *fine,
                                                  const struct weft_coarse *before,
                                                  struct weft_coarse **out, struct weft_error *err);
void weft_coarse_destroy(struct weft_coarse *coarse); /* accepts NULL */

/* Turns an optimal answer of the relaxation into prices of the fine problem, and the strategies'
 * shares into share [n_strategies]. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_coarse_spread(struct weft_coarse *coarse,
                                                  const struct weft_lp_result *result,
                                                  struct weft_dual *dual, double *share,
                                                  struct weft_error *err);

#endif
