/* How long work takes on a GPU, by events, and how long it must take at the least: the bytes that
 * it has to move at the memory's rate, and its multiplications at the rate of the units that can do
 * them, both from the clocks that the GPU reports as its highest. Programs of bench/gpu/run; over
 * doubles of CUDA's libraries the times mean nothing. */
#ifndef WEFT_BENCH_GPU_TIMING_H
#define WEFT_BENCH_GPU_TIMING_H

#include "base/status.h"
#include "runtime/device/cuda/toolkit.h"

struct timing {
    char name[256];
    cudaStream_t stream;
    cudaEvent_t from, to;
    int32_t rounds;
    double bytes_per_us; /* 0: not known */
    double flops_per_us[WEFT_DTYPE_COUNT];
};

/* The GPU of local rank 0. The program ends with exit code 1, saying why, where there is none. */
void timing_open(struct timing *timing, int32_t rounds);
void timing_close(struct timing *timing);

/* Ends the program with exit code 1 unless the code of CUDA is 0. */
void timing_must(int code, const char *what);
/* Memory of the GPU, with numbers that are small in every dtype. */
void *timing_allocate(struct timing *timing, int64_t bytes);

/* Puts work on the stream; CUDA's code. */
typedef int timing_fn(void *context, cudaStream_t on);
struct timing_result {
    double best_us, median_us;
};
/* One run that is not counted, then `rounds` that are. The work's code; 0: *out is filled. */
int timing_run(struct timing *timing, timing_fn *fn, void *context, struct timing_result *out);

/* The least that moving so many bytes and computing so much takes; 0 where the GPU is not known. */
double timing_bound_us(const struct timing *timing, double bytes, double flops,
                       enum weft_dtype dtype);

#endif
