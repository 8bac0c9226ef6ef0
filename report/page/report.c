/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page/report.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double weft_report_median(struct weft_page *page, const struct weft_source *record, size_t offset)
{
    enum { WARM_UP = 2 };
    const struct weft_record_metrics *metrics = &record->metrics;
    const int64_t first = metrics->n_steps > WARM_UP ? WARM_UP : 0;
    double *values = weft_page_array(page, metrics->n_steps, sizeof *values);
    size_t n = 0;
    if (values == NULL) return NAN;
    for (int64_t i = first; i < metrics->n_steps; i++) {
        double value;
        memcpy(&value, (const char *)&metrics->steps[i] + offset, sizeof value);
        if (isfinite(value)) values[n++] = value;
    }
    if (n == 0) return NAN;
    qsort(values, n, sizeof *values, compare_doubles);
    return values[n / 2];
}

double weft_report_step_ns(struct weft_page *page, const struct weft_source *record)
{
    double ns = NAN;
    if (record->result != NULL) ns = weft_record_number(weft_json_root(record->result), "step_ns");
    if (isfinite(ns)) return ns;
    return weft_report_median(page, record, offsetof(struct weft_record_step, step_ns));
}

const char *weft_report_of(const struct weft_report *report, int32_t record)
{
    if (report->n == 1) return "";
    return weft_page_format(report->page, " of %s", report->records[record].name);
}

const char *weft_report_key(const struct weft_report *report, int32_t record, const char *key)
{
    if (record == 0) return key;
    return weft_page_format(report->page, "%s_%d", key, record + 1);
}

void weft_report_fill(struct weft_page *page, const struct weft_source *records, int32_t n,
                      const char *program)
{
    struct weft_report report = {.page = page, .records = records, .n = n};
    page->program = weft_page_format(page, "made by %s", program);
    for (int32_t i = 0; i < n; i++) {
        if (records[i].plan != NULL)
            report.predicted[i] = weft_spans_of_plan(page, records[i].plan);
        if (records[i].trace != NULL)
            report.measured[i] = weft_spans_of_trace(page, records[i].trace);
        if (report.predicted[i] != NULL)
            report.end_ns = fmax(report.end_ns, report.predicted[i]->step_ns);
        if (report.measured[i] != NULL)
            report.end_ns = fmax(report.end_ns, report.measured[i]->step_ns);
    }
    if (report.end_ns < 1) report.end_ns = 1;
    weft_report_add_head(&report);
    weft_report_add_timeline(&report);
    weft_report_add_memory(&report);
    weft_report_add_limits(&report);
    weft_report_add_choices(&report);
    weft_report_add_training(&report);
    weft_report_add_errors(&report);
    weft_report_add_ranks(&report);
    weft_report_add_origin(&report);
}
