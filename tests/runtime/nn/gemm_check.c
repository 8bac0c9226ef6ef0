/* The check of products against ways to multiply that are wrong, each by little. */
#include "runtime/nn/gemm_check.h"

#include <criterion/criterion.h>
#include <string.h>

#include "runtime/nn/kernels.h"

enum fault {
    RIGHT,
    OF_BF16,       /* of what is asked for in f32, as fast modes of libraries do */
    ONE_ELEMENT,   /* is that beside it */
    NOT_ADDED,     /* what accumulates does not */
    BEFORE_ADDED,  /* what does not accumulate does */
    LAST_LEFT_OUT, /* of every sum, and be it one of 531 */
    WHOLE,         /* what is beyond a triangle is read */
    NO_BIAS
};

/* Element [i, l] of op(x) as it is stored. */
static double element(enum weft_dtype dtype, const void *x, bool transposed, int64_t stride,
                      int64_t i, int64_t l, bool in_bf16)
{
    const int64_t at = transposed ? l * stride + i : i * stride + l;
    float value = 0;
    uint16_t narrow = 0;
    if (dtype == WEFT_F32)
        value = ((const float *)x)[at];
    else
        weft_kernels_level(0)->widen(dtype, 1, (const uint16_t *)x + at, &value);
    if (in_bf16) {
        weft_kernels_level(0)->narrow(WEFT_BF16, 1, &value, &narrow);
        weft_kernels_level(0)->widen(WEFT_BF16, 1, &narrow, &value);
    }
    return (double)value;
}

static void store(const struct weft_product *p, int64_t at, bool added, double value)
{
    float before = 0;
    uint16_t *narrow = (uint16_t *)p->c + at;
    if (p->c_dtype == WEFT_F32) {
        float *c = (float *)p->c + at;
        *c = (float)(value + (added ? (double)*c : 0));
        return;
    }
    weft_kernels_level(0)->widen(p->c_dtype, 1, narrow, &before);
    float sum = (float)(value + (added ? (double)before : 0));
    weft_kernels_level(0)->narrow(p->c_dtype, 1, &sum, narrow);
}

/* Whether element [i, l] of op(a) lies before the end of its row as stored. */
static bool is_read(const struct weft_product *p, int64_t i, int64_t l)
{
    if (p->triangle != WEFT_A_IS_LOWER) return true;
    return p->transpose_a ? i < weft_product_row_end(p, l) : l < weft_product_row_end(p, i);
}

static enum weft_status multiply(const void *context, const struct weft_product *p,
                                 struct weft_error *err)
{
    const enum fault fault = *(const enum fault *)context;
    (void)err;
    for (int64_t i = 0; i < p->m; i++) {
        for (int64_t j = 0; j < p->n; j++) {
            const int64_t column = fault == ONE_ELEMENT && i == 3 && j == 5 ? j + 1 : j;
            const int64_t last = fault == LAST_LEFT_OUT ? p->k - 1 : p->k;
            float sum = 0; /* in fp32, from left to right */
            for (int64_t l = 0; l < last; l++) {
                if (fault != WHOLE && !is_read(p, i, l)) continue;
                sum += (float)(element(p->dtype, p->a, p->transpose_a, p->a_stride, i, l,
                                       fault == OF_BF16) *
                               element(p->dtype, p->b, !p->transpose_b, p->b_stride, column, l,
                                       fault == OF_BF16));
            }
            if (p->finish.bias && fault != NO_BIAS)
                sum += (float)element(p->dtype, p->finish.bias, false, 0, 0, j, false);
            const bool added = (p->accumulate && fault != NOT_ADDED) || fault == BEFORE_ADDED;
            store(p, i * p->c_stride + j, added, (double)(p->alpha * sum));
        }
    }
    return WEFT_OK;
}

static enum weft_status check(enum fault fault, enum weft_dtype dtype, struct weft_error *err)
{
    *err = (struct weft_error){0};
    return weft_gemm_check("a library", multiply, &fault, dtype, err);
}

Test(gemm_check, accepts_sums_in_fp32)
{
    struct weft_error err;
    for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        cr_assert_eq(check(RIGHT, (enum weft_dtype)dtype, &err), WEFT_OK, "%s", err.text);
    }
}

Test(gemm_check, refuses_what_is_wrong_by_little)
{
    static const enum fault faults[] = {ONE_ELEMENT,   NOT_ADDED, BEFORE_ADDED,
                                        LAST_LEFT_OUT, WHOLE,     NO_BIAS};
    struct weft_error err;
    cr_assert_eq(check(OF_BF16, WEFT_F32, &err), WEFT_E_ENVIRONMENT);
    for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
            cr_assert_eq(check(faults[i], (enum weft_dtype)dtype, &err), WEFT_E_ENVIRONMENT,
                         "fault %d in %s", (int)faults[i], weft_dtype_name((enum weft_dtype)dtype));
        }
    }
    cr_assert_eq(check(ONE_ELEMENT, WEFT_F32, &err), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "a library are wrong here: element [3, 5]"), "%s",
                       err.text);
}
