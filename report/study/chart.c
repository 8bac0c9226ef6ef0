/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "report/study/sweep.h"

/* GUTTER is the width of the times on the left. */
enum { ROWS = 18, GUTTER = 10, LEAST_COLUMNS = 24, BOUND = 255, JOINT_MARKS = 11 };

static const char *const marks[] = {"●", "○", "■", "□", "▲", "△", "◆", "◇", "▼", "▽", "★", "☆"};
enum { N_MARKS = sizeof marks / sizeof *marks };

struct canvas {
    const struct weft_sweep *sweep;
    struct weft_sweep_axes axes;
    int32_t columns; /* without the gutter */
    bool unicode;
    unsigned char *cells; /* [ROWS * columns]: 0, BOUND, or 1 + curve */
};

/* The mark of a drawn curve. Letters repeat after 52 planners. */
static void add_mark(const struct canvas *canvas, int32_t which, struct weft_text *out)
{
    int32_t curve = 0;
    for (int32_t c = 0; c < which; c++)
        curve += weft_sweep_count_fits(&canvas->sweep->curves[c]) > 0;
    if (canvas->unicode && curve < N_MARKS)
        weft_text_add(out, marks[curve]);
    else
        weft_text_addf(out, "%c",
                       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[curve % 52]);
}

/* Position of `value` between `low` and `high`, from 0 to n - 1. */
static int32_t place_value(int64_t value, int64_t low, int64_t high, int32_t n)
{
    if (value <= low) return 0;
    if (value >= high) return n - 1;
    double share = (double)(value - low) / (double)(high - low);
    return (int32_t)(share * (n - 1) + 0.5);
}

static void draw_mark(struct canvas *canvas, int64_t bytes, int64_t ns, unsigned char what)
{
    const struct weft_sweep_axes *axes = &canvas->axes;
    int32_t x = place_value(bytes, axes->left, axes->right, canvas->columns);
    int32_t y = ROWS - 1 - place_value(ns, axes->low, axes->high, ROWS);
    unsigned char *cell = &canvas->cells[y * canvas->columns + x];
    /* The first planner stays visible over equal ones, and every planner over the bound. */
    if (*cell == 0 || *cell == BOUND) *cell = what;
}

/* Draws a line of n + 1 marks. */
static void draw_line(struct canvas *canvas, int64_t x0, int64_t y0, int64_t x1, int64_t y1,
                      int32_t n, unsigned char what)
{
    for (int32_t i = 0; i <= n; i++)
        draw_mark(canvas, x0 + (int64_t)((double)(x1 - x0) * i / n),
                  y0 + (int64_t)((double)(y1 - y0) * i / n), what);
}

static void draw_all(struct canvas *canvas)
{
    const struct weft_sweep *sweep = canvas->sweep;
    const struct weft_sweep_axes *axes = &canvas->axes;
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        const unsigned char what = (unsigned char)(1 + c % 250);
        for (int32_t i = 0; i < sweep->curves[c].n_points; i++) {
            const struct weft_sweep_point *point = &sweep->curves[c].points[i];
            const int64_t ns = point->step_ns;
            if (!point->fits) continue;
            if (sweep->split && sweep->curves[c].n_points == 1) /* it is for the whole limit */
                draw_line(canvas, axes->left, ns, axes->right, ns, JOINT_MARKS, what);
            else
                draw_mark(canvas, weft_sweep_x(sweep, point), ns, what);
        }
    }
    /* A grid shows its lowest bound, which holds at every host limit. */
    const struct weft_sweep_curve *curve = &sweep->curves[sweep->grid ? sweep->n_curves - 1 : 0];
    int64_t x0 = 0, y0 = 0;
    for (int32_t i = 0; i < curve->n_points; i++) {
        const int64_t x = weft_sweep_x(sweep, &curve->points[i]);
        const int64_t y = weft_sweep_bound(sweep, &curve->points[i]);
        if (y0 > 0 && y > 0) draw_line(canvas, x0, y0, x, y, canvas->columns, BOUND);
        x0 = x;
        y0 = y;
    }
}

static void add_row(const struct canvas *canvas, int32_t row, struct weft_text *out)
{
    const struct weft_sweep_axes *axes = &canvas->axes;
    char label[WEFT_UNITS_TEXT_BYTES] = "", shown[WEFT_UNITS_TEXT_BYTES + 2];
    if (row % 4 == 0 || row == ROWS - 1)
        weft_units_show_ns(
            axes->high - (int64_t)((double)(axes->high - axes->low) * row / (ROWS - 1)), label);
    snprintf(shown, sizeof shown, "%s%s", axes->cut && row == 0 ? "> " : "", label);
    weft_text_addf(out, "%*s %s", GUTTER, shown, canvas->unicode ? "│" : "|");
    int32_t end = canvas->columns;
    while (end > 0 && canvas->cells[row * canvas->columns + end - 1] == 0)
        end--;
    for (int32_t x = 0; x < end; x++) {
        unsigned char cell = canvas->cells[row * canvas->columns + x];
        if (cell == 0)
            weft_text_add(out, " ");
        else if (cell == BOUND)
            weft_text_add(out, canvas->unicode ? "·" : ".");
        else
            add_mark(canvas, cell - 1, out);
    }
    weft_text_add(out, "\n");
}

static void add_axis(const struct canvas *canvas, struct weft_text *out)
{
    char left[WEFT_UNITS_TEXT_BYTES], right[WEFT_UNITS_TEXT_BYTES];
    weft_units_show_bytes(canvas->axes.left, left);
    weft_units_show_bytes(canvas->axes.right, right);
    weft_text_addf(out, "%*s %s", GUTTER, "", canvas->unicode ? "└" : "+");
    for (int32_t x = 0; x < canvas->columns; x++)
        weft_text_add(out, canvas->unicode ? "─" : "-");
    weft_text_addf(out, "\n%*s  %s%*s\n", GUTTER, "", left,
                   (int)(canvas->columns - (int32_t)strlen(left)), right);
}

/* Begins an entry of that many columns, on a new line if it has no room. */
static void begin_entry(const struct canvas *canvas, size_t columns, size_t *width,
                        struct weft_text *out)
{
    bool first = *width == 0, breaks = !first && *width + 2 + columns > (size_t)canvas->columns;
    if (first || breaks)
        weft_text_addf(out, "%s%*s  ", breaks ? "\n" : "", GUTTER, "");
    else
        weft_text_add(out, "  ");
    *width = first || breaks ? columns : *width + 2 + columns;
}

static void add_legend(const struct canvas *canvas, struct weft_text *out)
{
    static const char bound[] = " proven bound", host[] = "host limit:";
    const struct weft_sweep *sweep = canvas->sweep;
    char text[WEFT_UNITS_TEXT_BYTES];
    size_t width = 0;
    if (sweep->grid) {
        begin_entry(canvas, sizeof host - 1, &width, out);
        weft_text_add(out, host);
    }
    for (int32_t c = 0; c < sweep->n_curves; c++) {
        if (weft_sweep_count_fits(&sweep->curves[c]) == 0) continue;
        const char *name = weft_sweep_name(sweep, c, text);
        begin_entry(canvas, strlen(name) + 2, &width, out);
        add_mark(canvas, c, out);
        weft_text_addf(out, " %s", name);
    }
    begin_entry(canvas, sizeof bound, &width, out);
    weft_text_addf(out, "%s%s\n", canvas->unicode ? "·" : ".", bound);
}

void weft_sweep_chart(const struct weft_sweep *sweep, int32_t columns, bool unicode,
                      struct weft_text *out)
{
    struct canvas canvas = {.sweep = sweep, .unicode = unicode};
    if (!weft_sweep_axes(sweep, false, &canvas.axes)) return;
    canvas.columns = (columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns) - GUTTER - 2;
    canvas.cells = calloc((size_t)canvas.columns * ROWS, 1);
    if (!canvas.cells) {
        out->failed = true;
        return;
    }
    draw_all(&canvas);
    for (int32_t row = 0; row < ROWS; row++)
        add_row(&canvas, row, out);
    add_axis(&canvas, out);
    add_legend(&canvas, out);
    free(canvas.cells);
}
