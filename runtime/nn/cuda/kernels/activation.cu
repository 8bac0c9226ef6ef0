/* SPDX-License-Identifier: Apache-2.0 */
/* GELU in both forms, tanh, ReLU, its square, soft caps, and sums, element by element. */
#include "runtime/nn/cuda/kernels/each.h"
#include "runtime/nn/cuda/kernels/layers.h"
#include "runtime/nn/erf.h"

/* A form is a function, and a gradient times its slope, which follows from the input or the output.
 */
struct gelu_form {
    GPU float value(float x) const
    {
        return gelu_of(x);
    }
    GPU float turn(float d, float x) const
    {
        return d * gelu_slope(x);
    }
};
/* y = x < 0 ? 0 : x. */
struct relu_form {
    GPU float value(float x) const
    {
        return x < 0.0f ? 0.0f : x;
    }
    GPU float turn(float d, float y) const
    {
        return y > 0.0f ? d : 0.0f;
    }
};
/* y = max(x, 0)^2. */
struct squared_relu_form {
    GPU float value(float x) const
    {
        const float kept = x < 0.0f ? 0.0f : x;
        return kept * kept;
    }
    GPU float turn(float d, float x) const
    {
        return 2.0f * (x < 0.0f ? 0.0f : x) * d;
    }
};
struct gelu_erf_form {
    GPU float value(float x) const
    {
        return gelu_erf_of(x);
    }
    GPU float turn(float d, float x) const
    {
        return d * gelu_erf_slope(x);
    }
};
struct tanh_form {
    GPU float value(float x) const
    {
        return tanh_of(x);
    }
    GPU float turn(float d, float y) const
    {
        return d * (1.0f - y * y);
    }
};
/* y = cap tanh(x / cap). */
struct soft_cap_form {
    float cap;
    GPU float value(float x) const
    {
        return cap * tanh_of(x / cap);
    }
    GPU float turn(float d, float x) const
    {
        const float part = tanh_of(x / cap);
        return d * (1.0f - part * part);
    }
};

template <typename T, typename F> struct value_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    F form;
    const T *x;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = form.value(values[j]);
        }
        store<N>(values, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i) && group_begins(y, GROUP, i);
    }
};

/* `dx` may be `dy`. */
template <typename T, typename F> struct turn_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    F form;
    const T *of, *dy;
    T *dx;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N], d[N];
        load<N>(of + i, values);
        load<N>(dy + i, d);
#pragma unroll
        for (int j = 0; j < N; j++) {
            d[j] = form.turn(d[j], values[j]);
        }
        store<N>(d, dx + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(of, GROUP, i) && group_begins(dy, GROUP, i) &&
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

template <typename F>
static int launch_values(F form, enum weft_dtype dtype, int64_t n, const void *x, void *y,
                         struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(value_op<T, F>{form, (const T *)x, (T *)y}, n, stream);
    });
}

template <typename F>
static int launch_turns(F form, enum weft_dtype dtype, int64_t n, const void *of, const void *dy,
                        void *dx, struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(turn_op<T, F>{form, (const T *)of, (const T *)dy, (T *)dx}, n, stream);
    });
}

/* The functions of an activation without settings. Backward is `of` its input or output. */
#define ACTIVATION(name)                                                                           \
    int weft_cuda_##name(enum weft_dtype dtype, int64_t n, const void *x, void *y,                 \
                         struct CUstream_st *stream)                                               \
    {                                                                                              \
        return launch_values(name##_form{}, dtype, n, x, y, stream);                               \
    }                                                                                              \
    int weft_cuda_##name##_backward(enum weft_dtype dtype, int64_t n, const void *of,              \
                                    const void *dy, void *dx, struct CUstream_st *stream)          \
    {                                                                                              \
        return launch_turns(name##_form{}, dtype, n, of, dy, dx, stream);                          \
    }
ACTIVATION(gelu)
ACTIVATION(relu)
ACTIVATION(squared_relu)
ACTIVATION(gelu_erf)
ACTIVATION(tanh)

int weft_cuda_soft_cap(enum weft_dtype dtype, int64_t n, float cap, const void *x, void *y,
                       struct CUstream_st *stream)
{
    return launch_values(soft_cap_form{cap}, dtype, n, x, y, stream);
}

int weft_cuda_soft_cap_backward(enum weft_dtype dtype, int64_t n, float cap, const void *x, void *d,
                                struct CUstream_st *stream)
{
    return launch_turns(soft_cap_form{cap}, dtype, n, x, d, d, stream);
}

int weft_cuda_add_values(enum weft_dtype dtype, int64_t n, const void *a, const void *b, void *y,
                         struct CUstream_st *stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(sum_op<T>{(const T *)a, (const T *)b, (T *)y}, n, stream);
    });
}
