/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of bytes that nothing reads soon. They bypass the caches, which other work needs. */
#ifndef WEFT_OFFLOAD_COPY_BYTES_H
#define WEFT_OFFLOAD_COPY_BYTES_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/span.h"

/* A way to copy. The first one, "plain", is memcpy and always available. After a copy its bytes are
 * visible to every thread that a later release reaches. */
struct weft_copy_way {
    const char *name;
    bool (*is_here)(void); /* whether this processor has it */
    void (*copy)(unsigned char *to, const unsigned char *from, int64_t bytes);
};
extern const struct weft_copy_way weft_copy_ways[];
extern const int32_t weft_copy_n_ways;

/* The best way on this processor for a copy of that many bytes. */
const struct weft_copy_way *weft_copy_way_for(int64_t bytes);

/* Copies a list of spans to another list of the same bytes. The lists must not overlap. */
void weft_copy_spans(const struct weft_copy_way *way, const struct weft_memory_span *to,
                     const struct weft_memory_span *from, int32_t n_from);

#endif
