/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "report/html/chart.h"
#include "report/page/report.h"

/* Curves of a run over its steps. */

enum { WIDTH = 520, HEIGHT = 230, BUCKETS = 240 };

static double read_number(const struct weft_record_step *step, size_t offset)
{
    double number;
    memcpy(&number, (const char *)step + offset, sizeof number);
    return number;
}

static void put_step(struct weft_series *series, double *x, double *y,
                     const struct weft_record_step *step, size_t offset)
{
    x[series->n] = (double)step->step;
    y[series->n++] = read_number(step, offset);
}

/* Takes all steps. Of many it takes the first, and the least and the largest of each bucket. */
static void take_steps(const struct weft_record_metrics *metrics, size_t offset,
                       struct weft_series *series, double *x, double *y)
{
    const int64_t n = metrics->n_steps, n_buckets = n <= 2 * BUCKETS ? n : BUCKETS;
    for (int64_t b = 0; b < n_buckets; b++) {
        const int64_t first = n * b / n_buckets, end = n * (b + 1) / n_buckets;
        int64_t least = -1, most = -1;
        for (int64_t i = first; i < end; i++) {
            const double value = read_number(&metrics->steps[i], offset);
            if (!isfinite(value)) continue;
            if (least < 0 || value < read_number(&metrics->steps[least], offset)) least = i;
            if (most < 0 || value > read_number(&metrics->steps[most], offset)) most = i;
        }
        if (least < 0) continue;
        put_step(series, x, y, &metrics->steps[least < most ? least : most], offset);
        if (least != most)
            put_step(series, x, y, &metrics->steps[least < most ? most : least], offset);
    }
}

static enum weft_hue choose_hue(int32_t which)
{
    static const enum weft_hue hues[] = {WEFT_HUE_BLUE,  WEFT_HUE_ORANGE, WEFT_HUE_GREEN,
                                         WEFT_HUE_ROSE,  WEFT_HUE_PURPLE, WEFT_HUE_TEAL,
                                         WEFT_HUE_AMBER, WEFT_HUE_BROWN,  WEFT_HUE_MAGENTA};
    return hues[which % (int32_t)(sizeof hues / sizeof *hues)];
}

static struct weft_series *begin_series(struct weft_page *page, struct weft_chart *chart,
                                        struct weft_series *all, const char *name, int64_t n,
                                        double **x, double **y)
{
    *x = weft_page_array(page, n, sizeof **x);
    *y = weft_page_array(page, n, sizeof **y);
    if (*x == NULL || *y == NULL) return NULL;
    struct weft_series *series = &all[chart->n_series++];
    *series = (struct weft_series){.name = name, .style = WEFT_SERIES_LINE, .x = *x, .y = *y};
    return series;
}

/* One curve of the page. */
struct curve {
    const char *key, *title, *y_name;
    enum weft_measure measure;
    size_t offset;
    bool from_zero, validates, predicts;
};

#define AT(member) offsetof(struct weft_record_step, member)
static const struct curve curves[] = {
    {"loss", "Loss", "loss", WEFT_MEASURE_NUMBER, AT(loss), false, true, false},
    {"norm", "Norm of the gradients", "norm", WEFT_MEASURE_NUMBER, AT(norm), true, false, false},
    {"lr", "Learning rate", "learning rate", WEFT_MEASURE_NUMBER, AT(lr), true, false, false},
    {"step_ns", "Step time", "step", WEFT_MEASURE_NS, AT(step_ns), true, false, true},
    {"exposed_ns", "Exposed communication", "compute waits", WEFT_MEASURE_NS, AT(exposed_ns), true,
     false, false},
    {"tokens_per_s", "Tokens per second", "tokens/s", WEFT_MEASURE_COUNT, AT(tokens_per_s), true,
     false, false},
};
enum { N_CURVES = sizeof curves / sizeof *curves };

static void add_validation(struct weft_report *report, int32_t i, struct weft_chart *chart,
                           struct weft_series *all)
{
    const struct weft_source *record = &report->records[i];
    const struct weft_record_metrics *metrics = &record->metrics;
    double *x, *y;
    if (metrics->n_validations == 0) return;
    struct weft_series *series =
        begin_series(report->page, chart, all,
                     weft_page_format(report->page, "validation%s", weft_report_of(report, i)),
                     metrics->n_validations, &x, &y);
    if (series == NULL) return;
    series->hue = report->n == 1 ? WEFT_HUE_ORANGE : choose_hue(i);
    series->dashed = series->marked = true;
    for (int64_t v = 0; v < metrics->n_validations; v++) {
        x[series->n] = (double)metrics->validations[v].step;
        y[series->n++] = metrics->validations[v].loss;
    }
}

/* The predicted step, which another plan changes when a run is resumed. */
static void add_predicted(struct weft_report *report, int32_t i, struct weft_chart *chart,
                          struct weft_series *all)
{
    const struct weft_record_metrics *metrics = &report->records[i].metrics;
    double *x, *y;
    struct weft_series *series =
        begin_series(report->page, chart, all,
                     weft_page_format(report->page, "predicted%s", weft_report_of(report, i)),
                     2 * metrics->n_steps, &x, &y);
    if (series == NULL) return;
    series->hue = report->n == 1 ? WEFT_HUE_SLATE : choose_hue(i);
    series->dashed = true;
    for (int64_t s = 0; s < metrics->n_steps; s++) {
        const double ns = metrics->steps[s].predicted_step_ns;
        const bool ends =
            s + 1 == metrics->n_steps || metrics->steps[s + 1].predicted_step_ns != ns;
        const bool begins = s == 0 || metrics->steps[s - 1].predicted_step_ns != ns;
        if (isfinite(ns) && (begins || ends))
            put_step(series, x, y, &metrics->steps[s], AT(predicted_step_ns));
    }
    if (series->n == 0) chart->n_series--;
}

static const struct weft_chart *make_chart(struct weft_report *report, const struct curve *curve)
{
    struct weft_page *page = report->page;
    struct weft_chart *chart = weft_page_array(page, 1, sizeof *chart);
    struct weft_series *all = weft_page_array(page, 3 * (int64_t)report->n, sizeof *all);
    if (chart == NULL || all == NULL) return NULL;
    *chart = (struct weft_chart){.label = curve->title,
                                 .x_name = "step",
                                 .y_name = curve->y_name,
                                 .x = WEFT_MEASURE_COUNT,
                                 .y = curve->measure,
                                 .width = WIDTH,
                                 .height = HEIGHT,
                                 .from_zero = curve->from_zero,
                                 .series = all};
    bool any = false;
    for (int32_t i = 0; i < report->n; i++) {
        const struct weft_record_metrics *metrics = &report->records[i].metrics;
        double *x, *y;
        if (metrics->n_steps == 0) continue;
        struct weft_series *series =
            begin_series(page, chart, all, report->n == 1 ? "measured" : report->records[i].name,
                         2 * metrics->n_steps, &x, &y);
        if (series == NULL) return NULL;
        series->hue = choose_hue(i);
        take_steps(metrics, curve->offset, series, x, y);
        series->marked = series->n == 1;
        any |= series->n > 0;
        if (series->n == 0) chart->n_series--;
        if (curve->validates) add_validation(report, i, chart, all);
        if (curve->predicts) add_predicted(report, i, chart, all);
    }
    return any ? chart : NULL;
}

void weft_report_add_training(struct weft_report *report)
{
    struct weft_page_section *section = weft_page_section(report->page, "training", "Training");
    int32_t n = 0;
    for (int32_t i = 0; i < report->n; i++) {
        const struct weft_source *record = &report->records[i];
        const struct weft_record_metrics *metrics = &record->metrics;
        if (record->kind == WEFT_SOURCE_RUN && record->lacks_steps != NULL)
            weft_section_say(section, "No curves%s: %s.", weft_report_of(report, i),
                             record->lacks_steps);
        if (metrics->n_steps == 0) continue;
        n++;
        if (metrics->n_torn > 0)
            weft_section_say(section, "%lld torn line%s of metrics%s passed over.",
                             (long long)metrics->n_torn, metrics->n_torn == 1 ? "" : "s",
                             metrics->n_torn == 1 ? " is" : " are");
        if (metrics->n_steps > 2 * BUCKETS)
            weft_section_say(section,
                             "Of %lld steps%s, the least and the largest of each %lld are drawn.",
                             (long long)metrics->n_steps, weft_report_of(report, i),
                             (long long)(metrics->n_steps / BUCKETS));
    }
    if (n == 0) {
        weft_section_miss(section, "%s",
                          report->records[0].lacks_steps != NULL
                              ? report->records[0].lacks_steps
                              : "It needs a run: a plan has not trained.");
        return;
    }
    for (int32_t c = 0; c < N_CURVES; c++)
        weft_section_draw(section, curves[c].key, curves[c].title, &weft_drawing_chart,
                          make_chart(report, &curves[c]));
}
