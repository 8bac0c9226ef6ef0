/* SPDX-License-Identifier: Apache-2.0 */
/* First plans by published rules, for a work limit that is small for the problem. A search would
 * spend such a limit before its first plan. A rule decides without a search, so its plan costs
 * little. */
#ifndef WEFT_SCHEDULER_PAGED_FIRST_H
#define WEFT_SCHEDULER_PAGED_FIRST_H

#include "scheduler/paged_try.h"

/* Tries rules that were not tried yet, one after another, until `until` is over, the work is late
 * or the gap is closed. The first rule is tried in any case, and greedy at the first call. Keeps
 * the fastest plan that fits and is faster than another problem's. */
WEFT_MUST_USE enum weft_status weft_paged_first(struct weft_paged *run, struct weft_budget until,
                                                struct weft_error *err);

#endif
