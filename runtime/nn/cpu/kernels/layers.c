/* SPDX-License-Identifier: Apache-2.0 */
/* Built once for each level and dtype. WEFT_KERNELS_TABLE is the name of the table. For 16 bits
 * WEFT_KERNELS_WIDEN and WEFT_KERNELS_NARROW are the conversions of numbers.h. Loops have a form
 * that gcc and clang vectorise. Elements are widened when read, all arithmetic is fp32, and results
 * are rounded once. */
#include "runtime/nn/cpu/kernels/levels.h"
#include "runtime/nn/cpu/kernels/parts.h"
#include "runtime/nn/erf.h"

#ifdef WEFT_KERNELS_WIDEN
typedef uint16_t element;
WEFT_ALWAYS_INLINE float load(element x)
{
    return WEFT_KERNELS_WIDEN(x);
}
WEFT_ALWAYS_INLINE element store(float x)
{
    return WEFT_KERNELS_NARROW(x);
}
#else
typedef float element;
WEFT_ALWAYS_INLINE float load(element x)
{
    return x;
}
WEFT_ALWAYS_INLINE element store(float x)
{
    return x;
}
#endif

/* Maximum of integers that order as floats do, so it may be taken in any order. A positive NaN is
 * the largest number. A negative one reaches the row by its own exponential. */
WEFT_ALWAYS_INLINE float row_maximum(int64_t n, const element *x)
{
    int32_t greatest = INT32_MIN;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = weft_bits_of(load(x[i]));
        const int32_t key = (int32_t)(bits ^ ((0u - (bits >> 31)) & 0x7fffffffu));
        greatest = key > greatest ? key : greatest;
    }
    const uint32_t key = (uint32_t)greatest;
    return weft_float_of(key ^ ((0u - (key >> 31)) & 0x7fffffffu));
}

static void fill_rows(int64_t rows, int64_t width, const void *from, const void *bias_from,
                      int64_t stride, void *to)
{
    const element *x = from, *bias = bias_from;
    element *y = to;
    for (int64_t i = 0; i < rows; i++, y += stride) {
        if (x && bias) {
            for (int64_t j = 0; j < width; j++) {
                y[j] = store(load(x[j]) + load(bias[j]));
            }
        } else if (x) {
            memmove(y, x, (size_t)width * sizeof(element));
        } else if (bias) {
            memcpy(y, bias, (size_t)width * sizeof(element));
        } else {
            memset(y, 0, (size_t)width * sizeof(element));
        }
        if (x) x += stride;
    }
}

/* Adds four rows at a time, one after another, which keeps the rows' order. */
static void column_sums(int64_t rows, int64_t width, int64_t stride, const void *from,
                        float *restrict sums)
{
    const element *restrict x = from;
    memset(sums, 0, (size_t)width * sizeof(float));
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * stride) {
        for (int64_t j = 0; j < width; j++) {
            sums[j] = (((sums[j] + load(x[j])) + load(x[stride + j])) + load(x[2 * stride + j])) +
                      load(x[3 * stride + j]);
        }
    }
    for (; i < rows; i++, x += stride) {
        for (int64_t j = 0; j < width; j++) {
            sums[j] += load(x[j]);
        }
    }
}

static void add_to(int64_t n, float alpha, const float *restrict x, bool accumulate, void *to)
{
    element *restrict y = to;
    if (accumulate) {
        for (int64_t i = 0; i < n; i++) {
            y[i] = store(load(y[i]) + alpha * x[i]);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            y[i] = store(alpha * x[i]);
        }
    }
}

static void scale_row(int64_t n, float alpha, const void *from, const void *bias_from, void *to)
{
    const element *restrict x = from, *restrict bias = bias_from;
    element *restrict y = to;
    for (int64_t i = 0; i < n; i++) {
        y[i] = store(bias ? alpha * load(x[i]) + load(bias[i]) : alpha * load(x[i]));
    }
}

static void layer_norm(int64_t rows, int64_t width, float epsilon, const void *from,
                       const void *weight_from, const void *bias_from, void *to,
                       float *restrict mean, float *restrict rstd)
{
    const element *restrict x = from, *restrict weight = weight_from, *restrict bias = bias_from;
    element *restrict y = to;
    for (int64_t row = 0; row < rows; row++, x += width, y += width) {
        float lanes[LANES] = {0};
        FOR_LANES(i, lane, width, lanes[lane] += load(x[i]));
        const float m = sum_lanes(lanes) / (float)width;
        float squares[LANES] = {0};
        FOR_LANES(i, lane, width, squares[lane] += (load(x[i]) - m) * (load(x[i]) - m));
        const float r = 1.0f / sqrtf(sum_lanes(squares) / (float)width + epsilon);
        for (int64_t i = 0; i < width; i++) {
            y[i] = store((load(x[i]) - m) * r * load(weight[i]) + load(bias[i]));
        }
        mean[row] = m;
        rstd[row] = r;
    }
}

static void layer_norm_dx(int64_t width, const element *restrict x, const element *restrict weight,
                          float m, float r, const element *restrict dy,
                          const element *restrict residual, element *restrict dx)
{
    float g_lanes[LANES] = {0}, gx_lanes[LANES] = {0};
    FOR_LANES(i, lane, width, g_lanes[lane] += load(dy[i]) * load(weight[i]));
    FOR_LANES(i, lane, width,
              gx_lanes[lane] += load(dy[i]) * load(weight[i]) * ((load(x[i]) - m) * r));
    const float g_mean = sum_lanes(g_lanes) / (float)width;
    const float gx_mean = sum_lanes(gx_lanes) / (float)width;
    if (residual) {
        for (int64_t i = 0; i < width; i++) {
            const float g = load(dy[i]) * load(weight[i]) - g_mean;
            dx[i] = store(load(residual[i]) + r * (g - (load(x[i]) - m) * r * gx_mean));
        }
    } else {
        for (int64_t i = 0; i < width; i++) {
            const float g = load(dy[i]) * load(weight[i]) - g_mean;
            dx[i] = store(r * (g - (load(x[i]) - m) * r * gx_mean));
        }
    }
}

static void layer_norm_backward(int64_t rows, int64_t width, const void *from, const void *weight,
                                const float *mean, const float *rstd, const void *dy_from,
                                const void *residual_from, void *to, float *restrict sums)
{
    const element *x = from, *dy = dy_from, *residual = residual_from;
    element *dx = to;
    float *restrict weight_sums = sums, *restrict bias_sums = sums + width;
    memset(sums, 0, 2 * (size_t)width * sizeof(float));
    for (int64_t row = 0; row < rows; row++, x += width, dy += width) {
        const float m = mean[row], r = rstd[row];
        for (int64_t i = 0; i < width; i++) {
            weight_sums[i] += load(dy[i]) * ((load(x[i]) - m) * r);
            bias_sums[i] += load(dy[i]);
        }
        if (!dx) continue;
        layer_norm_dx(width, x, weight, m, r, dy, residual, dx);
        dx += width;
        if (residual) residual += width;
    }
}

/* The number that an RMS norm multiplies by. */
WEFT_ALWAYS_INLINE float shifted(float shift, element weight)
{
    return shift != 0.0f ? shift + load(weight) : load(weight);
}

static void rms_norm(const struct weft_parts *parts, float epsilon, const void *from,
                     const void *weight_from, void *to, float *restrict rstd)
{
    const int64_t width = parts->width;
    const float shift = parts->shift;
    const element *restrict weight = weight_from;
    for (int64_t i = 0; i < parts->rows * parts->parts; i++) {
        const int64_t row = i / parts->parts, column = i % parts->parts * width;
        const element *restrict x = (const element *)from + row * parts->x_stride + column;
        element *restrict y = (element *)to + row * parts->y_stride + column;
        float squares[LANES] = {0};
        FOR_LANES(j, lane, width, squares[lane] += load(x[j]) * load(x[j]));
        const float r = 1.0f / sqrtf(sum_lanes(squares) / (float)width + epsilon);
        for (int64_t j = 0; j < width; j++) {
            y[j] = store(load(x[j]) * r * shifted(shift, weight[j]));
        }
        rstd[i] = r;
    }
}

static void rms_norm_dx(int64_t width, const element *restrict x, float shift,
                        const element *restrict weight, float r, const element *restrict dy,
                        const element *restrict residual, element *restrict dx)
{
    float lanes[LANES] = {0};
    FOR_LANES(i, lane, width,
              lanes[lane] += load(dy[i]) * shifted(shift, weight[i]) * (load(x[i]) * r));
    const float mean = sum_lanes(lanes) / (float)width;
    if (residual) {
        for (int64_t i = 0; i < width; i++) {
            const float g = load(dy[i]) * shifted(shift, weight[i]) - load(x[i]) * r * mean;
            dx[i] = store(load(residual[i]) + r * g);
        }
    } else {
        for (int64_t i = 0; i < width; i++) {
            dx[i] = store(r * (load(dy[i]) * shifted(shift, weight[i]) - load(x[i]) * r * mean));
        }
    }
}

static void rms_norm_backward(const struct weft_parts *parts, const void *from, const void *weight,
                              const float *rstd, const void *dy_from, const void *residual_from,
                              void *to, float *restrict sums)
{
    const int64_t width = parts->width;
    memset(sums, 0, (size_t)width * sizeof(float));
    for (int64_t i = 0; i < parts->rows * parts->parts; i++) {
        const int64_t row = i / parts->parts, column = i % parts->parts * width;
        const int64_t x_at = row * parts->x_stride + column;
        const element *restrict x = (const element *)from + x_at;
        const element *restrict dy = (const element *)dy_from + row * parts->y_stride + column;
        for (int64_t j = 0; j < width; j++) {
            sums[j] += load(dy[j]) * (load(x[j]) * rstd[i]);
        }
        if (!to) continue;
        const element *residual = residual_from;
        rms_norm_dx(width, x, parts->shift, weight, rstd[i], dy, residual ? residual + x_at : NULL,
                    (element *)to + x_at);
    }
}

static void turn_head(int64_t half, const float *restrict cosines, const float *restrict sines,
                      element *restrict low, element *restrict high)
{
    for (int64_t j = 0; j < half; j++) {
        const float x = load(low[j]), y = load(high[j]);
        low[j] = store(x * cosines[j] - y * sines[j]);
        high[j] = store(y * cosines[j] + x * sines[j]);
    }
}

/* Samples share a position's angles. Long heads are turned in parts of the buffers' size. */
static void rotate_pairs(const struct weft_rope_rows *rows, void *in_place)
{
    enum { MOST = 256 };
    float cosines[MOST], sines[MOST];
    element *x = in_place;
    const int64_t half = rows->size / 2;
    const double sign = rows->back ? -1 : 1;
    for (int64_t i = 0; i < rows->seq_len * ((half + MOST - 1) / MOST); i++) {
        const int64_t row = i % rows->seq_len, from = i / rows->seq_len * MOST;
        const int64_t n = half - from < MOST ? half - from : MOST;
        const float position = (float)(rows->first + row);
        for (int64_t j = 0; j < n; j++) {
            const double angle = (double)(position * rows->frequencies[from + j]);
            cosines[j] = (float)weft_cosine(angle);
            sines[j] = (float)(sign * weft_sine(angle));
        }
        for (int64_t k = 0; k < rows->samples * rows->heads; k++) {
            const int64_t sample = k / rows->heads, head = k % rows->heads;
            element *low = x + (sample * rows->seq_len + row) * rows->stride + head * rows->size;
            turn_head(n, cosines, sines, low + from, low + half + from);
        }
    }
}

/* One body for both gates, whose functions the compiler inlines. */
WEFT_ALWAYS_INLINE void gate_rows(float (*value_of)(float), int64_t rows, int64_t width,
                                  int64_t stride, const void *gate_from, const void *up_from,
                                  void *to)
{
    const element *gate_row = gate_from, *up_row = up_from;
    element *y_row = to;
    for (int64_t i = 0; i < rows; i++, gate_row += stride, up_row += stride, y_row += width) {
        const element *restrict gate = gate_row, *restrict up = up_row;
        element *restrict y = y_row;
        for (int64_t j = 0; j < width; j++) {
            y[j] = store(value_of(load(gate[j])) * load(up[j]));
        }
    }
}

/* Works in place after copying dy, like gelu_backward. */
WEFT_ALWAYS_INLINE void gate_rows_backward(float (*value_of)(float), float (*slope_of)(float),
                                           int64_t rows, int64_t width, int64_t stride,
                                           const void *gate_from, const void *up_from,
                                           int64_t dy_stride, const void *dy_from, void *d_gate_to,
                                           void *d_up_to)
{
    for (int64_t i = 0; i < rows; i++) {
        const element *restrict gate = (const element *)gate_from + i * stride;
        const element *restrict up = (const element *)up_from + i * stride;
        element *restrict d_gate = (element *)d_gate_to + i * stride;
        element *restrict d_up = (element *)d_up_to + i * stride;
        if (dy_from != d_up_to)
            memcpy(d_up, (const element *)dy_from + i * dy_stride, (size_t)width * sizeof(element));
        for (int64_t j = 0; j < width; j++) {
            const float x = load(gate[j]), d = load(d_up[j]);
            d_gate[j] = store(d * load(up[j]) * slope_of(x));
            d_up[j] = store(d * value_of(x));
        }
    }
}

static void apply_gate(int64_t rows, int64_t width, int64_t stride, const void *gate,
                       const void *up, void *to)
{
    gate_rows(silu_of, rows, width, stride, gate, up, to);
}

static void gate_backward(int64_t rows, int64_t width, int64_t stride, const void *gate,
                          const void *up, int64_t dy_stride, const void *dy, void *d_gate,
                          void *d_up)
{
    gate_rows_backward(silu_of, silu_slope, rows, width, stride, gate, up, dy_stride, dy, d_gate,
                       d_up);
}

static void apply_gate_gelu(int64_t rows, int64_t width, int64_t stride, const void *gate,
                            const void *up, void *to)
{
    gate_rows(gelu_of, rows, width, stride, gate, up, to);
}

static void gate_gelu_backward(int64_t rows, int64_t width, int64_t stride, const void *gate,
                               const void *up, int64_t dy_stride, const void *dy, void *d_gate,
                               void *d_up)
{
    gate_rows_backward(gelu_of, gelu_slope, rows, width, stride, gate, up, dy_stride, dy, d_gate,
                       d_up);
}

static void apply_gelu(int64_t n, const void *from, void *to)
{
    const element *restrict x = from;
    element *restrict y = to;
    for (int64_t i = 0; i < n; i++) {
        y[i] = store(gelu_of(load(x[i])));
    }
}

/* Takes GELU of the stored value, because backward reads that. */
static void bias_gelu(int64_t rows, int64_t width, const void *bias_from, void *in_place, void *to)
{
    const element *restrict bias = bias_from;
    element *restrict x = in_place, *restrict y = to;
    for (int64_t row = 0; row < rows; row++, x += width, y += width) {
        for (int64_t i = 0; i < width; i++) {
            const element biased = store(load(x[i]) + load(bias[i]));
            x[i] = biased;
            y[i] = store(gelu_of(load(biased)));
        }
    }
}

/* Works in place after copying dy: compilers do not vectorise a loop if its output may be its
 * input. */
static void gelu_backward(int64_t rows, int64_t width, const void *from, const void *dy_from,
                          void *to, float *restrict sums)
{
    const element *restrict x = from;
    const element *dy = dy_from;
    element *restrict d = to;
    if (sums) memset(sums, 0, (size_t)width * sizeof(float));
    for (int64_t row = 0; row < rows; row++, x += width, d += width) {
        if (to != dy_from) memcpy(d, dy + row * width, (size_t)width * sizeof(element));
        for (int64_t i = 0; i < width; i++) {
            d[i] = store(load(d[i]) * gelu_slope(load(x[i])));
        }
        for (int64_t i = 0; sums && i < width; i++) {
            sums[i] += load(d[i]);
        }
    }
}

static void add_each(int64_t n, const void *a_from, const void *b_from, void *to)
{
    const element *restrict a = a_from, *restrict b = b_from;
    element *restrict y = to;
    for (int64_t i = 0; i < n; i++) {
        y[i] = store(load(a[i]) + load(b[i]));
    }
}

/* NaN stays NaN. */
static void apply_relu(int64_t n, const void *from, void *to)
{
    const element *restrict x = from;
    element *restrict y = to;
    for (int64_t i = 0; i < n; i++) {
        y[i] = load(x[i]) < 0.0f ? store(0.0f) : x[i];
    }
}

static void relu_backward(int64_t n, const void *y_from, const void *dy_from, void *to)
{
    const element *restrict y = y_from, *restrict dy = dy_from;
    element *restrict dx = to;
    for (int64_t i = 0; i < n; i++) {
        dx[i] = load(y[i]) > 0.0f ? dy[i] : store(0.0f);
    }
}

/* NaN stays NaN. */
static void apply_squared_relu(int64_t n, const void *from, void *to)
{
    const element *restrict x = from;
    element *restrict y = to;
    for (int64_t i = 0; i < n; i++) {
        const float kept = load(x[i]) < 0.0f ? 0.0f : load(x[i]);
        y[i] = store(kept * kept);
    }
}

static void squared_relu_backward(int64_t n, const void *x_from, const void *dy_from, void *to)
{
    const element *x = x_from, *dy = dy_from;
    element *dx = to;
    for (int64_t i = 0; i < n; i++) {
        const float kept = load(x[i]) < 0.0f ? 0.0f : load(x[i]);
        dx[i] = store(2.0f * kept * load(dy[i]));
    }
}

static void apply_gelu_erf(int64_t n, const void *from, void *to)
{
    const element *restrict x = from;
    element *restrict y = to;
    for (int64_t i = 0; i < n; i++) {
        y[i] = store(gelu_erf_of(load(x[i])));
    }
}

/* Works in place after copying dy, like gelu_backward. */
static void gelu_erf_backward(int64_t n, const void *x_from, const void *dy, void *to)
{
    const element *restrict x = x_from;
    element *restrict d = to;
    if (to != dy) memcpy(d, dy, (size_t)n * sizeof(element));
    for (int64_t i = 0; i < n; i++) {
        d[i] = store(load(d[i]) * gelu_erf_slope(load(x[i])));
    }
}

static void apply_tanh(int64_t n, const void *from, void *to)
{
    const element *restrict x = from;
    element *restrict y = to;
    for (int64_t i = 0; i < n; i++) {
        y[i] = store(tanh_of(load(x[i])));
    }
}

static void tanh_backward(int64_t n, const void *y_from, const void *dy_from, void *to)
{
    const element *y = y_from, *dy = dy_from;
    element *dx = to;
    for (int64_t i = 0; i < n; i++) {
        dx[i] = store(load(dy[i]) * (1.0f - load(y[i]) * load(y[i])));
    }
}

/* Exponentials of a row's first elements in 16 bits, which its memory could not hold. Those of
 * later ones are computed twice. */
enum { KEPT = 2048 };

static int64_t kept_of(int64_t n)
{
    return n < KEPT ? n : KEPT;
}

/* Returns the row's sum of e^(x - greatest) in fp32. fp32 elements become the exponentials. */
static float row_exponentials(int64_t n, float greatest, element *x, float kept[KEPT])
{
    float lanes[LANES] = {0};
    if (sizeof(element) == sizeof(float)) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = store(exponential(load(x[i]) - greatest));
        }
        FOR_LANES(i, lane, n, lanes[lane] += load(x[i]));
    } else {
        const int64_t first = kept_of(n);
        for (int64_t i = 0; i < first; i++) {
            kept[i] = exponential(load(x[i]) - greatest);
        }
        FOR_LANES(i, lane, first, lanes[lane] += kept[i]);
        const element *rest = x + first;
        FOR_LANES(i, lane, n - first, lanes[lane] += exponential(load(rest[i]) - greatest));
    }
    return sum_lanes(lanes);
}

/* Turns the result of `row_exponentials` into e^(x - greatest) / sum. */
static void normalise_row(int64_t n, float greatest, float sum, const float kept[KEPT], element *x)
{
    const float by = 1.0f / sum;
    const int64_t first = sizeof(element) == sizeof(float) ? n : kept_of(n);
    for (int64_t i = 0; i < first; i++) {
        x[i] = store((sizeof(element) == sizeof(float) ? load(x[i]) : kept[i]) * by);
    }
    for (int64_t i = first; i < n; i++) {
        x[i] = store(exponential(load(x[i]) - greatest) * by);
    }
}

/* Masked columns become -inf and are computed like the others, so vectors are whole. */
static void causal_softmax(int64_t rows, int64_t first, int64_t width, int64_t stride,
                           void *in_place)
{
    element *x = in_place;
    float kept[KEPT];
    for (int64_t row = 0; row < rows; row++, x += stride) {
        for (int64_t i = first + row + 1; i < width; i++) {
            x[i] = store(-INFINITY);
        }
        const float greatest = row_maximum(width, x);
        const float sum = row_exponentials(width, greatest, x, kept);
        normalise_row(width, greatest, sum, kept, x);
    }
}

static void hide_columns(int64_t rows, int64_t first, int64_t window, int64_t stride,
                         void *in_place)
{
    element *x = in_place;
    for (int64_t row = 0; row < rows; row++, x += stride) {
        for (int64_t i = 0; i <= first + row - window; i++) {
            x[i] = store(-INFINITY);
        }
    }
}

static void hide_tokens(int64_t rows, int64_t width, int64_t stride, const int32_t *tokens,
                        int32_t hidden, void *in_place)
{
    element *x = in_place;
    for (int64_t row = 0; row < rows; row++, x += stride) {
        for (int64_t i = 0; i < width; i++) {
            if (tokens[i] == hidden) x[i] = store(-INFINITY);
        }
    }
}

static void cap_rows(int64_t rows, int64_t width, int64_t stride, float cap, void *in_place)
{
    element *x = in_place;
    for (int64_t row = 0; row < rows; row++, x += stride) {
        for (int64_t i = 0; i < width; i++) {
            x[i] = store(cap * tanh_of(load(x[i]) / cap));
        }
    }
}

static void cap_backward(int64_t rows, int64_t width, int64_t stride, float cap, const void *from,
                         void *in_place)
{
    const element *restrict x = from;
    element *restrict d = in_place;
    for (int64_t row = 0; row < rows; row++, x += stride, d += stride) {
        for (int64_t i = 0; i < width; i++) {
            const float part = tanh_of(load(x[i]) / cap);
            d[i] = store(load(d[i]) * (1.0f - part * part));
        }
    }
}

static void softmax_backward(int64_t rows, int64_t width, int64_t stride, const void *p_from,
                             void *in_place)
{
    const element *restrict p = p_from;
    element *restrict d = in_place;
    for (int64_t row = 0; row < rows; row++, p += stride, d += stride) {
        float lanes[LANES] = {0};
        FOR_LANES(i, lane, width, lanes[lane] += load(d[i]) * load(p[i]));
        const float dot = sum_lanes(lanes);
        for (int64_t i = 0; i < width; i++) {
            d[i] = store(load(p[i]) * (load(d[i]) - dot));
        }
    }
}

static double cross_entropy(int64_t rows, int64_t width, int64_t stride, const int32_t *targets,
                            void *in_place)
{
    element *logits = in_place;
    float kept[KEPT];
    double loss = 0;
    for (int64_t row = 0; row < rows; row++, logits += stride) {
        if (targets[row] == WEFT_LEFT_OUT) memset(logits, 0, (size_t)width * sizeof(element));
        if (targets[row] == WEFT_NO_TARGET || targets[row] == WEFT_LEFT_OUT) continue;
        const float wanted = load(logits[targets[row]]);
        const float greatest = row_maximum(width, logits);
        const float sum = row_exponentials(width, greatest, logits, kept);
        normalise_row(width, greatest, sum, kept, logits);
        /* The rounded probability would lose the rest of the gradient near 1. */
        const float probability = exponential(wanted - greatest) * (1.0f / sum);
        logits[targets[row]] = store(probability - 1.0f);
        loss += log((double)sum) - ((double)wanted - (double)greatest);
    }
    return loss;
}

/* The largest logit has the largest capped one, and each tanh is computed twice. */
static double capped_cross_entropy(int64_t rows, int64_t width, int64_t stride, float cap,
                                   const int32_t *targets, void *in_place)
{
    element *logits = in_place;
    double loss = 0;
    for (int64_t row = 0; row < rows; row++, logits += stride) {
        const int64_t target = targets[row];
        if (targets[row] == WEFT_LEFT_OUT) {
            memset(logits, 0, (size_t)width * sizeof(element));
            continue;
        }
        if (targets[row] == WEFT_NO_TARGET) {
            cap_rows(1, width, stride, cap, logits);
            continue;
        }
        const float wanted = cap * tanh_of(load(logits[target]) / cap);
        const float greatest = cap * tanh_of(row_maximum(width, logits) / cap);
        float lanes[LANES] = {0};
        FOR_LANES(i, lane, width,
                  lanes[lane] += exponential(cap * tanh_of(load(logits[i]) / cap) - greatest));
        const float sum = sum_lanes(lanes), by = 1.0f / sum;
        for (int64_t i = 0; i < width; i++) {
            const float part = tanh_of(load(logits[i]) / cap);
            logits[i] = store(exponential(cap * part - greatest) * by * (1.0f - part * part));
        }
        const float part = wanted / cap;
        const float probability = exponential(wanted - greatest) * by;
        logits[target] = store((probability - 1.0f) * (1.0f - part * part));
        loss += log((double)sum) - ((double)wanted - (double)greatest);
    }
    return loss;
}

const struct weft_layer_kernels WEFT_KERNELS_TABLE = {
    .fill = fill_rows,
    .column_sums = column_sums,
    .add_to = add_to,
    .scale = scale_row,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .rms_norm = rms_norm,
    .rms_norm_backward = rms_norm_backward,
    .rope = rotate_pairs,
    .gate = apply_gate,
    .gate_backward = gate_backward,
    .gate_gelu = apply_gate_gelu,
    .gate_gelu_backward = gate_gelu_backward,
    .gelu = apply_gelu,
    .bias_gelu = bias_gelu,
    .gelu_backward = gelu_backward,
    .add = add_each,
    .relu = apply_relu,
    .relu_backward = relu_backward,
    .squared_relu = apply_squared_relu,
    .squared_relu_backward = squared_relu_backward,
    .gelu_erf = apply_gelu_erf,
    .gelu_erf_backward = gelu_erf_backward,
    .tanh = apply_tanh,
    .tanh_backward = tanh_backward,
    .causal_softmax = causal_softmax,
    .hide_columns = hide_columns,
    .hide_tokens = hide_tokens,
    .cap = cap_rows,
    .cap_backward = cap_backward,
    .softmax_backward = softmax_backward,
    .cross_entropy = cross_entropy,
    .capped_cross_entropy = capped_cross_entropy,
};
