/* Copies between the arena and memory of the host's tier (offload/tier.h), as work of a stream. A
 * device whose memory is this process's has them done by a copier, which an emulated link paces;
 * another one copies by itself, from and to memory that is pinned: the system leaves it where it
 * is. */
#ifndef WEFT_RUNTIME_ARENA_COPY_H
#define WEFT_RUNTIME_ARENA_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "offload/copy.h"
#include "runtime/arena/arena.h"

enum { WEFT_ARENA_MOST_PIECES = 8 };

/* Pieces that together are one block of the link: piece i is there[i].bytes at at[i] of the arena,
 * and there[i] in the tier. */
struct weft_arena_copy {
    struct weft_copier *copier; /* whose blocks may have so many spans; NULL where there is none */
    enum weft_copy_direction direction;
    int32_t n;
    void *at[WEFT_ARENA_MOST_PIECES];
    struct weft_memory_span there[WEFT_ARENA_MOST_PIECES];
};

/* True: copies need no copier, and memory that is pinned. */
bool weft_arena_copies_by_itself(const struct weft_arena *arena);
/* Pins the memory until weft_arena_unpin; nothing where a copier copies. WEFT_E_SYSTEM, with what
 * would help, where the system or a limit of it refuses. */
WEFT_MUST_USE enum weft_status weft_arena_pin(struct weft_arena *arena,
                                              struct weft_memory_span memory,
                                              struct weft_error *err);
/* What weft_arena_pin pinned. No stream copies there any more. */
void weft_arena_unpin(struct weft_arena *arena, struct weft_memory_span memory);

/* The block has left the link when the work is done. Memory of the tier must stay as it is until
 * then. */
void weft_arena_copy(struct weft_arena *arena, struct weft_stream *stream,
                     const struct weft_arena_copy *copy);

#endif
