/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between an arena and a tier of host memory, for each executor of copies. */
#include "runtime/arena/copy.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "offload/tier.h"

enum { PAGE = 4096, PAGES = 6, PIECES = 2, BYTES = 2 * PAGE + 123 };

static struct weft_device *device;
static struct weft_stream *stream, *other;
static struct weft_event *event;
static struct weft_arena *arena;
static struct weft_tier *tier;
static struct weft_copier *copier;
static struct weft_memory_span there[PIECES];
static struct weft_error err;

/* Which device: conformance of another one is these tests with its name. */
static const char *name_of_device(void)
{
    const char *named = getenv("WEFT_TEST_DEVICE");
    return named != NULL ? named : "cpu";
}

/* Pieces of a tier that are pages apart. */
static void take_pieces(void)
{
    const struct weft_tier_options options = {.name = "host", .page_bytes = PAGE, .pages = PAGES};
    cr_assert_eq(weft_tier_create(&options, &tier, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_tier_memory(tier).bytes, PAGES * PAGE);
    for (int i = 0; i < PIECES; i++)
        cr_assert_eq(weft_tier_take(tier, BYTES, &there[i], &err), WEFT_OK, "%s", err.text);
}

static void set_up(void)
{
    const struct weft_copier_options options = {
        .links = {{false, 0, 1}, {false, 0, 1}}, .requests = 1, .spans = PIECES};
    const struct weft_arena_shape whole = weft_arena_whole(2 * PIECES * PAGES * PAGE);
    cr_assert_eq(weft_device_open(name_of_device(), WEFT_CLOCK_WALL, &device, &err), WEFT_OK);
    cr_assert_eq(weft_stream_create(device, "down", 0, &stream, &err), WEFT_OK);
    cr_assert_eq(weft_stream_create(device, "up", 0, &other, &err), WEFT_OK);
    cr_assert_eq(weft_event_create(device, &event, &err), WEFT_OK);
    cr_assert_eq(weft_arena_open(name_of_device(), -1, &arena, &err), WEFT_OK);
    cr_assert_eq(weft_arena_map(arena, &whole, &err), WEFT_OK, "%s", err.text);
    take_pieces();
    cr_assert_eq(weft_arena_pin(arena, weft_tier_memory(tier), &err), WEFT_OK, "%s", err.text);
    if (!weft_arena_copies_by_itself(arena))
        cr_assert_eq(weft_copier_create(&options, &copier, &err), WEFT_OK, "%s", err.text);
}

static void tear_down(void)
{
    weft_event_destroy(event);
    weft_stream_destroy(other);
    weft_stream_destroy(stream);
    weft_copier_destroy(copier);
    weft_arena_unpin(arena, weft_tier_memory(tier));
    weft_tier_destroy(tier);
    weft_arena_close(arena);
    weft_device_close(device);
}

TestSuite(arena_copy, .init = set_up, .fini = tear_down);

static unsigned char *at(int piece)
{
    return (unsigned char *)weft_arena_address(arena) + piece * PAGES * PAGE + 64;
}

static void push_copy(struct weft_stream *on, enum weft_copy_direction direction)
{
    struct weft_arena_copy copy = {.copier = copier, .direction = direction, .n = PIECES};
    for (int i = 0; i < PIECES; i++) {
        copy.at[i] = at(i);
        copy.outside[i] = there[i];
    }
    weft_arena_copy(arena, on, &copy);
}

static void fill_pieces(struct weft_stream *on, unsigned char byte)
{
    static const struct weft_range all = {0, BYTES};
    for (int i = 0; i < PIECES; i++)
        weft_arena_fill(arena, on, at(i), &all, 1, (unsigned char)(byte + i));
}

/* The tier's memory is read by the host when the stream says that it is there, and not before. */
static void expect_there(unsigned char byte)
{
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
    for (int i = 0; i < PIECES; i++)
        for (int64_t k = 0; k < BYTES; k++)
            cr_assert_eq(there[i].at[k], byte + i, "byte %lld of piece %d", (long long)k, i);
    cr_assert_eq(there[0].at[BYTES], 0, "a byte behind a piece was written");
}

Test(arena_copy, goes_down_and_comes_up_in_the_order_of_its_stream)
{
    static unsigned char back[PIECES][BYTES];
    fill_pieces(stream, 7);
    push_copy(stream, WEFT_COPY_DOWN);
    fill_pieces(stream, 90);
    expect_there(7);
    push_copy(stream, WEFT_COPY_UP);
    for (int i = 0; i < PIECES; i++)
        weft_arena_read(arena, stream, at(i), BYTES, back[i]);
    fill_pieces(stream, 0);
    expect_there(7);
    for (int i = 0; i < PIECES; i++)
        cr_assert(back[i][0] == 7 + i && memcmp(back[i], back[i] + 1, BYTES - 1) == 0);
}

Test(arena_copy, waits_for_events_of_other_streams)
{
    for (unsigned char round = 1; round < 20; round++) {
        weft_stream_wait(other, event);
        fill_pieces(other, round);
        weft_stream_record(other, event);
        weft_stream_wait(stream, event);
        push_copy(stream, WEFT_COPY_DOWN);
        push_copy(stream, WEFT_COPY_UP);
        weft_stream_record(stream, event);
    }
    cr_assert_eq(weft_stream_synchronise(other, &err), WEFT_OK, "%s", err.text);
    expect_there(19);
}

/* Like all work after a failure. */
Test(arena_copy, is_dropped_when_its_stream_is_stopped)
{
    fill_pieces(stream, 3);
    push_copy(stream, WEFT_COPY_DOWN);
    expect_there(3);
    weft_stream_stop(stream);
    fill_pieces(stream, 5);
    push_copy(stream, WEFT_COPY_DOWN);
    expect_there(3);
}
