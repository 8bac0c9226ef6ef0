/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of the other order of micro-steps: its step, its bound, its need of memory, and the row
 * or the lane that makes it so. */
#ifndef WEFT_REPORT_EXPLAIN_ORDER_H
#define WEFT_REPORT_EXPLAIN_ORDER_H

#include "plan/plan.h"
#include "report/answer.h"

/* The other order of a plan. Its plan has no pages, so it may take a little more memory. */
struct weft_other_order {
    int32_t layers;      /* of a turn; 0: one micro-step after the other */
    const char *refused; /* the reason why the config has no such order; NULL: it has */
    int64_t least_bytes; /* its least device limit, without pages; INT64_MAX: another tier's limit
                            is too small */
    int64_t own_least_bytes;      /* least device limit of the plan's order */
    int64_t bound_ns;             /* no plan of it within the plan's limit is faster; 0: not known;
                                     WEFT_PROBLEM_MOST: none fits */
    bool fits;                    /* some plan may be within the plan's limit */
    const struct weft_plan *plan; /* within the plan's limit, or within least_bytes if none can be;
                                     NULL: none was found */
};

/* Adds "other_order". `other` NULL: the plan has one micro-step, or it is not known. */
void weft_explain_order(const struct weft_plan *plan, const struct weft_other_order *other,
                        struct weft_answer *out);

#endif
