/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's report about a GPU, and this process's part of its memory; over doubles, also of
 * NVML. */
#include <stdio.h>

#include "tests/runtime/device/cuda/site.h"

enum { MIB = 1 << 20 };

static void describe(char *out, size_t bytes)
{
    struct weft_device *device = open_gpu();
    struct weft_text text;
    weft_text_init(&text);
    weft_device_describe(device, &text);
    snprintf(out, bytes, "%s", weft_text_chars(&text));
    weft_text_finish(&text);
    weft_device_close(device);
}

static void expect_told(const char *nvml, const char *told, bool there)
{
    char text[4096];
    setenv("WEFT_DOUBLE_NVML", nvml, 1);
    describe(text, sizeof text);
    unsetenv("WEFT_DOUBLE_NVML");
    cr_expect_eq(strstr(text, told) != NULL, there, "%s: %s in %s", nvml, told, text);
}

Test(cuda_doctor, tells_what_nvml_knows)
{
    static const char *const told[][2] = {
        {"exclusive", "compute mode exclusive"},
        {"ecc", "3 errors that ECC could not correct"},
        {"hot", "its clocks are slow now, for it is hot"},
        {"mig", "MIG divides it"},
        {"absent", "without NVML"},
    };
    expect_told("", "driver 580.0.double", true);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        expect_told(told[i][0], told[i][1], true);
        expect_told("", told[i][1], false);
    }
    expect_no_findings();
}

Test(cuda_doctor, tells_which_gpus_reach_one_another)
{
    char text[4096];
    setenv("WEFT_DOUBLE_GPUS", "2", 1);
    describe(text, sizeof text);
    cr_expect(strstr(text, "GPU 1's memory can be reached") != NULL, "%s", text);
    setenv("WEFT_DOUBLE_NO_PEERS", "1", 1);
    describe(text, sizeof text);
    cr_expect(strstr(text, "GPU 1's memory cannot be reached") != NULL, "%s", text);
}

Test(cuda_doctor, tells_of_mps_and_of_launches_that_block)
{
    char text[4096];
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/dev", 1);
    setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
    describe(text, sizeof text);
    cr_expect(strstr(text, "MPS is there") != NULL, "%s", text);
    cr_expect(strstr(text, "CUDA_LAUNCH_BLOCKING") != NULL, "%s", text);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/none", 1);
    describe(text, sizeof text);
    cr_expect(strstr(text, "MPS is there") == NULL, "%s", text);
}

/* Expects the measured memory to be exact or not for this behaviour of NVML, and checks the part
 * of other processes. */
static void expect_memory(const char *nvml, bool wanted_exact)
{
    struct weft_device *device = open_gpu();
    int64_t before = 0, after = 0;
    bool exact = !wanted_exact;
    void *memory = NULL;
    setenv("WEFT_DOUBLE_NVML", nvml, 1);
    cr_assert(weft_device_memory(device, &before, &exact));
    cr_assert_eq(cudaMalloc(&memory, 10 * MIB), cudaSuccess);
    cr_assert(weft_device_memory(device, &after, &exact));
    cr_expect_eq(exact, wanted_exact, "%s", nvml);
    cr_expect_eq(after - before, 10 * MIB, "%s: %lld", nvml, (long long)(after - before));
    cr_assert_eq(cudaFree(memory), cudaSuccess);
    weft_device_close(device);
    unsetenv("WEFT_DOUBLE_NVML");
    expect_no_findings();
}

Test(cuda_doctor, memory_is_this_processs_alone_where_that_is_known)
{
    expect_memory("", true);
    expect_memory("shared", true); /* the other's is not counted */
    expect_memory("hidden", false);
    expect_memory("absent", false);
}
