/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/gemm/multiplier.h"

/* Address of element `index` of an operand. */
static const void *element_at(const struct weft_product *p, const void *matrix, int64_t index)
{
    return (const char *)matrix + index * weft_dtype_bytes(p->dtype);
}

static bool is_triangle(const void *state, const struct weft_product *product)
{
    (void)state;
    return product->triangle != WEFT_NO_TRIANGLE;
}

static enum weft_status run_triangle(void *state, const struct weft_multiplier_link *next,
                                     const struct weft_product *product, struct weft_error *err)
{
    (void)state;
    struct weft_product group = *product;
    group.triangle = WEFT_NO_TRIANGLE;
    for (int64_t at = 0; at < product->m; at += WEFT_TRIANGLE_ROWS) {
        const int64_t left = product->m - at;
        int64_t a_at = at * product->a_stride, b_at = 0;
        group.m = left < WEFT_TRIANGLE_ROWS ? left : WEFT_TRIANGLE_ROWS;
        if (product->triangle == WEFT_C_IS_LOWER) {
            group.n = weft_product_row_end(product, at);
            if (product->transpose_a) a_at = at;
        } else if (!product->transpose_a) {
            group.k = weft_product_row_end(product, at);
        } else {
            const int64_t begin = weft_product_column_begin(product, at);
            a_at = begin * product->a_stride + at;
            b_at = product->transpose_b ? begin : begin * product->b_stride;
            group.k = product->k - begin;
        }
        group.a = element_at(product, product->a, a_at);
        group.b = element_at(product, product->b, b_at);
        group.c = (char *)product->c + at * product->c_stride * weft_dtype_bytes(product->c_dtype);
        WEFT_TRY(weft_multiply(next, &group, err));
    }
    return WEFT_OK;
}

const struct weft_multiplier weft_multiplier_triangle = {
    .title = "triangles",
    .dtypes = WEFT_EVERY_DTYPE,
    .covers = is_triangle,
    .run = run_triangle,
};
