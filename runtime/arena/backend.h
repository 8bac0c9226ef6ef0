/* SPDX-License-Identifier: Apache-2.0 */
/* An arena back end is a const table of functions. Its arena begins with struct weft_arena. Only
 * back ends and arena.c include this file. arena.h states the contract of each function. */
#ifndef WEFT_RUNTIME_ARENA_BACKEND_H
#define WEFT_RUNTIME_ARENA_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "offload/span.h"
#include "runtime/device/backends.h"

struct weft_arena;
struct weft_arena_copy; /* copy.h */
struct weft_arena_shape;
struct weft_arena_turn;
struct weft_range;
struct weft_ranges;
struct weft_stream;

struct weft_arena_ops {
    const char *name;
    enum weft_status (*open)(int fd, struct weft_arena **out, struct weft_error *err);
    void (*close)(struct weft_arena *arena);
    /* The caller has checked the shape. Memory may be allocated in parts, because only stretches
     * are mapped. */
    enum weft_status (*map)(struct weft_arena *arena, const struct weft_arena_shape *shape,
                            struct weft_error *err);
    void (*unmap)(struct weft_arena *arena, bool give_back);
    void *(*address)(const struct weft_arena *arena);
    unsigned char *(*memory)(const struct weft_arena *arena);
    int64_t (*resident_bytes)(const struct weft_arena *arena);
    int64_t (*mappings)(const struct weft_arena *arena);
    void (*fill)(struct weft_arena *arena, struct weft_stream *stream, void *at,
                 const struct weft_range *ranges, int32_t n_ranges, unsigned char byte);
    void (*write)(struct weft_arena *arena, struct weft_stream *stream, void *to, const void *host,
                  int64_t bytes);
    void (*read)(struct weft_arena *arena, struct weft_stream *stream, const void *from,
                 int64_t bytes, void *host);
    /* Functions of copy.h, for a device that copies by itself; otherwise all three are NULL. */
    enum weft_status (*pin)(struct weft_arena *arena, struct weft_memory_span memory,
                            struct weft_error *err);
    void (*unpin)(struct weft_arena *arena, struct weft_memory_span memory);
    void (*copy)(struct weft_arena *arena, struct weft_stream *stream,
                 const struct weft_arena_copy *copy);
    enum weft_status (*watch)(struct weft_arena *arena, struct weft_stream *stream,
                              struct weft_error *err);
    void (*renew)(struct weft_arena *arena, struct weft_stream *stream,
                  const struct weft_arena_turn *turn, int32_t *margin);
    void (*open_all)(struct weft_arena *arena, struct weft_stream *stream);
    void (*touched)(struct weft_arena *arena, struct weft_stream *stream,
                    const struct weft_ranges *ranges, int64_t *bytes);
};

#define WEFT_ARENA_DECLARE(name) extern const struct weft_arena_ops weft_arena_##name;
WEFT_DEVICES(WEFT_ARENA_DECLARE)
#undef WEFT_ARENA_DECLARE

struct weft_arena {
    const struct weft_arena_ops *ops;
};

#endif
