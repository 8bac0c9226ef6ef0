/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "report/html/chart.h"
#include "report/page/report.h"
#include "report/study/best.h"

/* Step time against memory: of sweeps, with rivals, bound and measured points; of combinations; and
 * the points of plans and runs among them. */

enum { WIDTH = 1080, HEIGHT = 360, MOST_SERIES = 64 };

struct limits_chart {
    struct weft_report *report;
    struct weft_chart *chart;
    struct weft_series *series; /* [MOST_SERIES] */
};

/* Hues of series in order; the first planner's is the strongest. */
static enum weft_hue choose_hue(int32_t which)
{
    static const enum weft_hue hues[] = {WEFT_HUE_BLUE,  WEFT_HUE_ORANGE, WEFT_HUE_GREEN,
                                         WEFT_HUE_ROSE,  WEFT_HUE_TEAL,   WEFT_HUE_PURPLE,
                                         WEFT_HUE_BROWN, WEFT_HUE_AMBER,  WEFT_HUE_MAGENTA};
    return hues[which % (int32_t)(sizeof hues / sizeof *hues)];
}

/* Adds a series with room for n points; NULL if there is none. */
static struct weft_series *add_series(struct limits_chart *limits, const char *name,
                                      enum weft_series_style style, enum weft_hue hue, int64_t n,
                                      double **x, double **y)
{
    if (limits->chart->n_series == MOST_SERIES) return NULL;
    *x = weft_page_array(limits->report->page, n, sizeof **x);
    *y = weft_page_array(limits->report->page, n, sizeof **y);
    if (*x == NULL || *y == NULL) return NULL;
    struct weft_series *series = &limits->series[limits->chart->n_series++];
    *series = (struct weft_series){.name = name, .hue = hue, .style = style, .x = *x, .y = *y};
    return series;
}

static void add_curve(struct limits_chart *limits, const struct weft_sweep *sweep, int32_t which)
{
    const struct weft_sweep_curve *curve = &sweep->curves[which];
    char text[WEFT_UNITS_TEXT_BYTES];
    double *x, *y;
    const char *name =
        weft_page_format(limits->report->page, "%s", weft_sweep_name(sweep, which, text));
    struct weft_series *series =
        add_series(limits, name, WEFT_SERIES_STAIRS, choose_hue(which), curve->n_points, &x, &y);
    int32_t n_measured = 0;
    for (int32_t i = 0; series != NULL && i < curve->n_points; i++) {
        n_measured += curve->points[i].measured_ns > 0;
        if (!curve->points[i].fits) continue;
        x[series->n] = (double)weft_sweep_x(sweep, &curve->points[i]);
        y[series->n++] = (double)curve->points[i].step_ns;
    }
    if (series == NULL) return;
    series->marked = true;
    if (series->n == 0) limits->chart->n_series--;
    if (n_measured == 0) return;
    name = weft_page_format(limits->report->page, "%s measured", name);
    series = add_series(limits, name, WEFT_SERIES_RINGS, choose_hue(which), n_measured, &x, &y);
    for (int32_t i = 0; series != NULL && i < curve->n_points; i++) {
        if (curve->points[i].measured_ns == 0) continue;
        x[series->n] = (double)weft_sweep_x(sweep, &curve->points[i]);
        y[series->n++] = (double)curve->points[i].measured_ns;
    }
}

/* The proven bound at the limits of the first curve. */
static void add_bound(struct limits_chart *limits, const struct weft_sweep *sweep)
{
    const struct weft_sweep_curve *curve = &sweep->curves[0];
    double *x, *y;
    struct weft_series *series = add_series(limits, "proven bound", WEFT_SERIES_STAIRS,
                                            WEFT_HUE_SLATE, curve->n_points, &x, &y);
    if (series == NULL) return;
    series->dashed = true;
    for (int32_t i = 0; i < curve->n_points; i++) {
        const int64_t bound_ns = weft_sweep_bound(sweep, &curve->points[i]);
        if (bound_ns <= 0) continue;
        x[series->n] = (double)weft_sweep_x(sweep, &curve->points[i]);
        y[series->n++] = (double)bound_ns;
    }
    if (series->n == 0) limits->chart->n_series--;
}

static void add_combinations(struct limits_chart *limits, const struct weft_record_best *best)
{
    double *x, *y;
    for (int32_t joint = 0; joint < 2; joint++) {
        struct weft_series *series =
            add_series(limits, joint ? "joint plan" : "one choice for all", WEFT_SERIES_MARKS,
                       joint ? WEFT_HUE_BLUE : WEFT_HUE_ORANGE, best->n_choices, &x, &y);
        for (int32_t i = 0; series != NULL && i < best->n_choices; i++) {
            const struct weft_record_choice *choice = &best->choices[i];
            if (!choice->fits || choice->is_joint != joint || !isfinite(choice->step_ns)) continue;
            x[series->n] = choice->total_bytes;
            y[series->n++] = choice->step_ns;
        }
        if (series != NULL && series->n == 0) limits->chart->n_series--;
    }
}

/* The planned and the measured step of a plan or a run, at its limit, or at its need. */
static void add_plan(struct limits_chart *limits, int32_t which, int32_t hue)
{
    struct weft_report *report = limits->report;
    const struct weft_source *record = &report->records[which];
    const struct weft_plan *plan = record->plan;
    double *x, *y;
    if (plan == NULL) return;
    const int64_t limit = plan->problem->tiers[0].limit_bytes;
    const int64_t bytes = limit != INT64_MAX ? limit : plan->prediction.total_bytes;
    struct weft_series *series =
        add_series(limits, weft_page_format(report->page, "%s predicted", record->name),
                   WEFT_SERIES_MARKS, choose_hue(hue), 1, &x, &y);
    if (series == NULL) return;
    x[0] = (double)bytes;
    y[0] = (double)plan->prediction.step_ns;
    series->n = 1;
    const double step_ns = weft_report_step_ns(report->page, record);
    if (record->kind != WEFT_SOURCE_RUN || !isfinite(step_ns)) return;
    series = add_series(limits, weft_page_format(report->page, "%s measured", record->name),
                        WEFT_SERIES_RINGS, choose_hue(hue), 1, &x, &y);
    if (series == NULL) return;
    x[0] = (double)bytes;
    y[0] = step_ns;
    series->n = 1;
}

/* Adds the rows of `weft best`. */
static void add_choices(const struct weft_record_best *best, struct weft_answer *body)
{
    static const struct weft_column columns[] = {
        {"policy", "policy", 'l', WEFT_FIGURE_WORD, 0},
        {"recompute", "recompute", 'l', WEFT_FIGURE_WORD, 0},
        {"offload", "offload", 'l', WEFT_FIGURE_WORD, 0},
        {"choices", "choices", 'l', WEFT_FIGURE_WORD, 0},
        {"step_ns", "step", 'r', WEFT_FIGURE_NS, 0},
        {"tokens_per_s", "tokens/s", 'r', WEFT_FIGURE_SHORT, 0},
        {"total_bytes", "memory", 'r', WEFT_FIGURE_BYTES, 0},
        {"state", "", 'l', WEFT_FIGURE_WORD, 0}};
    struct weft_rows *rows = weft_answer_table(body, "combinations", columns, 8);
    for (int32_t i = 0; i < best->n_choices; i++) {
        const struct weft_record_choice *choice = &best->choices[i];
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, 0, choice->policy);
        weft_rows_word(rows, 1, choice->recompute);
        weft_rows_word(rows, 2, choice->offload);
        weft_rows_word(rows, 3, choice->choices);
        if (isfinite(choice->step_ns)) weft_rows_integer(rows, 4, (int64_t)choice->step_ns);
        if (isfinite(choice->tokens_per_s)) weft_rows_real(rows, 5, choice->tokens_per_s);
        if (isfinite(choice->total_bytes)) weft_rows_integer(rows, 6, (int64_t)choice->total_bytes);
        const bool good = choice->is_joint && choice->fits;
        weft_rows_word(rows, 7, good ? "joint plan" : choice->state);
        if (good) weft_rows_paint(rows, 7, WEFT_PAINT_GOOD);
    }
}

/* Adds the series of all records. Returns the number of studies. */
static int32_t add_records(struct limits_chart *limits, struct weft_page_section *section)
{
    struct weft_report *report = limits->report;
    int32_t n_studies = 0, hue = 0;
    for (int32_t i = 0; i < report->n; i++) {
        const struct weft_sweep *sweep = report->records[i].sweep;
        n_studies += sweep != NULL || report->records[i].best != NULL;
        for (int32_t c = 0; sweep != NULL && c < sweep->n_curves; c++, hue++)
            add_curve(limits, sweep, c);
        if (sweep != NULL && !sweep->grid) add_bound(limits, sweep);
        if (sweep != NULL && n_studies == 1) weft_sweep_report(sweep, &section->body);
        if (report->records[i].best != NULL) {
            add_combinations(limits, report->records[i].best);
            if (n_studies == 1) add_choices(report->records[i].best, &section->body);
            hue += 2;
        }
    }
    for (int32_t i = 0; i < report->n && (n_studies > 0 || report->n > 1); i++)
        add_plan(limits, i, hue++);
    return n_studies;
}

void weft_report_add_limits(struct weft_report *report)
{
    struct weft_page *page = report->page;
    struct weft_page_section *section =
        weft_page_section(page, "limits", "Step time against memory");
    struct weft_chart *chart = weft_page_array(page, 1, sizeof *chart);
    struct weft_series *series = weft_page_array(page, MOST_SERIES, sizeof *series);
    if (section == NULL || chart == NULL || series == NULL) return;
    *chart = (struct weft_chart){.label = "Step time against memory",
                                 .x_name = "memory limit of a rank",
                                 .y_name = "step",
                                 .x = WEFT_MEASURE_BYTES,
                                 .y = WEFT_MEASURE_NS,
                                 .width = WIDTH,
                                 .height = HEIGHT,
                                 .series = series};
    struct limits_chart limits = {report, chart, series};
    const int32_t n_studies = add_records(&limits, section);
    if (chart->n_series < 2 && n_studies == 0) {
        weft_section_miss(section, "Rivals need a sweep: weft sweep CONFIG --json -o sweep.json, "
                                   "then name sweep.json too.");
        return;
    }
    bool has_sweep = false, has_best = false;
    for (int32_t i = 0; i < report->n; i++) {
        has_sweep |= report->records[i].sweep != NULL;
        has_best |= report->records[i].best != NULL;
    }
    if (n_studies == 0)
        weft_section_say(section, "Without rivals and bounds of other limits: name the JSON of a "
                                  "sweep too (weft sweep CONFIG --json -o sweep.json).");
    if (has_sweep)
        weft_section_say(section,
                         "A plan holds from its limit up, so a planner is a staircase. Rings are "
                         "measured. No plan is below the dashed bound.");
    if (has_best)
        weft_section_say(section, "A point without a staircase is the best plan of one "
                                  "combination, at the memory that it needs.");
    if (!has_sweep) chart->x_name = "memory of a rank";
    weft_section_draw(section, "limits", NULL, &weft_drawing_chart, chart);
}
