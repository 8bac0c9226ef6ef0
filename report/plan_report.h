/* What a person (text) or a program (JSON) is told of a plan: what it costs, how near to the best
 * that is, which unit got which policy, and where the memory goes. */
#ifndef WEFT_REPORT_PLAN_REPORT_H
#define WEFT_REPORT_PLAN_REPORT_H

#include "base/json/json.h"
#include "base/text.h"
#include "plan/plan.h"
#include "program/program.h"

/* A paragraph and a table: policies by unit with runs of equal ones folded, prediction with bound,
 * gap and the solver's own words; memory by category at the peak. The plan is predicted; before it
 * is lowered nothing is said of pages. */
void weft_report_plan(const struct weft_plan *plan, struct weft_text *out);

/* A line of how many mappings the system keeps for a rank of it, where ranks are processes of one
 * machine; nothing where memory runs out. */
void weft_report_mappings(const struct weft_program *program, struct weft_text *out);

/* The same figures as one JSON object. */
void weft_report_plan_json(const struct weft_plan *plan, struct weft_json_writer *writer);

/* "h.0..h.3 fsdp, h.4 sdp": policies with neighbours of the same one folded, on one line. */
void weft_report_policies(const struct weft_plan *plan, struct weft_text *out);

/* The same of layers: "h.0..h.3 host, h.4 device": where what they saved is until their backward.
 * Nothing where that is decided of none. */
void weft_report_saved(const struct weft_plan *plan, struct weft_text *out);

/* Bytes by category in one slot of the plan, a table. */
void weft_report_memory(const struct weft_plan *plan, int32_t slot, struct weft_text *out);

#endif
