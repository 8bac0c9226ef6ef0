/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a verb: one line that comes before its tables. */
#ifndef WEFT_REPORT_STUDY_FIRST_LINE_H
#define WEFT_REPORT_STUDY_FIRST_LINE_H

#include "base/text.h"
#include "plan/plan.h"
#include "report/answer.h"

/* Appends the plan's choices: "fsdp and sdp by layer, 19 layers recomputed". */
void weft_answer_ways(const struct weft_plan *plan, struct weft_text *out);

/* Appends a step: "462 ms, 70.9k tokens/s, 23.9 GiB". tokens_per_s 0: not known. */
void weft_answer_step(int64_t step_ns, double tokens_per_s, int64_t bytes, struct weft_text *out);

/* Appends the bound in words: "in pages of 64.0 KiB no plan is more than 0.11 % faster". Nothing
 * without a bound. */
void weft_answer_bound(int64_t step_ns, struct weft_plan_claim claim, struct weft_text *out);

/* Adds the line of a plan. */
void weft_answer_plan(const struct weft_plan *plan, double tokens_per_s, struct weft_answer *out);

#endif
