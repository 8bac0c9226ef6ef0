#include "runtime/nn/gemm_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/nn/kernels.h"

/* Odd, large enough for tiles, and with more than one pass over k. */
enum { M = 37, N = 45, K = 531, NUMBERS = M * K + K * N + M * N };

struct matrices {
    float exact[NUMBERS]; /* a, b and c before: what is multiplied, in fp32 */
    uint32_t given[NUMBERS];
    float result[M * N];
};

struct kind {
    bool transpose_a, transpose_b, accumulate, f32; /* f32: c, whatever a and b are */
    float alpha;
};

/* Uniform in [-1, 1), with all of the bits that a float has there. */
static float number(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)((int32_t)*state >> 8) * 0x1p-23f;
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

/* k + 2 roundings of fp32 in the worst order of a sum, with a reserve, and those to c's dtype. */
static double most_error(enum weft_dtype c_dtype, double sum, double size)
{
    static const double roundings[WEFT_DTYPE_COUNT] = {
        [WEFT_F32] = 0, [WEFT_BF16] = 0x1p-8, [WEFT_F16] = 0x1p-10};
    return (K + 8) * 0x1p-24 * size + roundings[c_dtype] * fabs(sum);
}

static enum weft_status compare(const char *title, const struct kind *kind,
                                const struct weft_product *p, const struct matrices *x,
                                struct weft_error *err)
{
    const float *a = x->exact, *b = a + M * K, *before = b + K * N;
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            double sum = 0, size = 0;
            for (int64_t l = 0; l < K; l++) {
                const double term = (double)a[kind->transpose_a ? l * M + i : i * K + l] *
                                    (double)b[kind->transpose_b ? j * K + l : l * N + j];
                sum += term;
                size += fabs(term);
            }
            const double added = kind->accumulate ? (double)before[i * N + j] : 0;
            const double expected = (double)kind->alpha * sum + added;
            const double got = (double)x->result[i * N + j];
            if (fabs(got - expected) <= most_error(p->c_dtype, expected, size + fabs(added)))
                continue;
            return weft_fail(err, WEFT_E_ENVIRONMENT,
                             "products of %s are wrong here: element [%d, %d] of [%d, %d] by [%d, "
                             "%d] in %s%s is %.9g, and should be %.9g. Use another library "
                             "(WEFT_GEMM), or see what LD_LIBRARY_PATH and the environment make of "
                             "this one",
                             title, (int)i, (int)j, M, K, K, N, weft_dtype_name(p->dtype),
                             p->c_dtype == p->dtype ? "" : " into f32", got, expected);
        }
    }
    return WEFT_OK;
}

static enum weft_status check_kind(const char *title, weft_gemm_run_fn *run, const void *context,
                                   enum weft_dtype dtype, const struct kind *kind,
                                   struct matrices *x, struct weft_error *err)
{
    const enum weft_dtype c_dtype = kind->f32 ? WEFT_F32 : dtype;
    char *a = (char *)x->given, *b = a + M * K * weft_dtype_bytes(dtype),
         *c = (char *)(x->given + M * K + K * N);
    uint32_t state = 1;
    for (int64_t i = 0; i < NUMBERS; i++)
        x->exact[i] = number(&state);
    convert(dtype, M * K, x->exact, a);
    convert(dtype, K * N, x->exact + M * K, b);
    convert(c_dtype, M * N, x->exact + M * K + K * N, c);
    if (!kind->accumulate) memset(c, 0xff, (size_t)(M * N * weft_dtype_bytes(c_dtype))); /* NaN */
    struct weft_product product =
        weft_product_dense(kind->transpose_a, kind->transpose_b, M, N, K, dtype);
    product.c_dtype = c_dtype;
    product.a = a;
    product.b = b;
    product.c = c;
    product.alpha = kind->alpha;
    product.accumulate = kind->accumulate;
    WEFT_TRY(run(context, &product, err));
    if (c_dtype == WEFT_F32)
        memcpy(x->result, c, sizeof x->result);
    else
        weft_kernels_level(0)->widen(c_dtype, M * N, c, x->result);
    return compare(title, kind, &product, x, err);
}

enum weft_status weft_gemm_check(const char *title, weft_gemm_run_fn *run, const void *context,
                                 enum weft_dtype dtype, struct weft_error *err)
{
    static const struct kind kinds[] = {
        {.transpose_b = true, .alpha = 1},
        {.alpha = 1},
        {.transpose_a = true, .accumulate = true, .f32 = true, .alpha = 0.5f},
    };
    struct matrices *x = malloc(sizeof *x);
    if (x == NULL) return weft_fail_memory(err, "the matrices that check products");
    enum weft_status status = WEFT_OK;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && status == WEFT_OK; i++)
        status = check_kind(title, run, context, dtype, &kinds[i], x, err);
    free(x);
    return status;
}
