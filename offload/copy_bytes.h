/* Copies of bytes that nobody reads soon: they go past the caches, which the work beside them
 * needs. */
#ifndef WEFT_OFFLOAD_COPY_BYTES_H
#define WEFT_OFFLOAD_COPY_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/span.h"

/* A way to copy; the first one, "plain", is memcpy and is always there. Behind a copy its bytes are
 * seen by every thread that a later release reaches. */
struct weft_copy_way {
    const char *name;
    bool (*is_here)(void); /* on this processor */
    void (*copy)(unsigned char *to, const unsigned char *from, int64_t bytes);
};
extern const struct weft_copy_way weft_copy_ways[];
extern const int32_t weft_copy_n_ways;

/* The best way on this processor for a copy of so many bytes. */
const struct weft_copy_way *weft_copy_way_for(int64_t bytes);

/* Copies the bytes of one list of spans to another, which has as many and shares none. */
void weft_copy_spans(const struct weft_copy_way *way, const struct weft_memory_span *to,
                     const struct weft_memory_span *from, int32_t n_from);

#endif
