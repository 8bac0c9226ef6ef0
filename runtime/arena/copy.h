/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between the arena and the host tier (offload/tier.h), as work of a stream. If the device's
 * memory is this process's, a copier does them, and an emulated link paces it. Any other device
 * copies by itself, and needs pinned host memory. */
#ifndef WEFT_RUNTIME_ARENA_COPY_H
#define WEFT_RUNTIME_ARENA_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/copy.h"
#include "runtime/arena/arena.h"

enum { WEFT_ARENA_MOST_PIECES = 8 };

/* The pieces of one block of the link. Piece i has there[i].bytes bytes: in the arena at at[i], in
 * the tier at there[i]. */
struct weft_arena_copy {
    struct weft_copier *copier; /* for n spans a block; NULL if the device copies itself */
    enum weft_copy_direction direction;
    int32_t n;
    void *at[WEFT_ARENA_MOST_PIECES];
    struct weft_memory_span outside[WEFT_ARENA_MOST_PIECES];
};

/* True if copies need pinned memory and no copier. */
bool weft_arena_copies_by_itself(const struct weft_arena *arena);
/* Pins the memory until weft_arena_unpin. It does nothing if a copier copies. WEFT_E_SYSTEM with a
 * cure if the system or one of its limits refuses. */
WEFT_MUST_USE enum weft_status weft_arena_pin(struct weft_arena *arena,
                                              struct weft_memory_span memory,
                                              struct weft_error *err);
/* Unpins memory of weft_arena_pin. No stream may copy there any more. */
void weft_arena_unpin(struct weft_arena *arena, struct weft_memory_span memory);

/* Copies a block. The work is done once the block has left the link. Tier memory must stay
 * unchanged until then. */
void weft_arena_copy(struct weft_arena *arena, struct weft_stream *stream,
                     const struct weft_arena_copy *copy);

#endif
