/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of columns in two steps, both in order: blocks sum stripes of rows, then stripes are summed.
 * Stripes have a fixed number of rows, so a sum depends on the rows alone. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_COLUMNS_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_COLUMNS_H

#include "runtime/nn/cuda/kernels/access.h"

enum {
    COLUMNS_LANES = 32,
    COLUMNS_ROWS = 8, /* processed at once by a block */
    COLUMNS_THREADS = COLUMNS_LANES * COLUMNS_ROWS,
    COLUMNS_STRIPE = 128, /* rows summed by a block */
    COLUMNS_GROUP = 4,    /* columns of a thread */
    COLUMNS_AT_ONCE = 64  /* stripes loaded together */
};

static inline int64_t column_stripes(int64_t rows)
{
    return divide_up(rows, COLUMNS_STRIPE);
}

/* Source holds the terms, SUMS numbers for each element of [rows, width]:
 *     enum { SUMS };
 *     template <int N> GPU void values(int64_t row, int64_t column, float (&to)[SUMS][N]) const;
 *     bool is_aligned(int64_t width) const;          N may be COLUMNS_GROUP, otherwise 1
 * partial is [SUMS, stripes, width]. */
template <typename Source, int N>
__global__ void __launch_bounds__(COLUMNS_THREADS)
    column_stripe(Source source, int64_t rows, int64_t width, float *partial)
{
    enum { SUMS = Source::SUMS, PITCH = COLUMNS_LANES * N };
    float *shared = shared_memory<float>(); /* [SUMS, COLUMNS_ROWS, PITCH] */
    const int64_t column = ((int64_t)blockIdx.x * COLUMNS_LANES + threadIdx.x) * N;
    const int64_t begin = (int64_t)blockIdx.y * COLUMNS_STRIPE;
    const int64_t end = begin + COLUMNS_STRIPE < rows ? begin + COLUMNS_STRIPE : rows;
    float sums[SUMS][N] = {};
#pragma unroll 4
    for (int64_t row = begin + threadIdx.y; row < end; row += COLUMNS_ROWS) {
        float values[SUMS][N];
        if (column >= width) break;
        source.template values<N>(row, column, values);
#pragma unroll
        for (int s = 0; s < SUMS; s++) {
#pragma unroll
            for (int j = 0; j < N; j++) {
                sums[s][j] += values[s][j];
            }
        }
    }
#pragma unroll
    for (int s = 0; s < SUMS; s++) {
        store<N>(sums[s], shared + (s * COLUMNS_ROWS + (int)threadIdx.y) * PITCH + threadIdx.x * N);
    }
    __syncthreads();
    const int thread = (int)(threadIdx.y * COLUMNS_LANES + threadIdx.x);
    for (int i = thread; i < SUMS * PITCH; i += COLUMNS_THREADS) {
        const int s = i / PITCH, at = i % PITCH;
        const int64_t to = (int64_t)blockIdx.x * PITCH + at;
        float sum = 0;
#pragma unroll
        for (int row = 0; row < COLUMNS_ROWS; row++) {
            sum += shared[(s * COLUMNS_ROWS + row) * PITCH + at];
        }
        if (to < width) partial[((int64_t)s * gridDim.y + blockIdx.y) * width + to] = sum;
    }
}

/* sums [n, width] of partial [n, stripes, width]. A block has COLUMNS_LANES sums. All its threads
 * load stripes, so that many loads are in flight, and one warp adds them in order. */
template <typename Source>
__global__ void __launch_bounds__(COLUMNS_THREADS)
    column_total(const float *partial, int64_t stripes, int64_t width, int64_t elements,
                 float *sums)
{
    float *terms = shared_memory<float>(); /* [COLUMNS_AT_ONCE, COLUMNS_LANES] */
    const int64_t i = (int64_t)blockIdx.x * COLUMNS_LANES + threadIdx.x;
    const float *from = i < elements ? partial + i / width * stripes * width + i % width : NULL;
    float sum = 0;
    for (int64_t first = 0; first < stripes; first += COLUMNS_AT_ONCE) {
#pragma unroll
        for (int at = 0; at < COLUMNS_AT_ONCE; at += COLUMNS_ROWS) {
            const int64_t stripe = first + at + threadIdx.y;
            const bool there = from != NULL && stripe < stripes;
            terms[(at + (int)threadIdx.y) * COLUMNS_LANES + (int)threadIdx.x] =
                there ? from[stripe * width] : 0.0f;
        }
        __syncthreads();
        const int64_t left = stripes - first;
        const int n = left < COLUMNS_AT_ONCE ? (int)left : COLUMNS_AT_ONCE;
        for (int at = 0; threadIdx.y == 0 && at < n; at++) {
            sum += terms[at * COLUMNS_LANES + (int)threadIdx.x];
        }
        __syncthreads();
    }
    if (threadIdx.y == 0 && from != NULL) sums[i] = sum;
}

/* Sums in row order, one thread a column. */
template <typename Source>
__global__ void __launch_bounds__(COLUMNS_THREADS)
    column_chain(Source source, int64_t rows, int64_t width, float *to)
{
    const int64_t column = (int64_t)blockIdx.x * COLUMNS_THREADS + threadIdx.x;
    float sums[Source::SUMS][1] = {};
    if (column >= width) return;
#pragma unroll 4
    for (int64_t row = 0; row < rows; row++) {
        float values[Source::SUMS][1];
        source.template values<1>(row, column, values);
#pragma unroll
        for (int s = 0; s < Source::SUMS; s++) {
            sums[s][0] += values[s][0];
        }
    }
#pragma unroll
    for (int s = 0; s < Source::SUMS; s++) {
        to[s * width + column] = sums[s][0];
    }
}

/* With partial NULL it sums in row order. */
template <typename Source>
static inline int launch_columns(Source source, int64_t rows, int64_t width, float *sums,
                                 float *partial, cudaStream_t stream)
{
    const int64_t stripes = column_stripes(rows), elements = Source::SUMS * width;
    const int64_t group = source.is_aligned(width) ? COLUMNS_GROUP : 1;
    const int64_t tiles = divide_up(width, COLUMNS_LANES * group);
    if (width <= 0) return 0;
    const struct weft_grid grid = {dim3((unsigned)tiles, (unsigned)stripes),
                                   dim3(COLUMNS_LANES, COLUMNS_ROWS),
                                   Source::SUMS * COLUMNS_THREADS * (size_t)group * sizeof(float)};
    const struct weft_grid flat = {dim3((unsigned)divide_up(elements, COLUMNS_LANES)),
                                   dim3(COLUMNS_LANES, COLUMNS_ROWS),
                                   COLUMNS_AT_ONCE * COLUMNS_LANES * sizeof(float)};
    const struct weft_grid threads = {dim3((unsigned)divide_up(width, COLUMNS_THREADS)),
                                      dim3(COLUMNS_THREADS), 0};
    int error = 0;
    if (partial == NULL) {
        return launch(column_chain<Source>, threads, stream, source, rows, width, sums);
    }
    if (rows > 0 && group == COLUMNS_GROUP) {
        error = launch(column_stripe<Source, COLUMNS_GROUP>, grid, stream, source, rows, width,
                       partial);
    } else if (rows > 0) {
        error = launch(column_stripe<Source, 1>, grid, stream, source, rows, width, partial);
    }
    if (error != 0) return error;
    return launch(column_total<Source>, flat, stream, (const float *)partial, stripes, width,
                  elements, sums);
}

#endif
