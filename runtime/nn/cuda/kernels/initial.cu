/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that depend on their place alone. */
#include "runtime/nn/cuda/kernels/initial.h"

#include "runtime/nn/cuda/kernels/each.h"

template <typename T> struct set_op {
    enum { GROUP = 4 };
    float value;
    T *to;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = value;
        }
        store<N>(values, to + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(to, GROUP, i);
    }
};

template <typename T> struct normal_op {
    enum { GROUP = 4 };
    struct weft_normal law;
    int64_t first;
    T *to;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = weft_normal_at(law, (uint64_t)(first + i + j));
        }
        store<N>(values, to + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(to, GROUP, i);
    }
};

template <typename T> struct uniform_op {
    enum { GROUP = 4 };
    uint64_t name;
    T *to;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = (float)(2 * weft_uniform_of(1, name, (uint64_t)(i + j)) - 1);
        }
        store<N>(values, to + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(to, GROUP, i);
    }
};

int weft_cuda_set(enum weft_dtype dtype, int64_t n, float value, void *to,
                  struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto of) {
        using T = decltype(of);
        return launch_each(set_op<T>{value, (T *)to}, n, stream);
    });
}

int weft_cuda_normal(const struct weft_normal *law, int64_t first, enum weft_dtype dtype, int64_t n,
                     void *to, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto of) {
        using T = decltype(of);
        return launch_each(normal_op<T>{*law, first, (T *)to}, n, stream);
    });
}

int weft_cuda_uniform(uint64_t name, enum weft_dtype dtype, int64_t n, void *to,
                      struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto of) {
        using T = decltype(of);
        return launch_each(uniform_op<T>{name, (T *)to}, n, stream);
    });
}
