/* Work on the CPU's arena: a task of a stream each. */
#include <stdatomic.h>
#include <string.h>

#include "runtime/arena/cpu.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define ARENA_UNCHECKED __attribute__((no_sanitize("address")))
static void close_bytes(const void *begin, int64_t bytes)
{
    __asan_poison_memory_region(begin, (size_t)bytes);
}
static void open_bytes(const void *begin, int64_t bytes)
{
    __asan_unpoison_memory_region(begin, (size_t)bytes);
}
#else
#define ARENA_UNCHECKED
static void close_bytes(const void *begin, int64_t bytes)
{
    (void)begin;
    (void)bytes;
}
static void open_bytes(const void *begin, int64_t bytes)
{
    (void)begin;
    (void)bytes;
}
#endif

struct fill_argument {
    unsigned char *at;
    const struct weft_range *ranges;
    int32_t n;
    unsigned char byte;
};

static enum weft_status run_fill(struct weft_stream *stream, const void *argument,
                                 struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct fill_argument *a = argument;
    for (int32_t i = 0; i < a->n; i++)
        memset(a->at + a->ranges[i].begin, a->byte,
               (size_t)(a->ranges[i].end - a->ranges[i].begin));
    return WEFT_OK;
}

void weft_arena_cpu_fill(struct weft_arena *arena, struct weft_stream *stream, void *at,
                         const struct weft_range *ranges, int32_t n_ranges, unsigned char byte)
{
    const struct fill_argument argument = {
        (unsigned char *)at + weft_arena_of_cpu(arena)->shift_bytes, ranges, n_ranges, byte};
    weft_stream_push(stream, run_fill, &argument, sizeof argument);
}

struct copy_argument {
    void *to;
    const void *from;
    size_t bytes;
};

static enum weft_status run_copy(struct weft_stream *stream, const void *argument,
                                 struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct copy_argument *a = argument;
    const bool is_word = a->bytes == sizeof(uint32_t) && (uintptr_t)a->from % a->bytes == 0;
    const uint32_t word = is_word ? atomic_load((const _Atomic uint32_t *)a->from) : 0;
    memcpy(a->to, is_word ? &word : a->from, a->bytes);
    return WEFT_OK;
}

void weft_arena_cpu_write(struct weft_arena *arena, struct weft_stream *stream, void *to,
                          const void *host, int64_t bytes)
{
    const struct copy_argument argument = {
        (unsigned char *)to + weft_arena_of_cpu(arena)->shift_bytes, host, (size_t)bytes};
    weft_stream_push(stream, run_copy, &argument, sizeof argument);
}

void weft_arena_cpu_read(struct weft_arena *arena, struct weft_stream *stream, const void *from,
                         int64_t bytes, void *host)
{
    const struct copy_argument argument = {
        host, (const unsigned char *)from + weft_arena_of_cpu(arena)->shift_bytes, (size_t)bytes};
    weft_stream_push(stream, run_copy, &argument, sizeof argument);
}

/* Takes note of the last byte of the range that is not the pattern. */
ARENA_UNCHECKED static void look_through(struct weft_arena_of_cpu *a, struct weft_range range)
{
    int64_t least = range.begin > a->touched_bytes ? range.begin : a->touched_bytes;
    int64_t at = range.end;
    while (at > least && a->view.at[at - 1] == WEFT_ARENA_PATTERN)
        at--;
    if (at > least) a->touched_bytes = at;
}

struct renew_argument {
    struct weft_arena_of_cpu *arena;
    const struct weft_range *dead, *born;
    int32_t n_dead, n_born;
};

static enum weft_status run_renew(struct weft_stream *stream, const void *argument,
                                  struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct renew_argument *r = argument;
    unsigned char *memory = r->arena->view.at;
    for (int32_t i = 0; i < r->n_dead; i++) {
        const struct weft_range range = r->dead[i];
        const int64_t bytes = range.end - range.begin;
        look_through(r->arena, range);
        open_bytes(memory + range.begin, bytes); /* it may have been closed before */
        memset(memory + range.begin, WEFT_ARENA_PATTERN, (size_t)bytes);
        close_bytes(memory + range.begin, bytes);
    }
    for (int32_t i = 0; i < r->n_born; i++)
        open_bytes(memory + r->born[i].begin, r->born[i].end - r->born[i].begin);
    return WEFT_OK;
}

void weft_arena_cpu_renew(struct weft_arena *arena, struct weft_stream *stream,
                          const struct weft_range *dead, int32_t n_dead,
                          const struct weft_range *born, int32_t n_born)
{
    const struct renew_argument argument = {weft_arena_of_cpu(arena), dead, born, n_dead, n_born};
    weft_stream_push(stream, run_renew, &argument, sizeof argument);
}

struct touched_argument {
    struct weft_arena_of_cpu *arena;
    int64_t bytes;
    int64_t *end;
};

static enum weft_status run_touched(struct weft_stream *stream, const void *argument,
                                    struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct touched_argument *a = argument;
    look_through(a->arena, (struct weft_range){0, a->bytes});
    *a->end = a->arena->touched_bytes;
    return WEFT_OK;
}

void weft_arena_cpu_touched(struct weft_arena *arena, struct weft_stream *stream, int64_t bytes,
                            int64_t *end)
{
    const struct touched_argument argument = {weft_arena_of_cpu(arena), bytes, end};
    weft_stream_push(stream, run_touched, &argument, sizeof argument);
}

void weft_arena_cpu_open_all(struct weft_arena_of_cpu *arena)
{
    if (arena->view.at != NULL) open_bytes(arena->view.at, arena->span_bytes);
}
