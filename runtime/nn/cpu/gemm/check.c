/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/gemm/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/nn/cpu/kernels/kernels.h"

/* Odd sizes, large enough for tiles and for several passes over k. Triangles have groups of rows
 * with different ends, and an incomplete last group. */
enum { M = 37, N = 45, K = 531, LONG = 150, WIDE = 160, SHORT = 40, DIAGONAL = 10 };
enum { MOST = 24000 }; /* elements of a matrix */
_Static_assert(M *K <= MOST && K * N <= MOST && LONG * WIDE <= MOST, "every matrix has room");

/* Finishes that layers request. */
enum { BIAS = 1, RESIDUAL = 2, SLOPE = 4, GELU = 8, SUMS = 16, MOST_FINISHES = 3 };

struct matrices {
    float drawn[3][MOST];
    float exact[3][MOST]; /* operands a, b and c in fp32 */
    uint32_t given[3][MOST], given_gelu[M * N];
    float result[MOST], gelu[M * N], column_sums[N];
    double columns[MOST];         /* op(b) */
    double sum[MOST], size[MOST]; /* of each element's products, and of their magnitudes */
};

struct kind {
    bool transpose_a, transpose_b, accumulate, f32; /* f32: c is f32, for any a and b */
    float alpha;
    int64_t m, n, k;
    enum weft_product_triangle triangle;
    int finishes[MOST_FINISHES]; /* one product each, up to the first 0 after the first */
};

/* Uniform in [-1, 1), with all bits of a float. */
static float number_at(int matrix, int64_t i)
{
    return (float)(2 * weft_rng_uniform(1, (uint64_t)matrix, (uint64_t)i) - 1);
}

/* Converts numbers to the dtype, and back to fp32. */
static void convert_numbers(enum weft_dtype dtype, int64_t n, float *exact, void *given)
{
    const struct weft_kernels *kernels = weft_kernels_level(0);
    if (dtype == WEFT_F32) {
        memcpy(given, exact, (size_t)n * sizeof *exact);
    } else {
        kernels->narrow(dtype, n, exact, given);
        kernels->widen(dtype, n, given, exact);
    }
}

/* Error of GELU's formulas in fp32. */
static const double most_gelu_error = 0x1p-19;

/* Error of rounding to the dtype twice: with and without the added terms. */
static double rounding_error(enum weft_dtype dtype)
{
    static const double roundings[WEFT_DTYPE_COUNT] = {
        [WEFT_F32] = 0, [WEFT_BF16] = 0x1p-8, [WEFT_F16] = 0x1p-10};
    return roundings[dtype];
}

/* k + 3 roundings of fp32 in the worst order of a sum, with a reserve, plus the roundings to c's
 * dtype. */
static double most_error(const struct weft_product *p, double sum, double size)
{
    return (double)(p->k + 8) * 0x1p-24 * size + rounding_error(p->c_dtype) * sum;
}

static double gelu_of(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}

static double slope_of_gelu(double x)
{
    const double scale = sqrt(2 / acos(-1)), t = tanh(scale * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * scale * (1 + 3 * 0.044715 * x * x);
}

/* Index of element [i, l] of op(a). *there is false if the triangle lacks it. */
static int64_t place_in_a(const struct weft_product *p, int64_t i, int64_t l, bool *there)
{
    const int64_t row = p->transpose_a ? l : i, column = p->transpose_a ? i : l;
    *there = p->triangle != WEFT_A_IS_LOWER || column <= row + p->diagonal;
    return row * p->a_stride + column;
}

/* The inner loop has contiguous columns, because the check delays every start. */
static void sum_up(const struct weft_product *p, struct matrices *x)
{
    for (int64_t l = 0; l < p->k; l++)
        for (int64_t j = 0; j < p->n; j++)
            x->columns[l * p->n + j] =
                (double)x->exact[1][p->transpose_b ? j * p->k + l : l * p->n + j];
    for (int64_t i = 0; i < p->m; i++) {
        double *restrict sum = x->sum + i * p->n, *restrict size = x->size + i * p->n;
        memset(sum, 0, (size_t)p->n * sizeof *sum);
        memset(size, 0, (size_t)p->n * sizeof *size);
        for (int64_t l = 0; l < p->k; l++) {
            bool there = true;
            const double a = (double)x->exact[0][place_in_a(p, i, l, &there)];
            const double *restrict b = x->columns + l * p->n;
            for (int64_t j = 0; there && j < p->n; j++) {
                sum[j] += a * b[j];
                size[j] += fabs(a * b[j]);
            }
        }
    }
}

/* Reports a wrong value of row i, column j. `what` names it. */
static enum weft_status fail_at(const char *title, const struct weft_product *p, const char *what,
                                int64_t i, int64_t j, double got, double expected,
                                struct weft_error *err)
{
    return weft_fail(err, WEFT_E_ENVIRONMENT,
                     "products of %s are wrong here: %s [%d, %d] of [%d, %d] by [%d, %d] in %s%s%s "
                     "is %.9g, and should be %.9g. Use another library (WEFT_GEMM), or see what "
                     "LD_LIBRARY_PATH and the environment make of this one",
                     title, what, (int)i, (int)j, (int)p->m, (int)p->k, (int)p->k, (int)p->n,
                     weft_dtype_name(p->dtype), p->c_dtype == p->dtype ? "" : " into f32",
                     p->triangle != WEFT_NO_TRIANGLE ? ", a triangle," : "", got, expected);
}

static bool is_near(double got, double expected, double most)
{
    return fabs(got - expected) <= most;
}

static enum weft_status compare_element(const char *title, const struct weft_product *p,
                                        const struct matrices *x, int64_t i, int64_t j,
                                        struct weft_error *err)
{
    const int64_t at = i * p->n + j;
    const double sum = (double)p->alpha * x->sum[at], got = (double)x->result[at];
    const double bias = p->finish.bias ? (double)x->exact[1][j] : 0;
    double added = bias;
    if (p->accumulate) added += (double)x->exact[2][at];
    if (p->finish.residual) added += (double)x->exact[0][at];
    double expected = sum + added;
    double most = most_error(p, fmax(fabs(sum), fabs(bias)) + fabs(added) + fabs(expected),
                             x->size[at] + fabs(bias) + fabs(added));
    if (p->finish.gelu_input) {
        const double slope = slope_of_gelu((double)x->exact[1][at]);
        most = most * fabs(slope) + most_gelu_error * fabs(expected);
        expected *= slope;
    }
    if (!is_near(got, expected, most))
        return fail_at(title, p, "element", i, j, got, expected, err);
    if (!p->finish.gelu) return WEFT_OK;
    const double gelu = gelu_of(got); /* of the stored c */
    if (is_near((double)x->gelu[at], gelu,
                most_gelu_error * (1 + fabs(got)) + rounding_error(p->c_dtype) * fabs(gelu)))
        return WEFT_OK;
    return fail_at(title, p, "GELU of element", i, j, (double)x->gelu[at], gelu, err);
}

/* Compares sums of the stored c, in fp32 and any order. */
static enum weft_status compare_column_sums(const char *title, const struct weft_product *p,
                                            const struct matrices *x, struct weft_error *err)
{
    for (int64_t j = 0; p->finish.column_sums && j < p->n; j++) {
        double sum = 0, size = 0;
        for (int64_t i = 0; i < p->m; i++) {
            sum += (double)x->result[i * p->n + j];
            size += fabs((double)x->result[i * p->n + j]);
        }
        if (!is_near((double)x->column_sums[j], sum, (double)p->m * 0x1p-24 * size))
            return fail_at(title, p, "the column's sum up to element", p->m - 1, j,
                           (double)x->column_sums[j], sum, err);
    }
    return WEFT_OK;
}

static enum weft_status compare_product(const char *title, const struct weft_product *p,
                                        const struct matrices *x, struct weft_error *err)
{
    for (int64_t i = 0; i < p->m; i++) {
        const int64_t end = p->triangle == WEFT_C_IS_LOWER ? i + p->diagonal + 1 : p->n;
        for (int64_t j = 0; j < (end < p->n ? end : p->n); j++)
            WEFT_TRY(compare_element(title, p, x, i, j, err));
    }
    return compare_column_sums(title, p, x, err);
}

/* A triangle is not read beyond a row's end, so NaN goes there. Zeros go up to it. */
static void cut_triangle(const struct weft_product *p, struct matrices *x)
{
    const int64_t rows = p->transpose_a ? p->k : p->m;
    for (int64_t row = 0; row < rows && p->triangle == WEFT_A_IS_LOWER; row++) {
        float *numbers = x->exact[0] + row * p->a_stride;
        for (int64_t j = row + p->diagonal + 1; j < p->a_stride; j++) {
            numbers[j] = j < weft_product_row_end(p, row) ? 0 : NAN;
        }
    }
}

/* Copies to fp32. */
static void widen_elements(enum weft_dtype dtype, int64_t n, const void *from, float *to)
{
    if (dtype == WEFT_F32)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        weft_kernels_level(0)->widen(dtype, n, from, to);
}

/* Repeats the product with this finish. Outputs begin as NaN. */
static enum weft_status check_finish(const char *title, weft_gemm_run_fn *run, const void *context,
                                     int with, struct weft_product *p, struct matrices *x,
                                     struct weft_error *err)
{
    p->finish = (struct weft_product_finish){.bias = with & BIAS ? x->given[1] : NULL,
                                             .residual = with & RESIDUAL ? x->given[0] : NULL,
                                             .gelu_input = with & SLOPE ? x->given[1] : NULL,
                                             .gelu = with & GELU ? x->given_gelu : NULL,
                                             .column_sums = with & SUMS ? x->column_sums : NULL};
    if (!p->accumulate) memset(x->given[2], 0xff, sizeof x->given[2]);
    memset(x->given_gelu, 0xff, sizeof x->given_gelu);
    memset(x->column_sums, 0xff, sizeof x->column_sums);
    WEFT_TRY(run(context, p, err));
    widen_elements(p->c_dtype, p->m * p->n, x->given[2], x->result);
    if (with & GELU) widen_elements(p->c_dtype, p->m * p->n, x->given_gelu, x->gelu);
    return compare_product(title, p, x, err);
}

static enum weft_status check_kind(const char *title, weft_gemm_run_fn *run, const void *context,
                                   enum weft_dtype dtype, const struct kind *kind,
                                   struct matrices *x, struct weft_error *err)
{
    struct weft_product p =
        weft_product_dense(kind->transpose_a, kind->transpose_b, kind->m, kind->n, kind->k, dtype);
    p.c_dtype = kind->f32 ? WEFT_F32 : dtype;
    p.alpha = kind->alpha;
    p.accumulate = kind->accumulate;
    p.triangle = kind->triangle;
    p.diagonal = kind->triangle != WEFT_NO_TRIANGLE ? DIAGONAL : 0;
    p.a = x->given[0];
    p.b = x->given[1];
    p.c = x->given[2];
    memcpy(x->exact, x->drawn, sizeof x->exact);
    cut_triangle(&p, x);
    convert_numbers(dtype, p.m * p.k, x->exact[0], x->given[0]);
    convert_numbers(dtype, p.k * p.n, x->exact[1], x->given[1]);
    convert_numbers(p.c_dtype, p.m * p.n, x->exact[2], x->given[2]);
    sum_up(&p, x);
    for (int i = 0; i < MOST_FINISHES && (i == 0 || kind->finishes[i] != 0); i++)
        WEFT_TRY(check_finish(title, run, context, kind->finishes[i], &p, x, err));
    return WEFT_OK;
}

enum weft_status weft_gemm_check(const char *title, weft_gemm_run_fn *run, const void *context,
                                 enum weft_dtype dtype, struct weft_error *err)
{
    static const struct kind kinds[] = {
        {.transpose_b = true,
         .alpha = 1,
         .m = M,
         .n = N,
         .k = K,
         .finishes = {BIAS, BIAS | RESIDUAL, BIAS | GELU}},
        {.alpha = 1, .m = M, .n = N, .k = K, .finishes = {0, SLOPE | SUMS}},
        {.transpose_a = true, .accumulate = true, .f32 = true, .alpha = 0.5f, M, N, K},
        {.transpose_b = true, .alpha = 0.5f, LONG, WIDE, SHORT, WEFT_C_IS_LOWER},
        {.alpha = 1, LONG, SHORT, WIDE, WEFT_A_IS_LOWER},
        {.transpose_a = true, .alpha = 0.5f, WIDE, SHORT, LONG, WEFT_A_IS_LOWER},
    };
    struct matrices *x = malloc(sizeof *x);
    if (x == NULL) return weft_fail_memory(err, "the matrices that check products");
    for (int i = 0; i < 3; i++) {
        for (int64_t j = 0; j < MOST; j++) {
            x->drawn[i][j] = number_at(i, j);
        }
    }
    enum weft_status status = WEFT_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == WEFT_OK; i++)
        status = check_kind(title, run, context, dtype, &kinds[i], x, err);
    free(x);
    return status;
}
