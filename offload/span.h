/* SPDX-License-Identifier: Apache-2.0 */
/* A span is contiguous memory. Scattered memory is a list of spans, in order. */
#ifndef WEFT_OFFLOAD_SPAN_H
#define WEFT_OFFLOAD_SPAN_H

#include <stdint.h>

struct weft_memory_span {
    unsigned char *at;
    int64_t bytes;
};

/* Sum of the bytes of all spans. */
static inline int64_t weft_span_bytes(const struct weft_memory_span *spans, int32_t n)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < n; i++)
        bytes += spans[i].bytes;
    return bytes;
}

#endif
