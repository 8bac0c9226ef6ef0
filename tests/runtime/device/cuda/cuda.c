/* SPDX-License-Identifier: Apache-2.0 */
/* Which GPU a process takes, and which it refuses. */
#include "tests/runtime/device/cuda/site.h"

static struct weft_error err;

TestSuite(cuda, .fini = expect_no_findings);

static enum weft_status refused_status(enum weft_clock clock)
{
    struct weft_device *device = NULL;
    const enum weft_status status = weft_device_cuda.open(clock, &device, &err);
    cr_assert_null(device);
    return status;
}

Test(cuda, has_no_virtual_clock)
{
    cr_assert_eq(refused_status(WEFT_CLOCK_VIRTUAL), WEFT_E_USAGE);
    cr_assert_not_null(strstr(err.text, "virtual clock"), "%s", err.text);
}

Test(cuda, gives_a_local_rank_its_gpu)
{
    setenv("WEFT_DOUBLE_GPUS", "4", 1);
    setenv("LOCAL_RANK", "2", 1);
    struct weft_device *device = open_gpu();
    cr_assert_eq(((struct weft_cuda_gpu *)device)->ordinal, 2);
    weft_device_close(device);
}

Test(cuda, that_is_the_only_one_is_taken_by_any_rank)
{
    setenv("LOCAL_RANK", "2", 1);
    struct weft_device *device = open_gpu();
    cr_assert_eq(((struct weft_cuda_gpu *)device)->ordinal, 0);
    weft_device_close(device);
}

Test(cuda, lacks_a_gpu_for_the_rank)
{
    setenv("WEFT_DOUBLE_GPUS", "2", 1);
    setenv("LOCAL_RANK", "2", 1);
    cr_assert_eq(refused_status(WEFT_CLOCK_WALL), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "local rank 2 has no GPU: 2 are visible"), "%s", err.text);
}

Test(cuda, sees_no_gpu)
{
    setenv("WEFT_DOUBLE_GPUS", "0", 1);
    cr_assert_eq(refused_status(WEFT_CLOCK_WALL), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "CUDA_VISIBLE_DEVICES"), "%s", err.text);
}

Test(cuda, is_too_old)
{
    setenv("WEFT_DOUBLE_GPU", "sm_75", 1);
    cr_assert_eq(refused_status(WEFT_CLOCK_WALL), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "compute capability 7.5"), "%s", err.text);
}

Test(cuda, has_an_old_driver)
{
    weft_double_fail("cudaGetDeviceCount", 1, cudaErrorInsufficientDriver);
    cr_assert_eq(refused_status(WEFT_CLOCK_WALL), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "driver 580"), "%s", err.text);
}

Test(cuda, names_the_gpu_and_the_tested_one)
{
    struct weft_device *device = open_gpu();
    struct weft_text text;
    weft_text_init(&text);
    weft_device_describe(device, &text);
    cr_assert_not_null(strstr(weft_text_chars(&text), "a double of sm_80"), "%s",
                       weft_text_chars(&text));
    cr_assert_not_null(strstr(weft_text_chars(&text), "libcudart.so.13"));
    cr_assert_not_null(strstr(weft_text_chars(&text), "single GPUs: an H100 80GB"));
    weft_text_finish(&text);
    weft_device_close(device);
}
