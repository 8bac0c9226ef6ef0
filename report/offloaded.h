/* SPDX-License-Identifier: Apache-2.0 */
/* Reports on offloaded bytes: the lane that binds the plan, the cost of each unit's bytes, and the
 * wear of a disk. */
#ifndef WEFT_REPORT_OFFLOADED_H
#define WEFT_REPORT_OFFLOADED_H

#include "plan/plan.h"
#include "report/answer.h"

/* Lists the time of each lane in a step, busiest first, with compute: "lanes". The first lane
 * binds: no step of these strategies is shorter, "bandwidth_bound_ns". Nothing if all bytes are on
 * the device. */
void weft_report_lanes(const struct weft_plan *plan, struct weft_answer *out);

/* Tells the bytes that all ranks write to their disk per day of such steps. If the disk's
 * endurance_bytes are known (not 0), tells also the steps until they are spent. Nothing if no bytes
 * are written. */
void weft_report_wear(const struct weft_plan *plan, int64_t endurance_bytes,
                      struct weft_answer *out);

/* A table of offloaded bytes: the location, the device bytes freed between uses, the time of moving
 * per step, and their ratio. Nothing if no bytes are offloaded. */
void weft_explain_offloaded(const struct weft_plan *plan, int32_t most_rows,
                            struct weft_answer *out);

#endif
