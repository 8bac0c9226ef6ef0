/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/stack.h"

#include <math.h>

#include "report/html/html.h"
#include "report/html/timeline.h"

enum { TOP = 34, BOTTOM = 42, HEIGHT = 330 };

static double sum_column(const struct weft_stack *stack, int32_t column, int32_t n_parts)
{
    double sum = 0;
    for (int32_t p = 0; p < n_parts; p++)
        sum += stack->values[column * stack->n_parts + p];
    return sum;
}

static struct weft_axis range_axis(const struct weft_stack *stack)
{
    struct weft_axis axis = {stack->measure, 0, 0, HEIGHT - BOTTOM, TOP};
    for (int32_t c = 0; c < stack->n_columns; c++)
        axis.high = fmax(axis.high, sum_column(stack, c, stack->n_parts));
    for (int32_t i = 0; i < stack->n_line; i++)
        axis.high = fmax(axis.high, stack->line[i]);
    const double drawn = axis.high;
    /* A level far above would press the rest together; its name tells where it is. */
    for (int32_t l = 0; l < stack->n_levels; l++)
        if (stack->levels[l].y <= 1.6 * drawn) axis.high = fmax(axis.high, stack->levels[l].y);
    weft_axis_widen(&axis);
    return axis;
}

/* Draws the part and all below it as one area. Later parts are drawn over it. */
static void draw_part(const struct weft_stack *stack, const struct weft_axis *x,
                      const struct weft_axis *y, int32_t part, struct weft_text *out)
{
    double before = NAN;
    weft_text_addf(out, "<path class=\"area f%d\" data-part=\"", (int)stack->parts[part].hue);
    weft_html_add(out, stack->parts[part].name);
    weft_text_add(out, "\" d=\"M");
    weft_html_add_place(out, weft_axis_place(x, stack->from_ns[0]));
    weft_text_add(out, " ");
    weft_html_add_place(out, y->from);
    for (int32_t c = 0; c < stack->n_columns; c++) {
        const double place = weft_axis_place(y, sum_column(stack, c, part + 1));
        if (place != before && c > 0) {
            weft_text_add(out, "H");
            weft_html_add_place(out, weft_axis_place(x, stack->from_ns[c]));
        }
        if (place != before) weft_text_add(out, "V");
        if (place != before) weft_html_add_place(out, place);
        before = place;
    }
    weft_text_add(out, "H");
    weft_html_add_place(out, weft_axis_place(x, stack->from_ns[stack->n_columns]));
    weft_text_add(out, "V");
    weft_html_add_place(out, y->from);
    weft_text_add(out, "z\"/>\n");
}

static void draw_line(const struct weft_stack *stack, const struct weft_axis *x,
                      const struct weft_axis *y, struct weft_text *out)
{
    if (stack->n_line == 0) return;
    weft_text_add(out, "<path class=\"line ink\" data-series=\"");
    weft_html_add(out, stack->line_name);
    weft_text_add(out, "\" d=\"");
    for (int32_t i = 0; i < stack->n_line; i++) {
        weft_text_add(out, i == 0 ? "M" : "H");
        weft_html_add_place(out, weft_axis_place(x, stack->line_ns[i]));
        weft_text_add(out, i == 0 ? " " : "V");
        weft_html_add_place(out, weft_axis_place(y, stack->line[i]));
    }
    weft_text_add(out, "\"/>\n");
}

/* Lines of the levels within the axis. The legend has their names, so no label is in the way. */
static void draw_levels(const struct weft_stack *stack, const struct weft_axis *x,
                        const struct weft_axis *y, struct weft_text *out)
{
    for (int32_t i = 0; i < stack->n_levels; i++) {
        const struct weft_level *level = &stack->levels[i];
        if (level->y > y->high) continue;
        weft_text_add(out, "<path class=\"level\" data-level=\"");
        weft_html_add(out, level->name);
        weft_text_addf(out, "\" d=\"M%.0f ", x->from);
        weft_html_add_place(out, weft_axis_place(y, level->y));
        weft_text_addf(out, "H%.0f\"/>\n", x->to);
    }
}

static void draw_legend(const struct weft_stack *stack, const struct weft_axis *y,
                        struct weft_text *out)
{
    weft_legend_open(out);
    for (int32_t l = 0; l < stack->n_levels; l++) {
        struct weft_text name;
        weft_text_init(&name);
        weft_text_addf(&name, "%s%s", stack->levels[l].name,
                       stack->levels[l].y > y->high ? " (above the axis)" : "");
        weft_legend_add(out, WEFT_SIGN_DASHED, WEFT_HUE_COUNT, weft_text_chars(&name));
        out->failed |= !weft_text_ok(&name);
        weft_text_finish(&name);
    }
    if (stack->n_line > 0) weft_legend_add(out, WEFT_SIGN_LINE, WEFT_HUE_COUNT, stack->line_name);
    for (int32_t p = stack->n_parts - 1; p >= 0; p--)
        weft_legend_add(out, WEFT_SIGN_SOLID, stack->parts[p].hue, stack->parts[p].name);
    weft_legend_close(out);
}

static void draw_stack(const void *figure, struct weft_text *out)
{
    const struct weft_stack *stack = figure;
    const struct weft_axis x = {WEFT_MEASURE_NS, 0, stack->end_ns, WEFT_TIMELINE_LEFT,
                                WEFT_TIMELINE_WIDTH - WEFT_TIMELINE_RIGHT};
    const struct weft_axis y = range_axis(stack);
    draw_legend(stack, &y, out);
    weft_svg_open(out, WEFT_TIMELINE_WIDTH, HEIGHT, stack->label);
    weft_axis_draw_y(&y, x.from, x.to, stack->y_name, out);
    weft_axis_draw_x(&x, y.from, y.from + 4, "time in the step", out);
    weft_axis_open_plot(&x, &y, out);
    for (int32_t p = stack->n_parts - 1; p >= 0; p--)
        draw_part(stack, &x, &y, p, out);
    draw_line(stack, &x, &y, out);
    draw_levels(stack, &x, &y, out);
    weft_text_add(out, "</g>\n");
    weft_svg_close(out);
}

/* A row for each column and part; then the line and the levels. */
static void tell_stack(const void *figure, const char *key, struct weft_answer *data)
{
    const struct weft_stack *stack = figure;
    const enum weft_figure value = weft_measure_figure(stack->measure);
    const struct weft_column columns[] = {{"series", NULL, 'l', WEFT_FIGURE_WORD, 0},
                                          {"from_ns", NULL, 'r', WEFT_FIGURE_NS, 0},
                                          {"to_ns", NULL, 'r', WEFT_FIGURE_NS, 0},
                                          {"value", NULL, 'r', value, 0}};
    struct weft_rows *rows = weft_answer_table(data, key, columns, 4);
    if (rows != NULL) rows->is_flat = true;
    for (int32_t p = 0; p < stack->n_parts; p++) {
        for (int32_t c = 0; c < stack->n_columns; c++) {
            weft_rows_begin(rows, NULL);
            weft_rows_word(rows, 0, stack->parts[p].name);
            weft_rows_integer(rows, 1, (int64_t)stack->from_ns[c]);
            weft_rows_integer(rows, 2, (int64_t)stack->from_ns[c + 1]);
            weft_rows_integer(rows, 3, (int64_t)stack->values[c * stack->n_parts + p]);
        }
    }
    for (int32_t i = 0; i < stack->n_line; i++) {
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, 0, stack->line_name);
        weft_rows_integer(rows, 1, (int64_t)stack->line_ns[i]);
        weft_rows_integer(rows, 3, (int64_t)stack->line[i]);
    }
    for (int32_t l = 0; l < stack->n_levels; l++) {
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, 0, stack->levels[l].name);
        weft_rows_integer(rows, 3, (int64_t)stack->levels[l].y);
    }
}

const struct weft_drawing_kind weft_drawing_stack = {draw_stack, tell_stack};
