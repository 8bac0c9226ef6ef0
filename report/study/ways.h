/* SPDX-License-Identifier: Apache-2.0 */
/* Reports on the strategies of a problem: bytes and times of each, for one decision of every group
 * of identical ones. Bytes are those with gathers just in time, and nothing overlaps. */
#ifndef WEFT_REPORT_STUDY_WAYS_H
#define WEFT_REPORT_STUDY_WAYS_H

#include "problem/problem.h"
#include "report/answer.h"
#include "spec/layer.h"
#include "spec/model.h"

/* Adds two tables of text, for the largest group of units and of layers, and the table "strategies"
 * of data for all. Times are "-" or null unless `timed`. A kind of layer without choices has no
 * table of text. The model and the batch are the problem's. */
void weft_report_ways(const struct weft_problem *problem, const struct weft_model *model,
                      const struct weft_batch *batch, bool timed, struct weft_answer *answer);

#endif
