/* SPDX-License-Identifier: Apache-2.0 */
/* Triangular products, and the finishing work on products: every way to multiply, against sums in
 * fp64. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/nn/cpu/gemm/gemm.h"
#include "runtime/nn/cpu/kernels/kernels.h"
#include "tests/effort.h"

static const struct {
    const char *name;
    enum weft_dtype dtype;
} ways[] = {{"onednn", WEFT_F32},  {"amx-bf16x3", WEFT_F32},      {"avx512", WEFT_F32},
            {"onednn", WEFT_BF16}, {"onednn-emulated", WEFT_F16}, {"amx", WEFT_BF16}};
enum { N_WAYS = sizeof(ways) / sizeof(ways[0]) };

static struct weft_gemm *opened(int way, int32_t threads)
{
    struct weft_gemm *gemm = NULL;
    struct weft_error err = {0};
    const enum weft_status status =
        weft_gemm_open(ways[way].name, threads, ways[way].dtype, &gemm, &err);
    cr_assert(status == WEFT_OK || status == WEFT_E_ENVIRONMENT || status == WEFT_E_USAGE, "%s",
              err.text);
    return gemm;
}

static void run_gemm_finish(const struct weft_gemm *gemm, const struct weft_product *product)
{
    struct weft_error err = {0};
    cr_assert_eq(weft_gemm_run(gemm, product, &err), WEFT_OK, "%s", err.text);
}

/* Numbers of a dtype, and the same as floats. */
struct numbers {
    enum weft_dtype dtype;
    int64_t n;
    void *x;
    float *wide;
};

static struct numbers numbers_of(enum weft_dtype dtype, uint64_t stream, int64_t n)
{
    struct numbers out = {.dtype = dtype, .n = n};
    out.x = malloc((size_t)(n * weft_dtype_bytes(dtype)));
    out.wide = malloc((size_t)n * sizeof(float));
    for (int64_t i = 0; i < n; i++) {
        out.wide[i] = (float)weft_rng_normal(19, stream, (uint64_t)i);
    }
    weft_kernels_best()->narrow(dtype, n, out.wide, out.x);
    weft_kernels_best()->widen(dtype, n, out.x, out.wide);
    return out;
}

/* After `wide` was changed, and after x was. */
static void set(struct numbers *x)
{
    weft_kernels_best()->narrow(x->dtype, x->n, x->wide, x->x);
}

static void look(struct numbers *x)
{
    weft_kernels_best()->widen(x->dtype, x->n, x->x, x->wide);
}

static void numbers_finish(struct numbers *x)
{
    free(x->x);
    free(x->wide);
}

/* Row i, column j of op(a) b or op(a) b^T. */
static double sum_of(const struct weft_product *p, const struct numbers *a, const struct numbers *b,
                     int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t l = 0; l < p->k; l++) {
        const float x = a->wide[p->transpose_a ? l * p->a_stride + i : i * p->a_stride + l];
        const float y = b->wide[p->transpose_b ? j * p->b_stride + l : l * p->b_stride + j];
        sum += (double)x * (double)y;
    }
    return sum;
}

/* A result may be off by the sum's rounding and some units in the last place of the dtype. */
static bool is_near(enum weft_dtype dtype, double got, double expected, double size, int64_t k)
{
    const double unit = dtype == WEFT_BF16 ? 0x1p-8 : dtype == WEFT_F16 ? 0x1p-11 : 0;
    return fabs(got - expected) <= 2 * unit * size + 1e-6 * (double)(k + 10);
}

static double slope_of_gelu(double x)
{
    const double scale = sqrt(2 / acos(-1)), u = scale * (x + 0.044715 * x * x * x), t = tanh(u);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

enum { BIAS = 1, RESIDUAL = 2, GELU_INPUT = 4, GELU = 8, SUMS = 16 };

static void check_finish(struct weft_gemm *gemm, enum weft_dtype dtype, int with, bool ta, bool tb,
                         int64_t m, int64_t n, int64_t k)
{
    const int64_t stride = with == BIAS ? n + 5 : n; /* others need a dense c */
    struct numbers a = numbers_of(dtype, 0, m * k), b = numbers_of(dtype, 1, k * n),
                   c = numbers_of(dtype, 2, m * stride), bias = numbers_of(dtype, 3, n),
                   residual = numbers_of(dtype, 4, m * n), input = numbers_of(dtype, 5, m * n),
                   gelu = numbers_of(dtype, 6, m * n), expected = numbers_of(dtype, 7, m * n);
    float *sums = malloc((size_t)n * sizeof(float)), *found = malloc((size_t)n * sizeof(float));
    memset(c.x, 0xff, (size_t)(m * stride * weft_dtype_bytes(dtype))); /* NaN, not read */
    memset(sums, 0xff, (size_t)n * sizeof(float));
    const struct weft_product product = {
        .transpose_a = ta,
        .transpose_b = tb,
        .dtype = dtype,
        .c_dtype = dtype,
        .m = m,
        .n = n,
        .k = k,
        .a = a.x,
        .b = b.x,
        .a_stride = ta ? m : k,
        .b_stride = tb ? k : n,
        .c_stride = stride,
        .alpha = 0.5f,
        .c = c.x,
        .finish = {.bias = with & BIAS ? bias.x : NULL,
                   .residual = with & RESIDUAL ? residual.x : NULL,
                   .gelu_input = with & GELU_INPUT ? input.x : NULL,
                   .gelu = with & GELU ? gelu.x : NULL,
                   .column_sums = with & SUMS ? sums : NULL}};
    run_gemm_finish(gemm, &product);
    look(&c);
    for (int64_t i = 0; i < m * n; i++) {
        double value = 0.5 * sum_of(&product, &a, &b, i / n, i % n), size = fabs(value);
        if (with & BIAS) value += (double)bias.wide[i % n];
        if (with & BIAS) size += fabs((double)bias.wide[i % n]);
        if (with & RESIDUAL) value += (double)residual.wide[i];
        if (with & RESIDUAL) size += fabs((double)residual.wide[i]);
        if (with & GELU_INPUT) value *= slope_of_gelu((double)input.wide[i]);
        const double got = (double)c.wide[i / n * stride + i % n];
        cr_assert(is_near(dtype, got, value, size * 1.2, k),
                  "%s, with %d, %d%d %lld x %lld x %lld [%lld]: %g, not %g",
                  weft_gemm_describe(gemm), with, ta, tb, (long long)m, (long long)n, (long long)k,
                  (long long)i, got, value);
    }
    /* GELU of the stored values, so exact to the last bit. */
    const struct weft_layer_kernels *kernels = weft_kernels_best()->layers[dtype];
    if (with & GELU) {
        kernels->gelu(m * n, c.x, expected.x);
        cr_assert_eq(memcmp(expected.x, gelu.x, (size_t)(m * n * weft_dtype_bytes(dtype))), 0);
    }
    if (with & SUMS) {
        kernels->column_sums(m, n, n, c.x, found);
        cr_assert_eq(memcmp(found, sums, (size_t)n * sizeof(float)), 0);
    }
    struct numbers *all[] = {&a, &b, &c, &bias, &residual, &input, &gelu, &expected};
    for (int i = 0; i < 8; i++) {
        numbers_finish(all[i]);
    }
    free(sums);
    free(found);
}

Test(gemm_finish, is_what_the_kernels_make_of_the_product)
{
    static const int with[] = {BIAS,
                               RESIDUAL,
                               BIAS | RESIDUAL,
                               BIAS | GELU,
                               RESIDUAL | GELU,
                               GELU,
                               GELU_INPUT,
                               GELU_INPUT | SUMS,
                               SUMS,
                               BIAS | RESIDUAL | GELU,
                               BIAS | GELU_INPUT,
                               BIAS | RESIDUAL | GELU_INPUT | GELU | SUMS};
    static const int64_t sizes[][3] = {{70, 130, 64}, {9, 11, 5}, {64, 96, 33}, {130, 40, 1100}};
    enum { N_WITH = sizeof(with) / sizeof(with[0]) };
    int found = 0;
    for (int way = 0; way < N_WAYS; way++) {
        for (int32_t threads = 1; threads <= 2; threads++) {
            struct weft_gemm *gemm = opened(way, threads);
            if (!gemm) continue;
            found++;
            for (int i = 0; i < 4 * N_WITH; i++) {
                if ((i + way + threads) % TEST_CASES_OF(1, 2, 3) != 0) continue;
                const int64_t *size = sizes[i / N_WITH];
                const int kind = i + i / N_WITH; /* another for each size */
                check_finish(gemm, ways[way].dtype, with[i % N_WITH], kind % 3 == 0, kind % 2 == 0,
                             size[0], size[1], size[2]);
            }
            weft_gemm_close(gemm);
        }
    }
    cr_assert_gt(found, 0);
}

/* c is a triangle: its elements are right, and no byte next to the matrix changed. */
static void check_lower_c(struct weft_gemm *gemm, enum weft_dtype dtype, bool accumulate, int64_t m,
                          int64_t diagonal, int64_t k)
{
    enum { PAD = 5 };
    const int64_t n = m + diagonal, stride = n + PAD;
    struct numbers a = numbers_of(dtype, 0, m * k), b = numbers_of(dtype, 1, n * k),
                   c = numbers_of(dtype, 2, m * stride), before = numbers_of(dtype, 2, m * stride);
    const struct weft_product product = {.transpose_b = true,
                                         .triangle = WEFT_C_IS_LOWER,
                                         .diagonal = diagonal,
                                         .dtype = dtype,
                                         .c_dtype = dtype,
                                         .m = m,
                                         .n = n,
                                         .k = k,
                                         .a = a.x,
                                         .b = b.x,
                                         .a_stride = k,
                                         .b_stride = k,
                                         .c_stride = stride,
                                         .alpha = 0.5f,
                                         .accumulate = accumulate,
                                         .c = c.x};
    run_gemm_finish(gemm, &product);
    look(&c);
    for (int64_t i = 0; i < m; i++) {
        cr_assert(weft_product_row_end(&product, i) > i + diagonal);
        for (int64_t j = 0; j < stride; j++) {
            const float got = c.wide[i * stride + j], old = before.wide[i * stride + j];
            if (j >= n) cr_assert_eq(got, old);
            if (j > i + diagonal) continue;
            const double sum = 0.5 * sum_of(&product, &a, &b, i, j);
            const double value = sum + (accumulate ? (double)old : 0);
            cr_assert(is_near(dtype, (double)got, value, fabs(sum) + fabs((double)old), k),
                      "%s, %lld + %lld [%lld, %lld]: %g, not %g", weft_gemm_describe(gemm),
                      (long long)m, (long long)diagonal, (long long)i, (long long)j, (double)got,
                      value);
        }
    }
    numbers_finish(&a);
    numbers_finish(&b);
    numbers_finish(&c);
    numbers_finish(&before);
}

/* a is a triangle: 0 up to the end of its rows, and NaN beyond, which nobody may read. */
static void check_lower_a(struct weft_gemm *gemm, enum weft_dtype dtype, bool transpose,
                          int64_t rows, int64_t diagonal, int64_t n)
{
    const int64_t columns = rows + diagonal, m = transpose ? columns : rows,
                  k = transpose ? rows : columns;
    struct numbers a = numbers_of(dtype, 0, rows * columns), b = numbers_of(dtype, 1, k * n),
                   c = numbers_of(dtype, 2, m * n);
    const struct weft_product product = {.transpose_a = transpose,
                                         .triangle = WEFT_A_IS_LOWER,
                                         .diagonal = diagonal,
                                         .dtype = dtype,
                                         .c_dtype = dtype,
                                         .m = m,
                                         .n = n,
                                         .k = k,
                                         .a = a.x,
                                         .b = b.x,
                                         .a_stride = columns,
                                         .b_stride = n,
                                         .c_stride = n,
                                         .alpha = 0.5f,
                                         .c = c.x};
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = i + diagonal + 1; j < columns; j++) {
            a.wide[i * columns + j] = j < weft_product_row_end(&product, i) ? 0 : NAN;
        }
    }
    set(&a);
    run_gemm_finish(gemm, &product);
    look(&c);
    for (int64_t i = 0; i < rows * columns; i++) {
        if (isnan(a.wide[i])) a.wide[i] = 0;
    }
    for (int64_t i = 0; i < m * n; i++) {
        const double value = 0.5 * sum_of(&product, &a, &b, i / n, i % n);
        cr_assert(is_near(dtype, (double)c.wide[i], value, fabs(value), k),
                  "%s, %lld + %lld, %d [%lld, %lld]: %g, not %g", weft_gemm_describe(gemm),
                  (long long)rows, (long long)diagonal, transpose, (long long)(i / n),
                  (long long)(i % n), (double)c.wide[i], value);
    }
    numbers_finish(&a);
    numbers_finish(&b);
    numbers_finish(&c);
}

Test(gemm_finish, triangles_are_the_part_that_they_say)
{
    static const int64_t sizes[][3] = {{256, 0, 64}, {150, 0, 40}, {70, 64, 64}, {33, 100, 64},
                                       {5, 3, 8},    {1, 77, 64},  {600, 0, 33}, {64, 1000, 64}};
    int found = 0;
    for (int way = 0; way < N_WAYS; way++) {
        for (int32_t threads = 1; threads <= 2; threads++) {
            struct weft_gemm *gemm = opened(way, threads);
            if (!gemm) continue;
            found++;
            for (int i = 0; i < 8; i++) {
                if ((i + way + threads) % TEST_CASES(1, 2) != 0) continue;
                const enum weft_dtype dtype = ways[way].dtype;
                check_lower_c(gemm, dtype, i % 2, sizes[i][0], sizes[i][1], sizes[i][2]);
                check_lower_a(gemm, dtype, false, sizes[i][0], sizes[i][1], sizes[i][2]);
                check_lower_a(gemm, dtype, true, sizes[i][0], sizes[i][1], sizes[i][2]);
            }
            weft_gemm_close(gemm);
        }
    }
    cr_assert_gt(found, 0);
}
