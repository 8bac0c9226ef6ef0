/* SPDX-License-Identifier: Apache-2.0 */
/* Means over the sequence, and their gradients. */
#include "runtime/nn/cuda/kernels/access.h"
#include "runtime/nn/cuda/kernels/layers.h"

enum { POOL_THREADS = 256 };

/* x or dx is [samples, seq_len, width], y or dy [samples, width]. */
template <typename T> struct pooled {
    int64_t samples, seq_len, width;
    const T *from;
    T *to;
};

/* A thread does a column of a sample. */
template <typename T> __global__ void __launch_bounds__(POOL_THREADS) pool(pooled<T> p)
{
    const int64_t i = (int64_t)blockIdx.x * POOL_THREADS + threadIdx.x;
    if (i >= p.samples * p.width) return;
    const T *x = p.from + i / p.width * p.seq_len * p.width + i % p.width;
    float sum = 0;
#pragma unroll 4
    for (int64_t row = 0; row < p.seq_len; row++) {
        sum += widen(x[row * p.width]);
    }
    narrow(sum / (float)p.seq_len, p.to + i);
}

template <typename T> __global__ void __launch_bounds__(POOL_THREADS) spread(pooled<T> p)
{
    const int64_t i = (int64_t)blockIdx.x * POOL_THREADS + threadIdx.x;
    if (i >= p.samples * p.seq_len * p.width) return;
    const int64_t sample = i / (p.seq_len * p.width);
    narrow(widen(p.from[sample * p.width + i % p.width]) / (float)p.seq_len, p.to + i);
}

static struct weft_grid grid_of_threads(int64_t n)
{
    return {dim3((unsigned)divide_up(n, POOL_THREADS)), dim3(POOL_THREADS), 0};
}

int weft_cuda_pool(enum weft_dtype dtype, int64_t samples, int64_t seq_len, int64_t width,
                   const void *x, void *y, struct CUstream_st *stream)
{
    if (samples * width <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const pooled<T> p = {samples, seq_len, width, (const T *)x, (T *)y};
        return launch(pool<T>, grid_of_threads(samples * width), stream, p);
    });
}

int weft_cuda_spread(enum weft_dtype dtype, int64_t samples, int64_t seq_len, int64_t width,
                     const void *dy, void *dx, struct CUstream_st *stream)
{
    if (samples * seq_len * width <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const pooled<T> p = {samples, seq_len, width, (const T *)dy, (T *)dx};
        return launch(spread<T>, grid_of_threads(samples * seq_len * width), stream, p);
    });
}
