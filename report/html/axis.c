/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/axis.h"

#include <math.h>
#include <stdio.h>

#include "report/html/html.h"
#include "report/study/ticks.h"

enum { X_TICKS = 9, Y_TICKS = 6, MOST_TICKS = 64 };

/* Values of ticks, and the text of each. */
struct tick_list {
    int32_t n;
    double values[MOST_TICKS];
    double unit; /* of the labels */
    const char *unit_name;
};

/* 1, 2 or 5 times a power of ten, with at most `most` multiples in the range. */
static double choose_step(double range, int32_t most, bool is_whole)
{
    const double least = range / (most - 1);
    const double power = pow(10, floor(log10(least)));
    const double digit = least / power;
    const double step = (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10) * power;
    return is_whole && step < 1 ? 1 : step;
}

static const struct weft_tick_unit *find_units(enum weft_measure measure)
{
    if (measure == WEFT_MEASURE_NS) return weft_time_ticks;
    if (measure == WEFT_MEASURE_BYTES) return weft_byte_ticks;
    return NULL;
}

static struct tick_list list_ticks(const struct weft_axis *axis, int32_t most)
{
    struct tick_list list = {.unit = 1, .unit_name = NULL};
    const struct weft_tick_unit *units = find_units(axis->measure);
    double first, step;
    if (units != NULL) {
        const struct weft_ticks ticks =
            weft_ticks_choose(units, (int64_t)axis->low, (int64_t)axis->high, most);
        first = (double)ticks.first;
        step = (double)ticks.step;
        list.unit = (double)ticks.unit->size;
        list.unit_name = ticks.unit->name;
    } else {
        step = choose_step(axis->high - axis->low, most, axis->measure == WEFT_MEASURE_COUNT);
        first = ceil(axis->low / step - 1e-9) * step;
    }
    for (int32_t i = 0; i < MOST_TICKS; i++) {
        const double value = first + i * step;
        if (value > axis->high + step * 1e-9) break;
        list.values[list.n++] = fabs(value) < step * 1e-9 ? 0 : value;
    }
    return list;
}

double weft_axis_place(const struct weft_axis *axis, double value)
{
    return axis->from + (axis->to - axis->from) * (value - axis->low) / (axis->high - axis->low);
}

void weft_axis_widen(struct weft_axis *axis)
{
    const struct weft_tick_unit *units = find_units(axis->measure);
    if (units != NULL && axis->low < 0) axis->low = 0;
    if (!(axis->high > axis->low)) {
        const double part = fabs(axis->low) > 0 ? fabs(axis->low) * 0.05 : 1;
        axis->low -= units != NULL && axis->low < part ? axis->low : part;
        axis->high += part;
    }
    if (units != NULL) {
        const struct weft_ticks ticks =
            weft_ticks_choose(units, (int64_t)axis->low, (int64_t)ceil(axis->high) + 1, Y_TICKS);
        const double step = (double)ticks.step;
        axis->low = floor(axis->low / step) * step;
        axis->high = ceil(axis->high / step) * step;
        if (!(axis->high > axis->low)) axis->high = axis->low + step;
        return;
    }
    const double step =
        choose_step(axis->high - axis->low, Y_TICKS, axis->measure == WEFT_MEASURE_COUNT);
    axis->low = floor(axis->low / step + 1e-9) * step;
    axis->high = ceil(axis->high / step - 1e-9) * step;
}

static const char *show_tick(const struct tick_list *list, int32_t i,
                             char out[WEFT_UNITS_TEXT_BYTES])
{
    const double value = list->values[i] / list->unit;
    static const char *const prefixes[] = {"", "k", "M", "G", "T"};
    int p = 0;
    double shown = value;
    for (; list->unit_name == NULL && fabs(shown) >= 10000 && p < 4; p++)
        shown /= 1000;
    snprintf(out, WEFT_UNITS_TEXT_BYTES, "%.6g%s", shown, prefixes[p]);
    return out;
}

/* Appends " class="..."> name, unit </text>". */
static void add_name(const struct tick_list *list, const char *name, struct weft_text *out)
{
    weft_html_add(out, name);
    if (list->unit_name != NULL) weft_text_addf(out, " (%s)", list->unit_name);
    weft_text_add(out, "</text>\n");
}

void weft_axis_draw_x(const struct weft_axis *axis, double top, double bottom, const char *name,
                      struct weft_text *out)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    const double width = fabs(axis->to - axis->from);
    const struct tick_list list = list_ticks(axis, width < 600 ? Y_TICKS : X_TICKS);
    weft_text_add(out, "<path class=\"grid\" d=\"");
    for (int32_t i = 0; i < list.n; i++) {
        weft_text_add(out, "M");
        weft_html_add_place(out, weft_axis_place(axis, list.values[i]));
        weft_text_add(out, " ");
        weft_html_add_place(out, top);
        weft_text_add(out, "V");
        weft_html_add_place(out, bottom);
    }
    weft_text_add(out, "\"/>\n");
    for (int32_t i = 0; i < list.n; i++) {
        const double at = weft_axis_place(axis, list.values[i]);
        weft_text_add(out, "<text class=\"tick\" text-anchor=\"middle\" x=\"");
        weft_html_add_place(out, at);
        weft_text_addf(out, "\" y=\"%.1f\">%s</text>", bottom + 16, show_tick(&list, i, text));
    }
    weft_text_addf(out, "\n<text class=\"name\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">",
                   axis->to, bottom + 34);
    add_name(&list, name, out);
}

void weft_axis_draw_y(const struct weft_axis *axis, double left, double right, const char *name,
                      struct weft_text *out)
{
    char text[WEFT_UNITS_TEXT_BYTES];
    const struct tick_list list = list_ticks(axis, Y_TICKS);
    weft_text_add(out, "<path class=\"grid\" d=\"");
    for (int32_t i = 0; i < list.n; i++) {
        weft_text_add(out, "M");
        weft_html_add_place(out, left);
        weft_text_add(out, " ");
        weft_html_add_place(out, weft_axis_place(axis, list.values[i]));
        weft_text_add(out, "H");
        weft_html_add_place(out, right);
    }
    weft_text_add(out, "\"/>\n");
    for (int32_t i = 0; i < list.n; i++)
        weft_text_addf(
            out, "<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>",
            left - 7, weft_axis_place(axis, list.values[i]) + 4, show_tick(&list, i, text));
    weft_text_addf(out, "\n<text class=\"name\" x=\"0\" y=\"%.1f\">",
                   fmin(axis->from, axis->to) - 14);
    add_name(&list, name, out);
}

void weft_axis_open_plot(const struct weft_axis *x, const struct weft_axis *y,
                         struct weft_text *out)
{
    weft_text_addf(out, "<g class=\"plot\" data-x=\"%.17g %.17g %.17g %.17g\"", x->low, x->high,
                   x->from, x->to);
    if (y != NULL)
        weft_text_addf(out, " data-y=\"%.17g %.17g %.17g %.17g\"", y->low, y->high, y->from, y->to);
    weft_text_add(out, ">\n");
}

const char *weft_measure_show(enum weft_measure measure, double value,
                              char out[WEFT_UNITS_TEXT_BYTES])
{
    switch (measure) {
    case WEFT_MEASURE_NUMBER:
        snprintf(out, WEFT_UNITS_TEXT_BYTES, "%.5g", value);
        break;
    case WEFT_MEASURE_COUNT:
        snprintf(out, WEFT_UNITS_TEXT_BYTES, "%.0f", value);
        break;
    case WEFT_MEASURE_NS:
        return weft_units_show_ns((int64_t)value, out);
    case WEFT_MEASURE_BYTES:
        return weft_units_show_bytes((int64_t)value, out);
    }
    return out;
}

enum weft_figure weft_measure_figure(enum weft_measure measure)
{
    switch (measure) {
    case WEFT_MEASURE_NUMBER:
        return WEFT_FIGURE_REAL;
    case WEFT_MEASURE_COUNT:
        return WEFT_FIGURE_INTEGER;
    case WEFT_MEASURE_NS:
        return WEFT_FIGURE_NS;
    case WEFT_MEASURE_BYTES:
        return WEFT_FIGURE_BYTES;
    }
    return WEFT_FIGURE_REAL;
}
