/* SPDX-License-Identifier: Apache-2.0 */
/* A product is one multiplication of matrices, c = alpha op(a) op(b) (+ c), row-major. Layers
 * describe it for a back end: operands, known triangles, and the finish of c. */
#ifndef WEFT_RUNTIME_NN_PRODUCT_H
#define WEFT_RUNTIME_NN_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/model.h"

/* Attention's score matrices are lower triangles: the stored row i has columns 0 to diagonal + i. A
 * product may have a triangle as c or as a. Groups of WEFT_TRIANGLE_ROWS rows share one end,
 * weft_product_row_end. Beyond the end c is not computed and may be overwritten, and a is not read.
 * Between diagonal and end a is read and should be 0. A triangle has no empty column: rows plus
 * diagonal are at least its columns. */
enum weft_product_triangle { WEFT_NO_TRIANGLE, WEFT_C_IS_LOWER, WEFT_A_IS_LOWER };
enum { WEFT_TRIANGLE_ROWS = 64 };

/* The finish of a product, in this order. NULL parts are left out. The others have c's dtype, which
 * then equals that of a and b. c is not a triangle, and dense unless the bias is the only part. k
 * is not 0. */
struct weft_product_finish {
    const void *bias;       /* [n], added to every row */
    const void *residual;   /* [m, n], added to the product */
    const void *gelu_input; /* [m, n]: multiplies by GELU's slope there */
    void *gelu;             /* [m, n]: gets GELU of the resulting c */
    float *column_sums;     /* [n]: gets the sums of c's columns, in row order */
};

/* op(a) is [m, k], op(b) [k, n], c [m, n]. Strides are those of stored rows. */
struct weft_product {
    bool transpose_a, transpose_b;
    enum weft_product_triangle triangle;
    int64_t diagonal;        /* at least 0 */
    enum weft_dtype dtype;   /* of a and b */
    enum weft_dtype c_dtype; /* f32, or a's and b's */
    int64_t m, n, k;
    const void *a, *b;
    int64_t a_stride, b_stride, c_stride;
    float alpha;
    bool accumulate; /* false: c is not read */
    void *c;
    struct weft_product_finish finish;
};

/* A product of dense operands with alpha 1 and c of the same dtype, overwritten. The caller sets a,
 * b and c. */
struct weft_product weft_product_dense(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                                       int64_t k, enum weft_dtype dtype);

/* End of the triangle's stored row `row`: a multiple of the group's rows, or the last column. */
static inline int64_t weft_product_row_end(const struct weft_product *p, int64_t row)
{
    const int64_t rows = WEFT_TRIANGLE_ROWS;
    const int64_t columns = p->triangle == WEFT_C_IS_LOWER ? p->n : p->transpose_a ? p->m : p->k;
    const int64_t end = (p->diagonal + row / rows * rows + 2 * rows - 1) / rows * rows;
    return end < columns ? end : columns;
}

/* The first stored row that has column `column` of the triangle. */
static inline int64_t weft_product_column_begin(const struct weft_product *p, int64_t column)
{
    const int64_t rows = WEFT_TRIANGLE_ROWS, from = column / rows * rows - p->diagonal;
    return from > 0 ? from / rows * rows : 0;
}

#endif
