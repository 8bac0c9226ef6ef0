/* SPDX-License-Identifier: Apache-2.0 */
/* GELU and ReLU, element by element. */
#include "runtime/nn/cuda/each.h"
#include "runtime/nn/cuda/layers.h"

template <typename T> struct gelu_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const T *x;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = gelu_of(values[j]);
        }
        store<N>(values, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(y, GROUP, i);
    }
};

template <typename T> struct gelu_backward_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const T *x, *dy;
    T *dx;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N], d[N];
        load<N>(x + i, values);
        load<N>(dy + i, d);
#pragma unroll
        for (int j = 0; j < N; j++) {
            d[j] = d[j] * gelu_slope(values[j]);
        }
        store<N>(d, dx + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(dy, GROUP, i) &&
               group_begins(dx, GROUP, i);
    }
};

/* y = x < 0 ? 0 : x. */
template <typename T> struct relu_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const T *x;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = values[j] < 0.0f ? 0.0f : values[j];
        }
        store<N>(values, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(y, GROUP, i);
    }
};

template <typename T> struct relu_backward_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const T *y, *dy;
    T *dx;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N], d[N];
        load<N>(y + i, values);
        load<N>(dy + i, d);
#pragma unroll
        for (int j = 0; j < N; j++) {
            d[j] = values[j] > 0.0f ? d[j] : 0.0f;
        }
        store<N>(d, dx + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(y, GROUP, i) && group_begins(dy, GROUP, i) &&
               group_begins(dx, GROUP, i);
    }
};

int weft_cuda_gelu(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                   struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(gelu_op<T>{(const T *)x, (T *)y}, n, stream);
    });
}

int weft_cuda_gelu_backward(enum weft_dtype dtype, int64_t n, const void *x, const void *dy,
                            void *dx, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(gelu_backward_op<T>{(const T *)x, (const T *)dy, (T *)dx}, n, stream);
    });
}

int weft_cuda_relu(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                   struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(relu_op<T>{(const T *)x, (T *)y}, n, stream);
    });
}

int weft_cuda_relu_backward(enum weft_dtype dtype, int64_t n, const void *y, const void *dy,
                            void *dx, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(relu_backward_op<T>{(const T *)y, (const T *)dy, (T *)dx}, n, stream);
    });
}
