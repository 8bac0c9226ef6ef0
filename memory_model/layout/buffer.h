/* A buffer as a layout sees it. */
#ifndef WEFT_MEMORY_MODEL_LAYOUT_BUFFER_H
#define WEFT_MEMORY_MODEL_LAYOUT_BUFFER_H

#include <stdint.h>

#include "memory_model/life.h"

struct weft_layout_buffer {
    int64_t
        bytes; /* a multiple of WEFT_ARENA_ALIGN_BYTES; n_pieces * (bytes / n_pieces) == bytes */
    int32_t n_pieces;
    const struct weft_life *lives; /* [n_pieces] */
    int64_t offset;                /* out */
};

#endif
