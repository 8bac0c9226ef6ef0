/* SPDX-License-Identifier: Apache-2.0 */
/* Offsets of the parts of one buffer, by their lives. A part is live in the steps from `first` to
 * `last`. Parts that are live in a common step share no byte, and others may. */
#ifndef WEFT_LAYERS_SHARED_PLACE_H
#define WEFT_LAYERS_SHARED_PLACE_H

#include <stdint.h>

/* Offsets of layouts are multiples of this, and sizes of parts are rounded up to it. */
enum { WEFT_LAYOUT_ALIGN_BYTES = 64 };

struct weft_part {
    int64_t bytes; /* weft_place_parts rounds it up; negative: it overflowed */
    int32_t first, last;
    int64_t offset; /* set by weft_place_parts */
};

/* Places n parts and returns the bytes of their buffer. Each part in turn takes the lowest free
 * offset: once by first steps, and once by sizes, the largest first. The smaller buffer stands; of
 * equal ones, the buffer by sizes. If a size overflows, the result and all offsets are -1. */
int64_t weft_place_parts(struct weft_part *parts, int32_t n);

#endif
