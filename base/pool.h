/* SPDX-License-Identifier: Apache-2.0 */
/* A pool owns many small host allocations with one lifetime. Every immutable product of a stage
 * (model, plan, trace ...) has one. Memory is zeroed and aligned to 64 bytes. Training memory is in
 * the arena, not in pools. */
#ifndef WEFT_BASE_POOL_H
#define WEFT_BASE_POOL_H

#include <stddef.h>

#include "base/compiler.h"

struct weft_pool_chunk;

struct weft_pool {
    struct weft_pool_chunk *chunks; /* newest first */
};

/* Makes an empty pool; {0} is one too. */
void weft_pool_init(struct weft_pool *pool);

/* Frees everything in the pool and leaves it empty. Accepts {0}. */
void weft_pool_finish(struct weft_pool *pool);

/* Allocates `count * size` zeroed bytes; NULL without memory or on overflow. A count of 0 gives a
 * valid pointer to nothing. The pool owns the memory. */
WEFT_MUST_USE void *weft_pool_array(struct weft_pool *pool, size_t count, size_t size);

/* Copies a NUL-terminated string; NULL without memory. The pool owns it. */
WEFT_MUST_USE char *weft_pool_string(struct weft_pool *pool, const char *string);

/* Formats a string; NULL without memory. The pool owns it. */
WEFT_MUST_USE char *weft_pool_format(struct weft_pool *pool, const char *format, ...)
    WEFT_PRINTF(2, 3);

#endif
