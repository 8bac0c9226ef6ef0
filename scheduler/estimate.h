/* An estimate says what each policy needs when every unit has it, in one period, whatever the
 * limit: just in time, as published rules issue, and the fastest. It gives out no pages and proves
 * nothing, so it takes milliseconds.
 *
 * RESULTS.md: estimate/estimate. */
#ifndef WEFT_SCHEDULER_ESTIMATE_H
#define WEFT_SCHEDULER_ESTIMATE_H

#include "plan/need.h"

enum { WEFT_ESTIMATE_ROWS = 13, WEFT_ESTIMATE_ALL = (1 << WEFT_ESTIMATE_ROWS) - 1 };

/* Policy, way and rule of each row, in the order in which they are shown. */
void weft_estimate_init(struct weft_need rows[WEFT_ESTIMATE_ROWS]);

/* The rows of these ways (bit w), a bit a row. */
uint32_t weft_estimate_rows_of(uint32_t ways);

/* Fills rows that are asked for (bit i) with the needs of this problem; those of rules that cannot
 * be applied to it are left as they are. With the fastest all rows of its policy are filled, for
 * one of them may be it. Names are the problem's. Without `timed` the problem's times are not:
 * nothing is the fastest then. */
WEFT_MUST_USE enum weft_status weft_estimate_fill(const struct weft_problem *problem, bool timed,
                                                  uint32_t asked,
                                                  struct weft_need rows[WEFT_ESTIMATE_ROWS],
                                                  struct weft_error *err);

#endif
