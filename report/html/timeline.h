/* SPDX-License-Identifier: Apache-2.0 */
/* A timeline has a row for each lane and source: spans of work, such as a forward, on one axis of
 * time. Rows of one lane follow one another. Spans of a row are in order and do not overlap. */
#ifndef WEFT_REPORT_HTML_TIMELINE_H
#define WEFT_REPORT_HTML_TIMELINE_H

#include "report/html/axis.h"
#include "report/html/drawing.h"

/* The left end of the axis, which stacks share. */
enum { WEFT_TIMELINE_WIDTH = 1080, WEFT_TIMELINE_LEFT = 116, WEFT_TIMELINE_RIGHT = 14 };

/* A kind of work, for legend and data. */
struct weft_span_kind {
    const char *name;
    enum weft_hue hue;
    bool hatched;
};

struct weft_lane_span {
    double from_ns, to_ns;
    const struct weft_span_kind *kind;
    const char *name; /* of the unit or layer */
};

struct weft_span_row {
    const char *lane, *source; /* "network", "predicted" */
    bool light;                /* paler and lower than others */
    int32_t n;
    const struct weft_lane_span *spans;
};

struct weft_timeline {
    const char *label;
    const char *x_name;
    double end_ns; /* of the axis, which begins at 0 */
    bool is_named; /* names of rows tell the kinds, so the legend does not */
    int32_t n_rows;
    const struct weft_span_row *rows;
};

#endif
