/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/chart.h"

#include <math.h>

#include "report/html/html.h"

enum { LEFT = 56, RIGHT = 14, TOP = 34, BOTTOM = 42, MARK = 4 };

struct plot {
    const struct weft_chart *chart;
    struct weft_axis x, y;
    struct weft_text *out;
};

static void include_value(struct weft_axis *axis, double value)
{
    if (!isfinite(value)) return;
    if (value < axis->low) axis->low = value;
    if (value > axis->high) axis->high = value;
}

static void range_axes(struct plot *plot)
{
    const struct weft_chart *chart = plot->chart;
    const double left = chart->left > 0 ? chart->left : LEFT;
    plot->x = (struct weft_axis){chart->x, INFINITY, -INFINITY, left, chart->width - RIGHT};
    plot->y = (struct weft_axis){chart->y, INFINITY, -INFINITY, chart->height - BOTTOM, TOP};
    for (int32_t s = 0; s < chart->n_series; s++) {
        for (int32_t i = 0; i < chart->series[s].n; i++) {
            if (!isfinite(chart->series[s].y[i])) continue;
            include_value(&plot->x, chart->series[s].x[i]);
            include_value(&plot->y, chart->series[s].y[i]);
        }
    }
    if (chart->from_zero) include_value(&plot->y, 0);
    if (!(plot->x.low <= plot->x.high)) plot->x.low = 0, plot->x.high = 1;
    if (!(plot->y.low <= plot->y.high)) plot->y.low = 0, plot->y.high = 1;
    if (!chart->from_zero && chart->y == WEFT_MEASURE_NUMBER) {
        const double part = (plot->y.high - plot->y.low) * 0.04;
        plot->y.low -= part;
        plot->y.high += part;
    }
    weft_axis_widen(&plot->y);
    if (chart->x == WEFT_MEASURE_BYTES) {
        /* Runs at one limit differ by nothing, or by less than a label shows. */
        const double range = plot->x.high - plot->x.low;
        const double part = range > plot->x.high * 1e-3 ? range * 0.05 : plot->x.high * 0.05 + 1;
        plot->x.low = fmax(0, floor(plot->x.low - part));
        plot->x.high = ceil(plot->x.high + part);
    } else if (plot->x.high <= plot->x.low) {
        plot->x.high = plot->x.low + 1;
    }
}

static void add_point(struct plot *plot, const char *command, double x, double y)
{
    weft_text_add(plot->out, command);
    weft_html_add_place(plot->out, weft_axis_place(&plot->x, x));
    weft_text_add(plot->out, " ");
    weft_html_add_place(plot->out, weft_axis_place(&plot->y, y));
}

static void draw_line(struct plot *plot, const struct weft_series *series)
{
    const bool is_stairs = series->style == WEFT_SERIES_STAIRS;
    bool begun = false;
    weft_text_addf(plot->out, "<path class=\"line s%d%s\" data-series=\"", (int)series->hue,
                   series->dashed ? " dash" : "");
    weft_html_add(plot->out, series->name);
    weft_text_add(plot->out, "\" d=\"");
    for (int32_t i = 0; i < series->n; i++) {
        if (!isfinite(series->y[i])) {
            begun = is_stairs && begun;
            continue;
        }
        if (is_stairs && begun) {
            weft_text_add(plot->out, "H");
            weft_html_add_place(plot->out, weft_axis_place(&plot->x, series->x[i]));
            weft_text_add(plot->out, "V");
            weft_html_add_place(plot->out, weft_axis_place(&plot->y, series->y[i]));
        } else {
            add_point(plot, begun ? "L" : "M", series->x[i], series->y[i]);
        }
        begun = true;
    }
    if (is_stairs && begun) {
        weft_text_add(plot->out, "H");
        weft_html_add_place(plot->out, plot->x.to);
    }
    weft_text_add(plot->out, "\"/>\n");
}

static void draw_marks(struct plot *plot, const struct weft_series *series)
{
    char x[WEFT_UNITS_TEXT_BYTES], y[WEFT_UNITS_TEXT_BYTES];
    const bool is_ring = series->style == WEFT_SERIES_RINGS;
    for (int32_t i = 0; i < series->n; i++) {
        if (!isfinite(series->y[i])) continue;
        weft_text_addf(plot->out, "<circle class=\"%s%d\" r=\"%d\" data-series=\"",
                       is_ring ? "ring s" : "mark f", (int)series->hue, is_ring ? MARK + 2 : MARK);
        weft_html_add(plot->out, series->name);
        weft_text_add(plot->out, "\" cx=\"");
        weft_html_add_place(plot->out, weft_axis_place(&plot->x, series->x[i]));
        weft_text_add(plot->out, "\" cy=\"");
        weft_html_add_place(plot->out, weft_axis_place(&plot->y, series->y[i]));
        weft_text_add(plot->out, "\"><title>");
        weft_html_add(plot->out, series->name);
        weft_text_addf(plot->out, ": %s at %s</title></circle>\n",
                       weft_measure_show(plot->chart->y, series->y[i], y),
                       weft_measure_show(plot->chart->x, series->x[i], x));
    }
}

static void draw_legend(const struct weft_chart *chart, struct weft_text *out)
{
    if (chart->n_series < 2) return;
    weft_legend_open(out);
    for (int32_t s = 0; s < chart->n_series; s++) {
        const struct weft_series *series = &chart->series[s];
        weft_legend_add(out,
                        series->style == WEFT_SERIES_RINGS   ? WEFT_SIGN_RING
                        : series->style == WEFT_SERIES_MARKS ? WEFT_SIGN_SOLID
                        : series->dashed                     ? WEFT_SIGN_DASHED
                                                             : WEFT_SIGN_LINE,
                        series->hue, series->name);
    }
    weft_legend_close(out);
}

static void draw_chart(const void *figure, struct weft_text *out)
{
    const struct weft_chart *chart = figure;
    struct plot plot = {.chart = chart, .out = out};
    range_axes(&plot);
    draw_legend(chart, out);
    weft_svg_open(out, chart->width, chart->height, chart->label);
    weft_axis_draw_y(&plot.y, plot.x.from, plot.x.to, chart->y_name, out);
    weft_axis_draw_x(&plot.x, chart->height - BOTTOM, chart->height - BOTTOM + 4, chart->x_name,
                     out);
    weft_axis_open_plot(&plot.x, &plot.y, out);
    for (int32_t s = chart->n_series - 1; s >= 0; s--)
        if (chart->series[s].style <= WEFT_SERIES_STAIRS) draw_line(&plot, &chart->series[s]);
    for (int32_t s = chart->n_series - 1; s >= 0; s--)
        if (chart->series[s].style > WEFT_SERIES_STAIRS || chart->series[s].marked)
            draw_marks(&plot, &chart->series[s]);
    weft_text_add(out, "</g>\n");
    weft_svg_close(out);
}

static void put_value(struct weft_rows *rows, int32_t column, enum weft_measure measure,
                      double value)
{
    if (measure == WEFT_MEASURE_NUMBER)
        weft_rows_real(rows, column, value);
    else
        weft_rows_integer(rows, column, (int64_t)value);
}

static void tell_chart(const void *figure, const char *key, struct weft_answer *data)
{
    const struct weft_chart *chart = figure;
    const struct weft_column columns[] = {
        {"series", NULL, 'l', WEFT_FIGURE_WORD, 0},
        {"x", NULL, 'r', weft_measure_figure(chart->x), 0},
        {"y", NULL, 'r', weft_measure_figure(chart->y), WEFT_COLUMN_NULL}};
    struct weft_rows *rows = weft_answer_table(data, key, columns, 3);
    if (rows != NULL) rows->is_flat = true;
    for (int32_t s = 0; s < chart->n_series; s++) {
        for (int32_t i = 0; i < chart->series[s].n; i++) {
            weft_rows_begin(rows, NULL);
            weft_rows_word(rows, 0, chart->series[s].name);
            put_value(rows, 1, chart->x, chart->series[s].x[i]);
            if (isfinite(chart->series[s].y[i]))
                put_value(rows, 2, chart->y, chart->series[s].y[i]);
        }
    }
}

const struct weft_drawing_kind weft_drawing_chart = {draw_chart, tell_chart};
