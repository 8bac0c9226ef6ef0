/* SPDX-License-Identifier: Apache-2.0 */
/* Plans with another choice than a plan's, for a comparison with it: the other order of
 * micro-steps, or the other place of updates. */
#ifndef WEFT_CLI_STUDY_OTHERS_H
#define WEFT_CLI_STUDY_OTHERS_H

#include "library/session.h"
#include "report/explain_other.h"

/* An order has two cadences; a place of updates has up to four distances. */
enum { WEFT_OTHER_CANDIDATES = 4 };

/* The other choice with the plans of its periods. Plans refer to it, so it stays in its place. */
struct weft_other_study {
    struct weft_other_choice found;
    int32_t n; /* candidates */
    struct weft_other_candidate {
        struct weft_stages stages;
        struct weft_problem problem; /* the stages', perhaps with another limit; borrows all */
        struct weft_plan *plan;      /* NULL: none was found */
        int64_t least_bytes, bound_ns;
    } candidates[WEFT_OTHER_CANDIDATES];
};

/* Finds the other choice of the session's plan, in the plan's split and otherwise in its form of
 * the period, with at most `units` of work. Its plan has no pages and needs no solver. The caller
 * finishes *out before the session, also after a failure. */
WEFT_MUST_USE enum weft_status weft_other_study_make(const struct weft_session *session,
                                                     enum weft_other_kind kind, int64_t units,
                                                     struct weft_other_study *out,
                                                     struct weft_error *err);
void weft_other_study_finish(struct weft_other_study *study); /* accepts {0} */

#endif
