/* SPDX-License-Identifier: Apache-2.0 */
/* Reports on steps of ranks of unequal speed (program/jitter.h). */
#ifndef WEFT_REPORT_JITTER_H
#define WEFT_REPORT_JITTER_H

#include "program/jitter.h"
#include "report/answer.h"

/* A simulation and its result. */
struct weft_jitter_report {
    struct weft_jitter_factors factors;
    int64_t n_steps;
    struct weft_jitter_steps steps;
};

/* Adds two lines to a plan's report, and the figures as "jitter". The plan must be predicted. */
void weft_report_jitter(const struct weft_plan *plan, const struct weft_jitter_report *report,
                        struct weft_answer *out);

#endif
