/* SPDX-License-Identifier: Apache-2.0 */
/* GELU in both forms, tanh, ReLU, its square, soft caps, and sums, element by element. */
#include "runtime/nn/cuda/kernels/each.h"
#include "runtime/nn/cuda/kernels/layers.h"
#include "runtime/nn/erf.h"

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

/* A function, and a gradient times its slope, which follows from the input or the output. */
struct gelu_erf_form {
    static GPU float value(float x)
    {
        return gelu_erf_of(x);
    }
    static GPU float turn(float d, float x)
    {
        return d * gelu_erf_slope(x);
    }
};
struct tanh_form {
    static GPU float value(float x)
    {
        return tanh_of(x);
    }
    static GPU float turn(float d, float y)
    {
        return d * (1.0f - y * y);
    }
};

template <typename T, typename F> struct value_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const T *x;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = F::value(values[j]);
        }
        store<N>(values, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(y, GROUP, i);
    }
};

template <typename T, typename F> struct turn_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const T *of, *dy;
    T *dx;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N], d[N];
        load<N>(of + i, values);
        load<N>(dy + i, d);
#pragma unroll
        for (int j = 0; j < N; j++) {
            d[j] = F::turn(d[j], values[j]);
        }
        store<N>(d, dx + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(of, GROUP, i) && group_begins(dy, GROUP, i) &&
               group_begins(dx, GROUP, i);
    }
};

/* y = cap tanh(x / cap). */
template <typename T> struct soft_cap_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    float cap;
    const T *x;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = cap * tanh_of(values[j] / cap);
        }
        store<N>(values, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(y, GROUP, i);
    }
};

template <typename T> struct soft_cap_backward_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    float cap;
    const T *x;
    T *d;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N], gradients[N];
        load<N>(x + i, values);
        load<N>(d + i, gradients);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float part = tanh_of(values[j] / cap);
            gradients[j] = gradients[j] * (1.0f - part * part);
        }
        store<N>(gradients, d + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(d, GROUP, i);
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

int weft_cuda_gelu_erf(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                       struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(value_op<T, gelu_erf_form>{(const T *)x, (T *)y}, n, stream);
    });
}

int weft_cuda_gelu_erf_backward(enum weft_dtype dtype, int64_t n, const void *x, const void *dy,
                                void *dx, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(turn_op<T, gelu_erf_form>{(const T *)x, (const T *)dy, (T *)dx}, n,
                           stream);
    });
}

int weft_cuda_tanh(enum weft_dtype dtype, int64_t n, const void *x, void *y,
                   struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(value_op<T, tanh_form>{(const T *)x, (T *)y}, n, stream);
    });
}

int weft_cuda_tanh_backward(enum weft_dtype dtype, int64_t n, const void *y, const void *dy,
                            void *dx, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(turn_op<T, tanh_form>{(const T *)y, (const T *)dy, (T *)dx}, n, stream);
    });
}

int weft_cuda_soft_cap(enum weft_dtype dtype, int64_t n, float cap, const void *x, void *y,
                       struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(soft_cap_op<T>{cap, (const T *)x, (T *)y}, n, stream);
    });
}

int weft_cuda_soft_cap_backward(enum weft_dtype dtype, int64_t n, float cap, const void *x, void *d,
                                struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(soft_cap_backward_op<T>{cap, (const T *)x, (T *)d}, n, stream);
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
