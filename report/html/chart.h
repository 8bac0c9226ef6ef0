/* SPDX-License-Identifier: Apache-2.0 */
/* A chart has series of points over two axes, and named levels: horizontal lines such as a bound.
 */
#ifndef WEFT_REPORT_HTML_CHART_H
#define WEFT_REPORT_HTML_CHART_H

#include "report/html/axis.h"
#include "report/html/drawing.h"

enum weft_series_style {
    WEFT_SERIES_LINE,
    WEFT_SERIES_STAIRS, /* a value holds until the next point, the last one to the right end */
    WEFT_SERIES_MARKS,  /* points alone */
    WEFT_SERIES_RINGS   /* the same, as rings */
};

struct weft_series {
    const char *name;
    enum weft_hue hue;
    enum weft_series_style style;
    bool dashed;
    bool marked; /* LINE, STAIRS: each point has a mark */
    int32_t n;
    const double *x, *y; /* [n]; a y that is not finite is no point */
};

struct weft_chart {
    const char *label; /* title of the drawing */
    const char *x_name, *y_name;
    enum weft_measure x, y;
    double width, height;
    double left;    /* of the plot; 0: as usual */
    bool from_zero; /* the vertical axis begins at 0 */
    int32_t n_series;
    const struct weft_series *series;
};

#endif
