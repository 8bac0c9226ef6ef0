/* SPDX-License-Identifier: Apache-2.0 */
/* GELU, ReLU, its square, and sums, element by element. */
#include "runtime/nn/cuda/kernels/each.h"
#include "runtime/nn/cuda/kernels/layers.h"

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

/* y = max(x, 0)^2. */
template <typename T> struct squared_relu_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const T *x;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float kept = values[j] < 0.0f ? 0.0f : values[j];
            values[j] = kept * kept;
        }
        store<N>(values, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(y, GROUP, i);
    }
};

template <typename T> struct squared_relu_backward_op {
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
            d[j] = 2.0f * (values[j] < 0.0f ? 0.0f : values[j]) * d[j];
        }
        store<N>(d, dx + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(dy, GROUP, i) &&
               group_begins(dx, GROUP, i);
    }
};

template <typename T> struct sum_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const T *a, *b;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N], others[N];
        load<N>(a + i, values);
        load<N>(b + i, others);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = values[j] + others[j];
        }
        store<N>(values, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(a, GROUP, i) && group_begins(b, GROUP, i) && group_begins(y, GROUP, i);
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

int weft_cuda_squared_relu(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                           struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(squared_relu_op<T>{(const T *)x, (T *)y}, n, stream);
    });
}

int weft_cuda_squared_relu_backward(enum weft_dtype dtype, int64_t n, const void *x, const void *dy,
                                    void *dx, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(squared_relu_backward_op<T>{(const T *)x, (const T *)dy, (T *)dx}, n,
                           stream);
    });
}

int weft_cuda_add_values(enum weft_dtype dtype, int64_t n, const void *a, const void *b, void *y,
                         struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(sum_op<T>{(const T *)a, (const T *)b, (T *)y}, n, stream);
    });
}
