/* SPDX-License-Identifier: Apache-2.0 */
/* Tries in rows of whole pages (problem/pages.h), for runs of ilp with a plan that exceeded the
 * limit in pages. Usual pages give plans. Least pages give a bound, and at times a plan. Private to
 * scheduler/. */
#ifndef WEFT_SCHEDULER_PAGED_ROWS_H
#define WEFT_SCHEDULER_PAGED_ROWS_H

#include "scheduler/paged_try.h"

/* Plans in usual pages while the gap is open: of the run's size, then of the least size if the
 * config leaves the size open. Keeps the fastest plan that fits; run->plan may be NULL. */
WEFT_MUST_USE enum weft_status weft_paged_plan_rows(struct weft_paged *run, struct weft_error *err);

/* Bounds plans in pages of the plan's size, while its gap is open: run->paged_outcome. Keeps a
 * faster plan that is found on the way. */
WEFT_MUST_USE enum weft_status weft_paged_bound(struct weft_paged *run, struct weft_error *err);

/* Bounds plans in pages of this size of a problem without a plan that fits: run->paged_outcome.
 * Keeps a plan that is found on the way. */
WEFT_MUST_USE enum weft_status weft_paged_bound_refused(struct weft_paged *run, int64_t page_bytes,
                                                        struct weft_error *err);

/* Spends the rest of the budget on plans in usual pages, while the gap is open. */
WEFT_MUST_USE enum weft_status weft_paged_spend(struct weft_paged *run, struct weft_error *err);

/* Plans in usual pages of the least size, if the config leaves the size open and larger pages end
 * above the bound of rows. Bounds plans in the pages of the result. */
WEFT_MUST_USE enum weft_status weft_paged_spend_least(struct weft_paged *run,
                                                      struct weft_error *err);

/* Drops a plan in pages that needs too many mappings. */
WEFT_MUST_USE enum weft_status weft_paged_drop_scattered(struct weft_paged *run,
                                                         struct weft_error *err);

/* Gives pages of the least size to the run's plan, if the config leaves the size open. Drops a plan
 * that needs too many mappings. */
WEFT_MUST_USE enum weft_status weft_paged_least_pages(struct weft_paged *run,
                                                      struct weft_error *err);

#endif
