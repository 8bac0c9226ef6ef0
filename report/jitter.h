/* Reports on steps of ranks of unequal speed (program/jitter.h). */
#ifndef WEFT_REPORT_JITTER_H
#define WEFT_REPORT_JITTER_H

#include "base/json/json.h"
#include "base/text.h"
#include "program/jitter.h"

/* A simulation and its result. */
struct weft_jitter_report {
    struct weft_jitter_factors factors;
    int64_t n_steps;
    struct weft_jitter_steps steps;
};

/* Writes two lines to a plan's report. The plan must be predicted. */
void weft_report_jitter(const struct weft_plan *plan, const struct weft_jitter_report *report,
                        struct weft_text *out);

/* Writes the same figures as the key "jitter" of an open object. */
void weft_report_jitter_json(const struct weft_jitter_report *report,
                             struct weft_json_writer *writer);

#endif
