/* SPDX-License-Identifier: Apache-2.0 */
/* The check_way of products against ways to multiply that are wrong, each by little. */
#include "runtime/nn/cpu/gemm/check.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "runtime/nn/cpu/kernels/kernels.h"

enum fault {
    RIGHT,
    OF_BF16,       /* uses bf16 for f32, like fast modes of libraries */
    ONE_ELEMENT,   /* the element next to it is wrong */
    NOT_ADDED,     /* an accumulating product overwrites */
    BEFORE_ADDED,  /* a plain product accumulates */
    LAST_LEFT_OUT, /* of every sum, and be it one of 531 */
    WHOLE,         /* reads elements outside the triangle */
    NO_BIAS,
    NO_RESIDUAL,
    NO_SLOPE,
    NEXT_SLOPE, /* the slope next to it is used */
    NO_GELU,
    GELU_WITHOUT_BIAS,
    NO_SUMS,
    LAST_ROW_NOT_SUMMED
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

/* Stores the value rounded to c's dtype. Returns the stored value. */
static double store(const struct weft_product *p, void *to, int64_t at, double value)
{
    float rounded = (float)value;
    if (p->c_dtype == WEFT_F32)
        ((float *)to)[at] = rounded;
    else
        weft_kernels_level(0)->narrow(p->c_dtype, 1, &rounded, (uint16_t *)to + at);
    return element(p->c_dtype, to, false, 0, 0, at, false);
}

static double gate(double x)
{
    return (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x))) / 2;
}

/* By differences, so independent of the checked formula. */
static double slope(double x)
{
    const double step = 1e-6;
    return ((x + step) * gate(x + step) - (x - step) * gate(x - step)) / (2 * step);
}

static void finish(enum fault fault, const struct weft_product *p, int64_t i, int64_t j,
                   double value)
{
    const struct weft_product_finish *f = &p->finish;
    const int64_t at = i * p->c_stride + j;
    const double bias = f->bias ? element(p->dtype, f->bias, false, 0, 0, j, false) : 0;
    if ((p->accumulate && fault != NOT_ADDED) || fault == BEFORE_ADDED)
        value += element(p->c_dtype, p->c, false, 0, 0, at, false);
    if (fault != NO_BIAS) value += bias;
    if (f->residual && fault != NO_RESIDUAL)
        value += element(p->dtype, f->residual, false, 0, 0, at, false);
    if (f->gelu_input && fault != NO_SLOPE)
        value *= slope(element(p->dtype, f->gelu_input, false, 0, 0,
                               fault == NEXT_SLOPE ? at + 1 : at, false));
    const double stored = store(p, p->c, at, value);
    const double through = fault == GELU_WITHOUT_BIAS ? stored - bias : stored;
    if (f->gelu && fault != NO_GELU) store(p, f->gelu, at, through * gate(through));
    if (!f->column_sums || fault == NO_SUMS) return;
    if (i == 0) f->column_sums[j] = 0;
    if (fault != LAST_ROW_NOT_SUMMED || i + 1 < p->m) f->column_sums[j] += (float)stored;
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
            finish(fault, p, i, j, (double)(p->alpha * sum));
        }
    }
    return WEFT_OK;
}

static enum weft_status check_way(enum fault fault, enum weft_dtype dtype, struct weft_error *err)
{
    *err = (struct weft_error){0};
    return weft_gemm_check("a library", multiply, &fault, dtype, err);
}

Test(gemm_check, accepts_sums_in_fp32)
{
    struct weft_error err;
    for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        cr_assert_eq(check_way(RIGHT, (enum weft_dtype)dtype, &err), WEFT_OK, "%s", err.text);
    }
}

Test(gemm_check, refuses_what_is_wrong_by_little)
{
    static const enum fault faults[] = {
        ONE_ELEMENT, NOT_ADDED,   BEFORE_ADDED,       LAST_LEFT_OUT, WHOLE,
        NO_BIAS,     NO_RESIDUAL, NO_SLOPE,           NEXT_SLOPE,    GELU_WITHOUT_BIAS,
        NO_GELU,     NO_SUMS,     LAST_ROW_NOT_SUMMED};
    struct weft_error err;
    cr_assert_eq(check_way(OF_BF16, WEFT_F32, &err), WEFT_E_ENVIRONMENT);
    for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
            cr_assert_eq(check_way(faults[i], (enum weft_dtype)dtype, &err), WEFT_E_ENVIRONMENT,
                         "fault %d in %s", (int)faults[i], weft_dtype_name((enum weft_dtype)dtype));
        }
    }
    cr_assert_eq(check_way(ONE_ELEMENT, WEFT_F32, &err), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "a library are wrong here: element [3, 5]"), "%s",
                       err.text);
    cr_assert_eq(check_way(NO_GELU, WEFT_BF16, &err), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "GELU of element [0, 0]"), "%s", err.text);
    cr_assert_eq(check_way(NO_SUMS, WEFT_F32, &err), WEFT_E_ENVIRONMENT);
    cr_assert_not_null(strstr(err.text, "column's sum up to element [36, 0]"), "%s", err.text);
}
