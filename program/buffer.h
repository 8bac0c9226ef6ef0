/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer is contiguous bytes of a program: of a unit, of a layer, or of the whole step. The
 * blocks of a unit are pieces of its buffer. */
#ifndef WEFT_PROGRAM_BUFFER_H
#define WEFT_PROGRAM_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_model/buffer_kind.h"
#include "memory_model/life.h"
#include "memory_model/weigh.h"

const char *weft_buffer_kind_name(enum weft_buffer_kind kind);

/* Whether buffers of this kind may be offloaded state. */
static inline bool weft_buffer_is_state(enum weft_buffer_kind kind)
{
    return kind == WEFT_BUFFER_MASTER || kind == WEFT_BUFFER_MOMENT1 || kind == WEFT_BUFFER_MOMENT2;
}

struct weft_buffer {
    enum weft_buffer_kind kind;
    enum weft_category category;
    int32_t index; /* unit, layer, or -1 */
    /* FULL: number of the residency. SHARD on the host: 0 in the update, otherwise 1 + number of
     * the residency. GRADIENT, PARTIAL: number of the reduction. INPUT to BACKWARD_TEMPORARY:
     * number of the micro-step. Otherwise 0. */
    int32_t instance;
    int64_t used_bytes;            /* that work may touch */
    int64_t bytes;                 /* rounded to the arena's alignment */
    int32_t n_pieces;              /* blocks of a unit's buffers that do not persist; otherwise 1 */
    const struct weft_life *lives; /* [n_pieces], in slots */
};

#endif
