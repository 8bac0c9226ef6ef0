/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the CPU's arena for uses of dead memory. Each function is a task of a stream. */
#define _GNU_SOURCE /* mprotect */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "runtime/arena/cpu.h"
#include "runtime/arena/pattern.h"

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
static void close_bytes(const void *begin, int64_t bytes)
{
    __asan_poison_memory_region(begin, (size_t)bytes);
}
static void open_bytes(const void *begin, int64_t bytes)
{
    __asan_unpoison_memory_region(begin, (size_t)bytes);
}
#else
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

/* If the system cannot split a mapping any more, protection stays as it is, and the search finds
 * less. */
static void protect_pages(const struct weft_arena_of_cpu *a, const struct weft_ranges *pages,
                          int access)
{
    for (int32_t i = 0; i < pages->n; i++) {
        const struct weft_range *at = &pages->ranges[i];
        (void)mprotect(a->view.at + at->begin, (size_t)(at->end - at->begin), access);
    }
}

/* The page of memory at byte `at`, which must be mapped. */
static int64_t page_of(const struct weft_arena_shape *shape, int64_t at)
{
    int64_t low = 0, high = shape->n_mappings - 1;
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (shape->mappings[middle].at <= at) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return shape->mappings[low].first_page + (at - shape->mappings[low].at) / shape->page_bytes;
}

/* Marks pages with anything but the pattern. */
static void look_through(struct weft_arena_of_cpu *a, const struct weft_range *range)
{
    const int64_t page_bytes = a->shape.page_bytes;
    for (int64_t at = range->begin, end; at < range->end; at = end) {
        bool *touched = &a->touched[page_of(&a->shape, at)];
        end = (at / page_bytes + 1) * page_bytes;
        if (end > range->end) end = range->end;
        if (!*touched) *touched = !weft_arena_is_pattern(a->view.at + at, end - at);
    }
}

static void fill_pattern(const struct weft_arena_of_cpu *a, const struct weft_range *range)
{
    const int64_t bytes = range->end - range->begin;
    open_bytes(a->view.at + range->begin, bytes); /* it may have been closed */
    memset(a->view.at + range->begin, WEFT_ARENA_PATTERN, (size_t)bytes);
}

struct renew_argument {
    struct weft_arena_of_cpu *arena;
    const struct weft_arena_turn *turn;
    int32_t *margin;
};

static enum weft_status run_renew(struct weft_stream *stream, const void *argument,
                                  struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct renew_argument *r = argument;
    const struct weft_arena_turn *turn = r->turn;
    struct weft_arena_of_cpu *a = r->arena;
    protect_pages(a, &turn->dead_pages, PROT_READ | PROT_WRITE);
    for (int32_t i = turn->n_margins - 1; i >= 0; i--) {
        const struct weft_range *margin = &turn->margins[i];
        if (weft_arena_is_pattern(a->view.at + margin->begin, margin->end - margin->begin))
            continue;
        *r->margin = i;
        fill_pattern(a, margin);
    }
    for (int32_t i = 0; i < turn->dead.n; i++) {
        const struct weft_range *range = &turn->dead.ranges[i];
        look_through(a, range);
        fill_pattern(a, range);
        close_bytes(a->view.at + range->begin, range->end - range->begin);
    }
    protect_pages(a, &turn->closed_pages, PROT_NONE);
    protect_pages(a, &turn->born_pages, PROT_READ | PROT_WRITE);
    for (int32_t i = 0; i < turn->born.n; i++) {
        const struct weft_range *range = &turn->born.ranges[i];
        open_bytes(a->view.at + range->begin, range->end - range->begin);
    }
    return WEFT_OK;
}

void weft_arena_cpu_renew(struct weft_arena *arena, struct weft_stream *stream,
                          const struct weft_arena_turn *turn, int32_t *margin)
{
    const struct renew_argument argument = {weft_arena_of_cpu(arena), turn, margin};
    weft_stream_push(stream, run_renew, &argument, sizeof argument);
}

static struct weft_range range_of(const struct weft_arena_shape *shape, int64_t mapping)
{
    const struct weft_arena_mapping *at = &shape->mappings[mapping];
    return (struct weft_range){at->at, at->at + at->n_pages * shape->page_bytes};
}

static enum weft_status run_open_all(struct weft_stream *stream, const void *argument,
                                     struct weft_error *err)
{
    (void)stream;
    (void)err;
    struct weft_arena_of_cpu *a;
    memcpy(&a, argument, sizeof a);
    for (int64_t i = 0; i < a->shape.n_mappings; i++) {
        const struct weft_range range = range_of(&a->shape, i);
        protect_pages(a, &(struct weft_ranges){&range, 1}, PROT_READ | PROT_WRITE);
        open_bytes(a->view.at + range.begin, range.end - range.begin);
    }
    return WEFT_OK;
}

void weft_arena_cpu_open_all(struct weft_arena *arena, struct weft_stream *stream)
{
    struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    weft_stream_push(stream, run_open_all, &a, sizeof a);
}

static enum weft_status run_watch(struct weft_stream *stream, const void *argument,
                                  struct weft_error *err)
{
    (void)stream;
    (void)err;
    struct weft_arena_of_cpu *a;
    memcpy(&a, argument, sizeof a);
    for (int64_t i = 0; i < a->shape.n_mappings; i++) {
        const struct weft_range range = range_of(&a->shape, i);
        fill_pattern(a, &range);
    }
    return WEFT_OK;
}

enum weft_status weft_arena_cpu_watch(struct weft_arena *arena, struct weft_stream *stream,
                                      struct weft_error *err)
{
    struct weft_arena_of_cpu *a = weft_arena_of_cpu(arena);
    free(a->touched);
    a->touched = calloc((size_t)a->shape.n_pages, sizeof *a->touched);
    if (a->touched == NULL) return weft_fail_memory(err, "an arena's touched pages");
    weft_stream_push(stream, run_watch, &a, sizeof a);
    return WEFT_OK;
}

struct touched_argument {
    struct weft_arena_of_cpu *arena;
    const struct weft_ranges *ranges;
    int64_t *bytes;
};

static enum weft_status run_touched(struct weft_stream *stream, const void *argument,
                                    struct weft_error *err)
{
    (void)stream;
    (void)err;
    const struct touched_argument *t = argument;
    const struct weft_arena_shape *shape = &t->arena->shape;
    *t->bytes = 0;
    for (int32_t i = 0; i < t->ranges->n; i++)
        look_through(t->arena, &t->ranges->ranges[i]);
    for (int64_t page = 0; page < shape->n_pages; page++)
        *t->bytes += t->arena->touched[page] ? shape->page_bytes : 0;
    return WEFT_OK;
}

void weft_arena_cpu_touched(struct weft_arena *arena, struct weft_stream *stream,
                            const struct weft_ranges *ranges, int64_t *bytes)
{
    const struct touched_argument argument = {weft_arena_of_cpu(arena), ranges, bytes};
    weft_stream_push(stream, run_touched, &argument, sizeof argument);
}

void weft_arena_cpu_forget(struct weft_arena_of_cpu *a)
{
    if (a->view.at != NULL) open_bytes(a->view.at, a->span_bytes);
    free(a->touched);
    a->touched = NULL;
}
