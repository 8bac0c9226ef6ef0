/* Which buffers smaller than a page lie on one together: those whose lives are nearly the same, so
 * that a page lives little longer than what is on it. */
#ifndef WEFT_MEMORY_MODEL_PAGES_SHARE_H
#define WEFT_MEMORY_MODEL_PAGES_SHARE_H

#include <stdint.h>

#include "base/status.h"
#include "memory_model/life.h"

struct weft_small_buffer {
    int64_t bytes; /* less than a page */
    struct weft_life life;
    int32_t shares; /* out: number of its page; those of one number make up one page at most */
};

/* Numbers pages from 0 in the order of buffers; each joins the page whose life it lengthens least,
 * if that is by less than its own life. *n_pages is how many there are. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_share_pages(struct weft_small_buffer *buffers,
                                                int32_t n_buffers, int32_t n_slots,
                                                int64_t page_bytes, int32_t *n_pages,
                                                struct weft_error *err);

#endif
