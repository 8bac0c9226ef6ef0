/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a step as spans by lane: predicted by a plan, or measured in a trace. Kinds and names
 * of both are alike, so that they are compared. */
#ifndef WEFT_REPORT_PAGE_SPANS_H
#define WEFT_REPORT_PAGE_SPANS_H

#include "plan/plan.h"
#include "report/html/page.h"
#include "report/html/timeline.h"
#include "report/record/record.h"

struct weft_spans {
    int32_t n_lanes;
    const char **lanes;            /* names */
    int32_t *n;                    /* [n_lanes] */
    struct weft_lane_span **spans; /* [n_lanes][n], in order */
    double step_ns;
    int32_t n_slots;        /* of a plan; otherwise 0 */
    const int64_t *slot_ns; /* [n_slots]: start of each slot */
};

/* NULL without memory, which the page keeps. The page's pool owns the result. */
const struct weft_spans *weft_spans_of_plan(struct weft_page *page, const struct weft_plan *plan);
const struct weft_spans *weft_spans_of_trace(struct weft_page *page,
                                             const struct weft_record_trace *trace);

/* Time of work by kind, and by kind and name, of two lists of spans. */
struct weft_span_pair {
    const struct weft_span_kind *kind;
    const char *name;   /* of a unit or layer; "" for a whole kind */
    double left, right; /* ns */
    int32_t n_left, n_right;
};

/* Pairs by kind, in the order of the table of kinds. */
int32_t weft_spans_by_kind(struct weft_page *page, const struct weft_spans *left,
                           const struct weft_spans *right, struct weft_span_pair **out);
/* Pairs by kind and name, the largest difference first. Waits have no names. */
int32_t weft_spans_by_name(struct weft_page *page, const struct weft_spans *left,
                           const struct weft_spans *right, struct weft_span_pair **out);

#endif
