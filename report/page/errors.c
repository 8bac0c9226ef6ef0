/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "report/page/report.h"

/* Prediction errors of runs with a trace. */

enum { KIND, LAYER, COUNT, PREDICTED, MEASURED, ERROR, N_COLUMNS, MOST_NAMES = 8 };

static void add_pair(struct weft_rows *rows, const struct weft_span_pair *pair)
{
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, KIND, pair->kind->name);
    if (pair->name[0] != '\0') weft_rows_word(rows, LAYER, pair->name);
    weft_rows_integer(rows, COUNT, pair->n_right);
    weft_rows_integer(rows, PREDICTED, (int64_t)pair->left);
    weft_rows_integer(rows, MEASURED, (int64_t)pair->right);
    if (pair->left <= 0) return;
    const double error = pair->right / pair->left - 1;
    weft_rows_real(rows, ERROR, error);
    weft_rows_show(rows, ERROR, fabs(error) > 0.25 ? WEFT_PAINT_BAD : WEFT_PAINT_NONE, "%+.1f %%",
                   100 * error);
}

static void add_pairs(struct weft_report *report, int32_t i, bool named, struct weft_answer *body)
{
    static const struct weft_column columns[N_COLUMNS] = {
        [KIND] = {"kind", "kind", 'l', WEFT_FIGURE_WORD, 0},
        [LAYER] = {"name", "unit or layer", 'l', WEFT_FIGURE_WORD, 0},
        [COUNT] = {"measured", "count", 'r', WEFT_FIGURE_INTEGER, 0},
        [PREDICTED] = {"predicted_ns", "predicted", 'r', WEFT_FIGURE_NS, 0},
        [MEASURED] = {"measured_ns", "measured", 'r', WEFT_FIGURE_NS, 0},
        [ERROR] = {"error", "error", 'r', WEFT_FIGURE_PERCENT, 0}};
    struct weft_span_pair *pairs = NULL;
    const struct weft_spans *left = report->predicted[i], *right = report->measured[i];
    int32_t n = named ? weft_spans_by_name(report->page, left, right, &pairs)
                      : weft_spans_by_kind(report->page, left, right, &pairs);
    if (named && n > MOST_NAMES) n = MOST_NAMES;
    struct weft_rows *rows = weft_answer_table(
        body, weft_report_key(report, i, named ? "largest" : "kinds"), columns, N_COLUMNS);
    if (!named) weft_rows_head(rows, LAYER, NULL);
    weft_rows_title(rows, named ? "Largest differences%s" : "By kind of instruction%s",
                    weft_report_of(report, i));
    for (int32_t p = 0; p < n; p++)
        add_pair(rows, &pairs[p]);
}

/* Bars of kinds: a timeline with one span a row. */
static const struct weft_timeline *make_bars(struct weft_report *report, int32_t i)
{
    struct weft_page *page = report->page;
    struct weft_span_pair *pairs = NULL;
    const int32_t n = weft_spans_by_kind(page, report->predicted[i], report->measured[i], &pairs);
    struct weft_timeline *timeline = weft_page_array(page, 1, sizeof *timeline);
    struct weft_span_row *rows = weft_page_array(page, 2 * (int64_t)n, sizeof *rows);
    struct weft_lane_span *spans = weft_page_array(page, 2 * (int64_t)n, sizeof *spans);
    if (timeline == NULL || rows == NULL || spans == NULL) return NULL;
    *timeline = (struct weft_timeline){.label = "Time by kind of instruction, predicted and "
                                                "measured",
                                       .x_name = "time of all instructions of a kind",
                                       .end_ns = 1,
                                       .is_named = true,
                                       .n_rows = 2 * n,
                                       .rows = rows};
    for (int32_t r = 0; r < 2 * n; r++) {
        const struct weft_span_pair *pair = &pairs[r / 2];
        const double ns = r % 2 == 0 ? pair->left : pair->right;
        char text[WEFT_UNITS_TEXT_BYTES];
        spans[r] = (struct weft_lane_span){
            0, ns, pair->kind, weft_page_format(page, "%s", weft_units_show_ns((int64_t)ns, text))};
        rows[r] = (struct weft_span_row){pair->kind->name, r % 2 == 0 ? "predicted" : "measured",
                                         r % 2 == 0, 1, &spans[r]};
        timeline->end_ns = fmax(timeline->end_ns, ns);
    }
    return timeline;
}

void weft_report_add_errors(struct weft_report *report)
{
    struct weft_page_section *section =
        weft_page_section(report->page, "errors", "Prediction error by kind of instruction");
    int32_t n = 0;
    for (int32_t i = 0; section != NULL && i < report->n; i++) {
        if (report->predicted[i] == NULL || report->measured[i] == NULL) continue;
        if (n++ == 0)
            weft_section_say(section, "Both sides execute the same program, so the error is a "
                                      "difference. Times are of one step of rank 0.");
        weft_section_draw(section, weft_report_key(report, i, "bars"),
                          report->n > 1 ? report->records[i].name : NULL, &weft_drawing_timeline,
                          make_bars(report, i));
        add_pairs(report, i, false, &section->body);
        add_pairs(report, i, true, &section->body);
    }
    if (n == 0)
        weft_section_miss(section, "It needs a run with its plan and its trace (weft train --trace "
                                   "FILE).");
}
