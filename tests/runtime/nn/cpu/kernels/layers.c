/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of Llama's layers against formulas in doubles, by central differences backward; in every
 * dtype and at every level, in rows with gaps that nothing may touch. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/normal.h"
#include "base/numbers.h"
#include "base/rng.h"
#include "layers/shared/rope.h"
#include "runtime/nn/cpu/kernels/kernels.h"

static double value_of(enum weft_dtype dtype, const void *x, int64_t i)
{
    if (dtype == WEFT_F32) return (double)((const float *)x)[i];
    const uint16_t bits = ((const uint16_t *)x)[i];
    return (double)(dtype == WEFT_BF16 ? weft_bf16_widen(bits) : weft_f16_widen(bits));
}

/* Relative error of a few roundings. */
static double error_of(enum weft_dtype dtype)
{
    return dtype == WEFT_F32 ? 4e-6 : dtype == WEFT_BF16 ? 0x1p-7 : 0x1p-10;
}

static void *random_array(enum weft_dtype dtype, int64_t n, double mean, uint64_t stream)
{
    void *x = malloc((size_t)(n * weft_dtype_bytes(dtype)));
    for (int64_t i = 0; i < n; i++) {
        const float draw = (float)(mean + weft_rng_normal(21, stream, (uint64_t)i));
        weft_kernels_best()->narrow(dtype, 1, &draw, (char *)x + i * weft_dtype_bytes(dtype));
    }
    return x;
}

/* Ones in all bits: not a number, and the sign that an element was not written. */
static void *untouched_bytes(int64_t bytes)
{
    return memset(malloc((size_t)bytes), 0xff, (size_t)bytes);
}

static double *widened_array(enum weft_dtype dtype, const void *x, int64_t n)
{
    double *y = malloc((size_t)n * sizeof(*y));
    for (int64_t i = 0; i < n; i++) {
        y[i] = value_of(dtype, x, i);
    }
    return y;
}

/* Compares rows of `width` with a stride, and demands that the gaps are untouched. */
static void check_rows(const char *what, enum weft_dtype dtype, const void *found, int64_t stride,
                       const double *right, int64_t rows, int64_t width)
{
    double most = 0;
    for (int64_t i = 0; i < rows * width; i++) {
        most = fmax(most, fabs(right[i]));
    }
    for (int64_t i = 0; i < rows * stride; i++) {
        const int64_t row = i / stride, column = i % stride;
        const double got = value_of(dtype, found, i);
        if (column >= width) {
            cr_assert(isnan(got), "%s writes beyond row %d", what, (int)row);
            continue;
        }
        const double wanted = right[row * width + column];
        cr_assert(fabs(got - wanted) <= error_of(dtype) * most, "%s %s [%d, %d]: %.9g is not %.9g",
                  weft_dtype_name(dtype), what, (int)row, (int)column, got, wanted);
    }
}

/* Calls `check` for every level and dtype. It returns the bytes of all its results, which must be
 * those of the plain level. */
typedef size_t kernels_check(const struct weft_layer_kernels *kernels, enum weft_dtype dtype,
                             const void *shape, unsigned char *results);
enum { RESULT_BYTES = 1 << 20 };

static void at_every_level(kernels_check *check, const void *shape)
{
    static unsigned char plain[RESULT_BYTES], other[RESULT_BYTES];
    const struct weft_kernels *level;
    for (int d = 0; d < WEFT_DTYPE_COUNT; d++) {
        const size_t bytes =
            check(weft_kernels_level(0)->layers[d], (enum weft_dtype)d, shape, plain);
        cr_assert_leq(bytes, RESULT_BYTES);
        for (int32_t l = 1; (level = weft_kernels_level(l)) != NULL; l++) {
            cr_assert_eq(check(level->layers[d], (enum weft_dtype)d, shape, other), bytes);
            cr_assert_eq(memcmp(plain, other, bytes), 0, "%s at %s: other bits",
                         weft_dtype_name((enum weft_dtype)d), level->level);
        }
    }
}

/* Appends a result and frees it. */
static void keep_result(void *x, int64_t bytes, unsigned char *results, size_t *used)
{
    cr_assert_leq(*used + (size_t)bytes, RESULT_BYTES);
    memcpy(results + *used, x, (size_t)bytes);
    *used += (size_t)bytes;
    free(x);
}

/* RMS norm */

static void rms_reference(const struct weft_parts *p, double epsilon, const double *x,
                          const double *weight, double *y)
{
    for (int64_t i = 0; i < p->rows * p->parts; i++) {
        const int64_t at = i / p->parts * p->x_stride + i % p->parts * p->width;
        double squares = 0;
        for (int64_t j = 0; j < p->width; j++) {
            squares += x[at + j] * x[at + j] / (double)p->width;
        }
        for (int64_t j = 0; j < p->width; j++) {
            y[i * p->width + j] =
                x[at + j] / sqrt(squares + epsilon) * ((double)p->shift + weight[j]);
        }
    }
}

/* The sum of y dy, and its derivative by *x. */
struct rms_objective {
    const struct weft_parts *parts;
    const double *x, *weight, *dy;
    double *y;
};

static double rms_sum(const struct rms_objective *o)
{
    const struct weft_parts *p = o->parts;
    double sum = 0;
    rms_reference(p, 1e-3, o->x, o->weight, o->y);
    for (int64_t i = 0; i < p->rows * p->parts * p->width; i++) {
        const int64_t columns = p->parts * p->width;
        sum += o->y[i] * o->dy[i / columns * p->y_stride + i % columns];
    }
    return sum;
}

static double rms_slope(const struct rms_objective *o, double *x)
{
    const double was = *x, by = 1e-5;
    *x = was + by;
    const double above = rms_sum(o);
    *x = was - by;
    const double below = rms_sum(o);
    *x = was;
    return (above - below) / (2 * by);
}

static size_t check_rms(const struct weft_layer_kernels *kernels, enum weft_dtype dtype,
                        const void *shape, unsigned char *results)
{
    const struct weft_parts *p = shape;
    const int64_t bytes = weft_dtype_bytes(dtype), columns = p->parts * p->width;
    const int64_t n_x = p->rows * p->x_stride, n_y = p->rows * p->y_stride;
    void *x = random_array(dtype, n_x, 0.3, 1), *weight = random_array(dtype, p->width, 1, 2);
    void *dy = random_array(dtype, n_y, 0, 3), *residual = random_array(dtype, n_x, 0, 4);
    void *y = untouched_bytes(n_y * bytes), *dx = untouched_bytes(n_x * bytes),
         *alone = untouched_bytes(n_x * bytes);
    float *rstd = untouched_bytes(p->rows * p->parts * 4), *sums = untouched_bytes(p->width * 4);
    kernels->rms_norm(p, 1e-3f, x, weight, y, rstd);
    kernels->rms_norm_backward(p, x, weight, rstd, dy, residual, dx, sums);
    kernels->rms_norm_backward(p, x, weight, rstd, dy, NULL, alone, sums);
    float *frozen = untouched_bytes(p->width * 4);
    kernels->rms_norm_backward(p, x, weight, rstd, dy, residual, NULL, frozen);
    cr_assert_eq(memcmp(sums, frozen, (size_t)p->width * 4), 0);

    double *wide = widened_array(dtype, x, n_x), *w = widened_array(dtype, weight, p->width);
    double *d = widened_array(dtype, dy, n_y), *right = calloc((size_t)(n_x + n_y), sizeof(double));
    double *out = calloc((size_t)(p->rows * columns), sizeof(double));
    struct rms_objective o = {p, wide, w, d, out};
    rms_reference(p, 1e-3, wide, w, out);
    check_rows("y", dtype, y, p->y_stride, out, p->rows, columns);
    for (int64_t i = 0; i < p->rows * columns; i++) {
        right[i] = rms_slope(&o, &wide[i / columns * p->x_stride + i % columns]);
    }
    check_rows("dx alone", dtype, alone, p->x_stride, right, p->rows, columns);
    for (int64_t i = 0; i < p->rows * columns; i++) {
        right[i] += value_of(dtype, residual, i / columns * p->x_stride + i % columns);
    }
    check_rows("dx", dtype, dx, p->x_stride, right, p->rows, columns);
    for (int64_t j = 0; j < p->width; j++) {
        right[j] = rms_slope(&o, &w[j]);
    }
    check_rows("d_weight", WEFT_F32, sums, p->width, right, 1, p->width);

    size_t used = 0;
    keep_result(y, n_y * bytes, results, &used);
    keep_result(dx, n_x * bytes, results, &used);
    keep_result(alone, n_x * bytes, results, &used);
    keep_result(rstd, p->rows * p->parts * 4, results, &used);
    keep_result(sums, p->width * 4, results, &used);
    free(frozen);
    void *const inputs[] = {x, weight, dy, residual, wide, w, d, right, out};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        free(inputs[i]);
    }
    return used;
}

Test(kernels_layers, rms_norm_is_the_formula)
{
    const struct weft_parts shapes[] = {{3, 1, 5, 5, 5, 0},
                                        {1, 1, 64, 64, 64, 1},
                                        {2, 1, 99, 101, 99, 0},
                                        {4, 3, 32, 140, 96, 1},
                                        {3, 5, 7, 35, 41, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        at_every_level(check_rms, &shapes[i]);
    }
}

Test(kernels_layers, rms_norm_of_zeros_is_zero_and_passes_on_what_is_not_a_number)
{
    const struct weft_parts parts = {2, 1, 20, 20, 20, 0};
    float x[40] = {0}, weight[20] = {1, 2}, y[40], rstd[2];
    x[25] = NAN;
    weft_kernels_best()->layers[WEFT_F32]->rms_norm(&parts, 1e-5f, x, weight, y, rstd);
    for (int i = 0; i < 40; i++) {
        cr_assert(i < 20 ? y[i] == 0 : isnan(y[i]), "%d: %g", i, (double)y[i]);
    }
}

/* Rotary positions */

static void rope_reference(const struct weft_rope_rows *r, double base, const double *x, double *y)
{
    const int64_t columns = r->heads * r->size, half = r->size / 2;
    for (int64_t i = 0; i < r->samples * r->seq_len * columns; i++) {
        const int64_t row = i / columns, j = i % r->size;
        const double power = pow(base, -2 * (double)(j % half) / (double)r->size);
        const double angle = (r->back ? -1 : 1) * (double)(r->first + row % r->seq_len) * power;
        const double *head = x + row * r->stride + i % columns - j;
        y[i] = j < half ? head[j] * cos(angle) - head[j + half] * sin(angle)
                        : head[j] * cos(angle) + head[j - half] * sin(angle);
    }
}

static size_t check_rope(const struct weft_layer_kernels *kernels, enum weft_dtype dtype,
                         const void *shape, unsigned char *results)
{
    static float frequencies[WEFT_ROPE_MOST_SIZE / 2];
    struct weft_rope_rows r = *(const struct weft_rope_rows *)shape;
    const int64_t bytes = weft_dtype_bytes(dtype), rows = r.samples * r.seq_len;
    const int64_t n = rows * r.stride, columns = r.heads * r.size;
    void *x = random_array(dtype, n, 0, 5), *y = untouched_bytes(n * bytes);
    for (int64_t i = 0; i < rows; i++) {
        memcpy((char *)y + i * r.stride * bytes, (char *)x + i * r.stride * bytes,
               (size_t)(columns * bytes));
    }
    weft_rope_frequencies(r.size, 10000, &(struct weft_rope_scaling){0}, frequencies);
    r.frequencies = frequencies;
    kernels->rope(&r, y);
    double *wide = widened_array(dtype, x, n);
    double *right = calloc((size_t)(rows * columns), sizeof(double));
    rope_reference(&r, 10000, wide, right);
    check_rows(r.back ? "turned back" : "turned", dtype, y, r.stride, right, rows, columns);
    size_t used = 0;
    keep_result(y, n * bytes, results, &used);
    free(x);
    free(wide);
    free(right);
    return used;
}

Test(kernels_layers, rope_turns_pairs_of_halves)
{
    const struct weft_rope_rows shapes[] = {
        {.samples = 2, .seq_len = 5, .heads = 3, .size = 2, .stride = 9},
        {.samples = 1, .seq_len = 7, .heads = 1, .size = 80, .stride = 80},
        {.samples = 3, .seq_len = 9, .heads = 2, .size = 96, .stride = 200},
        {.samples = 1, .seq_len = 3, .first = 60, .heads = 2, .size = 64, .stride = 130},
        {.samples = 1, .seq_len = 2, .first = 31, .heads = 1, .size = 1024, .stride = 1024},
        {.samples = 1, .seq_len = 3, .heads = 1, .size = 522, .stride = 530}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct weft_rope_rows shape = shapes[i];
        at_every_level(check_rope, &shape);
        shape.back = true; /* the transpose, and so the gradient */
        at_every_level(check_rope, &shape);
    }
}

/* Position 2^20 of frequency 1 is the longest angle. */
Test(kernels_layers, rope_turns_far_positions)
{
    const float one = 1;
    for (int64_t first = 1; first <= 1 << 20; first *= 2) {
        const struct weft_rope_rows r = {1, 1, first, 1, 2, 2, &one, false};
        float x[2] = {1, 0};
        weft_kernels_best()->layers[WEFT_F32]->rope(&r, x);
        cr_assert(fabs((double)x[0] - cos((double)first)) < 1e-7, "position %d", (int)first);
        cr_assert(fabs((double)x[1] - sin((double)first)) < 1e-7, "position %d", (int)first);
    }
}

/* The gate */

struct gate_shape {
    int64_t rows, width, stride;
    bool in_place;
    bool is_gelu;
};

static double silu_reference(double x)
{
    return x / (1 + exp(-x));
}

static double gelu_reference(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static size_t check_gate(const struct weft_layer_kernels *kernels, enum weft_dtype dtype,
                         const void *shape, unsigned char *results)
{
    const struct gate_shape *s = shape;
    const int64_t bytes = weft_dtype_bytes(dtype), n = s->rows * s->width;
    const int64_t stride = s->stride, dy_stride = s->in_place ? stride : s->width;
    char *both = random_array(dtype, s->rows * stride, 0, 6), *up = both + s->width * bytes;
    void *dy = random_array(dtype, n, 0, 7), *y = untouched_bytes(n * bytes);
    char *d = untouched_bytes(s->rows * stride * bytes), *d_up = d + s->width * bytes;
    for (int64_t i = 0; s->in_place && i < s->rows; i++) {
        memcpy(d_up + i * stride * bytes, (char *)dy + i * s->width * bytes,
               (size_t)(s->width * bytes));
    }
    double (*const formula)(double) = s->is_gelu ? gelu_reference : silu_reference;
    (s->is_gelu ? kernels->gate_gelu : kernels->gate)(s->rows, s->width, stride, both, up, y);
    (s->is_gelu ? kernels->gate_gelu_backward : kernels->gate_backward)(
        s->rows, s->width, stride, both, up, dy_stride, s->in_place ? d_up : dy, d, d_up);
    double *right = calloc((size_t)n, sizeof(double)), *d_right = calloc((size_t)(2 * n), 8);
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = i / s->width, j = i % s->width;
        const double gate = value_of(dtype, both, row * stride + j), by = 1e-5;
        const double u = value_of(dtype, up, row * stride + j), g = value_of(dtype, dy, i);
        right[i] = formula(gate) * u;
        d_right[row * 2 * s->width + j] =
            g * u * (formula(gate + by) - formula(gate - by)) / (2 * by);
        d_right[row * 2 * s->width + s->width + j] = g * formula(gate);
    }
    check_rows("gated", dtype, y, s->width, right, s->rows, s->width);
    check_rows("d_gate and d_up", dtype, d, stride, d_right, s->rows, 2 * s->width);
    size_t used = 0;
    keep_result(y, n * bytes, results, &used);
    keep_result(d, s->rows * stride * bytes, results, &used);
    free(both);
    free(dy);
    free(right);
    free(d_right);
    return used;
}

Test(kernels_layers, gate_is_the_formula_in_place_and_not)
{
    const struct gate_shape shapes[] = {{3, 5, 10, true, false},
                                        {2, 100, 200, false, true},
                                        {4, 33, 71, true, true},
                                        {1, 1, 2, false, false}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        at_every_level(check_gate, &shapes[i]);
    }
}

Test(kernels_layers, gate_has_its_limits)
{
    const float x[] = {90, -90, 1e30f, -1e30f, -86, 86, NAN}, up[] = {1, 1, 1, 1, 1, 1, 1};
    float y[7], d_gate[7], d_up[7] = {1, 1, 1, 1, 1, 1, 1};
    weft_kernels_best()->layers[WEFT_F32]->gate(1, 7, 7, x, up, y);
    weft_kernels_best()->layers[WEFT_F32]->gate_backward(1, 7, 7, x, up, 7, d_up, d_gate, d_up);
    for (int i = 0; i < 6; i++) {
        cr_assert(fabsf(y[i] - (x[i] > 0 ? x[i] : 0)) < 1e-35f, "%g", (double)y[i]);
        cr_assert_eq(d_up[i], y[i]);
        cr_assert(fabsf(d_gate[i] - (x[i] > 0 ? 1.0f : 0.0f)) < 1e-35f, "%g", (double)d_gate[i]);
    }
    cr_assert(isnan(y[6]) && isnan(d_gate[6]) && isnan(d_up[6]));
}

/* Bounds of scores and logits */

static size_t check_caps(const struct weft_layer_kernels *kernels, enum weft_dtype dtype,
                         const void *shape, unsigned char *results)
{
    enum { ROWS = 3, WIDTH = 39, STRIDE = 41, N = ROWS * STRIDE };
    const float cap = *(const float *)shape;
    const int64_t bytes = weft_dtype_bytes(dtype);
    const int32_t targets[ROWS] = {7, WEFT_NO_TARGET, 0};
    void *x = random_array(dtype, N, 0.2, 8), *d = random_array(dtype, N, 0, 9);
    double *logits = widened_array(dtype, x, N), *before = widened_array(dtype, d, N);
    void *y = malloc((size_t)(N * bytes));
    memcpy(y, x, (size_t)(N * bytes));
    kernels->cap(ROWS, WIDTH, STRIDE, cap, y);
    kernels->cap_backward(ROWS, WIDTH, STRIDE, cap, x, d);
    const double loss = kernels->capped_cross_entropy(ROWS, WIDTH, STRIDE, cap, targets, x);
    double wanted = 0;
    for (int row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int j = 0; j < WIDTH; j++)
            sum += exp((double)cap * tanh(logits[row * STRIDE + j] / (double)cap));
        for (int j = 0; j < WIDTH; j++) {
            const int at = row * STRIDE + j;
            const double part = tanh(logits[at] / (double)cap), capped = (double)cap * part;
            const double slope = 1 - part * part, p = exp(capped) / sum;
            const double gradient =
                targets[row] == WEFT_NO_TARGET ? capped : (p - (j == targets[row])) * slope;
            const double error = error_of(dtype) * 4;
            cr_assert(fabs(value_of(dtype, y, at) - capped) <= error * fabs(capped), "%d", at);
            cr_assert(fabs(value_of(dtype, d, at) - before[at] * slope) <= error * 4, "%d", at);
            cr_assert(fabs(value_of(dtype, x, at) - gradient) <= error, "%d", at);
            if (j == targets[row]) wanted -= log(p);
        }
    }
    cr_assert(fabs(loss - wanted) < 1e-5 * wanted, "%g is not %g", loss, wanted);
    size_t used = 0;
    keep_result(y, N * bytes, results, &used);
    keep_result(d, N * bytes, results, &used);
    keep_result(x, N * bytes, results, &used);
    free(logits);
    free(before);
    return used;
}

Test(kernels_layers, caps_are_the_formula)
{
    const float caps[] = {0.5f, 3, 50};
    for (int i = 0; i < 3; i++)
        at_every_level(check_caps, &caps[i]);
}

/* GELU with the error function, and tanh */

static double gelu_erf_reference(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2));
}

/* Each result is near its own size, in the tail too. */
static void is_near(enum weft_dtype dtype, const char *what, double x, double found, double wanted)
{
    const double size = fabs(wanted) + (dtype == WEFT_F16 ? 1e-4 : 1e-30);
    cr_assert(fabs(found - wanted) <= error_of(dtype) * (1 + x * x / 4) * size,
              "%s %s of %g: %.9g is not %.9g", weft_dtype_name(dtype), what, x, found, wanted);
}

static size_t check_activations(const struct weft_layer_kernels *kernels, enum weft_dtype dtype,
                                const void *shape, unsigned char *results)
{
    const double range = *(const double *)shape, by = 1e-5;
    enum { N = 205 };
    const int64_t bytes = N * weft_dtype_bytes(dtype);
    void *x = random_array(dtype, N, 0, 10), *dy = random_array(dtype, N, 0, 11);
    float wide[N];
    for (int i = 0; i < N; i++)
        wide[i] = (float)(range * (i - N / 2) / (N / 2));
    weft_kernels_level(0)->narrow(dtype, N, wide, x);
    void *y = untouched_bytes(bytes), *z = untouched_bytes(bytes), *dx = malloc((size_t)bytes);
    void *dz = untouched_bytes(bytes);
    memcpy(dx, dy, (size_t)bytes); /* in place */
    kernels->gelu_erf(N, x, y);
    kernels->gelu_erf_backward(N, x, dx, dx);
    kernels->tanh(N, x, z);
    kernels->tanh_backward(N, z, dy, dz);
    for (int i = 0; i < N; i++) {
        const double at = value_of(dtype, x, i), g = value_of(dtype, dy, i);
        const double part = value_of(dtype, z, i);
        const double slope = (gelu_erf_reference(at + by) - gelu_erf_reference(at - by)) / (2 * by);
        is_near(dtype, "gelu_erf", at, value_of(dtype, y, i), gelu_erf_reference(at));
        is_near(dtype, "tanh", 0, part, tanh(at));
        cr_assert(fabs(value_of(dtype, dx, i) - g * slope) <= error_of(dtype) * 2 * fabs(g) + 1e-9);
        cr_assert(fabs(value_of(dtype, dz, i) - g * (1 - part * part)) <=
                  error_of(dtype) * fabs(g));
    }
    size_t used = 0;
    keep_result(y, bytes, results, &used);
    keep_result(dx, bytes, results, &used);
    keep_result(z, bytes, results, &used);
    keep_result(dz, bytes, results, &used);
    free(x);
    free(dy);
    return used;
}

Test(kernels_layers, gelu_erf_and_tanh_are_the_formula)
{
    const double ranges[] = {0.5, 4, 12.5};
    for (int i = 0; i < 3; i++)
        at_every_level(check_activations, &ranges[i]);
}

Test(kernels_layers, gelu_erf_has_its_limits)
{
    const float x[] = {NAN, 100, -100, 0, 3e38f}, dy[] = {1, 1, 1, 1, 1};
    float y[5], dx[5];
    weft_kernels_best()->layers[WEFT_F32]->gelu_erf(5, x, y);
    weft_kernels_best()->layers[WEFT_F32]->gelu_erf_backward(5, x, dy, dx);
    cr_assert(isnan(y[0]) && isnan(dx[0]));
    cr_assert(y[1] == 100 && dx[1] == 1 && y[4] == 3e38f);
    cr_assert(fabsf(y[2]) < 1e-30f && fabsf(dx[2]) < 1e-30f);
    cr_assert(y[3] == 0 && fabsf(dx[3] - 0.5f) < 1e-7f);
}
