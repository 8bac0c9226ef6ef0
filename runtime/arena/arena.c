/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/arena/arena.h"

#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/text.h"
#include "runtime/arena/backend.h"
#include "runtime/device/module.h"

#define ROW(name) &weft_arena_##name,
static const struct weft_arena_ops *const backends[] = {WEFT_DEVICES(ROW)};
#undef ROW
enum { BACKENDS = sizeof backends / sizeof backends[0] };

enum weft_status weft_arena_open(const char *name, int fd, struct weft_arena **out,
                                 struct weft_error *err)
{
    for (int i = 0; i < BACKENDS; i++) {
        if (strcmp(backends[i]->name, name) == 0) return backends[i]->open(fd, out, err);
    }
    if (weft_module_has(name)) {
        const void *ops = NULL;
        WEFT_TRY(weft_module_find("arena", name, &ops, err));
        return ((const struct weft_arena_ops *)ops)->open(fd, out, err);
    }
    struct weft_text known;
    weft_text_init(&known);
    weft_module_add_names(&known);
    weft_fail(err, WEFT_E_ENVIRONMENT, "no arena of device \"%s\" in this build: it has %s", name,
              weft_text_chars(&known));
    weft_text_finish(&known);
    return WEFT_E_ENVIRONMENT;
}

void weft_arena_close(struct weft_arena *arena)
{
    if (arena != NULL) arena->ops->close(arena);
}

struct weft_arena_shape weft_arena_whole(int64_t bytes)
{
    const int64_t page_bytes = (int64_t)sysconf(_SC_PAGESIZE);
    int64_t span_bytes;
    if (bytes <= 0 || !weft_checked_round_up(bytes, page_bytes, &span_bytes))
        return (struct weft_arena_shape){0};
    return (struct weft_arena_shape){span_bytes, page_bytes, span_bytes / page_bytes, NULL, 0};
}

/* Checks sizes, and the place of every mapping. */
static bool is_sound(const struct weft_arena_shape *shape)
{
    int64_t bytes, end = 0;
    const int64_t page_bytes = shape->page_bytes;
    if (page_bytes <= 0 || page_bytes % sysconf(_SC_PAGESIZE) != 0) return false;
    if (shape->n_pages <= 0 || !weft_checked_mul(shape->n_pages, page_bytes, &bytes)) return false;
    if (shape->span_bytes <= 0 || shape->span_bytes % page_bytes != 0) return false;
    if (shape->n_mappings == 0) return shape->span_bytes == bytes;
    for (int64_t i = 0; i < shape->n_mappings; i++) {
        const struct weft_arena_mapping *at = &shape->mappings[i];
        bool of_memory = at->first_page >= 0 && at->n_pages > 0 && at->n_pages <= shape->n_pages &&
                         at->first_page <= shape->n_pages - at->n_pages;
        if (!of_memory || at->at < end || at->at % page_bytes != 0) return false;
        if (!weft_checked_add(at->at, at->n_pages * page_bytes, &end)) return false;
    }
    return shape->n_mappings > 0 && end <= shape->span_bytes;
}

enum weft_status weft_arena_map(struct weft_arena *arena, const struct weft_arena_shape *shape,
                                struct weft_error *err)
{
    if (is_sound(shape)) return arena->ops->map(arena, shape, err);
    return weft_fail(err, WEFT_E_INTERNAL,
                     "an arena of %lld pages of %lld bytes cannot be mapped to %lld bytes of "
                     "addresses by %lld stretches",
                     (long long)shape->n_pages, (long long)shape->page_bytes,
                     (long long)shape->span_bytes, (long long)shape->n_mappings);
}

void weft_arena_unmap(struct weft_arena *arena, bool give_back)
{
    arena->ops->unmap(arena, give_back);
}

void *weft_arena_address(const struct weft_arena *arena)
{
    return arena->ops->address(arena);
}

unsigned char *weft_arena_memory(const struct weft_arena *arena)
{
    return arena->ops->memory(arena);
}

int64_t weft_arena_resident_bytes(const struct weft_arena *arena)
{
    return arena->ops->resident_bytes(arena);
}

int64_t weft_arena_mappings(const struct weft_arena *arena)
{
    return arena->ops->mappings(arena);
}

void weft_arena_fill(struct weft_arena *arena, struct weft_stream *stream, void *at,
                     const struct weft_range *ranges, int32_t n_ranges, unsigned char byte)
{
    if (n_ranges > 0) arena->ops->fill(arena, stream, at, ranges, n_ranges, byte);
}

void weft_arena_write(struct weft_arena *arena, struct weft_stream *stream, void *to,
                      const void *host, int64_t bytes)
{
    arena->ops->write(arena, stream, to, host, bytes);
}

void weft_arena_read(struct weft_arena *arena, struct weft_stream *stream, const void *from,
                     int64_t bytes, void *host)
{
    arena->ops->read(arena, stream, from, bytes, host);
}

enum weft_status weft_arena_watch(struct weft_arena *arena, struct weft_stream *stream,
                                  struct weft_error *err)
{
    return arena->ops->watch(arena, stream, err);
}

void weft_arena_renew(struct weft_arena *arena, struct weft_stream *stream,
                      const struct weft_arena_turn *turn, int32_t *margin)
{
    if (turn->dead.n + turn->born.n > 0) arena->ops->renew(arena, stream, turn, margin);
}

void weft_arena_open_all(struct weft_arena *arena, struct weft_stream *stream)
{
    arena->ops->open_all(arena, stream);
}

void weft_arena_touched(struct weft_arena *arena, struct weft_stream *stream,
                        const struct weft_ranges *ranges, int64_t *bytes)
{
    arena->ops->touched(arena, stream, ranges, bytes);
}
