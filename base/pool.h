/* A pool owns many small host allocations that live and die together: every immutable product of
 * a stage (model, plan, trace ...) keeps one. Memory is zeroed and aligned to 64 bytes. Not for
 * what a rank trains with: that is the arena. */
#ifndef WEFT_BASE_POOL_H
#define WEFT_BASE_POOL_H

#include <stddef.h>

#include "base/compiler.h"

struct weft_pool_chunk;

struct weft_pool {
    struct weft_pool_chunk *chunks; /* newest first */
};

/* An empty pool; {0} is one too. */
void weft_pool_init(struct weft_pool *pool);

/* Frees all that the pool owns and leaves it empty. Accepts {0}. */
void weft_pool_finish(struct weft_pool *pool);

/* `count * size` zeroed bytes, or NULL when memory runs out or the product overflows.
 * A count of 0 gives a valid pointer to nothing. Owned by the pool. */
WEFT_MUST_USE void *weft_pool_array(struct weft_pool *pool, size_t count, size_t size);

/* Copy of a NUL-terminated string, or NULL. Owned by the pool. */
WEFT_MUST_USE char *weft_pool_string(struct weft_pool *pool, const char *string);

/* Formatted string, or NULL. Owned by the pool. */
WEFT_MUST_USE char *weft_pool_format(struct weft_pool *pool, const char *format, ...)
    WEFT_PRINTF(2, 3);

/* Bytes that the pool has taken from the system, for memory reports. */
size_t weft_pool_bytes(const struct weft_pool *pool);

#endif
