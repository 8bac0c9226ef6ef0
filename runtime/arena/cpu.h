/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's arena: a file of shared memory with a writable view. Back ends with CPU memory share
 * this header. */
#ifndef WEFT_RUNTIME_ARENA_CPU_H
#define WEFT_RUNTIME_ARENA_CPU_H

#include <stddef.h>

#include "runtime/arena/arena.h"
#include "runtime/arena/backend.h"
#include "runtime/arena/view.h"

struct weft_arena_of_cpu {
    struct weft_arena arena; /* first */
    int fd;
    bool owns_fd;
    struct weft_arena_view view;
    int64_t span_bytes;  /* of addresses; 0 if nothing is mapped */
    int64_t shift_bytes; /* distance from a work address to its memory */
    /* While watched: the shape, with its own copy of mappings, and a flag for each page. The flag
     * is true if anything but the pattern was found there. */
    struct weft_arena_shape shape;
    bool *touched; /* NULL: not watched */
};

static inline struct weft_arena_of_cpu *weft_arena_of_cpu(const struct weft_arena *arena)
{
    return (struct weft_arena_of_cpu *)arena;
}

/* Opens an arena with CPU memory. Work addresses lie `shift_bytes` (whole pages) below the
 * memory. */
WEFT_MUST_USE enum weft_status weft_arena_cpu_open(const struct weft_arena_ops *ops,
                                                   int64_t shift_bytes, int fd,
                                                   struct weft_arena **out, struct weft_error *err);
void weft_arena_cpu_close(struct weft_arena *arena);
enum weft_status weft_arena_cpu_map(struct weft_arena *arena, const struct weft_arena_shape *shape,
                                    struct weft_error *err);
void weft_arena_cpu_unmap(struct weft_arena *arena, bool give_back);
void *weft_arena_cpu_address(const struct weft_arena *arena);
unsigned char *weft_arena_cpu_memory(const struct weft_arena *arena);
int64_t weft_arena_cpu_resident_bytes(const struct weft_arena *arena);
int64_t weft_arena_cpu_mappings(const struct weft_arena *arena);

/* cpu_work.c */
void weft_arena_cpu_fill(struct weft_arena *arena, struct weft_stream *stream, void *at,
                         const struct weft_range *ranges, int32_t n_ranges, unsigned char byte);
void weft_arena_cpu_write(struct weft_arena *arena, struct weft_stream *stream, void *to,
                          const void *host, int64_t bytes);
void weft_arena_cpu_read(struct weft_arena *arena, struct weft_stream *stream, const void *from,
                         int64_t bytes, void *host);
/* cpu_watch.c */
enum weft_status weft_arena_cpu_watch(struct weft_arena *arena, struct weft_stream *stream,
                                      struct weft_error *err);
void weft_arena_cpu_renew(struct weft_arena *arena, struct weft_stream *stream,
                          const struct weft_arena_turn *turn, int32_t *margin);
void weft_arena_cpu_open_all(struct weft_arena *arena, struct weft_stream *stream);
void weft_arena_cpu_touched(struct weft_arena *arena, struct weft_stream *stream,
                            const struct weft_ranges *ranges, int64_t *bytes);
/* Ends watching. Call it before the view is unmapped. */
void weft_arena_cpu_forget(struct weft_arena_of_cpu *arena);

/* The functions of a table for arenas that weft_arena_cpu_open opens. */
#define WEFT_ARENA_CPU_FUNCTIONS                                                                   \
    .close = weft_arena_cpu_close, .map = weft_arena_cpu_map, .unmap = weft_arena_cpu_unmap,       \
    .address = weft_arena_cpu_address, .memory = weft_arena_cpu_memory,                            \
    .resident_bytes = weft_arena_cpu_resident_bytes, .mappings = weft_arena_cpu_mappings,          \
    .fill = weft_arena_cpu_fill, .write = weft_arena_cpu_write, .read = weft_arena_cpu_read,       \
    .watch = weft_arena_cpu_watch, .renew = weft_arena_cpu_renew,                                  \
    .open_all = weft_arena_cpu_open_all, .touched = weft_arena_cpu_touched

#endif
