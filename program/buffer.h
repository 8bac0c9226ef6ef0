/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer is contiguous bytes of a program: of a unit, of a layer, or of the whole step. The
 * blocks of a unit are pieces of its buffer. */
#ifndef WEFT_PROGRAM_BUFFER_H
#define WEFT_PROGRAM_BUFFER_H

#include <stdbool.h>
#include <stdint.h>

#include "memory_model/buffer_kind.h"
#include "memory_model/item_kind.h"
#include "memory_model/life.h"
#include "memory_model/weigh.h"

const char *weft_buffer_kind_name(enum weft_buffer_kind kind);
enum weft_buffer_owner weft_buffer_owner(enum weft_buffer_kind kind);

/* Whether buffers of this kind may be offloaded state. */
static inline bool weft_buffer_is_state(enum weft_buffer_kind kind)
{
    return kind == WEFT_BUFFER_MASTER || kind == WEFT_BUFFER_MOMENT1 || kind == WEFT_BUFFER_MOMENT2;
}

/* The activations that a layer's backward reads next to those that its forward saved. Forward and
 * backward read the model's tokens if attention leaves out padding. */
struct weft_layer_reads {
    bool input, output, padding;
};

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

/* The device's end of a copy of a layer's activations between tiers. `kind`: of its item, which is
 * of the family WEFT_ITEM_SAVED. A layer's input is the output of the layer before. */
struct weft_layer_copy {
    enum weft_buffer_kind buffer;
    int32_t layer; /* index of the buffer */
};
static inline struct weft_layer_copy weft_layer_copy_of(int32_t kind, int32_t layer)
{
    const bool up = weft_item_kinds[kind].acquires;
    if (weft_item_kind_is_of_input(kind))
        return (struct weft_layer_copy){up ? WEFT_BUFFER_RESTORED_OUTPUT : WEFT_BUFFER_OUTPUT,
                                        layer - 1};
    return (struct weft_layer_copy){up ? WEFT_BUFFER_RESTORED : WEFT_BUFFER_SAVED, layer};
}

#endif
