/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges before they have physical pages: the range of each buffer, and the lives of each range's
 * pages. Private to memory_model/pages/. */
#ifndef WEFT_MEMORY_MODEL_PAGES_RANGES_H
#define WEFT_MEMORY_MODEL_PAGES_RANGES_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "memory_model/pages/colour.h"
#include "memory_model/pages/pages.h"

/* Consecutive pages of a range, in table 0, that live and die together. */
struct weft_page_run {
    int32_t range;
    struct weft_page_arc arc; /* `length` may exceed one period */
};

struct weft_page_ranges {
    int32_t n_ranges;
    int32_t n_resident_pages; /* of range 0; 0 without residents */
    int32_t *n_pages;         /* by range */
    int32_t *range;           /* by buffer */
    int64_t *at;              /* by buffer: its offset in the range */
    int32_t n_runs;
    struct weft_page_run *runs; /* by range and page; none for residents */
};

/* Fills the runs on a circle of n_periods periods; the pool owns the arrays. WEFT_E_SYSTEM without
 * memory; WEFT_E_DATA for sizes that cannot be numbered. */
WEFT_MUST_USE enum weft_status weft_page_ranges_fill(struct weft_page_ranges *ranges,
                                                     struct weft_pool *pool,
                                                     const struct weft_paging_inputs *inputs,
                                                     int32_t n_periods, struct weft_error *err);

#endif
