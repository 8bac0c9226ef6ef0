/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, row by row with the CPU's bits: of score matrices for plain attention, and of logits for
 * their loss. */
#include "runtime/nn/cuda/kernels/each.h"
#include "runtime/nn/cuda/kernels/layers.h"
#include "runtime/nn/cuda/kernels/rows.h"

/* Integers that order as floats do (runtime/nn/cpu/kernels/layers.c), so the maximum may be taken
 * in any order. */
GPU int32_t key_of(float x)
{
    const uint32_t bits = weft_bits_of(x);
    return (int32_t)(bits ^ ((0u - (bits >> 31)) & 0x7fffffffu));
}

GPU float of_key(int32_t key)
{
    const uint32_t bits = (uint32_t)key;
    return weft_float_of(bits ^ ((0u - (bits >> 31)) & 0x7fffffffu));
}

/* Row i of each matrix has columns 0 to i, or all, or the last `window` of those up to i. The
 * others count as -inf and become 0. */
template <typename T>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS)
    masked_softmax(int64_t rows, int64_t width, bool both_ways, int64_t window, T *matrices,
                   bool wide)
{
    enum { EACH = team<T>::EACH };
    const int64_t row = row_of_team<T>(), n = row < rows ? width : 0;
    const int64_t last = both_ways ? width - 1 : row % width;
    const int64_t first = window > 0 ? last - window + 1 : 0;
    T *x = matrices + (n > 0 ? row * width : 0);
    int32_t most = first > 0 || last < width - 1 ? key_of(-INFINITY) : INT32_MIN;
    for_elements<T>(n, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const int32_t key = key_of(values[j]);
            most = i + j >= first && i + j <= last && key > most ? key : most;
        }
    });
    const float greatest = of_key(maximum_of_team<T>(most));
    float lanes[EACH] = {};
    for_elements<T>(n, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const bool seen = i + j >= first && i + j <= last;
            values[j] = exponential((seen ? values[j] : -INFINITY) - greatest);
        }
        add_to_lanes<T>(i, values, lanes);
    });
    const float by = 1.0f / sum_of_team(lanes);
    for_elements<T>(n, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const bool seen = i + j >= first && i + j <= last;
            values[j] = exponential((seen ? values[j] : -INFINITY) - greatest) * by;
        }
        store<N>(values, x + i);
    });
}

template <typename T> struct hide_op {
    enum { GROUP = 16 / (int)sizeof(T) };
    const int32_t *tokens;
    int64_t width, of_sample; /* elements of a row, and of a sample's matrices */
    int32_t padding;
    float to;
    T *x;

    template <int N> GPU void at(int64_t i) const
    {
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const int64_t row = (i + j) / of_sample * width + (i + j) % width;
            values[j] = tokens[row] == padding ? to : values[j];
        }
        store<N>(values, x + i);
    }
    bool is_aligned(int64_t i) const
    {
        return group_begins(x, GROUP, i);
    }
};

/* A form of logits: their values, and a gradient times the slope, from the logit or the target's
 * value. The largest logit has the largest value. */
struct plain_form {
    GPU float value(float x) const
    {
        return x;
    }
    GPU float turn(float d, float) const
    {
        return d;
    }
    GPU float turn_target(float d, float) const
    {
        return d;
    }
};
/* y = cap tanh(x / cap). */
struct capped_form {
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
    GPU float turn_target(float d, float y) const
    {
        const float part = y / cap;
        return d * (1.0f - part * part);
    }
};

/* Turns logits into the gradient of the row's loss. The rounded probability would lose the rest of
 * the gradient near 1. */
template <typename T, typename F>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS)
    logits_cross_entropy(F form, int64_t rows, int64_t width, int64_t stride,
                         const int32_t *targets, T *logits, double *losses, uint32_t *bad,
                         bool wide)
{
    enum { EACH = team<T>::EACH };
    const int64_t row = row_of_team<T>(), n = row < rows ? width : 0;
    const int64_t target = row < rows ? targets[row] : -1;
    const bool good = target >= 0 && target < n, left_out = target == WEFT_LEFT_OUT;
    T *x = logits + (n > 0 ? row * stride : 0);
    int32_t most = INT32_MIN;
    for_elements<T>(n, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const int32_t key = key_of(values[j]);
            most = key > most ? key : most;
        }
    });
    const float greatest = form.value(of_key(maximum_of_team<T>(most)));
    float lanes[EACH] = {};
    for_elements<T>(n, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = exponential(form.value(values[j]) - greatest);
        }
        add_to_lanes<T>(i, values, lanes);
    });
    const float sum = sum_of_team(lanes), by = 1.0f / sum;
    for_elements<T>(n, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float value = form.value(values[j]);
            const float probability = exponential(value - greatest) * by;
            if (good && i + j == target) {
                losses[row] = log((double)sum) - ((double)value - (double)greatest);
                values[j] = form.turn_target(probability - 1.0f, value);
            } else {
                values[j] = left_out ? 0.0f : form.turn(probability, values[j]);
            }
        }
        store<N>(values, x + i);
    });
    if (row >= rows || good || threadIdx.x % team<T>::SIZE != 0) return;
    if (target != WEFT_NO_TARGET && !left_out) atomicMin(bad, (uint32_t)row);
    losses[row] = 0.0;
}

template <typename T>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS)
    softmax_backward(int64_t rows, int64_t width, const T *p, T *d, bool wide)
{
    enum { EACH = team<T>::EACH };
    const int64_t row = row_of_team<T>(), n = row < rows ? width : 0;
    const int64_t at = n > 0 ? row * width : 0;
    float lanes[EACH] = {};
    for_elements<T>(n, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float probabilities[N], gradients[N];
        load<N>(p + at + i, probabilities);
        load<N>(d + at + i, gradients);
#pragma unroll
        for (int j = 0; j < N; j++) {
            gradients[j] = gradients[j] * probabilities[j];
        }
        add_to_lanes<T>(i, gradients, lanes);
    });
    const float dot = sum_of_team(lanes);
    for_elements<T>(n, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float probabilities[N], gradients[N];
        load<N>(p + at + i, probabilities);
        load<N>(d + at + i, gradients);
#pragma unroll
        for (int j = 0; j < N; j++) {
            gradients[j] = probabilities[j] * (gradients[j] - dot);
        }
        store<N>(gradients, d + at + i);
    });
}

int weft_cuda_masked_softmax(enum weft_dtype dtype, int64_t matrices, int64_t width, bool both_ways,
                             int64_t window, void *x, struct CUstream_st *stream)
{
    const int64_t rows = matrices * width;
    if (rows <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch(masked_softmax<T>, grid_of_rows<T>(rows), stream, rows, width, both_ways,
                      window, (T *)x, rows_are_wide((const T *)x, width, width));
    });
}

int weft_cuda_hide_tokens(enum weft_dtype dtype, int64_t samples, int64_t matrices, int64_t width,
                          const int32_t *tokens, int32_t padding, float to, void *x,
                          struct CUstream_st *stream)
{
    const int64_t of_sample = matrices * width * width;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch_each(hide_op<T>{tokens, width, of_sample, padding, to, (T *)x},
                           samples * of_sample, stream);
    });
}

template <typename F>
static int launch_cross_entropy(F form, enum weft_dtype dtype, int64_t rows, int64_t width,
                                int64_t stride, const int32_t *targets, void *logits,
                                double *losses, uint32_t *bad, struct CUstream_st *stream)
{
    if (rows <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        return launch(logits_cross_entropy<T, F>, grid_of_rows<T>(rows), stream, form, rows, width,
                      stride, targets, (T *)logits, losses, bad,
                      rows_are_wide((const T *)logits, width, stride));
    });
}

int weft_cuda_cross_entropy_plain(enum weft_dtype dtype, int64_t rows, int64_t width,
                                  int64_t stride, const int32_t *targets, void *logits,
                                  double *losses, uint32_t *bad, struct CUstream_st *stream)
{
    return launch_cross_entropy(plain_form{}, dtype, rows, width, stride, targets, logits, losses,
                                bad, stream);
}

int weft_cuda_capped_cross_entropy(enum weft_dtype dtype, int64_t rows, int64_t width,
                                   int64_t stride, float cap, const int32_t *targets, void *logits,
                                   double *losses, uint32_t *bad, struct CUstream_st *stream)
{
    return launch_cross_entropy(capped_form{cap}, dtype, rows, width, stride, targets, logits,
                                losses, bad, stream);
}

int weft_cuda_softmax_backward(enum weft_dtype dtype, int64_t rows, int64_t width, const void *p,
                               void *d, struct CUstream_st *stream)
{
    if (rows <= 0 || width <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const bool wide =
            rows_are_wide((const T *)p, width, width) && rows_are_wide((const T *)d, width, width);
        return launch(softmax_backward<T>, grid_of_rows<T>(rows), stream, rows, width, (const T *)p,
                      (T *)d, wide);
    });
}
