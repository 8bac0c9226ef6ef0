/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps, failures of CUDA and the deadline: tests beyond those of all devices. */
#include "tests/runtime/device/cuda/site.h"

#include "base/clock.h"

static struct weft_device *device;
static struct weft_stream *stream, *other;

static void set_up(void)
{
    device = open_gpu();
    stream = open_stream(device, 4);
    other = open_stream(device, 4);
}

static void tear_down(void)
{
    weft_stream_destroy(stream);
    weft_stream_destroy(other);
    weft_device_close(device);
    expect_no_findings();
}

TestSuite(cuda_stream, .init = set_up, .fini = tear_down);

enum { NAP_NS = 5000000, STAMPS = 30 };

static enum weft_status nap(struct weft_stream *on, const void *argument, struct weft_error *err)
{
    (void)on;
    (void)argument;
    (void)err;
    weft_clock_sleep_until_ns(weft_clock_now_ns() + NAP_NS);
    return WEFT_OK;
}

Test(cuda_stream, stamps_are_on_the_hosts_clock_in_the_order_of_work)
{
    struct weft_event *event = NULL;
    struct weft_error err = {0};
    int64_t first = 0, second = 0, third = 0;
    cr_assert_eq(weft_event_create(device, &event, &err), WEFT_OK);
    const int64_t before_ns = weft_clock_now_ns();
    weft_stream_stamp(stream, &first);
    weft_stream_push(stream, nap, NULL, 0);
    weft_stream_stamp(stream, &second);
    weft_stream_record(stream, event);
    weft_stream_wait(other, event);
    weft_stream_stamp(other, &third);
    await_stream(other); /* it releases the streams that it waited for */
    cr_assert(before_ns <= first && first <= second && second <= third, "%ld %ld %ld %ld",
              before_ns, first, second, third);
    cr_assert(third <= weft_clock_now_ns());
    weft_event_destroy(event);
}

Test(cuda_stream, has_room_for_more_stamps_than_its_queue)
{
    int64_t stamps[STAMPS] = {0};
    for (int i = 0; i < STAMPS; i++)
        weft_stream_stamp(stream, &stamps[i]);
    await_stream(stream);
    for (int i = 0; i < STAMPS; i++)
        cr_assert(stamps[i] > 0 && (i == 0 || stamps[i] >= stamps[i - 1]));
}

Test(cuda_stream, takes_no_time_where_nobody_asks)
{
    weft_stream_push(stream, nap, NULL, 0);
    await_stream(stream);
    cr_assert_null(((struct weft_cuda_gpu *)device)->anchor);
}

Test(cuda_stream, says_what_cuda_refused_and_takes_no_more_work)
{
    struct weft_error err = {0};
    weft_double_fail("cudaLaunchHostFunc", 1, cudaErrorLaunchFailure);
    weft_stream_push(stream, nap, NULL, 0);
    cr_assert_null(weft_cuda_stream_open_for_work(stream));
    cr_assert_not_null(weft_cuda_stream_open_for_work(other));
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_E_SYSTEM);
    cr_assert_not_null(strstr(err.text, "put a function on a stream"), "%s", err.text);
    cr_assert_not_null(strstr(err.text, "719"), "%s", err.text);
}

static atomic_bool goes_on;

static enum weft_status stand_still(struct weft_stream *on, const void *argument,
                                    struct weft_error *err)
{
    (void)on;
    (void)argument;
    (void)err;
    while (!atomic_load(&goes_on))
        weft_clock_sleep_until_ns(weft_clock_now_ns() + 1000000);
    return WEFT_OK;
}

Test(cuda_stream, that_stands_still_is_a_hang)
{
    struct weft_error err = {0};
    setenv("WEFT_CUDA_TIMEOUT_S", "1", 1);
    weft_stream_push(stream, stand_still, NULL, 0);
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_E_HANG);
    cr_assert_not_null(strstr(err.text, "WEFT_CUDA_TIMEOUT_S"), "%s", err.text);
    unsetenv("WEFT_CUDA_TIMEOUT_S");
    atomic_store(&goes_on, true);
}
