/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of an MLP, silu(gate) up or gelu(gate) up, of columns of rows. */
#include "runtime/nn/cuda/kernels/each.h"
#include "runtime/nn/cuda/kernels/layers.h"

struct silu_form {
    static GPU float value(float x)
    {
        return silu_of(x);
    }
    static GPU float slope(float x)
    {
        return silu_slope(x);
    }
};
struct gelu_form {
    static GPU float value(float x)
    {
        return gelu_of(x);
    }
    static GPU float slope(float x)
    {
        return gelu_slope(x);
    }
};

template <typename T, typename F> struct gate_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    int64_t width, stride;
    const T *gate, *up;
    T *y;

    template <int N> GPU void at(int64_t i) const
    {
        const int64_t from = place_of_element(i, width, stride);
        float x[N], values[N];
        load<N>(gate + from, x);
        load<N>(up + from, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = F::value(x[j]) * values[j];
        }
        store<N>(values, y + i);
    }
    bool is_aligned(int64_t i) const
    {
        return matrix_group_begins(gate, width, stride, GROUP, i) &&
               matrix_group_begins(up, width, stride, GROUP, i) && group_begins(y, GROUP, i);
    }
};

template <typename T, typename F> struct gate_backward_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    int64_t width, stride, dy_stride;
    const T *gate, *up, *dy;
    T *d_gate, *d_up;

    template <int N> GPU void at(int64_t i) const
    {
        const int64_t from = place_of_element(i, width, stride);
        float x[N], d[N], values[N];
        load<N>(gate + from, x);
        load<N>(up + from, values);
        load<N>(dy + place_of_element(i, width, dy_stride), d);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = d[j] * values[j] * F::slope(x[j]);
            d[j] = d[j] * F::value(x[j]);
        }
        store<N>(values, d_gate + from);
        store<N>(d, d_up + from);
    }
    bool is_aligned(int64_t i) const
    {
        return matrix_group_begins(gate, width, stride, GROUP, i) &&
               matrix_group_begins(up, width, stride, GROUP, i) &&
               matrix_group_begins(dy, width, dy_stride, GROUP, i) &&
               matrix_group_begins(d_gate, width, stride, GROUP, i) &&
               matrix_group_begins(d_up, width, stride, GROUP, i);
    }
};

template <typename F>
static int run_gate(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                    const void *gate, const void *up, void *y, cudaStream_t stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const gate_op<T, F> op = {width, stride, (const T *)gate, (const T *)up, (T *)y};
        return launch_each(op, rows * width, stream);
    });
}

template <typename F>
static int run_gate_backward(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                             const void *gate, const void *up, int64_t dy_stride, const void *dy,
                             void *d_gate, void *d_up, cudaStream_t stream)
{
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const gate_backward_op<T, F> op = {width,           stride,        dy_stride,
                                           (const T *)gate, (const T *)up, (const T *)dy,
                                           (T *)d_gate,     (T *)d_up};
        return launch_each(op, rows * width, stream);
    });
}

int weft_cuda_gate(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                   const void *gate, const void *up, void *y, struct CUstream_st *stream)
{
    return run_gate<silu_form>(dtype, rows, width, stride, gate, up, y, stream);
}

int weft_cuda_gate_backward(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                            const void *gate, const void *up, int64_t dy_stride, const void *dy,
                            void *d_gate, void *d_up, struct CUstream_st *stream)
{
    return run_gate_backward<silu_form>(dtype, rows, width, stride, gate, up, dy_stride, dy, d_gate,
                                        d_up, stream);
}

int weft_cuda_gate_gelu(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                        const void *gate, const void *up, void *y, struct CUstream_st *stream)
{
    return run_gate<gelu_form>(dtype, rows, width, stride, gate, up, y, stream);
}

int weft_cuda_gate_gelu_backward(enum weft_dtype dtype, int64_t rows, int64_t width, int64_t stride,
                                 const void *gate, const void *up, int64_t dy_stride,
                                 const void *dy, void *d_gate, void *d_up,
                                 struct CUstream_st *stream)
{
    return run_gate_backward<gelu_form>(dtype, rows, width, stride, gate, up, dy_stride, dy, d_gate,
                                        d_up, stream);
}
