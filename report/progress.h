/* SPDX-License-Identifier: Apache-2.0 */
/* One line of progress: "sweep: run 3 of 20, step 5 of 20, 40 s left", "plan: best 351 ms, bound
 * 349 ms, gap 0.57 %, budget 12 %, 5.1 s so far". */
#ifndef WEFT_REPORT_PROGRESS_H
#define WEFT_REPORT_PROGRESS_H

#include "base/text.h"
#include "base/watch.h"

/* Appends the line without a line end. Parts without room in `columns` (0: no limit) are left out,
 * the least important first. */
void weft_report_progress(const struct weft_watch *watch, int32_t columns, struct weft_text *out);

#endif
