/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/timeline.h"

#include <string.h>

#include "report/html/html.h"

enum { TOP = 8, BOTTOM = 42, LIGHT = 12, FULL = 19, LANE_GAP = 12, ROW_GAP = 2, MOST_KINDS = 32 };
/* Spans of at least WIDE pixels are drawn alone and have a title. Narrower neighbours of one kind
 * are drawn as one if less than NEAR pixels part them. */
static const double wide = 4, near = 0.4, label_font = 10;

/* Spans that are drawn as one. */
struct box {
    double from, to;
    const struct weft_lane_span *span; /* the first */
    int32_t n;
};

static double row_height(const struct weft_span_row *row)
{
    return row->light ? LIGHT : FULL;
}

/* Whether the row begins a lane. */
static bool begins_lane(const struct weft_timeline *timeline, int32_t row)
{
    return row == 0 || strcmp(timeline->rows[row].lane, timeline->rows[row - 1].lane) != 0;
}

static void add_box(const struct box *box, double y, double height, struct weft_text *out)
{
    weft_text_add(out, "M");
    weft_html_add_place(out, box->from);
    weft_text_add(out, " ");
    weft_html_add_place(out, y);
    weft_text_addf(out, "H");
    weft_html_add_place(out, box->to);
    weft_text_addf(out, "v%.0fH", height);
    weft_html_add_place(out, box->from);
    weft_text_add(out, "z");
}

static void add_class(const struct weft_span_kind *kind, struct weft_text *out)
{
    if (kind->hatched)
        weft_text_add(out, "hatch");
    else
        weft_text_addf(out, "f%d", (int)kind->hue);
}

/* A span that is wide enough for the pointer, with a label if it has room. */
static void draw_wide(const struct weft_span_row *row, const struct box *box, double y,
                      struct weft_text *out)
{
    char time[WEFT_UNITS_TEXT_BYTES];
    const struct weft_lane_span *span = box->span;
    const double width = box->to - box->from;
    weft_text_add(out, "<path class=\"");
    add_class(span->kind, out);
    weft_text_add(out, "\" d=\"");
    add_box(box, y, row_height(row), out);
    weft_text_addf(out, "\"><title>%s %s ", row->source, span->kind->name);
    weft_html_add(out, span->name);
    weft_text_addf(out, ": %s</title></path>",
                   weft_units_show_ns((int64_t)(span->to_ns - span->from_ns), time));
    if (row->light || span->kind->hatched || weft_html_width(span->name, label_font) + 6 > width)
        return;
    weft_text_addf(out, "<text class=\"in\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">",
                   (box->from + box->to) / 2, y + 13.5);
    weft_html_add(out, span->name);
    weft_text_add(out, "</text>");
}

/* Finds the box that begins with span `first`; returns the span after it. */
static int32_t find_box(const struct weft_axis *axis, const struct weft_span_row *row,
                        int32_t first, struct box *out)
{
    int32_t next = first;
    double to = 0;
    do {
        const struct weft_lane_span *span = &row->spans[next];
        const double from = weft_axis_place(axis, span->from_ns);
        const double end = weft_axis_place(axis, span->to_ns);
        if (next > first &&
            (end - from >= wide || from - to > near || span->kind != row->spans[first].kind))
            break;
        to = end;
        next++;
        if (next == first + 1 && end - from >= wide) break;
    } while (next < row->n);
    *out = (struct box){weft_axis_place(axis, row->spans[first].from_ns), to, &row->spans[first],
                        next - first};
    return next;
}

/* Narrow boxes of a kind share one path. */
static void draw_narrow(const struct weft_axis *axis, const struct weft_span_row *row,
                        const struct weft_span_kind *kind, double y, struct weft_text *out)
{
    struct box box;
    bool begun = false;
    for (int32_t i = 0; i < row->n;) {
        i = find_box(axis, row, i, &box);
        if (box.span->kind != kind) continue;
        if (box.n == 1 && box.to - box.from >= wide) continue;
        if (!begun) weft_text_add(out, "<path class=\"");
        if (!begun) add_class(kind, out);
        if (!begun) weft_text_add(out, "\" d=\"");
        begun = true;
        add_box(&box, y, row_height(row), out);
    }
    if (begun) weft_text_add(out, "\"/>");
}

/* The kinds of all rows, in order of their first span. */
static int32_t list_kinds(const struct weft_timeline *timeline,
                          const struct weft_span_kind *kinds[MOST_KINDS])
{
    int32_t n = 0;
    for (int32_t r = 0; r < timeline->n_rows; r++) {
        for (int32_t i = 0; i < timeline->rows[r].n; i++) {
            int32_t k = 0;
            while (k < n && kinds[k] != timeline->rows[r].spans[i].kind)
                k++;
            if (k == n && n < MOST_KINDS) kinds[n++] = timeline->rows[r].spans[i].kind;
        }
    }
    return n;
}

static void draw_row(const struct weft_axis *axis, const struct weft_span_row *row, double y,
                     const struct weft_span_kind *const *kinds, int32_t n_kinds,
                     struct weft_text *out)
{
    struct box box;
    weft_text_addf(out, "<g class=\"row%s\" data-lane=\"", row->light ? " pale" : "");
    weft_html_add(out, row->lane);
    weft_text_addf(out, "\" data-source=\"%s\">", row->source);
    for (int32_t k = 0; k < n_kinds; k++)
        draw_narrow(axis, row, kinds[k], y, out);
    for (int32_t i = 0; i < row->n;) {
        i = find_box(axis, row, i, &box);
        if (box.n == 1 && box.to - box.from >= wide) draw_wide(row, &box, y, out);
    }
    weft_text_add(out, "</g>\n");
}

static void draw_legend(const struct weft_timeline *timeline,
                        const struct weft_span_kind *const *kinds, int32_t n_kinds,
                        struct weft_text *out)
{
    bool light = false, full = false;
    for (int32_t r = 0; r < timeline->n_rows; r++)
        *(timeline->rows[r].light ? &light : &full) = true;
    weft_legend_open(out);
    for (int32_t k = 0; k < n_kinds && !timeline->is_named; k++)
        weft_legend_add(out, kinds[k]->hatched ? WEFT_SIGN_HATCHED : WEFT_SIGN_SOLID, kinds[k]->hue,
                        kinds[k]->name);
    if (light && full) weft_legend_add(out, WEFT_SIGN_LIGHT, WEFT_HUE_SLATE, "above: predicted");
    if (light && full) weft_legend_add(out, WEFT_SIGN_SOLID, WEFT_HUE_SLATE, "below: measured");
    weft_legend_close(out);
}

static void draw_timeline(const void *figure, struct weft_text *out)
{
    const struct weft_timeline *timeline = figure;
    const struct weft_axis axis = {WEFT_MEASURE_NS, 0, timeline->end_ns, WEFT_TIMELINE_LEFT,
                                   WEFT_TIMELINE_WIDTH - WEFT_TIMELINE_RIGHT};
    const struct weft_span_kind *kinds[MOST_KINDS];
    const int32_t n_kinds = list_kinds(timeline, kinds);
    double height = TOP;
    for (int32_t r = 0; r < timeline->n_rows; r++)
        height += row_height(&timeline->rows[r]) + (begins_lane(timeline, r) ? LANE_GAP : ROW_GAP);
    draw_legend(timeline, kinds, n_kinds, out);
    weft_svg_open(out, WEFT_TIMELINE_WIDTH, height + BOTTOM, timeline->label);
    weft_axis_draw_x(&axis, TOP, height + 4, timeline->x_name, out);
    weft_axis_open_plot(&axis, NULL, out);
    double y = TOP;
    for (int32_t r = 0; r < timeline->n_rows; r++) {
        const struct weft_span_row *row = &timeline->rows[r];
        y += begins_lane(timeline, r) ? LANE_GAP : ROW_GAP;
        if (begins_lane(timeline, r)) {
            const bool is_pair = r + 1 < timeline->n_rows && !begins_lane(timeline, r + 1);
            const double rows = row_height(row) + (is_pair ? ROW_GAP + FULL : 0);
            weft_text_addf(out, "<text class=\"lane\" x=\"0\" y=\"%.1f\">", y + rows / 2 + 4);
            weft_html_add_cut(out, row->lane, 12, WEFT_TIMELINE_LEFT - 8);
            weft_text_add(out, "</text>");
        }
        draw_row(&axis, row, y, kinds, n_kinds, out);
        y += row_height(row);
    }
    weft_text_add(out, "</g>\n");
    weft_svg_close(out);
}

static void tell_timeline(const void *figure, const char *key, struct weft_answer *data)
{
    static const struct weft_column columns[] = {
        {"lane", NULL, 'l', WEFT_FIGURE_WORD, 0},  {"source", NULL, 'l', WEFT_FIGURE_WORD, 0},
        {"kind", NULL, 'l', WEFT_FIGURE_WORD, 0},  {"name", NULL, 'l', WEFT_FIGURE_WORD, 0},
        {"from_ns", NULL, 'r', WEFT_FIGURE_NS, 0}, {"to_ns", NULL, 'r', WEFT_FIGURE_NS, 0}};
    const struct weft_timeline *timeline = figure;
    struct weft_rows *rows = weft_answer_table(data, key, columns, 6);
    if (rows != NULL) rows->is_flat = true;
    for (int32_t r = 0; r < timeline->n_rows; r++) {
        for (int32_t i = 0; i < timeline->rows[r].n; i++) {
            const struct weft_lane_span *span = &timeline->rows[r].spans[i];
            weft_rows_begin(rows, NULL);
            weft_rows_word(rows, 0, timeline->rows[r].lane);
            weft_rows_word(rows, 1, timeline->rows[r].source);
            weft_rows_word(rows, 2, span->kind->name);
            weft_rows_word(rows, 3, span->name);
            weft_rows_integer(rows, 4, (int64_t)span->from_ns);
            weft_rows_integer(rows, 5, (int64_t)span->to_ns);
        }
    }
}

const struct weft_drawing_kind weft_drawing_timeline = {draw_timeline, tell_timeline};
