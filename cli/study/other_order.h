/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in the other order of micro-steps, for a comparison with a plan. */
#ifndef WEFT_CLI_STUDY_OTHER_ORDER_H
#define WEFT_CLI_STUDY_OTHER_ORDER_H

#include "library/session.h"
#include "report/explain_order.h"

/* Gradients may be reduced once a step or every micro-step. */
enum { WEFT_ORDER_CADENCES = 2 };

/* The other order with the plans of both cadences. Plans refer to it, so it stays in its place. */
struct weft_order_study {
    struct weft_other_order found;
    struct weft_order_candidate {
        struct weft_stages stages;
        struct weft_problem problem; /* the stages', perhaps with another limit; borrows all */
        struct weft_plan *plan;      /* NULL: none was found */
        int64_t least_bytes, bound_ns;
    } candidates[WEFT_ORDER_CADENCES];
};

/* Finds the other order of the session's plan, in the plan's split and form of the period, with at
 * most `units` of work. Its plan has no pages and needs no solver. The caller finishes *out before
 * the session, also after a failure. */
WEFT_MUST_USE enum weft_status weft_order_study_make(const struct weft_session *session,
                                                     int64_t units, struct weft_order_study *out,
                                                     struct weft_error *err);
void weft_order_study_finish(struct weft_order_study *study); /* accepts {0} */

#endif
