/* SPDX-License-Identifier: Apache-2.0 */
/* Watching, against a model of every byte: buffers of random shapes live and die in shared pages,
 * their bytes and bytes after them are written, and each turn finds what the model says. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "runtime/arena/arena.h"

enum { MOST_BUFFERS = 6, MOST_PAGES = 3, MEMORY_PAGES = 9, CASES = 12, TURNS = 25, NONE = -1 };

/* A buffer has a mapping of its own: its bytes, and a margin up to the end of the last page. */
struct buffer {
    struct weft_arena_mapping mapping;
    struct weft_range own, margin, pages;
    bool lives;
};

static struct weft_device *device;
static struct weft_stream *stream;
static struct weft_arena *arena;
static int64_t page;
static uint64_t seed, counter;

static struct buffer buffers[MOST_BUFFERS];
static int32_t n_buffers;
static int64_t span_bytes;
static unsigned char *model; /* of memory, by page */
static bool touched[MEMORY_PAGES];
static bool is_open[MOST_BUFFERS * (MOST_PAGES + 1)]; /* by page of addresses */

static void set_up(void)
{
    struct weft_error err = {0};
    page = sysconf(_SC_PAGESIZE);
    model = malloc((size_t)(MEMORY_PAGES * page));
    cr_assert_not_null(model);
    cr_assert_eq(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stream_create(device, "work", 0, &stream, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_arena_open("cpu", -1, &arena, &err), WEFT_OK, "%s", err.text);
}

static void tear_down(void)
{
    weft_stream_destroy(stream);
    weft_arena_close(arena);
    weft_device_close(device);
    free(model);
}

TestSuite(arena_watch, .init = set_up, .fini = tear_down);

static int64_t draw(int64_t first, int64_t last)
{
    return first + (int64_t)weft_rng_below(seed, 1, counter++, (uint64_t)(last - first) + 1);
}

static void synchronise(void)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
}

static bool can_read(const unsigned char *byte)
{
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    bool can = write(ends[1], byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return can;
}

/* The model's byte of an address in a buffer. */
static unsigned char *byte_at(const struct buffer *of, int64_t at)
{
    return model + of->mapping.first_page * page + (at - of->mapping.at);
}

static void fill_model(const struct buffer *of, const struct weft_range *range)
{
    for (int64_t at = range->begin; at < range->end; at++)
        *byte_at(of, at) = WEFT_ARENA_PATTERN;
}

static bool is_pattern(const struct buffer *of, const struct weft_range *range)
{
    for (int64_t at = range->begin; at < range->end; at++)
        if (*byte_at(of, at) != WEFT_ARENA_PATTERN) return false;
    return true;
}

static void look_through_model(const struct buffer *of)
{
    for (int64_t at = of->own.begin; at < of->own.end; at++)
        if (*byte_at(of, at) != WEFT_ARENA_PATTERN)
            touched[of->mapping.first_page + (at - of->mapping.at) / page] = true;
}

static void open_model(const struct buffer *of, bool open)
{
    for (int64_t p = of->pages.begin / page; p < of->pages.end / page; p++)
        is_open[p] = open;
}

/* Maps buffers at random; pages between them are guards. */
static void map_buffers(void)
{
    struct weft_arena_mapping mappings[MOST_BUFFERS];
    struct weft_error err = {0};
    int64_t at = 0;
    n_buffers = (int32_t)draw(2, MOST_BUFFERS);
    for (int32_t i = 0; i < n_buffers; i++) {
        const int64_t n_pages = draw(1, MOST_PAGES);
        const int64_t bytes = (n_pages - 1) * page + draw(1, page - 1);
        mappings[i] = (struct weft_arena_mapping){at, draw(0, MEMORY_PAGES - n_pages), n_pages};
        buffers[i] = (struct buffer){.mapping = mappings[i],
                                     .own = {at, at + bytes},
                                     .margin = {at + bytes, at + n_pages * page},
                                     .pages = {at, at + n_pages * page}};
        at += (n_pages + draw(0, 1)) * page;
    }
    span_bytes = at;
    const struct weft_arena_shape shape = {span_bytes, page, MEMORY_PAGES, mappings, n_buffers};
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_arena_watch(arena, stream, &err), WEFT_OK, "%s", err.text);
    memset(model, 0, (size_t)(MEMORY_PAGES * page));
    memset(touched, 0, sizeof touched);
    memset(is_open, 0, sizeof is_open);
    for (int32_t i = 0; i < n_buffers; i++) {
        fill_model(&buffers[i], &buffers[i].pages);
        open_model(&buffers[i], true);
    }
}

static bool share_pages(const struct buffer *a, const struct buffer *b)
{
    return a->mapping.first_page < b->mapping.first_page + b->mapping.n_pages &&
           b->mapping.first_page < a->mapping.first_page + a->mapping.n_pages;
}

static bool may_be_born(int32_t i)
{
    for (int32_t k = 0; k < n_buffers; k++)
        if (buffers[k].lives && share_pages(&buffers[i], &buffers[k])) return false;
    return !buffers[i].lives;
}

/* Some buffers die and one is born. Returns the first margin that was written. */
static int32_t make_turn(void)
{
    struct weft_range margins[MOST_BUFFERS], dead[MOST_BUFFERS], dead_pages[MOST_BUFFERS];
    struct weft_range born[1], born_pages[1];
    int32_t n_dead = 0, n_born = 0, known = NONE, found = NONE;
    for (int32_t i = 0; i < n_buffers; i++) {
        struct buffer *of = &buffers[i];
        if (!of->lives || draw(0, 1) == 0) continue;
        margins[n_dead] = of->margin;
        dead[n_dead] = of->own;
        dead_pages[n_dead] = of->pages;
        if (known == NONE && !is_pattern(of, &of->margin)) known = n_dead;
        n_dead++;
        look_through_model(of);
        fill_model(of, &of->pages);
        open_model(of, false);
        of->lives = false;
    }
    for (int32_t i = 0; i < n_buffers && n_born == 0; i++) {
        if (!may_be_born(i) || draw(0, 2) == 0) continue;
        born[0] = buffers[i].own;
        born_pages[0] = buffers[i].pages;
        open_model(&buffers[i], true);
        buffers[i].lives = true;
        n_born = 1;
    }
    const struct weft_arena_turn turn = {.margins = margins,
                                         .n_margins = n_dead,
                                         .dead = {dead, n_dead},
                                         .dead_pages = {dead_pages, n_dead},
                                         .closed_pages = {dead_pages, n_dead},
                                         .born = {born, n_born},
                                         .born_pages = {born_pages, n_born}};
    weft_arena_renew(arena, stream, &turn, &found);
    synchronise();
    cr_assert_eq(found, known, "margin %d, known %d", found, known);
    return known;
}

/* Writes a few bytes of live buffers, and now and then one after them. */
static void write_bytes(void)
{
    static unsigned char bytes[1 << 16];
    memset(bytes, 7, sizeof bytes);
    for (int32_t i = 0; i < n_buffers; i++) {
        const struct buffer *of = &buffers[i];
        if (!of->lives || draw(0, 1) == 0) continue;
        const bool strays = draw(0, 2) == 0;
        const struct weft_range *in = strays ? &of->margin : &of->own;
        const int64_t from = draw(in->begin, in->end - 1);
        const int64_t n = draw(1, strays || in->end - from < 300 ? 1 : 300);
        weft_arena_write(arena, stream, (unsigned char *)weft_arena_address(arena) + from, bytes,
                         n);
        memset(byte_at(of, from), 7, (size_t)n);
    }
    synchronise();
}

static void check_bytes(void)
{
    const unsigned char *memory = weft_arena_memory(arena);
    struct weft_range live[MOST_BUFFERS];
    int64_t known = 0, found = NONE;
    int32_t n = 0;
    for (int32_t i = 0; i < n_buffers; i++) {
        const struct buffer *of = &buffers[i];
        for (int64_t p = of->pages.begin; p < of->pages.end; p += page)
            cr_assert_eq(can_read(memory + p), is_open[p / page], "page %lld of buffer %d",
                         (long long)(p / page), i);
        if (!of->lives) continue;
        live[n++] = of->own;
        look_through_model(of);
        cr_assert_eq(memcmp(memory + of->own.begin, byte_at(of, of->own.begin),
                            (size_t)(of->own.end - of->own.begin)),
                     0, "buffer %d", i);
    }
    for (int32_t p = 0; p < MEMORY_PAGES; p++)
        known += touched[p] ? page : 0;
    const struct weft_ranges ranges = {live, n};
    weft_arena_touched(arena, stream, &ranges, &found);
    synchronise();
    cr_assert_eq(found, known, "%lld bytes touched, known %lld", (long long)found,
                 (long long)known);
}

Test(arena_watch, finds_what_a_model_of_all_bytes_finds)
{
    int32_t strays = 0;
    for (seed = 0; seed < CASES; seed++) {
        counter = 0;
        map_buffers();
        synchronise();
        for (int turn = 0; turn < TURNS; turn++) {
            strays += make_turn() != NONE;
            check_bytes();
            write_bytes();
        }
        weft_arena_open_all(arena, stream);
        synchronise();
        for (int32_t i = 0; i < n_buffers; i++)
            open_model(&buffers[i], true);
        check_bytes();
        weft_arena_unmap(arena, true);
    }
    cr_assert(strays > CASES, "%d margins were written", strays);
}

/* A second watch begins with no page touched. */
Test(arena_watch, begins_with_untouched_pages)
{
    struct weft_error err = {0};
    const struct weft_arena_shape whole = weft_arena_whole(3 * page);
    const struct weft_range all = {0, 3 * page};
    const struct weft_ranges ranges = {&all, 1};
    int64_t bytes = NONE;
    cr_assert_eq(weft_arena_map(arena, &whole, &err), WEFT_OK, "%s", err.text);
    for (int time = 0; time < 2; time++) {
        cr_assert_eq(weft_arena_watch(arena, stream, &err), WEFT_OK, "%s", err.text);
        weft_arena_touched(arena, stream, &ranges, &bytes);
        synchronise();
        cr_assert_eq(bytes, 0);
        weft_arena_write(arena, stream, (unsigned char *)weft_arena_address(arena) + 2 * page - 1,
                         "ab", 2);
        weft_arena_touched(arena, stream, &ranges, &bytes);
        synchronise();
        cr_assert_eq(bytes, 2 * page);
    }
}

/* A turn without dead or born bytes is no work. */
Test(arena_watch, an_empty_turn_changes_nothing)
{
    struct weft_error err = {0};
    const struct weft_arena_shape whole = weft_arena_whole(page);
    const struct weft_range all = {0, page};
    const struct weft_arena_turn turn = {.margins = &all, .n_margins = 1};
    int32_t found = NONE;
    cr_assert_eq(weft_arena_map(arena, &whole, &err), WEFT_OK, "%s", err.text);
    weft_arena_renew(arena, stream, &turn, &found);
    synchronise();
    cr_assert_eq(found, NONE);
    cr_assert_eq(*weft_arena_memory(arena), 0);
}
