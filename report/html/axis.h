/* SPDX-License-Identifier: Apache-2.0 */
/* An axis maps values of a measure to places of a drawing in pixels. Ticks are at round values. */
#ifndef WEFT_REPORT_HTML_AXIS_H
#define WEFT_REPORT_HTML_AXIS_H

#include <stdint.h>

#include "base/text.h"
#include "base/units.h"
#include "report/answer.h"

enum weft_measure {
    WEFT_MEASURE_NUMBER, /* a real number, such as a loss */
    WEFT_MEASURE_COUNT,  /* a whole number, such as a step */
    WEFT_MEASURE_NS,
    WEFT_MEASURE_BYTES
};

struct weft_axis {
    enum weft_measure measure;
    double low, high; /* values at its ends; low < high */
    double from, to;  /* places of these in pixels */
};

double weft_axis_place(const struct weft_axis *axis, double value);

/* Widens the ends to round values, and parts them if they are equal. Times and bytes are not
 * negative. */
void weft_axis_widen(struct weft_axis *axis);

/* Draw ticks with labels and the name with its unit: of a horizontal axis at `bottom`, whose grid
 * begins at `top`, and of a vertical one with a grid from `left` to `right`. */
void weft_axis_draw_x(const struct weft_axis *axis, double top, double bottom, const char *name,
                      struct weft_text *out);
void weft_axis_draw_y(const struct weft_axis *axis, double left, double right, const char *name,
                      struct weft_text *out);

/* Opens the group of a plot, with both axes as attributes: low, high, from, to. */
void weft_axis_open_plot(const struct weft_axis *x, const struct weft_axis *y,
                         struct weft_text *out);

/* "12.3 ms", "1.50 GiB", "5.25", "40". */
const char *weft_measure_show(enum weft_measure measure, double value,
                              char out[WEFT_UNITS_TEXT_BYTES]);
/* The figure of a column with values of the measure. */
enum weft_figure weft_measure_figure(enum weft_measure measure);

#endif
