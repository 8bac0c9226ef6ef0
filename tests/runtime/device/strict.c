/* SPDX-License-Identifier: Apache-2.0 */
/* The strict device does the work of the CPU as late as it may. Only work reaches the memory of its
 * addresses. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "runtime/arena/arena.h"
#include "runtime/device/device.h"
#include "tests/effort.h"
#include "tests/runtime/parts/strict.h"

enum { QUEUE = 8, BYTES = 1 << 16 };

static struct weft_device *device;
static struct weft_stream *stream, *other;

static void set_up(void)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_device_open("strict", WEFT_CLOCK_VIRTUAL, &device, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(weft_stream_create(device, "one", QUEUE, &stream, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_stream_create(device, "other", QUEUE, &other, &err), WEFT_OK, "%s", err.text);
}

static void tear_down(void)
{
    weft_stream_destroy(stream);
    weft_stream_destroy(other);
    weft_device_close(device);
}

TestSuite(strict, .init = set_up, .fini = tear_down);

static enum weft_status count_up(struct weft_stream *on, const void *argument,
                                 struct weft_error *err)
{
    int *count;
    (void)on;
    (void)err;
    memcpy(&count, argument, sizeof(count));
    ++*count;
    return WEFT_OK;
}

static void push_count(struct weft_stream *on, int *count)
{
    weft_stream_push(on, count_up, &count, sizeof(count));
}

static void synchronise(struct weft_stream *on)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_stream_synchronise(on, &err), WEFT_OK, "%s", err.text);
}

Test(strict, work_begins_when_somebody_synchronises)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    int mine = 0, theirs = 0;
    push_count(stream, &mine);
    push_count(other, &theirs);
    nanosleep(&moment, NULL); /* the CPU's would have run by now, which nothing depends on */
    cr_assert(mine == 0 && theirs == 0);
    synchronise(stream);
    cr_assert_eq(mine, 1);
    synchronise(other);
    cr_assert_eq(theirs, 1);
}

Test(strict, work_begins_when_a_stream_is_full)
{
    int mine = 0, theirs = 0;
    push_count(other, &theirs);
    for (int i = 0; i < 3 * QUEUE + 1; i++)
        push_count(stream, &mine);
    synchronise(stream);
    synchronise(other);
    cr_assert(mine == 3 * QUEUE + 1 && theirs == 1);
}

Test(strict, events_and_clocks_are_the_cpus)
{
    struct weft_error err = {0};
    struct weft_event *event = NULL;
    int64_t before_ns = -1, behind_ns = -1;
    cr_assert_eq(weft_event_create(device, &event, &err), WEFT_OK, "%s", err.text);
    weft_stream_stamp(other, &before_ns);
    weft_stream_advance(stream, 700);
    weft_stream_record(stream, event);
    weft_stream_wait(other, event);
    weft_stream_stamp(other, &behind_ns);
    synchronise(other);
    cr_assert(before_ns == 0 && behind_ns == 700, "%lld, %lld", (long long)before_ns,
              (long long)behind_ns);
    weft_event_destroy(event);
}

static enum weft_status map_whole(struct weft_arena *arena, int64_t bytes, struct weft_error *err)
{
    const struct weft_arena_shape whole = weft_arena_whole(bytes);
    return weft_arena_map(arena, &whole, err);
}

static struct weft_arena *map_arena(void)
{
    struct weft_error err = {0};
    struct weft_arena *arena = NULL;
    cr_assert_eq(weft_arena_open("strict", -1, &arena, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(map_whole(arena, BYTES, &err), WEFT_OK, "%s", err.text);
    return arena;
}

Test(strict, work_reaches_the_memory_behind_an_address)
{
    struct weft_arena *arena = map_arena();
    unsigned char *at = weft_arena_address(arena);
    char read[4] = "";
    cr_assert_eq(weft_arena_memory(arena) - at, WEFT_STRICT_SHIFT_BYTES);
    weft_arena_write(arena, stream, at + 10, "abc", 4);
    weft_arena_read(arena, stream, at + 10, 4, read);
    synchronise(stream);
    cr_assert_str_eq(read, "abc");
    cr_assert_eq(memcmp(weft_arena_memory(arena) + 10, "abc", 4), 0);
    weft_arena_close(arena);
}

/* The signal of a process that touches such an address: a sanitizer reports the first signal and
 * aborts. */
enum { DEADLY_SIGNAL = TEST_SANITIZED ? SIGABRT : SIGSEGV };

Test(strict, who_reads_an_address_dies_of_it, .signal = DEADLY_SIGNAL)
{
    struct weft_arena *arena = map_arena();
    volatile unsigned char *at = weft_arena_address(arena);
    (void)*at;
}

Test(strict, who_writes_to_the_last_address_dies_of_it, .signal = DEADLY_SIGNAL)
{
    struct weft_arena *arena = map_arena();
    volatile unsigned char *at = weft_arena_address(arena);
    at[BYTES - 1] = 1;
}

Test(strict, an_arena_has_room_below_its_memory)
{
    struct weft_error err = {0};
    struct weft_arena *arena = NULL;
    cr_assert_eq(weft_arena_open("strict", -1, &arena, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(map_whole(arena, WEFT_STRICT_SHIFT_BYTES, &err), WEFT_E_INTERNAL);
    weft_arena_close(arena);
}
