/* SPDX-License-Identifier: Apache-2.0 */
/* Rows with sums that have the CPU's bits (runtime/nn/cpu/kernels/kernels.h). A sum runs in 16
 * lanes, element i in lane i mod 16, and lanes are added as a fixed tree. A team of threads does a
 * row. Each thread has consecutive lanes, as many as one access holds elements. A wider access
 * would leave fewer threads, and too few loads in flight. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_ROWS_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_ROWS_H

#include "runtime/nn/cuda/kernels/access.h"

/* A multiprocessor has registers for ROW_BLOCKS blocks. */
enum { ROW_LANES = 16, ROW_THREADS = 128, ROW_BLOCKS = 6, ROW_ACCESS_BYTES = 8 };

template <typename T> struct team {
    enum {
        EACH = ROW_ACCESS_BYTES / (int)sizeof(T), /* lanes of a thread */
        SIZE = ROW_LANES / EACH,                  /* threads of a row */
        ROWS = ROW_THREADS / SIZE                 /* rows of a block */
    };
};

/* The row of this thread's team. Teams without a row still take part in sums. */
template <typename T> GPU int64_t row_of_team(void)
{
    return (int64_t)blockIdx.x * team<T>::ROWS + threadIdx.x / team<T>::SIZE;
}

/* Calls fn(i, count) for each group of this thread's consecutive elements of a row. The type of
 * count has the group's size: EACH if they can be accessed at once, otherwise 1. */
template <typename T, typename F> GPU void for_elements(int64_t width, bool wide, F fn)
{
    enum { EACH = team<T>::EACH };
    const int64_t begin = threadIdx.x % team<T>::SIZE * EACH;
    if (wide) {
#pragma unroll 4
        for (int64_t i = begin; i < width; i += ROW_LANES) {
            fn(i, std::integral_constant<int, EACH>());
        }
        return;
    }
    for (int64_t i = begin; i < width; i += ROW_LANES) {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            if (i + j < width) fn(i + j, std::integral_constant<int, 1>());
        }
    }
}

/* Adds values of elements from i on to their lanes. */
template <typename T, int N>
GPU void add_to_lanes(int64_t i, const float (&values)[N], float (&lanes)[team<T>::EACH])
{
#pragma unroll
    for (int j = 0; j < team<T>::EACH; j++) {
        if constexpr (N == 1) {
            lanes[j] += j == i % team<T>::EACH ? values[0] : 0.0f;
        } else {
            lanes[j] += values[j];
        }
    }
}

/* Adds the lanes of a team whose threads have EACH of them, as the fixed tree. Returns the sum in
 * all threads of the team. */
template <int EACH> GPU float sum_of_team(float (&lanes)[EACH])
{
#pragma unroll
    for (int by = ROW_LANES / EACH / 2; by > 0; by /= 2) {
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            lanes[j] += __shfl_xor_sync(ALL_LANES, lanes[j], by);
        }
    }
#pragma unroll
    for (int by = EACH / 2; by > 0; by /= 2) {
#pragma unroll
        for (int j = 0; j < by; j++) {
            lanes[j] += lanes[j + by];
        }
    }
    return lanes[0];
}

template <typename T> GPU int32_t maximum_of_team(int32_t x)
{
#pragma unroll
    for (int by = team<T>::SIZE / 2; by > 0; by /= 2) {
        const int32_t other = __shfl_xor_sync(ALL_LANES, x, by);
        x = other > x ? other : x;
    }
    return x;
}

/* True if groups of all rows can be accessed at once. Rows are `stride` elements apart. */
template <typename T>
static inline bool rows_are_wide(const T *array, int64_t width, int64_t stride)
{
    enum { EACH = team<T>::EACH };
    return array == NULL ||
           (width % EACH == 0 && stride % EACH == 0 && group_begins(array, EACH, 0));
}

template <typename T> static inline struct weft_grid grid_of_rows(int64_t rows)
{
    return {dim3((unsigned)divide_up(rows, team<T>::ROWS)), dim3(ROW_THREADS), 0};
}

#endif
