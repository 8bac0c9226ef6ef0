/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/device.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/machine/mappings.h"
#include "tests/effort.h"

static struct weft_error error;

/* Which device: conformance of another one is these tests with its name. */
static const char *name_of_device(void)
{
    const char *named = getenv("WEFT_TEST_DEVICE");
    return named != NULL ? named : "cpu";
}

static struct weft_device *open_device(enum weft_clock clock)
{
    struct weft_device *device = NULL;
    if (clock == WEFT_CLOCK_VIRTUAL && strcmp(name_of_device(), "cuda") == 0)
        cr_skip_test("cuda has no virtual clock");
    cr_assert(weft_device_open(name_of_device(), clock, &device, &error) == WEFT_OK, "%s",
              error.text);
    cr_assert(weft_device_clock(device) == clock);
    return device;
}

/* WEFT_TEST_HOST_STREAMS=N: every Nth stream is one of the host. */
static struct weft_stream *open_stream(struct weft_device *device, const char *name)
{
    static int n;
    const char *each = getenv("WEFT_TEST_HOST_STREAMS");
    const bool on_host = each != NULL && n++ % atoi(each) == 0;
    struct weft_stream *stream = NULL;
    cr_assert((on_host ? weft_stream_create_on_host : weft_stream_create)(device, name, 0, &stream,
                                                                          &error) == WEFT_OK,
              "%s", error.text);
    return stream;
}

static struct weft_event *open_event(struct weft_device *device)
{
    struct weft_event *event = NULL;
    cr_assert(weft_event_create(device, &event, &error) == WEFT_OK, "%s", error.text);
    return event;
}

static void synchronise(struct weft_stream *stream)
{
    struct weft_error err = {.status = WEFT_OK};
    cr_assert(weft_stream_synchronise(stream, &err) == WEFT_OK, "%s", err.text);
}

Test(device, unknown_name_is_refused_with_the_known_ones)
{
    struct weft_device *device = NULL;
    cr_assert(weft_device_open("abacus", WEFT_CLOCK_WALL, &device, &error) == WEFT_E_ENVIRONMENT);
    cr_assert(device == NULL);
    cr_assert_str_eq(error.text, "no device \"abacus\" in this build: it has \"cpu\", "
                                 "\"cuda\"");
}

Test(device, a_limit_of_memory_that_refuses_a_thread_is_named)
{
    struct weft_device *device = NULL;
    struct weft_stream *streams[64] = {NULL};
    struct weft_error err = {0};
    struct rlimit limit;
    int n = 0;
    if (TEST_SANITIZED) cr_skip_test("a sanitizer has more memory than the limit");
    cr_assert(weft_device_open("cpu", WEFT_CLOCK_WALL, &device, &err) == WEFT_OK, "%s", err.text);
    cr_assert(getrlimit(RLIMIT_DATA, &limit) == 0);
    limit.rlim_cur = (rlim_t)(48 * weft_thread_stack_bytes());
    cr_assert(setrlimit(RLIMIT_DATA, &limit) == 0);
    while (n < 64 && weft_stream_create(device, "many", 2, &streams[n], &err) == WEFT_OK)
        n++;
    cr_assert(n < 64 && err.status == WEFT_E_SYSTEM);
    cr_assert(strstr(err.text, "RLIMIT_DATA") != NULL, "%s", err.text);
    cr_assert(strstr(err.text, "ulimit -u") == NULL, "%s", err.text);
    while (n > 0)
        weft_stream_destroy(streams[--n]);
    weft_device_close(device);
}

Test(device, close_and_destroy_accept_null)
{
    weft_device_close(NULL);
    weft_stream_destroy(NULL);
    weft_event_destroy(NULL);
}

/* Appends its number to a log, which shows the order and the dropped work. */
struct log {
    int count;
    int values[2000];
};
struct append {
    struct log *log;
    int value;
    int64_t sleep_ns;
    enum weft_status status;
    bool silent;
};

static enum weft_status append(struct weft_stream *stream, const void *argument,
                               struct weft_error *err)
{
    (void)stream;
    const struct append *a = argument;
    if (a->sleep_ns > 0) weft_clock_sleep_until_ns(weft_clock_now_ns() + a->sleep_ns);
    a->log->values[a->log->count++] = a->value;
    if (a->status == WEFT_OK || a->silent) return a->status;
    return weft_fail(err, a->status, "number %d failed", a->value);
}

static void push(struct weft_stream *stream, struct append a)
{
    weft_stream_push(stream, append, &a, sizeof a);
}

Test(device, tasks_run_in_order_and_more_than_a_ring_of_them)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *stream = open_stream(device, "compute");
    struct log log = {0};
    for (int i = 0; i < 2000; i++)
        push(stream, (struct append){.log = &log, .value = i});
    synchronise(stream);
    cr_assert(log.count == 2000);
    for (int i = 0; i < 2000; i++)
        cr_assert(log.values[i] == i);
    weft_stream_destroy(stream);
    weft_device_close(device);
}

static enum weft_status sum_bytes(struct weft_stream *stream, const void *argument,
                                  struct weft_error *err)
{
    (void)stream;
    const unsigned char *bytes = argument;
    for (int i = 0; i < WEFT_TASK_BYTES; i++) {
        if (bytes[i] != (unsigned char)i) return weft_fail(err, WEFT_E_DATA, "byte %d", i);
    }
    return WEFT_OK;
}

Test(device, arguments_are_copied_whole)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *stream = open_stream(device, "compute");
    unsigned char bytes[WEFT_TASK_BYTES + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    weft_stream_push(stream, sum_bytes, bytes, WEFT_TASK_BYTES);
    memset(bytes, 0xff, sizeof bytes);
    synchronise(stream);
    weft_stream_push(stream, sum_bytes, bytes, sizeof bytes);
    struct weft_error err = {.status = WEFT_OK};
    cr_assert(weft_stream_synchronise(stream, &err) == WEFT_E_INTERNAL);
    cr_assert_str_eq(err.text, "a task's argument has 513 bytes, and at most 512 are copied: pass "
                               "a pointer");
    weft_stream_destroy(stream);
    weft_device_close(device);
}

Test(device, destroy_waits_for_pushed_work)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *stream = open_stream(device, "compute");
    struct log log = {0};
    push(stream, (struct append){.log = &log, .value = 1, .sleep_ns = 20000000});
    push(stream, (struct append){.log = &log, .value = 2});
    weft_stream_destroy(stream);
    cr_assert(log.count == 2);
    weft_device_close(device);
}

Test(device, a_wait_holds_the_other_stream)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *a = open_stream(device, "a"), *b = open_stream(device, "b");
    struct weft_event *event = open_event(device);
    struct log log = {0}; /* written by both: only the event keeps them apart */
    push(a, (struct append){.log = &log, .value = 1, .sleep_ns = 20000000});
    weft_stream_record(a, event);
    weft_stream_wait(b, event);
    push(b, (struct append){.log = &log, .value = 2});
    synchronise(b);
    cr_assert(log.count == 2);
    cr_assert(log.values[0] == 1 && log.values[1] == 2);
    weft_event_destroy(event);
    weft_stream_destroy(a);
    weft_stream_destroy(b);
    weft_device_close(device);
}

Test(device, a_wait_before_any_record_waits_for_nothing)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *stream = open_stream(device, "a");
    struct weft_event *event = open_event(device);
    weft_stream_wait(stream, event);
    synchronise(stream);
    weft_event_destroy(event);
    weft_stream_destroy(stream);
    weft_device_close(device);
}

Test(device, a_wait_is_for_the_record_before_it_and_not_for_a_later_one)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *a = open_stream(device, "a"), *b = open_stream(device, "b");
    struct weft_event *event = open_event(device);
    struct log log_a = {0};
    weft_stream_record(a, event);
    weft_stream_wait(b, event);
    push(a, (struct append){.log = &log_a, .value = 1, .sleep_ns = 300000000});
    weft_stream_record(a, event);
    int64_t start_ns = weft_clock_now_ns();
    synchronise(b); /* without a task: a device may run those of all streams one at a time */
    cr_assert(weft_clock_now_ns() - start_ns < 200000000, "waited for the second record");
    weft_stream_wait(b, event);
    synchronise(b);
    cr_assert(log_a.count == 1, "did not wait for the second record");
    weft_event_destroy(event);
    weft_stream_destroy(a);
    weft_stream_destroy(b);
    weft_device_close(device);
}

/* A record on another stream does not release waiters of an earlier one. */
Test(device, a_record_on_a_faster_stream_releases_nobody_else)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *slow = open_stream(device, "slow"), *fast = open_stream(device, "fast"),
                       *waits = open_stream(device, "waits");
    struct weft_event *event = open_event(device);
    struct log log = {0};
    push(slow, (struct append){.log = &log, .value = 1, .sleep_ns = 50000000});
    weft_stream_record(slow, event);
    weft_stream_wait(waits, event);
    weft_stream_record(fast, event);
    push(waits, (struct append){.log = &log, .value = 2});
    synchronise(waits);
    cr_assert(log.count == 2 && log.values[0] == 1 && log.values[1] == 2);
    weft_event_destroy(event);
    weft_stream_destroy(slow);
    weft_stream_destroy(fast);
    weft_stream_destroy(waits);
    weft_device_close(device);
}

Test(device, an_event_may_be_recorded_far_ahead_of_its_stream)
{
    struct weft_device *device = open_device(WEFT_CLOCK_VIRTUAL);
    struct weft_stream *a = open_stream(device, "a"), *b = open_stream(device, "b");
    struct weft_event *event = open_event(device);
    struct log log = {0};
    int64_t stamps[100];
    push(a, (struct append){.log = &log, .value = 1, .sleep_ns = 20000000});
    for (int i = 0; i < 100; i++) {
        weft_stream_advance(a, 10);
        weft_stream_record(a, event);
        weft_stream_wait(b, event);
        weft_stream_stamp(b, &stamps[i]);
    }
    synchronise(b);
    for (int i = 0; i < 100; i++)
        cr_assert(stamps[i] == 10 * (i + 1), "%d: %lld", i, (long long)stamps[i]);
    weft_event_destroy(event);
    weft_stream_destroy(a);
    weft_stream_destroy(b);
    weft_device_close(device);
}

/* The case that tests/base/lanes.c computes by hand, over two streams. b's 100 ns take 200 next to
 * a's 200, which do 150 until then. Once a is over, b's next work runs at full speed. A sleeping
 * task does not move virtual time. */
Test(device, streams_that_contend_slow_each_other)
{
    const struct weft_rates rates = {768, 512};
    struct weft_device *device = open_device(WEFT_CLOCK_VIRTUAL);
    struct weft_stream *a = open_stream(device, "a"), *b = open_stream(device, "b");
    struct weft_event *event = open_event(device);
    struct log log = {0};
    cr_assert_eq(weft_stream_contend(a, WEFT_LANE_COMPUTE, rates, &error), WEFT_OK);
    cr_assert_eq(weft_stream_contend(b, WEFT_LANE_FIRST, rates, &error), WEFT_OK);
    for (int64_t step = 0; step < 3; step++) {
        int64_t start, first, over, second;
        weft_stream_stamp(a, &start);
        weft_stream_record(a, event);
        weft_stream_wait(b, event);
        weft_stream_advance(a, 200);
        push(b, (struct append){.log = &log, .value = 1, .sleep_ns = 2000000});
        weft_stream_advance(b, 100);
        weft_stream_stamp(b, &first);
        weft_stream_stamp(a, &over);
        weft_stream_record(a, event);
        weft_stream_wait(b, event);
        weft_stream_advance(b, 30);
        weft_stream_stamp(b, &second);
        weft_stream_record(b, event);
        weft_stream_wait(a, event);
        synchronise(b);
        synchronise(a);
        cr_assert_eq(start, 280 * step);
        cr_assert_eq(first - start, 200, "%lld", (long long)(first - start));
        cr_assert_eq(over - start, 250);
        cr_assert_eq(second - start, 280);
    }
    weft_event_destroy(event);
    weft_stream_destroy(a);
    weft_stream_destroy(b);
    weft_device_close(device);
}

Test(device, a_failed_task_drops_later_ones_but_not_events)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *a = open_stream(device, "a"), *b = open_stream(device, "b");
    struct weft_event *event = open_event(device);
    struct log log = {0};
    int64_t stamp = 0;
    push(a, (struct append){.log = &log, .value = 1});
    push(a, (struct append){.log = &log, .value = 2, .status = WEFT_E_NUMERIC});
    push(a, (struct append){.log = &log, .value = 3, .status = WEFT_E_DATA});
    weft_stream_stamp(a, &stamp);
    weft_stream_record(a, event);
    weft_stream_wait(b, event);
    synchronise(b);
    for (int i = 0; i < 2; i++) { /* it stays failed */
        struct weft_error err = {.status = WEFT_OK};
        cr_assert(weft_stream_synchronise(a, &err) == WEFT_E_NUMERIC);
        cr_assert_str_eq(err.text, "number 2 failed");
        push(a, (struct append){.log = &log, .value = 4});
    }
    cr_assert(log.count == 2);
    cr_assert(stamp > 0);
    weft_event_destroy(event);
    weft_stream_destroy(a);
    weft_stream_destroy(b);
    weft_device_close(device);
}

static void stop_other(void *context)
{
    weft_stream_stop(context);
}

Test(device, a_failure_stops_the_stream_that_it_was_told_to)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *a = open_stream(device, "a"), *b = open_stream(device, "b");
    struct weft_event *event = open_event(device);
    struct log log = {0}, other = {0};
    struct weft_error err = {.status = WEFT_OK};
    weft_stream_on_failure(a, stop_other, b);
    push(a, (struct append){.log = &log, .value = 1, .status = WEFT_E_NUMERIC});
    weft_stream_record(a, event);
    weft_stream_wait(b, event);
    push(b, (struct append){.log = &other, .value = 2});
    cr_assert(weft_stream_synchronise(a, &err) == WEFT_E_NUMERIC);
    synchronise(b);
    cr_assert(log.count == 1 && other.count == 0);
    weft_event_destroy(event);
    weft_stream_destroy(a);
    weft_stream_destroy(b);
    weft_device_close(device);
}

Test(device, a_task_that_fails_without_a_word_still_has_a_message)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *stream = open_stream(device, "compute");
    struct log log = {0};
    push(stream, (struct append){.log = &log, .status = WEFT_E_HANG, .silent = true});
    struct weft_error err = {.status = WEFT_OK};
    cr_assert(weft_stream_synchronise(stream, &err) == WEFT_E_HANG);
    cr_assert_str_eq(err.text, "a task on stream \"compute\" failed: hang");
    weft_stream_destroy(stream);
    weft_device_close(device);
}

static enum weft_status jump(struct weft_stream *stream, const void *argument,
                             struct weft_error *err)
{
    (void)err;
    int64_t ns;
    memcpy(&ns, argument, sizeof ns);
    weft_stream_run(stream, weft_stream_now(stream), ns);
    return WEFT_OK;
}

Test(device, the_virtual_clock_advances_by_what_is_declared)
{
    struct weft_device *device = open_device(WEFT_CLOCK_VIRTUAL);
    struct weft_stream *a = open_stream(device, "a"), *b = open_stream(device, "b");
    cr_assert(weft_stream_clock(a) == WEFT_CLOCK_VIRTUAL);
    struct weft_event *event = open_event(device);
    int64_t stamps[5];
    weft_stream_stamp(a, &stamps[0]);
    weft_stream_advance(a, 700);
    weft_stream_record(a, event);
    weft_stream_stamp(a, &stamps[1]);
    weft_stream_advance(b, 500);
    weft_stream_wait(b, event); /* later than b */
    weft_stream_stamp(b, &stamps[2]);
    weft_stream_advance(b, 1000);
    weft_stream_wait(b, event); /* earlier than b */
    weft_stream_stamp(b, &stamps[3]);
    const int64_t ns = 11;
    weft_stream_push(b, jump, &ns, sizeof ns);
    weft_stream_stamp(b, &stamps[4]);
    synchronise(a);
    synchronise(b);
    const int64_t expected[5] = {0, 700, 700, 1700, 1711};
    for (int i = 0; i < 5; i++)
        cr_assert(stamps[i] == expected[i], "%d: %lld", i, (long long)stamps[i]);
    weft_event_destroy(event);
    weft_stream_destroy(a);
    weft_stream_destroy(b);
    weft_device_close(device);
}

Test(device, the_wall_clock_heeds_neither_advance_nor_run)
{
    struct weft_device *device = open_device(WEFT_CLOCK_WALL);
    struct weft_stream *stream = open_stream(device, "a");
    const int64_t hour_ns = INT64_C(3600) * 1000000000;
    int64_t before_ns = weft_clock_now_ns(), stamp = 0;
    weft_stream_advance(stream, hour_ns);
    weft_stream_push(stream, jump, &hour_ns, sizeof hour_ns);
    weft_stream_stamp(stream, &stamp);
    synchronise(stream);
    cr_assert(stamp >= before_ns && stamp <= weft_clock_now_ns());
    weft_stream_destroy(stream);
    weft_device_close(device);
}
