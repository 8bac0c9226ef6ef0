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

/* What lies there, by the device. */
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

Test(arena, knows_the_last_byte_that_was_written)
{
    const struct weft_range all = {0, BYTES}, dead = {1000, 3000}, first = {0, 1};
    int64_t end = -1;
    weft_arena_fill(arena, stream, at(0), &all, 1, WEFT_ARENA_PATTERN);
    weft_arena_touched(arena, stream, BYTES, &end);
    synchronise();
    cr_assert_eq(end, 0);
    /* A byte of what dies is seen then, and its range holds the pattern again. */
    weft_arena_write(arena, stream, at(2000), "x", 1);
    weft_arena_renew(arena, stream, &dead, 1, &first, 1);
    weft_arena_renew(arena, stream, &first, 0, &dead, 1);
    weft_arena_touched(arena, stream, BYTES, &end);
    synchronise();
    cr_assert_eq(end, 2001);
    expect_bytes(2000, (const unsigned char[]){WEFT_ARENA_PATTERN}, 1);
    weft_arena_write(arena, stream, at(5000), "xy", 2);
    weft_arena_touched(arena, stream, BYTES, &end);
    synchronise();
    cr_assert_eq(end, 5002);
}
