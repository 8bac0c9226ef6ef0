/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/gpu/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/cuda/gpu.h"
#include "runtime/nn/cuda/kernels/kernels.h"

enum { ENVIRONMENT = 1, MOST_ROUNDS = 64, BITS = 8, EDGES = 2 };

/* Flops per SM and clock with fp32 sums: dense 16-bit products on tensor cores, and fp32 without
 * them. Source: the throughput tables in NVIDIA's architecture papers. */
static const struct {
    int capability;
    double narrow, wide;
} units[] = {{80, 2048, 128}, {86, 1024, 256},  {87, 1024, 256},  {89, 1024, 256},
             {90, 4096, 256}, {100, 8192, 256}, {103, 8192, 256}, {120, 1024, 256}};

void timing_must(int code, const char *what)
{
    if (code == 0) return;
    fprintf(stderr, "cannot %s: %s (%d)\n", what, cudaGetErrorString((cudaError_t)code), code);
    exit(ENVIRONMENT);
}

static double attribute(enum cudaDeviceAttr what)
{
    int value = 0;
    timing_must((int)cudaDeviceGetAttribute(&value, what, 0), "ask for the GPU's clocks");
    return value;
}

static void find_rates(struct timing *timing, const struct cudaDeviceProp *gpu)
{
    enum { KHZ_PER_MHZ = 1000 };
    timing->bytes_per_us = EDGES * attribute(cudaDevAttrMemoryClockRate) / KHZ_PER_MHZ *
                           attribute(cudaDevAttrGlobalMemoryBusWidth) / BITS;
    const double clocks =
        attribute(cudaDevAttrClockRate) / KHZ_PER_MHZ * attribute(cudaDevAttrMultiProcessorCount);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (units[i].capability != gpu->major * 10 + gpu->minor) continue;
        timing->flops_per_us[WEFT_F32] = clocks * units[i].wide;
        timing->flops_per_us[WEFT_BF16] = timing->flops_per_us[WEFT_F16] = clocks * units[i].narrow;
    }
}

void timing_open(struct timing *timing, int32_t rounds)
{
    struct cudaDeviceProp gpu;
    *timing = (struct timing){.rounds = rounds < MOST_ROUNDS ? rounds : MOST_ROUNDS};
    timing_must((int)cudaSetDevice(0), "take a GPU");
    timing_must((int)cudaGetDeviceProperties(&gpu, 0), "look at the GPU");
    snprintf(timing->name, sizeof timing->name, "%s", gpu.name);
    find_rates(timing, &gpu);
    timing_must((int)cudaStreamCreateWithPriority(&timing->stream, cudaStreamNonBlocking, 0),
                "make a stream");
    timing_must((int)cudaEventCreateWithFlags(&timing->from, 0), "make an event");
    timing_must((int)cudaEventCreateWithFlags(&timing->to, 0), "make an event");
}

void timing_close(struct timing *timing)
{
    cudaEventDestroy(timing->from);
    cudaEventDestroy(timing->to);
    cudaStreamDestroy(timing->stream);
}

void *timing_allocate(struct timing *timing, int64_t bytes)
{
    void *memory = NULL;
    timing_must((int)cudaMalloc(&memory, (size_t)bytes), "take memory of the GPU");
    timing_must(weft_cuda_fill(memory, TIMING_SMALL, bytes, timing->stream), "fill memory");
    return memory;
}

static int run_once(struct timing *timing, timing_fn *fn, void *context, double *us)
{
    float ms = 0;
    timing_must((int)cudaEventRecord(timing->from, timing->stream), "record an event");
    const int code = fn(context, timing->stream);
    if (code != 0) return code;
    timing_must((int)cudaEventRecord(timing->to, timing->stream), "record an event");
    timing_must((int)weft_cuda_await(NULL, timing->stream), "await the GPU");
    timing_must((int)cudaEventElapsedTime(&ms, timing->from, timing->to), "read the time");
    *us = (double)ms * 1000;
    return 0;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int timing_run(struct timing *timing, timing_fn *fn, void *context, struct timing_result *out)
{
    double us[MOST_ROUNDS + 1];
    for (int32_t i = 0; i <= timing->rounds; i++) {
        const int code = run_once(timing, fn, context, &us[i]);
        if (code != 0) return code;
    }
    qsort(us + 1, (size_t)timing->rounds, sizeof *us, compare_times);
    *out = (struct timing_result){us[1], us[1 + timing->rounds / 2]};
    return 0;
}

double timing_bound_us(const struct timing *timing, double bytes, double flops,
                       enum weft_dtype dtype)
{
    const double rate = timing->flops_per_us[dtype];
    const double moving = timing->bytes_per_us > 0 ? bytes / timing->bytes_per_us : 0,
                 computing = rate > 0 ? flops / rate : 0;
    return moving > computing ? moving : computing;
}
