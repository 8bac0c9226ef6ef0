/* SPDX-License-Identifier: Apache-2.0 */
/* Work on the CPU's arena. Each function is a task of a stream. */
#include <stdatomic.h>
#include <string.h>

#include "runtime/arena/cpu.h"

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
