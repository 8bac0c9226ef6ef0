/* Ranges before they have physical pages: which buffers lie in which, and which of its pages live
 * when. Private to memory_model/pages/. */
#ifndef WEFT_MEMORY_MODEL_PAGES_RANGES_H
#define WEFT_MEMORY_MODEL_PAGES_RANGES_H

#include <stdint.h>

#include "base/pool.h"
#include "base/status.h"
#include "memory_model/pages/colour.h"
#include "memory_model/pages/pages.h"

/* Pages of a range, of table 0, that live and die together. */
struct weft_page_run {
    int32_t range;
    struct weft_page_arc arc; /* `length` may be of more than one period */
};

struct weft_page_ranges {
    int32_t n_ranges;
    int32_t n_resident_pages; /* of range 0; 0 when there is no resident */
    int32_t *n_pages;         /* by range */
    int32_t *range;           /* by buffer */
    int64_t *at;              /* by buffer: in its range */
    int32_t n_runs;
    struct weft_page_run *runs; /* by range and page; none of the residents */
};

/* Runs on a circle of so many periods, arrays the pool's. WEFT_E_SYSTEM, and WEFT_E_DATA for sizes
 * that cannot be numbered. */
WEFT_MUST_USE enum weft_status weft_page_ranges_fill(struct weft_page_ranges *ranges,
                                                     struct weft_pool *pool,
                                                     const struct weft_paging_inputs *inputs,
                                                     int32_t n_periods, struct weft_error *err);

#endif
