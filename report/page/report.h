/* SPDX-License-Identifier: Apache-2.0 */
/* A report is a page of one or several records: plans, runs, sweeps and answers of `weft best`. Its
 * sections have a fixed order. A section without data for these records is left out, and says
 * why. */
#ifndef WEFT_REPORT_PAGE_REPORT_H
#define WEFT_REPORT_PAGE_REPORT_H

#include "report/page/spans.h"

enum { WEFT_REPORT_RECORDS = 16 }; /* the most of one page */

struct weft_report {
    struct weft_page *page;
    const struct weft_source *records;
    int32_t n; /* 1 to WEFT_REPORT_RECORDS */
    /* By record; NULL: none. */
    const struct weft_spans *predicted[WEFT_REPORT_RECORDS], *measured[WEFT_REPORT_RECORDS];
    double end_ns; /* of every axis of a step's time */
};

/* Fills an empty page. `program` is the name with its version. The records outlive the page. */
void weft_report_fill(struct weft_page *page, const struct weft_source *records, int32_t n,
                      const char *program);

/* Parts of weft_report_fill, in the order of the page. */
void weft_report_add_head(struct weft_report *report);
void weft_report_add_timeline(struct weft_report *report);
void weft_report_add_memory(struct weft_report *report);
void weft_report_add_limits(struct weft_report *report);
void weft_report_add_choices(struct weft_report *report);
void weft_report_add_training(struct weft_report *report);
void weft_report_add_errors(struct weft_report *report);
void weft_report_add_ranks(struct weft_report *report);
/* A part of section ranks. */
void weft_report_add_hosts(struct weft_report *report, int32_t record,
                           struct weft_page_section *section);
/* Compares the hosts of several runs. */
void weft_report_compare_hosts(struct weft_report *report, struct weft_page_section *section);
void weft_report_add_origin(struct weft_report *report);

/* Median of a number of all steps after the first two, or of all if there are no more; NAN: none.
 * `offset` is that of a double in struct weft_record_step. */
double weft_report_median(struct weft_page *page, const struct weft_source *record, size_t offset);
/* The run's step as measured: of its result, otherwise the median so far; NAN: none. */
double weft_report_step_ns(struct weft_page *page, const struct weft_source *record);

/* " of NAME" if the page has several records, otherwise "". */
const char *weft_report_of(const struct weft_report *report, int32_t record);
/* "key" of the first record, "key_2" of the second. */
const char *weft_report_key(const struct weft_report *report, int32_t record, const char *key);

#endif
