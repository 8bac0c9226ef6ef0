/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel for element-wise operations. Each thread does a group of consecutive elements that one
 * wide access of every array holds. An operation is a struct of its arrays with
 *     enum { GROUP };                                  elements of a group
 *     template <int N> GPU void at(int64_t i) const;   does elements i to i + N, N 1 or GROUP
 *     bool is_aligned(int64_t i) const;                a group may begin at element i
 * Element i of the result depends only on element i of the operands, so operands may be results.
 * Bits do not depend on the start of arrays. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_EACH_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_EACH_H

#include "runtime/nn/cuda/kernels/access.h"

/* Place of element i of a matrix whose rows are `stride` elements apart. */
GPU int64_t place_of_element(int64_t i, int64_t width, int64_t stride)
{
    return stride == width ? i : i / width * stride + i % width;
}

/* True if a group may begin at element i of such a matrix. No group crosses the end of a row. */
template <typename T>
static inline bool matrix_group_begins(const T *array, int64_t width, int64_t stride, int64_t group,
                                       int64_t i)
{
    if (stride == width) return group_begins(array, group, i);
    return i == 0 && width % group == 0 && stride % group == 0 && group_begins(array, group, 0);
}

/* Blocks of a multiprocessor: registers suffice for this number without spills. */
enum { EACH_THREADS = 256, EACH_BLOCKS = 4 };

/* Does elements one by one before the first group, after the last one, and everywhere if no group
 * can begin. */
template <typename Op>
__global__ void __launch_bounds__(EACH_THREADS, EACH_BLOCKS)
    each(Op op, bool groups, int64_t first, int64_t n)
{
    const int64_t thread = (int64_t)blockIdx.x * EACH_THREADS + threadIdx.x;
    const int64_t begin = first + thread * Op::GROUP;
    if (thread < first) op.template at<1>(thread);
    if (groups && begin + Op::GROUP <= n) {
        op.template at<Op::GROUP>(begin);
        return;
    }
    const int64_t end = groups ? n : 0;
#pragma unroll 1
    for (int64_t i = begin; i < end; i++) {
        op.template at<1>(i);
    }
}

template <typename Op> static inline int launch_each(Op op, int64_t n, cudaStream_t stream)
{
    struct weft_grid grid = {dim3(1), dim3(EACH_THREADS), 0};
    int64_t first = 0;
    if (n <= 0) return 0;
    while (first < Op::GROUP && !op.is_aligned(first)) {
        first++;
    }
    const bool groups = first < Op::GROUP;
    if (!groups || first > n) first = n;
    const int64_t threads = groups ? divide_up(n - first, Op::GROUP) : n;
    grid.blocks.x = (unsigned)divide_up(threads > first ? threads : first, EACH_THREADS);
    return launch(each<Op>, grid, stream, op, groups, first, n);
}

#endif
