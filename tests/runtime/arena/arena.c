/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: where it lies, and the work that is done in it. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/arena/arena.h"

enum { BYTES = 3 << 20, PAGE = 4096 };

static struct weft_device *device;
static struct weft_stream *stream;
static struct weft_arena *arena;

static enum weft_status map_whole(int64_t bytes, struct weft_error *err)
{
    const struct weft_arena_shape whole = weft_arena_whole(bytes);
    return weft_arena_map(arena, &whole, err);
}

/* Which device: conformance of another one is these tests with its name. */
static const char *name_of_device(void)
{
    const char *named = getenv("WEFT_TEST_DEVICE");
    return named != NULL ? named : "cpu";
}

static void set_up(void)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_device_open(name_of_device(), WEFT_CLOCK_WALL, &device, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(weft_stream_create(device, "work", 0, &stream, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_arena_open(name_of_device(), -1, &arena, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(map_whole(BYTES, &err), WEFT_OK, "%s", err.text);
}

static void tear_down(void)
{
    weft_stream_destroy(stream);
    weft_arena_close(arena);
    weft_device_close(device);
}

TestSuite(arena, .init = set_up, .fini = tear_down);

static unsigned char *at(int64_t offset)
{
    return (unsigned char *)weft_arena_address(arena) + offset;
}

static void synchronise(void)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
}

/* Compares the arena's bytes as the device reads them. */
static void expect_bytes(int64_t offset, const void *wanted, int64_t bytes)
{
    unsigned char read[32];
    weft_arena_read(arena, stream, at(offset), bytes, read);
    synchronise();
    cr_assert_eq(memcmp(read, wanted, (size_t)bytes), 0);
}

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

Test(arena, lies_between_pages_that_nobody_may_touch)
{
    const unsigned char *memory = weft_arena_memory(arena);
    cr_assert(weft_arena_resident_bytes(arena) >= BYTES);
    if (memory == NULL) return; /* the processor cannot ask: tests of the device do */
    cr_assert(can_read(memory) && can_read(memory + BYTES - 1));
    cr_assert(!can_read(memory - 1) && !can_read(memory + BYTES));
    cr_assert_eq(weft_arena_resident_bytes(arena), BYTES);
}

Test(arena, is_zero_whenever_it_is_mapped)
{
    struct weft_error err = {0};
    static unsigned char read[BYTES];
    const struct weft_range all = {0, BYTES};
    weft_arena_fill(arena, stream, at(0), &all, 1, 7);
    synchronise();
    weft_arena_unmap(arena, true);
    cr_assert_eq(weft_arena_resident_bytes(arena), 0);
    cr_assert_null(weft_arena_address(arena));
    cr_assert_eq(map_whole(BYTES, &err), WEFT_OK, "%s", err.text);
    weft_arena_read(arena, stream, at(0), BYTES, read);
    synchronise();
    for (int64_t i = 0; i < BYTES; i++)
        cr_assert_eq(read[i], 0);
}

Test(arena, is_mapped_once)
{
    struct weft_error err = {0};
    cr_assert_eq(map_whole(PAGE, &err), WEFT_E_INTERNAL);
    err.status = WEFT_OK;
    weft_arena_unmap(arena, true);
    cr_assert_eq(map_whole(0, &err), WEFT_E_INTERNAL);
}

Test(arena, is_of_a_device_that_there_is)
{
    struct weft_error err = {0};
    struct weft_arena *none = NULL;
    cr_assert_eq(weft_arena_open("abacus", -1, &none, &err), WEFT_E_ENVIRONMENT);
    cr_assert(strstr(err.text, "\"abacus\"") && strstr(err.text, "\"cpu\""), "%s", err.text);
}

Test(arena, copies_and_fills_what_it_is_told_in_order)
{
    const struct weft_range ranges[] = {{1, 3}, {6, 6}, {8, 10}};
    const char *host = "0123456789abcdef";
    char read[17] = "";
    weft_arena_write(arena, stream, at(100), host, 16);
    weft_arena_fill(arena, stream, at(100), ranges, 3, '.');
    weft_arena_read(arena, stream, at(100), 16, read);
    weft_arena_fill(arena, stream, at(100), ranges, 1, '!');
    synchronise();
    cr_assert_str_eq(read, "0..34567..abcdef");
    expect_bytes(99, "\0000!!34567..abcdef", 17);
}

/* Two buffers of three pages; they share memory for the second one. */
Test(arena, knows_what_was_written_where_nobody_should)
{
    struct weft_error err = {0};
    const struct weft_arena_mapping mappings[] = {{0, 0, 2}, {3 * PAGE, 2, 1}, {4 * PAGE, 1, 1}};
    const struct weft_arena_shape shape = {6 * PAGE, PAGE, 4, mappings, 3};
    const struct weft_range one = {0, PAGE + 100}, other = {3 * PAGE, 4 * PAGE + 50};
    const struct weft_range of_one = {0, 2 * PAGE}, of_other = {3 * PAGE, 5 * PAGE};
    const struct weft_range margin = {PAGE + 100, 2 * PAGE};
    const struct weft_arena_turn begin = {.dead = {&other, 1},
                                          .dead_pages = {&of_other, 1},
                                          .closed_pages = {&of_other, 1},
                                          .born = {&one, 1},
                                          .born_pages = {&of_one, 1}};
    const struct weft_arena_turn turn = {.margins = &margin,
                                         .n_margins = 1,
                                         .dead = {&one, 1},
                                         .dead_pages = {&of_one, 1},
                                         .closed_pages = {&of_one, 1},
                                         .born = {&other, 1},
                                         .born_pages = {&of_other, 1}};
    const struct weft_ranges living = {&other, 1};
    const unsigned char *memory;
    int32_t found = -1;
    int64_t bytes = -1;
    /* Without access by the processor, pages are larger and no access faults here. */
    if (weft_arena_memory(arena) == NULL) return;
    weft_arena_unmap(arena, true);
    cr_assert_eq(weft_arena_map(arena, &shape, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_arena_watch(arena, stream, &err), WEFT_OK, "%s", err.text);
    memory = weft_arena_memory(arena);
    weft_arena_renew(arena, stream, &begin, &found);
    synchronise();
    cr_assert(can_read(memory) && !can_read(memory + 3 * PAGE) && !can_read(memory + 4 * PAGE));
    /* A layer may leave any values in its own bytes. They vanish when the buffer dies. */
    weft_arena_write(arena, stream, at(PAGE), "x", 1);
    weft_arena_renew(arena, stream, &turn, &found);
    weft_arena_touched(arena, stream, &living, &bytes);
    synchronise();
    cr_assert_eq(found, -1);
    cr_assert_eq(bytes, PAGE);
    cr_assert(!can_read(memory) && !can_read(memory + PAGE) && can_read(memory + 4 * PAGE));
    cr_assert_eq(memory[4 * PAGE], WEFT_ARENA_PATTERN);
    /* A byte after it is found, once. */
    for (int time = 0; time < 2; time++) {
        weft_arena_renew(arena, stream, &begin, &found);
        if (time == 0) weft_arena_write(arena, stream, at(PAGE + 100), "x", 1);
        weft_arena_renew(arena, stream, &turn, &found);
        synchronise();
        cr_assert_eq(found, time == 0 ? 0 : -1);
        found = -1;
    }
    weft_arena_write(arena, stream, at(3 * PAGE), "xy", 2);
    weft_arena_touched(arena, stream, &living, &bytes);
    weft_arena_open_all(arena, stream);
    synchronise();
    cr_assert_eq(bytes, 2 * PAGE);
    cr_assert(can_read(memory) && can_read(memory + PAGE) && !can_read(memory + 2 * PAGE));
}
