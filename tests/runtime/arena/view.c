/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes: the pages of each address, the guards, and messages about the limits. */
#define _GNU_SOURCE /* RLIMIT_AS */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/rng.h"
#include "runtime/arena/arena.h"
#include "runtime/arena/view.h"
#include "tests/effort.h"

enum { MOST_MAPPINGS = 24, MOST_STRETCH = 6, SHAPES = TEST_CASES(60, 20) };
#define LARGE_PAGE (INT64_C(2) << 20)

static struct weft_arena *arena;
static int64_t system_page;

static void set_up(void)
{
    struct weft_error err = {0};
    system_page = sysconf(_SC_PAGESIZE);
    cr_assert_eq(weft_arena_open("cpu", -1, &arena, &err), WEFT_OK, "%s", err.text);
}

static void tear_down(void)
{
    weft_arena_close(arena);
}

TestSuite(arena_view, .init = set_up, .fini = tear_down);

/* A system call that reads the byte says whether it can be read, without a signal. */
static bool can_read(const unsigned char *byte)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    bool can = write(ends[1], byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return can;
}

static int64_t draw(uint64_t seed, uint64_t *counter, int64_t first, int64_t last)
{
    return first + (int64_t)weft_rng_below(seed, 1, (*counter)++, (uint64_t)(last - first) + 1);
}

/* Stretches at random, so that some pages have several addresses and some none. */
static struct weft_arena_shape random_shape(uint64_t seed, int64_t page_bytes,
                                            struct weft_arena_mapping *mappings)
{
    uint64_t counter = 0;
    struct weft_arena_shape shape = {.page_bytes = page_bytes, .mappings = mappings};
    shape.n_pages = draw(seed, &counter, 1, 20);
    shape.n_mappings = draw(seed, &counter, 1, MOST_MAPPINGS);
    int64_t at = 0;
    for (int64_t i = 0; i < shape.n_mappings; i++) {
        const int64_t most = shape.n_pages < MOST_STRETCH ? shape.n_pages : MOST_STRETCH;
        at += draw(seed, &counter, 0, 2);
        mappings[i].at = at * page_bytes;
        mappings[i].n_pages = draw(seed, &counter, 1, most);
        mappings[i].first_page = draw(seed, &counter, 0, shape.n_pages - mappings[i].n_pages);
        at += mappings[i].n_pages;
    }
    shape.span_bytes = (at + draw(seed, &counter, 0, 2)) * page_bytes;
    return shape;
}

/* The page of memory that the page of addresses is of; -1: a guard. */
static int64_t page_of(const struct weft_arena_shape *shape, int64_t page)
{
    for (int64_t i = 0; i < shape->n_mappings; i++) {
        const int64_t in = page - shape->mappings[i].at / shape->page_bytes;
        if (in >= 0 && in < shape->mappings[i].n_pages) return shape->mappings[i].first_page + in;
    }
    return -1;
}

/* Each page of addresses in turn gets a number, at a place that differs by page; all that are of
 * the same memory then hold it, and no other. */
static void check_shape(const struct weft_arena_shape *shape)
{
    unsigned char *memory = weft_arena_memory(arena);
    const int64_t n = shape->span_bytes / shape->page_bytes;
    cr_assert(!can_read(memory - 1) && !can_read(memory + shape->span_bytes));
    for (int64_t p = 0; p < n; p++) {
        cr_assert_eq(can_read(memory + p * shape->page_bytes), page_of(shape, p) >= 0);
        cr_assert_eq(can_read(memory + (p + 1) * shape->page_bytes - 1), page_of(shape, p) >= 0);
    }
    for (int64_t p = 0; p < n; p++) {
        const int64_t place = p * 97 % shape->page_bytes;
        if (page_of(shape, p) < 0) continue;
        memory[p * shape->page_bytes + place] = 7;
        for (int64_t q = 0; q < n; q++) {
            if (page_of(shape, q) < 0) continue;
            const bool same = page_of(shape, q) == page_of(shape, p);
            cr_assert_eq(memory[q * shape->page_bytes + place], same ? 7 : 0);
        }
        memory[p * shape->page_bytes + place] = 0;
    }
}

Test(arena_view, addresses_are_of_the_pages_that_the_shape_says)
{
    static const int64_t pages[] = {1, 16, 512};
    struct weft_arena_mapping mappings[MOST_MAPPINGS];
    for (uint64_t seed = 0; seed < SHAPES; seed++) {
        struct weft_error err = {0};
        const struct weft_arena_shape shape =
            random_shape(seed, pages[seed % 3] * system_page, mappings);
        cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(weft_arena_resident_bytes(arena), shape.n_pages * shape.page_bytes);
        cr_assert(weft_arena_mappings(arena) >= shape.n_mappings + 2);
        cr_assert(weft_arena_mappings(arena) <= 2 * shape.n_mappings + 2);
        check_shape(&shape);
        cr_assert_eq(weft_arena_resident_bytes(arena), shape.n_pages * shape.page_bytes);
        weft_arena_unmap(arena, true);
        cr_assert_eq(weft_arena_mappings(arena), 0);
    }
}

static bool is_read(const struct weft_ranges *reads, int64_t begin, int64_t end)
{
    for (int32_t i = 0; i < reads->n; i++)
        if (reads->ranges[i].begin < end && reads->ranges[i].end > begin) return true;
    return false;
}

static int64_t round_to_page(int64_t bytes)
{
    return (bytes + system_page - 1) / system_page * system_page;
}

/* A peer's view: pages with bytes that it reads, and no others; below it, addresses stay free. */
Test(arena_view, a_view_has_the_pages_that_are_read)
{
    enum { MOST_READS = 8 };
    struct weft_arena_mapping mappings[MOST_MAPPINGS];
    for (uint64_t seed = 100; seed < 100 + SHAPES; seed++) {
        struct weft_error err = {0};
        struct weft_range ranges[MOST_READS];
        struct weft_ranges reads = {ranges, 0};
        struct weft_arena_view view = {0};
        const struct weft_arena_shape shape = random_shape(seed, system_page, mappings);
        const int fd = memfd_create("test", MFD_CLOEXEC);
        uint64_t counter = 1000;
        int64_t at = 0;
        cr_assert(fd >= 0 && ftruncate(fd, shape.n_pages * system_page) == 0);
        for (int64_t p = 0; p < shape.n_pages; p++) {
            const unsigned char number = (unsigned char)(p + 1);
            cr_assert_eq(pwrite(fd, &number, 1, p * system_page), 1);
        }
        while (reads.n < MOST_READS && at < shape.span_bytes) {
            int64_t begin = at + draw(seed, &counter, 0, 3 * system_page);
            if (draw(seed, &counter, 0, 1) == 0) begin = round_to_page(begin);
            at = begin + draw(seed, &counter, 1, 2 * system_page);
            if (draw(seed, &counter, 0, 1) == 0) at = round_to_page(at);
            ranges[reads.n++] = (struct weft_range){begin, at};
        }
        const struct weft_arena_view_options options = {
            .fd = fd, .shape = &shape, .below_bytes = 3 * system_page, .reads = &reads};
        cr_assert_eq(weft_arena_view_map(&view, &options, &err), WEFT_OK, "%s", err.text);
        for (int64_t p = 0; p < shape.span_bytes / system_page && view.at != NULL; p++) {
            const unsigned char *address = view.at + p * system_page;
            const bool there =
                page_of(&shape, p) >= 0 && is_read(&reads, p * system_page, (p + 1) * system_page);
            cr_assert_eq(can_read(address), there, "shape %d, page %d", (int)seed, (int)p);
            if (there) cr_assert_eq(*address, page_of(&shape, p) + 1);
        }
        for (int p = 1; p <= 4 && view.at != NULL; p++)
            cr_assert_not(can_read(view.at - p * system_page));
        weft_arena_view_unmap(&view);
        cr_assert(view.reservation == NULL && view.at == NULL && view.n_mappings == 0);
        close(fd);
    }
}

/* Two tables: the same buffers at two addresses each, in other pages. */
Test(arena_view, two_tables_give_a_buffer_other_pages)
{
    struct weft_error err = {0};
    const struct weft_arena_mapping mappings[] = {{0, 0, 1},
                                                  {2 * system_page, 1, 2}, /* even: a, then b */
                                                  {5 * system_page, 2, 1},
                                                  {7 * system_page, 2, 1}, /* odd */
                                                  {8 * system_page, 1, 1},
                                                  {10 * system_page, 1, 1}};
    const struct weft_arena_shape shape = {12 * system_page, system_page, 3, mappings, 6};
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_OK, "%s", err.text);
    unsigned char *memory = weft_arena_memory(arena);
    memory[2 * system_page] = 1;
    memory[3 * system_page] = 2;
    cr_assert_eq(memory[5 * system_page], 2);
    cr_assert_eq(memory[7 * system_page], 2);
    cr_assert_eq(memory[8 * system_page], 1);
    cr_assert_eq(memory[10 * system_page], 1);
}

/* Bytes of this process's shared memory that large pages are of. */
static int64_t large_bytes(void)
{
    char line[256];
    int64_t kib, sum = 0;
    FILE *smaps = fopen("/proc/self/smaps", "r");
    cr_assert_not_null(smaps);
    while (fgets(line, sizeof line, smaps) != NULL) {
        if (sscanf(line, "ShmemPmdMapped: %ld", &kib) == 1) sum += kib * 1024;
    }
    fclose(smaps);
    return sum;
}

/* If the system makes large pages of an arena, aligned stretches get them too. */
Test(arena_view, large_stretches_keep_large_pages)
{
    struct weft_error err = {0};
    const int64_t n = LARGE_PAGE / system_page;
    const struct weft_arena_shape whole = weft_arena_whole(4 * LARGE_PAGE);
    const struct weft_arena_mapping mappings[] = {
        {0, 2 * n, 2 * n}, {3 * LARGE_PAGE, n, n}, {5 * LARGE_PAGE, n, 2 * n}};
    struct weft_arena_shape shape = {8 * LARGE_PAGE, system_page, 4 * n, mappings, 3};
    cr_assert_eq(weft_arena_map(arena, &whole, &err), WEFT_OK, "%s", err.text);
    const int64_t before_bytes = large_bytes();
    weft_arena_unmap(arena, true);
    if (before_bytes < 4 * LARGE_PAGE) cr_skip_test("the system gives no large pages");
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(large_bytes(), 5 * LARGE_PAGE);
}

Test(arena_view, what_is_no_shape_is_refused)
{
    const int64_t p = system_page;
    const struct weft_arena_mapping over[] = {{0, 0, 2}, {p, 2, 1}};
    const struct weft_arena_mapping outside[] = {{0, 3, 2}}, before[] = {{0, -1, 2}};
    const struct weft_arena_mapping beyond[] = {{3 * p, 0, 2}}, odd[] = {{100, 0, 1}};
    const struct weft_arena_mapping empty[] = {{0, 0, 0}}, huge[] = {{0, 1, INT64_MAX}};
    const struct weft_arena_shape bad[] = {
        {4 * p, p, 4, over, 2},
        {4 * p, p, 4, outside, 1},
        {4 * p, p, 4, before, 1},
        {4 * p, p, 4, beyond, 1},
        {4 * p, p, 4, odd, 1},
        {4 * p, p, 4, empty, 1},
        {4 * p, p, 4, huge, 1},
        {4 * p, p / 2, 4, NULL, 0},
        {4 * p, 0, 4, NULL, 0},
        {4 * p + 1, p, 4, over, 1},
        {4 * p, p, 3, NULL, 0},
        {4 * p, p, 4, over, -1},
        {INT64_MAX / p * p, p, INT64_MAX / p, NULL, 0},
        {4 * p, p, INT64_MAX, over, 1},
        {0, p, 0, NULL, 0},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct weft_error err = {0};
        cr_assert_eq(weft_arena_map(arena, &bad[i], &err), WEFT_E_INTERNAL, "shape %zu", i);
        cr_assert_eq(weft_arena_mappings(arena), 0);
    }
}

/* More stretches than the system lets a process map, by its own limit. */
Test(arena_view, the_limit_of_mappings_is_named)
{
    struct weft_error err = {0};
    int64_t most = 0;
    FILE *limit = fopen("/proc/sys/vm/max_map_count", "r");
    cr_assert(limit != NULL && fscanf(limit, "%ld", &most) == 1);
    fclose(limit);
    if (most > INT64_C(1) << 20) cr_skip_test("the limit is too high to be met");
    struct weft_arena_mapping *mappings = calloc((size_t)most, sizeof *mappings);
    for (int64_t i = 0; i < most; i++)
        mappings[i] = (struct weft_arena_mapping){2 * i * system_page, i % 2, 1};
    struct weft_arena_shape shape = {2 * most * system_page, system_page, 2, mappings, most};
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_E_SYSTEM);
    cr_assert(strstr(err.text, "vm.max_map_count") && strstr(err.text, "larger pages"), "%s",
              err.text);
    /* A part of them it does map. */
    shape.n_mappings = most / 4;
    err.status = WEFT_OK;
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_OK, "%s", err.text);
    free(mappings);
}

/* A sanitizer's own memory is refused by RLIMIT_AS too, and it ends the process then. */
Test(arena_view, the_limit_of_addresses_is_named, .disabled = TEST_SANITIZED)
{
    struct weft_error err = {0};
    const struct rlimit limit = {INT64_C(1) << 30, INT64_C(1) << 30};
    const struct weft_arena_mapping one = {0, 0, 1};
    const struct weft_arena_shape shape = {INT64_C(2) << 30, system_page, 1, &one, 1};
    cr_assert_eq(setrlimit(RLIMIT_AS, &limit), 0);
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_E_SYSTEM);
    cr_assert(strstr(err.text, "RLIMIT_AS"), "%s", err.text);
}
