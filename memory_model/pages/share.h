/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers smaller than a page share pages. They share if their lives are nearly equal, so that a
 * page lives little longer than its buffers. */
#ifndef WEFT_MEMORY_MODEL_PAGES_SHARE_H
#define WEFT_MEMORY_MODEL_PAGES_SHARE_H

#include <stdint.h>

#include "base/status.h"
#include "memory_model/life.h"

struct weft_small_buffer {
    int64_t bytes; /* less than a page */
    struct weft_life life;
    int32_t shares; /* out: number of its page; buffers of one number fit into one page */
};

/* Numbers pages from 0 in the order of buffers. Each buffer joins the page that it extends least,
 * if by less than its own life. *n_pages is the number of pages. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_share_pages(struct weft_small_buffer *buffers,
                                                int32_t n_buffers, int32_t n_slots,
                                                int64_t page_bytes, int32_t *n_pages,
                                                struct weft_error *err);

#endif
