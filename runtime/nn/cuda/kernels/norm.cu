/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norm. Rows and their gradients have the CPU's bits. Gradients of weight and bias are sums
 * of columns. */
#include "runtime/nn/cuda/kernels/columns.h"
#include "runtime/nn/cuda/kernels/layers.h"
#include "runtime/nn/cuda/kernels/staged.h"

enum { FACTS = 2 }; /* numbers of a row that its threads share */

template <typename T> struct norm_rows {
    int64_t rows, width;
    const T *x, *weight, *bias;
    T *y;
    float epsilon, *mean, *rstd;
};

template <typename T>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS) layer_norm(norm_rows<T> n, bool wide)
{
    enum { EACH = team<T>::EACH };
    const int64_t row = row_of_team<T>(), width = row < n.rows ? n.width : 0;
    const T *x = n.x + (width > 0 ? row * width : 0);
    float sums[EACH] = {}, squares[EACH] = {};
    for_elements<T>(width, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(x + i, values);
        add_to_lanes<T>(i, values, sums);
    });
    const float m = sum_of_team(sums) / (float)n.width;
    for_elements<T>(width, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = (values[j] - m) * (values[j] - m);
        }
        add_to_lanes<T>(i, values, squares);
    });
    const float r = 1.0f / sqrtf(sum_of_team(squares) / (float)n.width + n.epsilon);
    for_elements<T>(width, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N], weight[N], bias[N];
        load<N>(x + i, values);
        load<N>(n.weight + i, weight);
        load<N>(n.bias + i, bias);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = (values[j] - m) * r * weight[j] + bias[j];
        }
        store<N>(values, n.y + row * width + i);
    });
    if (row < n.rows && threadIdx.x % team<T>::SIZE == 0) {
        n.mean[row] = m;
        n.rstd[row] = r;
    }
}

/* A row's mean and rstd follow the staged rows. */
template <typename T>
__global__ void __launch_bounds__(STAGED_THREADS) layer_norm_staged(norm_rows<T> n, staging s)
{
    float *staged = shared_memory<float>();
    float *facts = staged + s.rows * s.pitch;
    const int64_t first = (int64_t)blockIdx.x * s.rows;
    for_staged(s, n.rows, (int)n.width, [&](int row, int i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(n.x + (first + row) * n.width + i, values);
        store<N>(values, staged + row * s.pitch + i);
    });
    __syncthreads();
    const int own = staged_row(s, n.rows);
    const float *x = staged + (own >= 0 ? own * s.pitch : 0);
    const int width = (int)n.width;
    float sum[1];
    sum_staged(
        own, width, [&](int i, float(&to)[1][1]) { to[0][0] += x[i]; }, sum);
    const float m = sum[0] / (float)width;
    sum_staged(
        own, width, [&](int i, float(&to)[1][1]) { to[0][0] += (x[i] - m) * (x[i] - m); }, sum);
    const float r = 1.0f / sqrtf(sum[0] / (float)width + n.epsilon);
    if (own >= 0 && threadIdx.x % ROW_LANES == 0) {
        facts[2 * own] = n.mean[first + own] = m;
        facts[2 * own + 1] = n.rstd[first + own] = r;
    }
    __syncthreads();
    for_staged(s, n.rows, (int)n.width, [&](int row, int i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N], weight[N], bias[N];
        load<N>(staged + row * s.pitch + i, values);
        load<N>(n.weight + i, weight);
        load<N>(n.bias + i, bias);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = (values[j] - facts[2 * row]) * facts[2 * row + 1] * weight[j] + bias[j];
        }
        store<N>(values, n.y + (first + row) * n.width + i);
    });
}

template <typename T> struct norm_gradients {
    int64_t rows, width;
    const T *x, *weight;
    const float *mean, *rstd;
    const T *dy, *residual;
    T *dx;
};

template <typename T>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS)
    layer_norm_dx(norm_gradients<T> n, bool wide)
{
    enum { EACH = team<T>::EACH };
    const int64_t row = row_of_team<T>(), width = row < n.rows ? n.width : 0;
    const int64_t at = width > 0 ? row * width : 0;
    const float m = width > 0 ? n.mean[row] : 0, r = width > 0 ? n.rstd[row] : 0;
    float g_lanes[EACH] = {}, gx_lanes[EACH] = {};
    for_elements<T>(width, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float x[N], dy[N], weight[N];
        load<N>(n.x + at + i, x);
        load<N>(n.dy + at + i, dy);
        load<N>(n.weight + i, weight);
#pragma unroll
        for (int j = 0; j < N; j++) {
            dy[j] = dy[j] * weight[j];
            x[j] = dy[j] * ((x[j] - m) * r);
        }
        add_to_lanes<T>(i, dy, g_lanes);
        add_to_lanes<T>(i, x, gx_lanes);
    });
    const float g_mean = sum_of_team(g_lanes) / (float)n.width;
    const float gx_mean = sum_of_team(gx_lanes) / (float)n.width;
    for_elements<T>(width, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float x[N], dy[N], weight[N], residual[N];
        load<N>(n.x + at + i, x);
        load<N>(n.dy + at + i, dy);
        load<N>(n.weight + i, weight);
        if (n.residual != NULL) load<N>(n.residual + at + i, residual);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float g = dy[j] * weight[j] - g_mean;
            const float dx = r * (g - (x[j] - m) * r * gx_mean);
            x[j] = n.residual != NULL ? residual[j] + dx : dx;
        }
        store<N>(x, n.dx + at + i);
    });
}

/* Stages the gradient by the normalized row, and that row. Their means follow. */
template <typename T>
__global__ void __launch_bounds__(STAGED_THREADS)
    layer_norm_dx_staged(norm_gradients<T> n, staging s)
{
    float *g = shared_memory<float>();
    float *normal = g + s.rows * s.pitch, *facts = normal + s.rows * s.pitch;
    const int64_t first = (int64_t)blockIdx.x * s.rows;
    for_staged(s, n.rows, (int)n.width, [&](int row, int i, auto count) {
        constexpr int N = decltype(count)::value;
        const int64_t at = (first + row) * n.width + i;
        const float m = n.mean[first + row], r = n.rstd[first + row];
        float x[N], dy[N], weight[N];
        load<N>(n.x + at, x);
        load<N>(n.dy + at, dy);
        load<N>(n.weight + i, weight);
#pragma unroll
        for (int j = 0; j < N; j++) {
            dy[j] = dy[j] * weight[j];
            x[j] = (x[j] - m) * r;
        }
        store<N>(dy, g + row * s.pitch + i);
        store<N>(x, normal + row * s.pitch + i);
    });
    __syncthreads();
    const int own = staged_row(s, n.rows);
    const int begin = own >= 0 ? own * s.pitch : 0, width = (int)n.width;
    float sums[2];
    sum_staged(
        own, width,
        [&](int i, float(&to)[2][1]) {
            to[0][0] += g[begin + i];
            to[1][0] += g[begin + i] * normal[begin + i];
        },
        sums);
    if (own >= 0 && threadIdx.x % ROW_LANES == 0) {
        facts[2 * own] = sums[0] / (float)width;
        facts[2 * own + 1] = sums[1] / (float)width;
    }
    __syncthreads();
    for_staged(s, n.rows, (int)n.width, [&](int row, int i, auto count) {
        constexpr int N = decltype(count)::value;
        const int64_t at = (first + row) * n.width + i;
        const float r = n.rstd[first + row];
        float x[N], dy[N], residual[N];
        load<N>(normal + row * s.pitch + i, x);
        load<N>(g + row * s.pitch + i, dy);
        if (n.residual != NULL) load<N>(n.residual + at, residual);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float dx = r * (dy[j] - facts[2 * row] - x[j] * facts[2 * row + 1]);
            x[j] = n.residual != NULL ? residual[j] + dx : dx;
        }
        store<N>(x, n.dx + at);
    });
}

/* Gradients of weight and bias: columns of dy (x - mean) rstd, and of dy. */
template <typename T> struct norm_columns {
    enum { SUMS = 2 };
    norm_gradients<T> n;

    template <int N> GPU void values(int64_t row, int64_t column, float (&to)[SUMS][N]) const
    {
        const float m = n.mean[row], r = n.rstd[row];
        float x[N];
        load<N>(n.x + row * n.width + column, x);
        load<N>(n.dy + row * n.width + column, to[1]);
#pragma unroll
        for (int j = 0; j < N; j++) {
            to[0][j] = to[1][j] * ((x[j] - m) * r);
        }
    }
    bool is_aligned(int64_t width) const
    {
        return width % COLUMNS_GROUP == 0 && group_begins(n.x, COLUMNS_GROUP, 0) &&
               group_begins(n.dy, COLUMNS_GROUP, 0);
    }
};

int weft_cuda_layer_norm(enum weft_dtype dtype, int64_t rows, int64_t width, float epsilon,
                         const void *x, const void *weight, const void *bias, void *y, float *mean,
                         float *rstd, struct CUstream_st *stream)
{
    if (rows <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const norm_rows<T> n = {
            rows,    width, (const T *)x, (const T *)weight, (const T *)bias, (T *)y,
            epsilon, mean,  rstd};
        const struct staging s =
            staging_of(width, 1, FACTS,
                       is_in_groups(n.x, width) && is_in_groups(n.weight, width) &&
                           is_in_groups(n.bias, width) && is_in_groups(n.y, width));
        if (s.rows > 0)
            return launch(layer_norm_staged<T>, grid_of_staged(s, rows, 1, FACTS), stream, n, s);
        const bool wide = rows_are_wide(n.x, width, width) &&
                          rows_are_wide(n.weight, width, width) &&
                          rows_are_wide(n.bias, width, width) && rows_are_wide(n.y, width, width);
        return launch(layer_norm<T>, grid_of_rows<T>(rows), stream, n, wide);
    });
}

int64_t weft_cuda_layer_norm_bytes(int64_t rows, int64_t width)
{
    return 2 * column_stripes(rows) * width * (int64_t)sizeof(float);
}

int weft_cuda_layer_norm_backward(enum weft_dtype dtype, const struct weft_cuda_norm *norm,
                                  void *dx, float *sums, void *workspace,
                                  struct CUstream_st *stream)
{
    if (norm->width <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const norm_gradients<T> n = {
            norm->rows, norm->width, (const T *)norm->x,  (const T *)norm->weight,
            norm->mean, norm->rstd,  (const T *)norm->dy, (const T *)norm->residual,
            (T *)dx};
        const int64_t w = n.width;
        const bool wide = rows_are_wide(n.x, w, w) && rows_are_wide(n.weight, w, w) &&
                          rows_are_wide(n.dy, w, w) && rows_are_wide(n.residual, w, w) &&
                          rows_are_wide(n.dx, w, w);
        int error = 0;
        if (sums != NULL) {
            error = launch_columns(norm_columns<T>{n}, n.rows, w, sums, (float *)workspace, stream);
        }
        if (error != 0 || dx == NULL || n.rows <= 0) return error;
        const struct staging s =
            staging_of(w, 2, FACTS,
                       is_in_groups(n.x, w) && is_in_groups(n.weight, w) && is_in_groups(n.dy, w) &&
                           is_in_groups(n.residual, w) && is_in_groups(n.dx, w));
        if (s.rows > 0) {
            return launch(layer_norm_dx_staged<T>, grid_of_staged(s, n.rows, 2, FACTS), stream, n,
                          s);
        }
        return launch(layer_norm_dx<T>, grid_of_rows<T>(n.rows), stream, n, wide);
    });
}
