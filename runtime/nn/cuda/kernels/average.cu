/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cuda/kernels/average.h"

#include "runtime/nn/cuda/kernels/each.h"

/* A step of averages over nodes. Products are rounded before they are added, as on the CPU. */
template <typename C> struct average_op {
    enum { GROUP = 4 };
    float *values, *anchor, *momentum;
    C *copy;
    float nodes, decay, lr;

    bool is_aligned(int64_t i) const
    {
        return group_begins(values, GROUP, i) && group_begins(anchor, GROUP, i) &&
               group_begins(momentum, GROUP, i) && group_begins(copy, GROUP, i);
    }
    template <int N> GPU void at(int64_t i) const
    {
        float x[N], a[N], m[N];
        load<N>(values + i, x);
        if (anchor != NULL) load<N>(anchor + i, a);
        if (anchor != NULL) load<N>(momentum + i, m);
#pragma unroll
        for (int j = 0; j < N; j++) {
            x[j] = x[j] / nodes;
            if (anchor == NULL) continue;
            const float change = a[j] - x[j];
            m[j] = decay * m[j] + change;
            a[j] = a[j] - lr * (change + decay * m[j]);
            x[j] = a[j];
        }
        if (anchor != NULL) store<N>(m, momentum + i);
        if (anchor != NULL) store<N>(a, anchor + i);
        store<N>(x, values + i);
        if (copy != NULL) store<N>(x, copy + i);
    }
};

int weft_cuda_average(const struct weft_cuda_average *u, struct CUstream_st *stream)
{
    return with_dtype(u->copy == NULL ? WEFT_F32 : u->copy_dtype, [&](auto copy) {
        typedef decltype(copy) C;
        return launch_each(average_op<C>{u->values, u->anchor, u->momentum, (C *)u->copy, u->nodes,
                                         u->decay, u->lr},
                           u->n, stream);
    });
}
