/* Built once a level, with WEFT_KERNELS_TABLE the name of the table and WEFT_KERNELS_LEVEL its
 * text. Plain loops in the shape that gcc and clang vectorise; reductions have lanes of their own
 * because a compiler may not reorder a sum. */
#include "runtime/nn/kernels.h"

#include <math.h>
#include <string.h>

#include "runtime/nn/kernels_levels.h"

enum { LANES = 16 };

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Range reduction by ln 2 in two parts and the polynomial of Cephes' expf, in plain multiplies and
 * adds, without branches. Results below the least normal number are 0. */
static inline float exponential(float x)
{
    const float least = -86.6f, most = 88.3f, magic = 12582912.0f; /* 1.5 * 2^23 rounds to int */
    float y = x < least ? least : x;
    y = y > most ? most : y;
    const float shifted = y * 1.44269504088896341f + magic;
    const float n = shifted - magic;
    const float r = (y - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * (r * r) + r) + 1.0f;
    float result = float_of(bits_of(p) + ((bits_of(shifted) - bits_of(magic)) << 23));
    result = x < least ? 0.0f : result;
    result = x > most ? INFINITY : result;
    return x == x ? result : x;
}

static inline float sum_lanes(float lanes[LANES])
{
    for (int width = LANES / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; i++) {
            lanes[i] += lanes[i + width];
        }
    }
    return lanes[0];
}

/* Runs `statement` for each i < n with its lane: whole groups of 16 first, so that the compiler
 * keeps `lanes` in registers, then the rest in the same lanes. */
#define FOR_LANES(i, lane, n, statement)                                                           \
    do {                                                                                           \
        int64_t group_ = 0;                                                                        \
        for (; group_ + LANES <= (n); group_ += LANES) {                                           \
            for (int lane = 0; lane < LANES; lane++) {                                             \
                const int64_t i = group_ + lane;                                                   \
                statement;                                                                         \
            }                                                                                      \
        }                                                                                          \
        for (int lane = 0; lane < (int)((n)-group_); lane++) {                                     \
            const int64_t i = group_ + lane;                                                       \
            statement;                                                                             \
        }                                                                                          \
    } while (0)

/* Through integers that order as floats do: their maximum may be taken in any order. A NaN that is
 * positive counts as the greatest; a negative one reaches the row by its own exponential. */
static inline float row_maximum(int64_t n, const float *x)
{
    int32_t greatest = INT32_MIN;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = bits_of(x[i]);
        const int32_t key = (int32_t)(bits ^ ((0u - (bits >> 31)) & 0x7fffffffu));
        greatest = key > greatest ? key : greatest;
    }
    const uint32_t key = (uint32_t)greatest;
    return float_of(key ^ ((0u - (key >> 31)) & 0x7fffffffu));
}

static void fill(int64_t rows, int64_t width, const float *x, const float *bias, float *y)
{
    for (int64_t i = 0; i < rows; i++, y += width) {
        if (x && bias) {
            for (int64_t j = 0; j < width; j++) {
                y[j] = x[j] + bias[j];
            }
        } else if (x) {
            memmove(y, x, (size_t)width * sizeof(float));
        } else if (bias) {
            memcpy(y, bias, (size_t)width * sizeof(float));
        } else {
            memset(y, 0, (size_t)width * sizeof(float));
        }
        if (x) x += width;
    }
}

/* Four rows at a time, added one after the other: the order is that of the rows. */
static void column_sums(int64_t rows, int64_t width, const float *restrict x, float *restrict sums)
{
    memset(sums, 0, (size_t)width * sizeof(float));
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4, x += 4 * width) {
        for (int64_t j = 0; j < width; j++) {
            sums[j] = (((sums[j] + x[j]) + x[width + j]) + x[2 * width + j]) + x[3 * width + j];
        }
    }
    for (; i < rows; i++, x += width) {
        for (int64_t j = 0; j < width; j++) {
            sums[j] += x[j];
        }
    }
}

static void add_to(int64_t n, float alpha, const float *restrict x, bool accumulate,
                   float *restrict y)
{
    if (accumulate) {
        for (int64_t i = 0; i < n; i++) {
            y[i] += alpha * x[i];
        }
    } else {
        for (int64_t i = 0; i < n; i++) {
            y[i] = alpha * x[i];
        }
    }
}

static void layer_norm(int64_t rows, int64_t width, const float *restrict x,
                       const float *restrict weight, const float *restrict bias, float *restrict y,
                       float *restrict mean, float *restrict rstd)
{
    for (int64_t row = 0; row < rows; row++, x += width, y += width) {
        float lanes[LANES] = {0};
        FOR_LANES(i, lane, width, lanes[lane] += x[i]);
        const float m = sum_lanes(lanes) / (float)width;
        float squares[LANES] = {0};
        FOR_LANES(i, lane, width, squares[lane] += (x[i] - m) * (x[i] - m));
        const float r = 1.0f / sqrtf(sum_lanes(squares) / (float)width + WEFT_NORM_EPSILON);
        for (int64_t i = 0; i < width; i++) {
            y[i] = (x[i] - m) * r * weight[i] + bias[i];
        }
        mean[row] = m;
        rstd[row] = r;
    }
}

static void layer_norm_dx(int64_t width, const float *restrict x, const float *restrict weight,
                          float m, float r, const float *restrict dy,
                          const float *restrict residual, float *restrict dx)
{
    float g_lanes[LANES] = {0}, gx_lanes[LANES] = {0};
    FOR_LANES(i, lane, width, g_lanes[lane] += dy[i] * weight[i]);
    FOR_LANES(i, lane, width, gx_lanes[lane] += dy[i] * weight[i] * ((x[i] - m) * r));
    const float g_mean = sum_lanes(g_lanes) / (float)width;
    const float gx_mean = sum_lanes(gx_lanes) / (float)width;
    if (residual) {
        for (int64_t i = 0; i < width; i++) {
            dx[i] = residual[i] + r * (dy[i] * weight[i] - g_mean - (x[i] - m) * r * gx_mean);
        }
    } else {
        for (int64_t i = 0; i < width; i++) {
            dx[i] = r * (dy[i] * weight[i] - g_mean - (x[i] - m) * r * gx_mean);
        }
    }
}

static void layer_norm_backward(int64_t rows, int64_t width, const float *x, const float *weight,
                                const float *mean, const float *rstd, const float *dy,
                                const float *residual, float *dx, float *restrict sums)
{
    float *restrict weight_sums = sums, *restrict bias_sums = sums + width;
    memset(sums, 0, 2 * (size_t)width * sizeof(float));
    for (int64_t row = 0; row < rows; row++, x += width, dy += width) {
        const float m = mean[row], r = rstd[row];
        for (int64_t i = 0; i < width; i++) {
            weight_sums[i] += dy[i] * ((x[i] - m) * r);
            bias_sums[i] += dy[i];
        }
        if (!dx) continue;
        layer_norm_dx(width, x, weight, m, r, dy, residual, dx);
        dx += width;
        if (residual) residual += width;
    }
}

/* The tanh form of GELU is x / (1 + e^-2u) with u = sqrt(2/pi) (x + 0.044715 x^3), for
 * (1 + tanh u) / 2 = 1 / (1 + e^-2u): one exponential, no cancellation. */
static const float gelu_scale = 1.5957691216057308f; /* 2 sqrt(2/pi) */
static const float gelu_cubic = 0.044715f;

static inline float gelu_gate(float x)
{
    const float u2 = gelu_scale * (x + gelu_cubic * x * x * x);
    return 1.0f / (1.0f + exponential(-u2));
}

static void gelu(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] * gelu_gate(x[i]);
    }
}

static void bias_gelu(int64_t rows, int64_t width, const float *restrict bias, float *restrict x,
                      float *restrict y)
{
    for (int64_t row = 0; row < rows; row++, x += width, y += width) {
        for (int64_t i = 0; i < width; i++) {
            const float biased = x[i] + bias[i];
            x[i] = biased;
            y[i] = biased * gelu_gate(biased);
        }
    }
}

/* Beyond +-12 the gate's own slope is below 1e-35; clamping keeps infinity times 0 away. */
static inline float gelu_slope(float x)
{
    float c = x < -12.0f ? -12.0f : x;
    c = c > 12.0f ? 12.0f : c;
    const float gate = gelu_gate(c);
    const float du2 = gelu_scale * (1.0f + 3.0f * gelu_cubic * c * c);
    return gate + c * (gate * (1.0f - gate)) * du2;
}

/* In place once dy is copied: compilers do not vectorise a loop whose output may be its input. */
static void gelu_backward(int64_t rows, int64_t width, const float *restrict x, const float *dy,
                          float *dx, float *restrict sums)
{
    float *restrict d = dx;
    if (sums) memset(sums, 0, (size_t)width * sizeof(float));
    for (int64_t row = 0; row < rows; row++, x += width, d += width) {
        if (dx != dy) memcpy(d, dy + row * width, (size_t)width * sizeof(float));
        for (int64_t i = 0; i < width; i++) {
            d[i] *= gelu_slope(x[i]);
        }
        for (int64_t i = 0; sums && i < width; i++) {
            sums[i] += d[i];
        }
    }
}

/* Written so that NaN stays NaN. */
static void relu(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = x[i] < 0.0f ? 0.0f : x[i];
    }
}

static void relu_backward(int64_t n, const float *restrict y, const float *restrict dy,
                          float *restrict dx)
{
    for (int64_t i = 0; i < n; i++) {
        dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    }
}

static float exponentials(int64_t n, float *x)
{
    const float greatest = row_maximum(n, x);
    for (int64_t i = 0; i < n; i++) {
        x[i] = exponential(x[i] - greatest);
    }
    float lanes[LANES] = {0};
    FOR_LANES(i, lane, n, lanes[lane] += x[i]);
    return sum_lanes(lanes);
}

/* Masked columns become -inf and are computed like the others: whole vectors, no ragged rows. */
static void causal_softmax(int64_t rows, int64_t first, int64_t width, int64_t stride, float *x)
{
    for (int64_t row = 0; row < rows; row++, x += stride) {
        for (int64_t i = first + row + 1; i < width; i++) {
            x[i] = -INFINITY;
        }
        const float scale = 1.0f / exponentials(width, x);
        for (int64_t i = 0; i < width; i++) {
            x[i] *= scale;
        }
    }
}

static void softmax_backward(int64_t rows, int64_t width, int64_t stride, const float *restrict p,
                             float *restrict d)
{
    for (int64_t row = 0; row < rows; row++, p += stride, d += stride) {
        float lanes[LANES] = {0};
        FOR_LANES(i, lane, width, lanes[lane] += d[i] * p[i]);
        const float dot = sum_lanes(lanes);
        for (int64_t i = 0; i < width; i++) {
            d[i] = p[i] * (d[i] - dot);
        }
    }
}

static double cross_entropy(int64_t rows, int64_t width, const int32_t *targets, float *logits)
{
    double loss = 0;
    for (int64_t row = 0; row < rows; row++, logits += width) {
        const double wanted = logits[targets[row]];
        const double greatest = row_maximum(width, logits);
        const float sum = exponentials(width, logits);
        const float scale = 1.0f / sum;
        for (int64_t i = 0; i < width; i++) {
            logits[i] *= scale;
        }
        logits[targets[row]] -= 1.0f;
        loss += log((double)sum) - (wanted - greatest);
    }
    return loss;
}

static void adamw_update(const struct weft_adamw *adamw, int64_t n, float *restrict parameters,
                         const float *restrict gradients, float *restrict moment1,
                         float *restrict moment2)
{
    const struct weft_adamw a = *adamw;
    for (int64_t i = 0; i < n; i++) {
        const float g = a.clip * gradients[i];
        const float m = a.beta1 * moment1[i] + a.rest1 * g;
        const float v = a.beta2 * moment2[i] + a.rest2 * g * g;
        const float step = (m * a.correction1) / (sqrtf(v * a.correction2) + a.eps);
        moment1[i] = m;
        moment2[i] = v;
        parameters[i] -= a.lr * (step + a.decay * parameters[i]);
    }
}

static void sgd_update(const struct weft_sgd *sgd, int64_t n, float *restrict parameters,
                       const float *restrict gradients, float *restrict momentum)
{
    const struct weft_sgd s = *sgd;
    if (!momentum) {
        for (int64_t i = 0; i < n; i++) {
            parameters[i] -= s.lr * (s.clip * gradients[i] + s.decay * parameters[i]);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const float g = s.clip * gradients[i] + s.decay * parameters[i];
        const float m = s.momentum * momentum[i] + g;
        momentum[i] = m;
        parameters[i] -= s.lr * m;
    }
}

static void exponential_each(int64_t n, const float *restrict x, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) {
        y[i] = exponential(x[i]);
    }
}

const struct weft_kernels WEFT_KERNELS_TABLE = {
    .level = WEFT_KERNELS_LEVEL,
    .fill = fill,
    .column_sums = column_sums,
    .add_to = add_to,
    .layer_norm = layer_norm,
    .layer_norm_backward = layer_norm_backward,
    .gelu = gelu,
    .bias_gelu = bias_gelu,
    .gelu_backward = gelu_backward,
    .relu = relu,
    .relu_backward = relu_backward,
    .causal_softmax = causal_softmax,
    .softmax_backward = softmax_backward,
    .cross_entropy = cross_entropy,
    .adamw = adamw_update,
    .sgd = sgd_update,
    .exponential = exponential_each,
};
