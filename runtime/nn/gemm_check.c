#include "runtime/nn/gemm_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "runtime/nn/kernels.h"

/* Odd, large enough for tiles, and with more than one pass over k. Triangles have groups of rows
 * that end in different columns, and a last one that is not whole. */
enum { M = 37, N = 45, K = 531, LONG = 150, WIDE = 160, SHORT = 40, DIAGONAL = 10 };
enum { MOST = 24000 }; /* elements of a matrix */
_Static_assert(M *K <= MOST && K * N <= MOST && LONG * WIDE <= MOST, "every matrix has room");

struct matrices {
    float drawn[3][MOST];
    float exact[3][MOST]; /* a, b and c before: what is multiplied, in fp32 */
    uint32_t given[3][MOST];
    float result[MOST];
};

struct kind {
    bool transpose_a, transpose_b, accumulate, f32; /* f32: c, whatever a and b are */
    float alpha;
    int64_t m, n, k;
    enum weft_product_triangle triangle;
    bool bias; /* added to every row: b's first n numbers */
};

/* Uniform in [-1, 1), with all of the bits that a float has there. */
static float number(int matrix, int64_t i)
{
    return (float)(2 * weft_rng_uniform(1, (uint64_t)matrix, (uint64_t)i) - 1);
}

/* The numbers as the dtype has them, and those in fp32. */
static void convert(enum weft_dtype dtype, int64_t n, float *exact, void *given)
{
    const struct weft_kernels *kernels = weft_kernels_level(0);
    if (dtype == WEFT_F32) {
        memcpy(given, exact, (size_t)n * sizeof *exact);
    } else {
        kernels->narrow(dtype, n, exact, given);
        kernels->widen(dtype, n, given, exact);
    }
}

/* k + 3 roundings of fp32 in the worst order of a sum, with a reserve, and those to c's dtype. */
static double most_error(const struct weft_product *p, double sum, double size)
{
    static const double roundings[WEFT_DTYPE_COUNT] = {
        [WEFT_F32] = 0, [WEFT_BF16] = 0x1p-8, [WEFT_F16] = 0x1p-10};
    return (double)(p->k + 8) * 0x1p-24 * size + roundings[p->c_dtype] * fabs(sum);
}

/* Where element [i, l] of op(a) lies, and whether the product has it. */
static int64_t place_in_a(const struct weft_product *p, int64_t i, int64_t l, bool *there)
{
    const int64_t row = p->transpose_a ? l : i, column = p->transpose_a ? i : l;
    *there = p->triangle != WEFT_A_IS_LOWER || column <= row + p->diagonal;
    return row * p->a_stride + column;
}

static enum weft_status compare(const char *title, const struct weft_product *p,
                                const struct matrices *x, struct weft_error *err)
{
    for (int64_t i = 0; i < p->m; i++) {
        const int64_t end = p->triangle == WEFT_C_IS_LOWER ? i + p->diagonal + 1 : p->n;
        for (int64_t j = 0; j < (end < p->n ? end : p->n); j++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < p->k; l++) {
                bool there = true;
                const int64_t at = place_in_a(p, i, l, &there);
                const double term =
                    (double)x->exact[0][at] *
                    (double)x->exact[1][p->transpose_b ? j * p->k + l : l * p->n + j];
                sum += there ? term : 0;
                size += there ? fabs(term) : 0;
            }
            double added = p->accumulate ? (double)x->exact[2][i * p->n + j] : 0;
            if (p->finish.bias) added += (double)x->exact[1][j];
            const double expected = (double)p->alpha * sum + added;
            const double got = (double)x->result[i * p->n + j];
            if (fabs(got - expected) <= most_error(p, expected, size + fabs(added))) continue;
            return weft_fail(
                err, WEFT_E_ENVIRONMENT,
                "products of %s are wrong here: element [%d, %d] of [%d, %d] by [%d, %d] in %s%s%s "
                "is %.9g, and should be %.9g. Use another library (WEFT_GEMM), or see what "
                "LD_LIBRARY_PATH and the environment make of this one",
                title, (int)i, (int)j, (int)p->m, (int)p->k, (int)p->k, (int)p->n,
                weft_dtype_name(p->dtype), p->c_dtype == p->dtype ? "" : " into f32",
                p->triangle != WEFT_NO_TRIANGLE ? ", a triangle," : "", got, expected);
        }
    }
    return WEFT_OK;
}

/* Of a triangle nothing is read beyond a row's end, so there is NaN; up to there it has zeros. */
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
    p.finish.bias = kind->bias ? x->given[1] : NULL;
    memcpy(x->exact, x->drawn, sizeof x->exact);
    cut_triangle(&p, x);
    convert(dtype, p.m * p.k, x->exact[0], x->given[0]);
    convert(dtype, p.k * p.n, x->exact[1], x->given[1]);
    convert(p.c_dtype, p.m * p.n, x->exact[2], x->given[2]);
    if (!p.accumulate) memset(x->given[2], 0xff, sizeof x->given[2]); /* NaN */
    WEFT_TRY(run(context, &p, err));
    if (p.c_dtype == WEFT_F32)
        memcpy(x->result, x->given[2], sizeof x->result);
    else
        weft_kernels_level(0)->widen(p.c_dtype, p.m * p.n, x->given[2], x->result);
    return compare(title, &p, x, err);
}

enum weft_status weft_gemm_check(const char *title, weft_gemm_run_fn *run, const void *context,
                                 enum weft_dtype dtype, struct weft_error *err)
{
    static const struct kind kinds[] = {
        {.transpose_b = true, .alpha = 1, .m = M, .n = N, .k = K, .bias = true},
        {.alpha = 1, .m = M, .n = N, .k = K},
        {.transpose_a = true, .accumulate = true, .f32 = true, .alpha = 0.5f, M, N, K},
        {.transpose_b = true, .alpha = 0.5f, LONG, WIDE, SHORT, WEFT_C_IS_LOWER},
        {.alpha = 1, LONG, SHORT, WIDE, WEFT_A_IS_LOWER},
        {.transpose_a = true, .alpha = 0.5f, WIDE, SHORT, LONG, WEFT_A_IS_LOWER},
    };
    struct matrices *x = malloc(sizeof *x);
    if (x == NULL) return weft_fail_memory(err, "the matrices that check products");
    for (int i = 0; i < 3; i++) {
        for (int64_t j = 0; j < MOST; j++) {
            x->drawn[i][j] = number(i, j);
        }
    }
    enum weft_status status = WEFT_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == WEFT_OK; i++)
        status = check_kind(title, run, context, dtype, &kinds[i], x, err);
    free(x);
    return status;
}
