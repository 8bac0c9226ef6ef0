/* Reports on the strategies of a problem: bytes and times of each, for one decision of every group
 * of identical ones. Bytes are those with gathers just in time, and nothing overlaps. */
#ifndef WEFT_REPORT_STUDY_WAYS_H
#define WEFT_REPORT_STUDY_WAYS_H

#include "base/json/json.h"
#include "base/text.h"
#include "problem/problem.h"
#include "spec/model.h"

/* Adds two tables, for the largest group of units and of layers. Times are "-" unless `timed`. A
 * kind of layer without choices has no table. The model is the problem's. */
void weft_report_ways(const struct weft_problem *problem, const struct weft_model *model,
                      bool timed, struct weft_text *out);

/* Puts the member "strategies": an array with an object for each strategy of each group. Times are
 * null unless `timed`. */
void weft_report_ways_json(const struct weft_problem *problem, const struct weft_model *model,
                           bool timed, struct weft_json_writer *writer);

#endif
