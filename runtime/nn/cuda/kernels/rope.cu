/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions, with the CPU's bits: pairs (j, j + size / 2) of each head turn in place by the
 * angle position x frequency j in fp32. A block has one position of all samples. */
#include "base/normal.h"
#include "runtime/nn/cuda/kernels/access.h"
#include "runtime/nn/cuda/kernels/layers.h"

enum { ROPE_THREADS = 128 };

template <typename T> struct rope_call {
    int64_t samples, seq_len, heads, stride;
    int32_t half;
    bool back;
    T *x;
    float frequencies[WEFT_CUDA_ROPE_PAIRS];
};

/* A thread turns N consecutive pairs, of one head of one sample after another. */
template <typename T, int N>
__global__ void __launch_bounds__(ROPE_THREADS) rope_pairs(rope_call<T> c)
{
    const int groups = c.half / N, at_once = ROPE_THREADS / groups;
    const int first = (int)threadIdx.x / groups, group = (int)threadIdx.x % groups;
    const int64_t row = blockIdx.x;
    const int64_t from = at_once > 0 ? first : 0, step = at_once > 0 ? at_once : 1;
    const float position = (float)row;
    if (at_once > 0 && first >= at_once) return;
#pragma unroll 1
    for (int g = group; g<groups; g += at_once> 0 ? groups : ROPE_THREADS) {
        float cosines[N], sines[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            const double angle = (double)(position * c.frequencies[g * N + j]);
            cosines[j] = (float)weft_cosine(angle);
            sines[j] = (float)((c.back ? -1.0 : 1.0) * weft_sine(angle));
        }
#pragma unroll 1
        for (int64_t k = from; k < c.samples * c.heads; k += step) {
            T *low =
                c.x + (k / c.heads * c.seq_len + row) * c.stride + k % c.heads * 2 * c.half + g * N;
            float x[N], y[N], turned[N];
            load<N>(low, x);
            load<N>(low + c.half, y);
#pragma unroll
            for (int j = 0; j < N; j++) {
                turned[j] = x[j] * cosines[j] - y[j] * sines[j];
                y[j] = y[j] * cosines[j] + x[j] * sines[j];
            }
            store<N>(turned, low);
            store<N>(y, low + c.half);
        }
    }
}

int weft_cuda_rope(enum weft_dtype dtype, const struct weft_cuda_rope *rope, void *x,
                   struct CUstream_st *stream)
{
    const int64_t half = rope->size / 2;
    if (half > WEFT_CUDA_ROPE_PAIRS || rope->size % 2 != 0) return cudaErrorInvalidValue;
    if (rope->samples * rope->seq_len * rope->heads <= 0 || half <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        constexpr int GROUP = 8 / (int)sizeof(T);
        rope_call<T> c = {rope->samples, rope->seq_len, rope->heads, rope->stride,
                          (int32_t)half, rope->back,    (T *)x,      {}};
        for (int64_t j = 0; j < half; j++) {
            c.frequencies[j] = rope->frequencies[j];
        }
        const struct weft_grid grid = {dim3((unsigned)c.seq_len), dim3(ROPE_THREADS), 0};
        if (half % GROUP == 0 && c.stride % GROUP == 0 && group_begins(c.x, GROUP, 0))
            return launch(rope_pairs<T, GROUP>, grid, stream, c);
        return launch(rope_pairs<T, 1>, grid, stream, c);
    });
}
