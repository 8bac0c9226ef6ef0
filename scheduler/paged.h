/* SPDX-License-Identifier: Apache-2.0 */
/* A plan with pages. A program's memory is its plan's rows, the rounding to whole pages, and pages
 * that colouring needs beyond the fullest slot. If that exceeds the limit, the planner decides
 * again in rows lower by the excess. ilp begins with greedy's plan, and rules may use the rest of
 * its budget. */
#ifndef WEFT_SCHEDULER_PAGED_H
#define WEFT_SCHEDULER_PAGED_H

#include "scheduler/paged_try.h"

/* The page size for a problem's least limit: the largest power of two from 4 KiB to 2 MiB that is
 * at most 1/65536 of its arena. */
int64_t weft_page_of_least(const struct weft_digest *table);

/* Fills run->plan and run->outcome. WEFT_E_INFEASIBLE if no plan of the planner has rows and pages
 * within the limit. */
WEFT_MUST_USE enum weft_status weft_plan_in_pages(struct weft_paged *run, struct weft_error *err);

/* Fills run->plan with the leanest plan, even if it exceeds the limit. No plan takes less, because
 * nothing is gathered ahead of its use. */
WEFT_MUST_USE enum weft_status weft_paged_leanest(struct weft_paged *run, struct weft_error *err);

#endif
