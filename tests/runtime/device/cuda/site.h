/* SPDX-License-Identifier: Apache-2.0 */
/* Common setup of these tests: a GPU, of the double, and a stream. */
#ifndef WEFT_TESTS_RUNTIME_DEVICE_CUDA_SITE_H
#define WEFT_TESTS_RUNTIME_DEVICE_CUDA_SITE_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/stream.h"
#include "tests/emulation/doubles/findings.h"

extern const struct weft_device_ops weft_device_cuda;

static inline struct weft_device *open_gpu(void)
{
    struct weft_device *device = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_device_cuda.open(WEFT_CLOCK_WALL, &device, &err), WEFT_OK, "%s", err.text);
    return device;
}

static inline struct weft_stream *open_stream(struct weft_device *device, int32_t queue)
{
    struct weft_stream *stream = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_stream_create(device, "compute", queue, &stream, &err), WEFT_OK, "%s",
                 err.text);
    return stream;
}

/* At the end of a case. */
static inline void expect_no_findings(void)
{
    char text[512];
    weft_double_look_for_leaks();
    for (int i = 0; i < DOUBLE_CHECK_COUNT; i++) {
        const int n = weft_double_take((enum double_check)i, text, sizeof text);
        cr_assert_eq(n, 0, "%s: %s", weft_double_check_name((enum double_check)i), text);
    }
}

static inline void await_stream(struct weft_stream *stream)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_stream_synchronise(stream, &err), WEFT_OK, "%s", err.text);
}

#endif
