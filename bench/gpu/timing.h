/* SPDX-License-Identifier: Apache-2.0 */
/* Times work on a GPU by events, and computes its lower bound: bytes at the memory's rate and flops
 * at the units' rate. Both rates come from the highest clocks that the GPU reports. Used by the
 * programs of bench/gpu/run. Over doubles of CUDA's libraries the times mean nothing. */
#ifndef WEFT_BENCH_GPU_TIMING_H
#define WEFT_BENCH_GPU_TIMING_H

#include "base/status.h"
#include "runtime/device/cuda/toolkit.h"

struct timing {
    char name[256];
    cudaStream_t stream;
    cudaEvent_t from, to;
    int32_t rounds;
    double bytes_per_us; /* 0: unknown */
    double flops_per_us[WEFT_DTYPE_COUNT];
};

/* Opens the GPU of local rank 0. Without one it prints the reason and exits with code 1. */
void timing_open(struct timing *timing, int32_t rounds);
void timing_close(struct timing *timing);

/* Exits with code 1 and a message unless CUDA's code is 0. */
void timing_must(int code, const char *what);
/* A byte of numbers that are 2e-12 as f32 and bf16, and 0.065 as f16. */
enum { TIMING_SMALL = 0x2c };
/* Allocates GPU memory and fills it with small numbers of any dtype. Free it with cudaFree. */
void *timing_allocate(struct timing *timing, int64_t bytes);

/* Puts work on the stream and returns CUDA's code. */
typedef int timing_fn(void *context, cudaStream_t on);
struct timing_result {
    double best_us, median_us;
};
/* Runs the work once uncounted, then `rounds` times. Returns the work's code; *out is filled if it
 * is 0. */
int timing_run(struct timing *timing, timing_fn *fn, void *context, struct timing_result *out);

/* Lower bound in us for moving `bytes` and computing `flops`; 0 for an unknown GPU. */
double timing_bound_us(const struct timing *timing, double bytes, double flops,
                       enum weft_dtype dtype);

#endif
