/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in shared memory, as fp32. Each number is read once from the GPU's memory, by a warp that
 * takes whole rows. Sums have the CPU's bits (rows.h): a team of ROW_LANES threads adds the lanes
 * of a row. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_STAGED_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_STAGED_H

#include "runtime/nn/cuda/kernels/rows.h"

enum {
    STAGED_THREADS = 128,
    STAGED_ROWS = STAGED_THREADS / ROW_LANES,
    STAGED_GROUP = 4, /* elements of an access: 16 bytes of shared memory */
    STAGED_MOST_BYTES = 96 << 10
};

/* The rows of a block. Rows of an array are `pitch` numbers apart, so that the two teams of a warp
 * read different banks. `facts` floats a row follow the arrays. */
struct staging {
    int rows, pitch;
    bool wide; /* groups can be accessed at once */
};

/* No rows if one does not fit. */
static inline struct staging staging_of(int64_t width, int arrays, int facts, bool wide)
{
    const int64_t pitch = divide_up(width, WARP) * WARP + ROW_LANES;
    const int64_t fit = STAGED_MOST_BYTES / ((arrays * pitch + facts) * (int64_t)sizeof(float));
    return {(int)(fit < STAGED_ROWS ? fit : STAGED_ROWS), fit > 0 ? (int)pitch : 0, wide};
}

static inline struct weft_grid grid_of_staged(struct staging s, int64_t rows, int arrays, int facts)
{
    return {dim3((unsigned)divide_up(rows, s.rows)), dim3(STAGED_THREADS),
            (size_t)s.rows * (size_t)(arrays * s.pitch + facts) * sizeof(float)};
}

template <typename T> static inline bool is_in_groups(const T *array, int64_t width)
{
    return array == NULL || (width % STAGED_GROUP == 0 && group_begins(array, STAGED_GROUP, 0));
}

/* Rows of this block. */
GPU int staged_count(const staging &s, int64_t rows)
{
    const int64_t left = rows - (int64_t)blockIdx.x * s.rows;
    return left < s.rows ? (int)left : s.rows;
}

/* Calls fn(row of the block, i, count) for this thread's groups of elements i, i + 1, ... The type
 * of count has the group's size. */
template <typename F> GPU void for_staged(const staging &s, int64_t rows, int width, F fn)
{
    const int count = staged_count(s, rows), lane = (int)threadIdx.x % WARP;
    for (int row = (int)threadIdx.x / WARP; row < count; row += STAGED_THREADS / WARP) {
        if (!s.wide) {
            for (int i = lane; i < width; i += WARP) {
                fn(row, i, std::integral_constant<int, 1>());
            }
            continue;
        }
#pragma unroll 3
        for (int i = lane * STAGED_GROUP; i < width; i += WARP * STAGED_GROUP) {
            fn(row, i, std::integral_constant<int, STAGED_GROUP>());
        }
    }
}

/* The row of this thread's team, or -1. Teams without a row still take part in sums. */
GPU int staged_row(const staging &s, int64_t rows)
{
    const int row = (int)threadIdx.x / ROW_LANES;
    return row < staged_count(s, rows) ? row : -1;
}

/* Sums N terms of each element of the team's row: term(i, sums) adds those of element i. All lanes
 * have the elements up to `whole`. */
template <int N, typename F> GPU void sum_staged(int row, int width, F term, float (&sums)[N])
{
    const int lane = (int)threadIdx.x % ROW_LANES;
    const int whole = row >= 0 ? width / ROW_LANES * ROW_LANES : 0;
    float lanes[N][1] = {};
#pragma unroll 8
    for (int from = 0; from < whole; from += ROW_LANES) {
        term(from + lane, lanes);
    }
    if (row >= 0 && whole + lane < width) term(whole + lane, lanes);
#pragma unroll
    for (int n = 0; n < N; n++) {
        sums[n] = sum_of_team(lanes[n]);
    }
}

#endif
