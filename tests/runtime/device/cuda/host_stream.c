/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the host next to CUDA's: order both ways, copies, failures. Tests of all devices run
 * over them too (WEFT_TEST_HOST_STREAMS in tests/runtime/device/device.c). */
#include "base/clock.h"
#include "tests/runtime/device/cuda/site.h"

static struct weft_device *device;
static struct weft_stream *stream, *there;
static struct weft_event *event, *back;

static void set_up(void)
{
    struct weft_error err = {0};
    device = open_gpu();
    stream = open_stream(device, 4);
    cr_assert_eq(weft_stream_create_on_host(device, "host", 4, &there, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(weft_event_create(device, &event, &err), WEFT_OK);
    cr_assert_eq(weft_event_create(device, &back, &err), WEFT_OK);
}

static void tear_down(void)
{
    weft_event_destroy(event);
    weft_event_destroy(back);
    weft_stream_destroy(there);
    weft_stream_destroy(stream);
    weft_device_close(device);
    expect_no_findings();
}

TestSuite(cuda_host_stream, .init = set_up, .fini = tear_down);

enum { NAP_NS = 5000000, WORDS = 4 };

static uint32_t *in_gpu;

static cudaError_t fill_words(struct weft_cuda_stream *s, const void *argument)
{
    return cudaMemsetAsync(in_gpu, *(const int *)argument, WORDS * sizeof *in_gpu, s->cuda);
}

static cudaError_t fetch_words(struct weft_cuda_stream *s, const void *argument)
{
    void *to;
    memcpy(&to, argument, sizeof to);
    return cudaMemcpyAsync(to, in_gpu, WORDS * sizeof *in_gpu, cudaMemcpyDeviceToHost, s->cuda);
}

static enum weft_status take_nap(struct weft_stream *on, const void *argument,
                                 struct weft_error *err)
{
    (void)on;
    (void)argument;
    (void)err;
    weft_clock_sleep_until_ns(weft_clock_now_ns() + NAP_NS);
    return WEFT_OK;
}

/* The device fills, the host fetches and fills again, the device fetches. The double finds an
 * unordered use in any timing. */
Test(cuda_host_stream, is_ordered_with_cudas_both_ways)
{
    static const int first = 0x11, second = 0x22;
    void *pinned = NULL;
    cr_assert_eq(cudaMalloc((void **)&in_gpu, WORDS * sizeof *in_gpu), cudaSuccess);
    cr_assert_eq(cudaHostAlloc(&pinned, 2 * WORDS * sizeof *in_gpu, cudaHostAllocDefault),
                 cudaSuccess);
    uint32_t *to = pinned, *also = to + WORDS;
    weft_cuda_stream_call(stream, fill_words, "fill", &first, sizeof first);
    weft_stream_record(stream, event);
    weft_stream_wait(there, event);
    weft_cuda_stream_call(there, fetch_words, "fetch", &to, sizeof to);
    weft_stream_push(there, take_nap, NULL, 0);
    weft_cuda_stream_call(there, fill_words, "fill", &second, sizeof second);
    weft_stream_record(there, back);
    weft_stream_wait(stream, back);
    weft_cuda_stream_call(stream, fetch_words, "fetch", &also, sizeof also);
    await_stream(stream);
    await_stream(there);
    cr_assert(to[0] == 0x11111111 && also[WORDS - 1] == 0x22222222, "%x %x", to[0],
              also[WORDS - 1]);
    (void)cudaFree(in_gpu);
    (void)cudaFreeHost(pinned);
}

/* The event's next record must not delay a wait for the one before. */
Test(cuda_host_stream, waits_for_the_record_before_its_wait)
{
    int64_t reached = 0, second = 0;
    weft_stream_push(there, take_nap, NULL, 0);
    weft_stream_record(stream, event);
    weft_stream_wait(there, event);
    weft_stream_stamp(there, &reached);
    weft_stream_push(stream, take_nap, NULL, 0);
    weft_stream_record(stream, event);
    weft_stream_stamp(stream, &second);
    await_stream(there);
    await_stream(stream);
    cr_assert(reached > 0 && reached < second, "%ld %ld", reached, second);
}

Test(cuda_host_stream, has_room_for_more_than_its_queue)
{
    int64_t stamps[9] = {0};
    for (int i = 0; i < 9; i++) {
        weft_stream_push(there, take_nap, NULL, 0);
        weft_stream_stamp(there, &stamps[i]);
    }
    await_stream(there);
    for (int i = 1; i < 9; i++)
        cr_assert(stamps[i] >= stamps[i - 1] + NAP_NS);
}

Test(cuda_host_stream, takes_no_kernels)
{
    struct weft_error err = {0};
    cr_assert_null(weft_cuda_stream_open_for_work(there));
    cr_assert_eq(weft_stream_synchronise(there, &err), WEFT_E_SYSTEM);
}

static cudaError_t refuse_call(struct weft_cuda_stream *s, const void *argument)
{
    (void)s;
    (void)argument;
    return cudaErrorInvalidValue;
}

/* CUDA cannot cancel a wait, so each value is stored. */
Test(cuda_host_stream, that_fails_releases_those_that_wait)
{
    struct weft_error err = {0};
    weft_cuda_stream_call(there, refuse_call, "copy a block", NULL, 0);
    weft_stream_record(there, back);
    weft_stream_wait(stream, back);
    await_stream(stream);
    cr_assert_eq(weft_stream_synchronise(there, &err), WEFT_E_SYSTEM);
    cr_assert_not_null(strstr(err.text, "cannot copy a block"), "%s", err.text);
}

Test(cuda_host_stream, works_where_cudas_wait_for_no_word)
{
    int64_t before = 0, after = 0;
    weft_double_fail("cuStreamWaitValue32_v2", 1, CUDA_ERROR_NOT_SUPPORTED);
    weft_stream_push(there, take_nap, NULL, 0);
    weft_stream_stamp(there, &before);
    weft_stream_record(there, back);
    weft_stream_wait(stream, back);
    weft_stream_stamp(stream, &after);
    await_stream(stream);
    cr_assert(before > 0 && after >= before, "%ld %ld", before, after);
    weft_double_fail(NULL, 0, 0);
}

static atomic_bool goes_on;

static enum weft_status stand_still(struct weft_stream *on, const void *argument,
                                    struct weft_error *err)
{
    while (!atomic_load(&goes_on))
        (void)take_nap(on, argument, err);
    return WEFT_OK;
}

Test(cuda_host_stream, that_stands_still_is_a_hang)
{
    struct weft_error err = {0};
    setenv("WEFT_CUDA_TIMEOUT_S", "1", 1);
    weft_stream_push(there, stand_still, NULL, 0);
    cr_assert_eq(weft_stream_synchronise(there, &err), WEFT_E_HANG);
    cr_assert_not_null(strstr(err.text, "WEFT_CUDA_TIMEOUT_S"), "%s", err.text);
    unsetenv("WEFT_CUDA_TIMEOUT_S");
    atomic_store(&goes_on, true);
}
