/* SPDX-License-Identifier: Apache-2.0 */
/* The plain product: every element is a chain of fmaf in the order of k, as in runtime/nn/cuda. So
 * a run with it has the bits of a GPU's run. */
#include <math.h>
#include <stdio.h>

#include "base/numbers.h"
#include "runtime/nn/cpu/gemm/multiplier.h"

static float element_at(enum weft_dtype dtype, const void *matrix, int64_t index)
{
    switch (dtype) {
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        break;
    case WEFT_BF16:
        return weft_bf16_widen(((const uint16_t *)matrix)[index]);
    case WEFT_F16:
        return weft_f16_widen(((const uint16_t *)matrix)[index]);
    }
    return ((const float *)matrix)[index];
}

static void set_element(enum weft_dtype dtype, void *matrix, int64_t index, float value)
{
    switch (dtype) {
    case WEFT_F32:
    case WEFT_DTYPE_COUNT:
        ((float *)matrix)[index] = value;
        return;
    case WEFT_BF16:
        ((uint16_t *)matrix)[index] = weft_bf16_narrow(value);
        return;
    case WEFT_F16:
        ((uint16_t *)matrix)[index] = weft_f16_narrow(value);
        return;
    }
}

static void multiply_element(const struct weft_product *p, int64_t i, int64_t j)
{
    const int64_t a_at = p->transpose_a ? i : i * p->a_stride;
    const int64_t b_at = p->transpose_b ? j * p->b_stride : j;
    const int64_t a_step = p->transpose_a ? p->a_stride : 1;
    const int64_t b_step = p->transpose_b ? 1 : p->b_stride;
    const int64_t c_at = i * p->c_stride + j;
    float sum = 0;
    for (int64_t l = 0; l < p->k; l++) {
        sum = fmaf(element_at(p->dtype, p->a, a_at + l * a_step),
                   element_at(p->dtype, p->b, b_at + l * b_step), sum);
    }
    sum = p->alpha * sum;
    if (p->accumulate) sum = element_at(p->c_dtype, p->c, c_at) + sum;
    set_element(p->c_dtype, p->c, c_at, sum);
}

static enum weft_status multiply_plainly(void *state, const struct weft_multiplier_link *next,
                                         const struct weft_product *product, struct weft_error *err)
{
    (void)state;
    (void)next;
    (void)err;
    for (int64_t i = 0; i < product->m; i++) {
        for (int64_t j = 0; j < product->n; j++) {
            multiply_element(product, i, j);
        }
    }
    return WEFT_OK;
}

static void show_version(const void *state, char *text, size_t bytes)
{
    (void)state;
    snprintf(text, bytes, "of our own");
}

static bool covers_all(const void *state, const struct weft_product *product)
{
    (void)state;
    return product->triangle == WEFT_NO_TRIANGLE;
}

const struct weft_multiplier weft_multiplier_plain = {
    .name = "plain",
    .title = "plain",
    .dtypes = WEFT_EVERY_DTYPE,
    .version = show_version,
    .covers = covers_all,
    .run = multiply_plainly,
};
