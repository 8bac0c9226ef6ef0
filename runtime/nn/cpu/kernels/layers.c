/* Built once for each level and dtype. WEFT_KERNELS_TABLE is the name of the table. For 16 bits
 * WEFT_KERNELS_WIDEN and WEFT_KERNELS_NARROW are the conversions of numbers.h. Loops have a form
 * that gcc and clang vectorise. Elements are widened when read, all arithmetic is fp32, and results
 * are rounded once. */
#include "runtime/nn/cpu/kernels/levels.h"
#include "runtime/nn/cpu/kernels/parts.h"

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

static void layer_norm(int64_t rows, int64_t width, const void *from, const void *weight_from,
                       const void *bias_from, void *to, float *restrict mean, float *restrict rstd)
{
    const element *restrict x = from, *restrict weight = weight_from, *restrict bias = bias_from;
    element *restrict y = to;
    for (int64_t row = 0; row < rows; row++, x += width, y += width) {
        float lanes[LANES] = {0};
        FOR_LANES(i, lane, width, lanes[lane] += load(x[i]));
        const float m = sum_lanes(lanes) / (float)width;
        float squares[LANES] = {0};
        FOR_LANES(i, lane, width, squares[lane] += (load(x[i]) - m) * (load(x[i]) - m));
        const float r = 1.0f / sqrtf(sum_lanes(squares) / (float)width + WEFT_NORM_EPSILON);
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

/* Returns the row's sum of e^(x - greatest) in fp32. fp32 elements become the exponentials; 16 bits
 * could not hold them. */
static float row_exponentials(int64_t n, float greatest, element *x)
{
    float lanes[LANES] = {0};
    if (sizeof(element) == sizeof(float)) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = store(exponential(load(x[i]) - greatest));
        }
        FOR_LANES(i, lane, n, lanes[lane] += load(x[i]));
    } else {
        FOR_LANES(i, lane, n, lanes[lane] += exponential(load(x[i]) - greatest));
    }
    return sum_lanes(lanes);
}

/* Turns the result of `row_exponentials` into e^(x - greatest) / sum. */
static void normalise_row(int64_t n, float greatest, float sum, element *x)
{
    const float by = 1.0f / sum;
    if (sizeof(element) == sizeof(float)) {
        for (int64_t i = 0; i < n; i++) {
            x[i] = store(load(x[i]) * by);
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            x[i] = store(exponential(load(x[i]) - greatest) * by);
        }
    }
}

/* Masked columns become -inf and are computed like the others, so vectors are whole. */
static void causal_softmax(int64_t rows, int64_t first, int64_t width, int64_t stride,
                           void *in_place)
{
    element *x = in_place;
    for (int64_t row = 0; row < rows; row++, x += stride) {
        for (int64_t i = first + row + 1; i < width; i++) {
            x[i] = store(-INFINITY);
        }
        const float greatest = row_maximum(width, x);
        const float sum = row_exponentials(width, greatest, x);
        normalise_row(width, greatest, sum, x);
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
    double loss = 0;
    for (int64_t row = 0; row < rows; row++, logits += stride) {
        if (targets[row] == WEFT_NO_TARGET) continue;
        const float wanted = load(logits[targets[row]]);
        const float greatest = row_maximum(width, logits);
        const float sum = row_exponentials(width, greatest, logits);
        normalise_row(width, greatest, sum, logits);
        /* The rounded probability would lose the rest of the gradient near 1. */
        const float probability = exponential(wanted - greatest) * (1.0f / sum);
        logits[targets[row]] = store(probability - 1.0f);
        loss += log((double)sum) - ((double)wanted - (double)greatest);
    }
    return loss;
}

const struct weft_layer_kernels WEFT_KERNELS_TABLE = {
    .fill = fill_rows,
    .column_sums = column_sums,
    .add_to = add_to,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .gelu = apply_gelu,
    .bias_gelu = bias_gelu,
    .gelu_backward = gelu_backward,
    .relu = apply_relu,
    .relu_backward = relu_backward,
    .causal_softmax = causal_softmax,
    .softmax_backward = softmax_backward,
    .cross_entropy = cross_entropy,
};
