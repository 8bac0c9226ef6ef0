/* SPDX-License-Identifier: Apache-2.0 */
/* An estimate states the need of each policy in one period, with that policy for every unit and
 * without a limit. There are three ways: just in time, as published rules issue, and the fastest.
 * An estimate gives out no pages and proves nothing, so it takes milliseconds.
 *
 * RESULTS.md: estimate/estimate. */
#ifndef WEFT_SCHEDULER_ESTIMATE_H
#define WEFT_SCHEDULER_ESTIMATE_H

#include "plan/need.h"

enum { WEFT_ESTIMATE_ROWS = 13, WEFT_ESTIMATE_ALL = (1 << WEFT_ESTIMATE_ROWS) - 1 };

/* Fills policy, way and rule of each row, in the order of display. */
void weft_estimate_init(struct weft_need rows[WEFT_ESTIMATE_ROWS]);

/* The rows of these ways (bit w), one bit for each row. */
uint32_t weft_estimate_rows_of(uint32_t ways);

/* Fills the rows that are asked for (bit i) with the needs of this problem. Rows of rules that
 * cannot be applied to it stay unchanged. If the fastest is asked for, all rows of its policy are
 * filled, because each may be it. Names are the problem's. Without `timed` the problem's times are
 * not known: there are no step times, and no row is the fastest. */
WEFT_MUST_USE enum weft_status weft_estimate_fill(const struct weft_problem *problem, bool timed,
                                                  uint32_t asked,
                                                  struct weft_need rows[WEFT_ESTIMATE_ROWS],
                                                  struct weft_error *err);

#endif
