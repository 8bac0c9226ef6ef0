/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of another choice than the plan's, the order of micro-steps or the place of updates: its
 * step, its bound, its need of memory, and the row or the lane that makes it so. */
#ifndef WEFT_REPORT_EXPLAIN_OTHER_H
#define WEFT_REPORT_EXPLAIN_OTHER_H

#include "plan/plan.h"
#include "report/answer.h"

enum weft_other_kind { WEFT_OTHER_ORDER, WEFT_OTHER_UPDATES, WEFT_OTHER_KINDS };

/* The other choice of a plan. Its plan has no pages, so it may take a little more memory. */
struct weft_other_choice {
    enum weft_other_kind kind;
    int32_t layers; /* order: of a turn; 0: one micro-step after the other. Updates: of backward
                       from a unit's own to its update, 1 without a plan; 0: updates in
                            forward */
    const char *refused; /* the reason why the config has no such choice; NULL: it has */
    const char *price;   /* the promise that it gives up; NULL: none */
    int64_t least_bytes; /* its least device limit, without pages; INT64_MAX: another tier's limit
                            is too small */
    int64_t own_least_bytes;      /* least device limit of the plan's choice */
    int64_t bound_ns;             /* no plan of it within the plan's limit is faster; 0: not known;
                                     WEFT_PROBLEM_MOST: none fits */
    bool fits;                    /* some plan may be within the plan's limit */
    const struct weft_plan *plan; /* within the plan's limit, or within least_bytes if none can be;
                                     NULL: none was found */
};

/* Adds "other_order" or "other_updates". `other` NULL: the plan has one choice, or the other one is
 * not known. */
void weft_explain_other(const struct weft_plan *plan, enum weft_other_kind kind,
                        const struct weft_other_choice *other, struct weft_answer *out);

#endif
