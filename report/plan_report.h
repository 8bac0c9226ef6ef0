/* SPDX-License-Identifier: Apache-2.0 */
/* Reports on a plan: its cost, its distance from the best, the policies of units,
 * and the memory by category. */
#ifndef WEFT_REPORT_PLAN_REPORT_H
#define WEFT_REPORT_PLAN_REPORT_H

#include "plan/plan.h"
#include "program/program.h"
#include "report/answer.h"

/* Adds all figures, a paragraph and a table: policies by unit with equal neighbours folded, the
 * prediction with bound, gap and the solver's message, and memory by category at the peak. The plan
 * must be predicted. Pages appear only after lowering. */
void weft_report_plan(const struct weft_plan *plan, struct weft_answer *out);

/* The same in three lines, for a plan that was shown before: its planner, step and memory. */
void weft_report_plan_briefly(const struct weft_plan *plan, struct weft_answer *out);

/* Tells the number of a rank's mappings if ranks are processes of one machine. Nothing if memory
 * runs out. */
void weft_report_mappings(const struct weft_program *program, struct weft_answer *out);

/* Policies on one line with equal neighbours folded: "h.0..h.3 fsdp, h.4 sdp". */
void weft_report_policies(const struct weft_plan *plan, struct weft_text *out);

/* A table of bytes by category in one slot of the plan. */
void weft_report_memory(const struct weft_plan *plan, int32_t slot, struct weft_answer *out);

#endif
