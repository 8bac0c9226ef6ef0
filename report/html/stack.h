/* SPDX-License-Identifier: Apache-2.0 */
/* A stack shows parts of a whole over time, one on the other, with levels and one more line, such
 * as the bytes that a run measured. Its axis of time is that of a timeline. */
#ifndef WEFT_REPORT_HTML_STACK_H
#define WEFT_REPORT_HTML_STACK_H

#include "report/html/axis.h"
#include "report/html/drawing.h"

struct weft_stack_part {
    const char *name;
    enum weft_hue hue;
};

/* A horizontal line, such as a limit. */
struct weft_level {
    const char *name;
    double y;
};

struct weft_stack {
    const char *label;
    double end_ns; /* of the axis, which begins at 0 */
    enum weft_measure measure;
    const char *y_name;
    int32_t n_parts, n_columns;
    const struct weft_stack_part *parts; /* [n_parts], from the bottom */
    const double *from_ns;               /* [n_columns + 1] */
    const double *values;                /* [n_columns * n_parts] */
    int32_t n_levels;
    const struct weft_level *levels;
    const char *line_name; /* NULL: no line */
    int32_t n_line;
    const double *line_ns, *line; /* [n_line], a value holds until the next */
};

#endif
