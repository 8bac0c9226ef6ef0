/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's arena: its file, its limits, and work at the edges of ranges. */
#define _GNU_SOURCE /* memfd_create */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "runtime/arena/arena.h"
#include "runtime/arena/view.h"

enum { PAGES = 6, FILLS = 300, MOST_RANGES = 4 };

static int64_t page;
static struct weft_error err;

static void set_up(void)
{
    page = sysconf(_SC_PAGESIZE);
    err = (struct weft_error){0};
}

TestSuite(arena_cpu, .init = set_up);

static struct weft_arena *open_arena(int fd)
{
    struct weft_arena *arena = NULL;
    cr_assert_eq(weft_arena_open("cpu", fd, &arena, &err), WEFT_OK, "%s", err.text);
    return arena;
}

static void map_pages(struct weft_arena *arena, int64_t n)
{
    const struct weft_arena_shape whole = weft_arena_whole(n * page);
    cr_assert_eq(weft_arena_map(arena, &whole, &err), WEFT_OK, "%s", err.text);
}

static int64_t file_bytes(int fd)
{
    struct stat about;
    cr_assert_eq(fstat(fd, &about), 0);
    return (int64_t)about.st_size;
}

/* A file that others have too stays open, and keeps its pages while a peer may read them. */
Test(arena_cpu, a_given_file_outlives_the_arena)
{
    const int fd = memfd_create("test", MFD_CLOEXEC);
    cr_assert(fd >= 0);
    struct weft_arena *arena = open_arena(fd);
    map_pages(arena, PAGES);
    cr_assert_eq(file_bytes(fd), PAGES * page);
    weft_arena_memory(arena)[page] = 9;
    weft_arena_unmap(arena, false);
    cr_assert_eq(file_bytes(fd), PAGES * page);
    unsigned char byte = 0;
    cr_assert(pread(fd, &byte, 1, page) == 1 && byte == 9);
    map_pages(arena, PAGES - 1);
    cr_assert_eq(file_bytes(fd), (PAGES - 1) * page);
    weft_arena_unmap(arena, true);
    cr_assert_eq(file_bytes(fd), 0);
    map_pages(arena, PAGES);
    weft_arena_close(arena);
    cr_assert_eq(file_bytes(fd), 0, "closing gives the pages back");
    cr_assert_eq(close(fd), 0, "and leaves the file open");
    weft_arena_close(NULL);
}

/* Files of arenas that make their own: no descriptor is left. */
Test(arena_cpu, its_own_file_is_closed)
{
    const int next = dup(0);
    close(next);
    for (int i = 0; i < 5; i++) {
        struct weft_arena *arena = open_arena(-1);
        map_pages(arena, 1);
        weft_arena_close(arena);
    }
    const int again = dup(0);
    close(again);
    cr_assert_eq(again, next);
}

/* The caller's mappings are copied. */
Test(arena_cpu, a_shape_may_be_forgotten_once_it_is_mapped)
{
    struct weft_device *device;
    struct weft_stream *stream;
    struct weft_arena *arena = open_arena(-1);
    struct weft_arena_mapping mappings[] = {{0, 1, 2}, {3 * page, 0, 1}};
    const struct weft_arena_shape shape = {5 * page, page, 3, mappings, 2};
    const struct weft_range all[] = {{0, 2 * page}, {3 * page, 4 * page}};
    const struct weft_ranges ranges = {all, 2};
    int64_t bytes = -1;
    cr_assert_eq(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stream_create(device, "work", 0, &stream, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_OK, "%s", err.text);
    memset(mappings, 0x7f, sizeof mappings);
    cr_assert_eq(weft_arena_watch(arena, stream, &err), WEFT_OK, "%s", err.text);
    weft_arena_touched(arena, stream, &ranges, &bytes);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bytes, 0, "all pages hold the pattern");
    weft_stream_destroy(stream);
    weft_arena_close(arena);
    weft_device_close(device);
}

/* The kernel would end the process by a signal. Nothing is mapped, and a smaller arena may be. */
Test(arena_cpu, the_limit_of_file_sizes_is_named)
{
    struct rlimit limit;
    struct weft_arena *arena = open_arena(-1);
    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = (rlim_t)(PAGES * page);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct weft_arena_shape above = weft_arena_whole((PAGES + 1) * page);
    cr_assert_eq(weft_arena_map(arena, &above, &err), WEFT_E_SYSTEM);
    cr_assert(strstr(err.text, "RLIMIT_FSIZE") != NULL, "%s", err.text);
    cr_assert_null(weft_arena_address(arena));
    cr_assert_eq(weft_arena_resident_bytes(arena), 0);
    cr_assert_eq(weft_arena_mappings(arena), 0);
    map_pages(arena, PAGES);
    cr_assert_eq(weft_arena_resident_bytes(arena), PAGES * page);
    weft_arena_close(arena);
}

/* Random fills and copies, against an array of the same bytes. */
Test(arena_cpu, work_touches_its_bytes_and_no_others)
{
    struct weft_device *device;
    struct weft_stream *stream;
    struct weft_arena *arena = open_arena(-1);
    const int64_t bytes = PAGES * page;
    unsigned char *model = calloc(1, (size_t)bytes), *host = malloc((size_t)bytes);
    cr_assert(model != NULL && host != NULL);
    cr_assert_eq(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stream_create(device, "work", 0, &stream, &err), WEFT_OK, "%s", err.text);
    map_pages(arena, PAGES);
    unsigned char *base = weft_arena_address(arena);
    for (uint64_t i = 0, at = 0; i < FILLS; i++) {
        struct weft_range ranges[MOST_RANGES];
        const int64_t from = (int64_t)weft_rng_below(i, 1, at++, (uint64_t)bytes / 2);
        const unsigned char byte = (unsigned char)(i + 1);
        int64_t end = 0;
        for (int r = 0; r < MOST_RANGES; r++) {
            ranges[r].begin = end + (int64_t)weft_rng_below(i, 1, at++, 60);
            end = ranges[r].end = ranges[r].begin + (int64_t)weft_rng_below(i, 1, at++, 60);
            memset(model + from + ranges[r].begin, byte, (size_t)(end - ranges[r].begin));
        }
        weft_arena_fill(arena, stream, base + from, ranges, MOST_RANGES, byte);
        weft_arena_fill(arena, stream, base, ranges, 0, 77);
        const int64_t n = 1 + (int64_t)weft_rng_below(i, 1, at++, 9);
        const int64_t to =
            bytes / 2 + (int64_t)weft_rng_below(i, 1, at++, (uint64_t)(bytes / 2 - n));
        weft_arena_read(arena, stream, base + from, n, host);
        weft_arena_write(arena, stream, base + to, host, n);
        memcpy(model + to, model + from, (size_t)n);
        cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(memcmp(weft_arena_memory(arena), model, (size_t)bytes), 0, "work %llu",
                     (unsigned long long)i);
    }
    weft_stream_destroy(stream);
    weft_arena_close(arena);
    weft_device_close(device);
    free(host);
    free(model);
}

/* Spans of bytes that do not make pages are rounded up, and impossible ones are empty. */
Test(arena_cpu, a_whole_shape_is_of_whole_pages)
{
    const int64_t sizes[] = {1, page - 1, page, page + 1, 7 * page, 7 * page + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const struct weft_arena_shape shape = weft_arena_whole(sizes[i]);
        cr_assert_eq(shape.n_pages, (sizes[i] + page - 1) / page);
        cr_assert_eq(shape.span_bytes, shape.n_pages * page);
        cr_assert(shape.page_bytes == page && shape.n_mappings == 0);
    }
    cr_assert_eq(weft_arena_whole(0).span_bytes, 0);
    cr_assert_eq(weft_arena_whole(-1).span_bytes, 0);
    cr_assert_eq(weft_arena_whole(INT64_MAX).span_bytes, 0);
}
