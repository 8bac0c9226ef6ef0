/* SPDX-License-Identifier: Apache-2.0 */
/* Every CUDA call of a short run fails once. The run ends in time with an error that names CUDA,
 * and the double finds no leak. */
#include "tests/runtime/device/cuda/site.h"

enum { MOST_CALLS = 400 };

struct run {
    struct weft_device *device;
    struct weft_stream *a, *b, *there;
    struct weft_event *event, *back;
};

static enum weft_status do_nothing(struct weft_stream *on, const void *argument,
                                   struct weft_error *err)
{
    (void)on;
    (void)argument;
    (void)err;
    return WEFT_OK;
}

static enum weft_status open_run(struct run *run, struct weft_error *err)
{
    WEFT_TRY(weft_device_cuda.open(WEFT_CLOCK_WALL, &run->device, err));
    WEFT_TRY(weft_stream_create(run->device, "compute", 4, &run->a, err));
    WEFT_TRY(weft_stream_create(run->device, "channel", 4, &run->b, err));
    WEFT_TRY(weft_stream_create_on_host(run->device, "host", 4, &run->there, err));
    WEFT_TRY(weft_event_create(run->device, &run->back, err));
    return weft_event_create(run->device, &run->event, err);
}

static enum weft_status do_run(struct run *run, struct weft_error *err)
{
    static int64_t stamps[2];
    WEFT_TRY(open_run(run, err));
    weft_stream_push(run->a, do_nothing, NULL, 0);
    weft_stream_stamp(run->a, &stamps[0]);
    weft_stream_record(run->a, run->event);
    weft_stream_wait(run->there, run->event);
    weft_stream_push(run->there, do_nothing, NULL, 0);
    weft_stream_record(run->there, run->back);
    weft_stream_wait(run->a, run->back);
    weft_stream_wait(run->b, run->event);
    weft_stream_stamp(run->b, &stamps[1]);
    weft_stream_push(run->b, do_nothing, NULL, 0);
    const enum weft_status of_there = weft_stream_synchronise(run->there, err);
    const enum weft_status of_b = weft_stream_synchronise(run->b, err);
    const enum weft_status of_a = weft_stream_synchronise(run->a, err);
    return of_there != WEFT_OK ? of_there : of_b != WEFT_OK ? of_b : of_a;
}

static void close_run(struct run *run)
{
    if (run->event != NULL) weft_event_destroy(run->event);
    weft_event_destroy(run->back);
    weft_stream_destroy(run->there);
    weft_stream_destroy(run->a);
    weft_stream_destroy(run->b);
    weft_device_close(run->device);
}

/* How many calls of the function failed, one a run. */
static int fail_each_call(const char *function, int code)
{
    for (int n = 1; n < MOST_CALLS; n++) {
        struct run run = {0};
        struct weft_error err = {0};
        weft_double_fail(function, n, code);
        const enum weft_status status = do_run(&run, &err);
        weft_double_fail(NULL, 0, 0);
        close_run(&run);
        expect_no_findings();
        if (status == WEFT_OK) return n - 1;
        cr_assert_not_null(strstr(err.text, "CUDA: cannot "), "%s %d: %s", function, n, err.text);
    }
    return MOST_CALLS;
}

static int fail_all(const char *const functions[], int code)
{
    int n = 0;
    for (int i = 0; functions[i] != NULL; i++) {
        const int of_function = fail_each_call(functions[i], code);
        cr_assert(of_function > 0 && of_function < MOST_CALLS, "%s: %d", functions[i], of_function);
        n += of_function;
    }
    return n;
}

Test(cuda_faults, of_every_call_end_the_run_and_leave_nothing)
{
    static const char *const functions[] = {"cudaGetDeviceCount",
                                            "cudaGetDeviceProperties",
                                            "cudaSetDevice",
                                            "cudaDeviceGetStreamPriorityRange",
                                            "cudaStreamCreateWithPriority",
                                            "cudaEventCreateWithFlags",
                                            "cudaEventRecord",
                                            "cudaEventQuery",
                                            "cudaEventElapsedTime",
                                            "cudaHostAlloc",
                                            "cudaStreamWaitEvent",
                                            "cudaLaunchHostFunc",
                                            NULL};
    cr_assert(fail_all(functions, cudaErrorMemoryAllocation) >= 20);
    cr_assert(fail_all(functions, cudaErrorLaunchFailure) >= 20);
}
