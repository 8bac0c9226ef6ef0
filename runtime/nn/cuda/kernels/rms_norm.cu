/* SPDX-License-Identifier: Apache-2.0 */
/* RMS norm of parts of rows, with a weight that parts share. Parts and their gradients have the
 * CPU's bits. The gradient of the weight is a sum of columns. */
#include "runtime/nn/cuda/kernels/columns.h"
#include "runtime/nn/cuda/kernels/layers.h"
#include "runtime/nn/cuda/kernels/staged.h"

/* Places of parts in rows that are `stride` elements apart. */
struct part_rows {
    uint32_t parts;
    int64_t width, stride;
};

/* The first element of the block's part of a row. */
GPU int64_t part_begin(const part_rows &r, int64_t row)
{
    return row * r.stride + (int64_t)blockIdx.y * r.width;
}

/* The number of that part among all, in the order of rows. */
GPU int64_t part_number(const part_rows &r, int64_t row)
{
    return row * r.parts + blockIdx.y;
}

/* The number that a norm multiplies by. */
GPU float shifted(float shift, float weight)
{
    return shift != 0.0f ? shift + weight : weight;
}

template <typename T> struct rms_rows {
    int64_t count, width; /* rows; of a part */
    part_rows of_x, of_y;
    const T *x, *weight;
    T *y;
    float epsilon, shift, *rstd;
};

template <typename T>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS) rms_norm(rms_rows<T> n, bool wide)
{
    enum { EACH = team<T>::EACH };
    const int64_t row = row_of_team<T>(), width = row < n.count ? n.width : 0;
    const T *x = n.x + (width > 0 ? part_begin(n.of_x, row) : 0);
    T *y = n.y + (width > 0 ? part_begin(n.of_y, row) : 0);
    float squares[EACH] = {};
    for_elements<T>(width, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(x + i, values);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = values[j] * values[j];
        }
        add_to_lanes<T>(i, values, squares);
    });
    const float r = 1.0f / sqrtf(sum_of_team(squares) / (float)n.width + n.epsilon);
    for_elements<T>(width, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N], weight[N];
        load<N>(x + i, values);
        load<N>(n.weight + i, weight);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = values[j] * r * shifted(n.shift, weight[j]);
        }
        store<N>(values, y + i);
    });
    if (row < n.count && threadIdx.x % team<T>::SIZE == 0) n.rstd[part_number(n.of_x, row)] = r;
}

enum { RMS_FACTS = 1 }; /* a number of a part that its threads share follows the staged parts */

template <typename T>
__global__ void __launch_bounds__(STAGED_THREADS) rms_norm_staged(rms_rows<T> n, staging s)
{
    float *staged = shared_memory<float>();
    float *facts = staged + s.rows * s.pitch;
    const int64_t first = (int64_t)blockIdx.x * s.rows;
    for_staged(s, n.count, (int)n.width, [&](int row, int i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N];
        load<N>(n.x + part_begin(n.of_x, first + row) + i, values);
        store<N>(values, staged + row * s.pitch + i);
    });
    __syncthreads();
    const int own = staged_row(s, n.count);
    const float *x = staged + (own >= 0 ? own * s.pitch : 0);
    const int width = (int)n.width;
    float sum[1];
    sum_staged(
        own, width, [&](int i, float(&to)[1][1]) { to[0][0] += x[i] * x[i]; }, sum);
    const float r = 1.0f / sqrtf(sum[0] / (float)width + n.epsilon);
    if (own >= 0 && threadIdx.x % ROW_LANES == 0)
        facts[own] = n.rstd[part_number(n.of_x, first + own)] = r;
    __syncthreads();
    for_staged(s, n.count, (int)n.width, [&](int row, int i, auto count) {
        constexpr int N = decltype(count)::value;
        float values[N], weight[N];
        load<N>(staged + row * s.pitch + i, values);
        load<N>(n.weight + i, weight);
#pragma unroll
        for (int j = 0; j < N; j++) {
            values[j] = values[j] * facts[row] * shifted(n.shift, weight[j]);
        }
        store<N>(values, n.y + part_begin(n.of_y, first + row) + i);
    });
}

template <typename T> struct rms_gradients {
    int64_t count, width;
    part_rows of_x, of_y;
    const T *x, *weight;
    const float *rstd;
    const T *dy, *residual;
    T *dx;
    float shift;
};

template <typename T>
__global__ void __launch_bounds__(ROW_THREADS, ROW_BLOCKS)
    rms_norm_dx(rms_gradients<T> n, bool wide)
{
    enum { EACH = team<T>::EACH };
    const int64_t row = row_of_team<T>(), width = row < n.count ? n.width : 0;
    const int64_t at = width > 0 ? part_begin(n.of_x, row) : 0;
    const int64_t dy_at = width > 0 ? part_begin(n.of_y, row) : 0;
    const float r = width > 0 ? n.rstd[part_number(n.of_x, row)] : 0;
    float lanes[EACH] = {};
    for_elements<T>(width, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float x[N], dy[N], weight[N];
        load<N>(n.x + at + i, x);
        load<N>(n.dy + dy_at + i, dy);
        load<N>(n.weight + i, weight);
#pragma unroll
        for (int j = 0; j < N; j++) {
            x[j] = dy[j] * shifted(n.shift, weight[j]) * (x[j] * r);
        }
        add_to_lanes<T>(i, x, lanes);
    });
    const float mean = sum_of_team(lanes) / (float)n.width;
    for_elements<T>(width, wide, [&](int64_t i, auto count) {
        constexpr int N = decltype(count)::value;
        float x[N], dy[N], weight[N], residual[N];
        load<N>(n.x + at + i, x);
        load<N>(n.dy + dy_at + i, dy);
        load<N>(n.weight + i, weight);
        if (n.residual != NULL) load<N>(n.residual + at + i, residual);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float g = dy[j] * shifted(n.shift, weight[j]);
            const float dx = r * (g - x[j] * r * mean);
            x[j] = n.residual != NULL ? residual[j] + dx : dx;
        }
        store<N>(x, n.dx + at + i);
    });
}

/* Stages the gradient by the normalized part, and that part. */
template <typename T>
__global__ void __launch_bounds__(STAGED_THREADS) rms_norm_dx_staged(rms_gradients<T> n, staging s)
{
    float *g = shared_memory<float>();
    float *normal = g + s.rows * s.pitch, *facts = normal + s.rows * s.pitch;
    const int64_t first = (int64_t)blockIdx.x * s.rows;
    for_staged(s, n.count, (int)n.width, [&](int row, int i, auto count) {
        constexpr int N = decltype(count)::value;
        const float r = n.rstd[part_number(n.of_x, first + row)];
        float x[N], dy[N], weight[N];
        load<N>(n.x + part_begin(n.of_x, first + row) + i, x);
        load<N>(n.dy + part_begin(n.of_y, first + row) + i, dy);
        load<N>(n.weight + i, weight);
#pragma unroll
        for (int j = 0; j < N; j++) {
            dy[j] = dy[j] * shifted(n.shift, weight[j]);
            x[j] = x[j] * r;
        }
        store<N>(dy, g + row * s.pitch + i);
        store<N>(x, normal + row * s.pitch + i);
    });
    __syncthreads();
    const int own = staged_row(s, n.count);
    const int begin = own >= 0 ? own * s.pitch : 0, width = (int)n.width;
    float sum[1];
    sum_staged(
        own, width, [&](int i, float(&to)[1][1]) { to[0][0] += g[begin + i] * normal[begin + i]; },
        sum);
    if (own >= 0 && threadIdx.x % ROW_LANES == 0) facts[own] = sum[0] / (float)width;
    __syncthreads();
    for_staged(s, n.count, (int)n.width, [&](int row, int i, auto count) {
        constexpr int N = decltype(count)::value;
        const int64_t at = part_begin(n.of_x, first + row) + i;
        const float r = n.rstd[part_number(n.of_x, first + row)];
        float x[N], dy[N], residual[N];
        load<N>(normal + row * s.pitch + i, x);
        load<N>(g + row * s.pitch + i, dy);
        if (n.residual != NULL) load<N>(n.residual + at, residual);
#pragma unroll
        for (int j = 0; j < N; j++) {
            const float dx = r * (dy[j] - x[j] * facts[row]);
            x[j] = n.residual != NULL ? residual[j] + dx : dx;
        }
        store<N>(x, n.dx + at);
    });
}

/* Gradient of the weight: columns of dy x rstd, over all parts. */
template <typename T> struct rms_columns {
    enum { SUMS = 1 };
    rms_gradients<T> n;

    template <int N> GPU void values(int64_t row, int64_t column, float (&to)[SUMS][N]) const
    {
        const uint32_t part = (uint32_t)row, at = part / n.of_x.parts;
        const int64_t within = (int64_t)(part % n.of_x.parts) * n.width + column;
        float x[N];
        load<N>(n.x + at * n.of_x.stride + within, x);
        load<N>(n.dy + at * n.of_y.stride + within, to[0]);
#pragma unroll
        for (int j = 0; j < N; j++) {
            to[0][j] = to[0][j] * (x[j] * n.rstd[row]);
        }
    }
    bool is_aligned(int64_t width) const
    {
        return width % COLUMNS_GROUP == 0 && n.of_x.stride % COLUMNS_GROUP == 0 &&
               n.of_y.stride % COLUMNS_GROUP == 0 && group_begins(n.x, COLUMNS_GROUP, 0) &&
               group_begins(n.dy, COLUMNS_GROUP, 0);
    }
};

static int64_t count_of(const struct weft_cuda_rms *n)
{
    return n->rows * n->parts;
}

/* The same for every part of the rows. */
static struct weft_grid grid_of_parts(struct weft_grid grid, const struct weft_cuda_rms *norm)
{
    grid.blocks.y = (unsigned)norm->parts;
    return grid;
}

int weft_cuda_rms_norm(enum weft_dtype dtype, const struct weft_cuda_rms *norm, float epsilon,
                       void *y, float *rstd, struct CUstream_st *stream)
{
    const int64_t w = norm->width, x_stride = norm->x_stride, y_stride = norm->y_stride;
    if (count_of(norm) > UINT32_MAX || norm->parts > UINT16_MAX) return cudaErrorInvalidValue;
    if (count_of(norm) <= 0 || w <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const rms_rows<T> n = {norm->rows,
                               w,
                               {(uint32_t)norm->parts, w, x_stride},
                               {(uint32_t)norm->parts, w, y_stride},
                               (const T *)norm->x,
                               (const T *)norm->weight,
                               (T *)y,
                               epsilon,
                               norm->shift,
                               rstd};
        const bool in_groups = x_stride % STAGED_GROUP == 0 && y_stride % STAGED_GROUP == 0 &&
                               is_in_groups(n.x, w) && is_in_groups(n.weight, w) &&
                               is_in_groups(n.y, w);
        const struct staging s = staging_of(w, 1, RMS_FACTS, in_groups);
        if (s.rows > 0)
            return launch(rms_norm_staged<T>,
                          grid_of_parts(grid_of_staged(s, n.count, 1, RMS_FACTS), norm), stream, n,
                          s);
        const bool wide = rows_are_wide(n.x, w, x_stride) && rows_are_wide(n.weight, w, w) &&
                          rows_are_wide(n.y, w, y_stride);
        return launch(rms_norm<T>, grid_of_parts(grid_of_rows<T>(n.count), norm), stream, n, wide);
    });
}

int64_t weft_cuda_rms_norm_bytes(const struct weft_cuda_rms *norm)
{
    return column_stripes(count_of(norm)) * norm->width * (int64_t)sizeof(float);
}

int weft_cuda_rms_norm_backward(enum weft_dtype dtype, const struct weft_cuda_rms *norm,
                                const float *rstd, const void *dy, const void *residual, void *dx,
                                float *sums, void *workspace, struct CUstream_st *stream)
{
    const int64_t w = norm->width, x_stride = norm->x_stride, y_stride = norm->y_stride;
    if (count_of(norm) > UINT32_MAX || norm->parts > UINT16_MAX) return cudaErrorInvalidValue;
    if (w <= 0) return 0;
    return with_dtype(dtype, [&](auto type) {
        typedef decltype(type) T;
        const rms_gradients<T> n = {norm->rows,
                                    w,
                                    {(uint32_t)norm->parts, w, x_stride},
                                    {(uint32_t)norm->parts, w, y_stride},
                                    (const T *)norm->x,
                                    (const T *)norm->weight,
                                    rstd,
                                    (const T *)dy,
                                    (const T *)residual,
                                    (T *)dx,
                                    norm->shift};
        int error = 0;
        if (sums != NULL)
            error = launch_columns(rms_columns<T>{n}, count_of(norm), w, sums, (float *)workspace,
                                   stream);
        if (error != 0 || dx == NULL || n.count <= 0) return error;
        const bool in_groups = x_stride % STAGED_GROUP == 0 && y_stride % STAGED_GROUP == 0 &&
                               is_in_groups(n.x, w) && is_in_groups(n.weight, w) &&
                               is_in_groups(n.dy, w) && is_in_groups(n.residual, w) &&
                               is_in_groups(n.dx, w);
        const struct staging s = staging_of(w, 2, RMS_FACTS, in_groups);
        if (s.rows > 0)
            return launch(rms_norm_dx_staged<T>,
                          grid_of_parts(grid_of_staged(s, n.count, 2, RMS_FACTS), norm), stream, n,
                          s);
        const bool wide = rows_are_wide(n.x, w, x_stride) && rows_are_wide(n.weight, w, w) &&
                          rows_are_wide(n.dy, w, y_stride) &&
                          rows_are_wide(n.residual, w, x_stride) &&
                          rows_are_wide(n.dx, w, x_stride);
        return launch(rms_norm_dx<T>, grid_of_parts(grid_of_rows<T>(n.count), norm), stream, n,
                      wide);
    });
}
