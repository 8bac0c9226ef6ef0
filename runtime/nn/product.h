/* A product is one multiplication of matrices, c = alpha op(a) op(b) (+ c), row-major, as layers
 * ask a back end for it: what is multiplied, what is known of its shape, and what becomes of the
 * result on its way to c. */
#ifndef WEFT_RUNTIME_NN_PRODUCT_H
#define WEFT_RUNTIME_NN_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/model.h"

/* Attention's score matrices are lower triangles: row i as stored has columns 0 to diagonal + i,
 * and a product knows it of c or of a. Rows come in groups of WEFT_TRIANGLE_ROWS that end together,
 * where weft_product_row_end says. Beyond that c is not computed, and may be written or not; of a
 * nothing is read. What a has between the diagonal and the end is read, and should be 0. A triangle
 * has no column without a row: its rows and the diagonal are at least its columns. */
enum weft_product_triangle { WEFT_NO_TRIANGLE, WEFT_C_IS_LOWER, WEFT_A_IS_LOWER };
enum { WEFT_TRIANGLE_ROWS = 64 };

/* What becomes of a product on its way to c, in this order. What is NULL is left out; the others
 * have c's dtype, which is then that of a and b. c is dense; it is no triangle, and k is not 0. */
struct weft_product_finish {
    const void *bias;       /* [n], added to every row */
    const void *residual;   /* [m, n], added; not what accumulates */
    const void *gelu_input; /* [m, n]: multiplied by the slope of GELU there */
    void *gelu;             /* [m, n]: GELU of what c then holds is written too */
    float *column_sums;     /* [n]: sums of c's columns are written, in row order */
};

/* op(a) is [m, k], op(b) [k, n], c [m, n]; the strides are those of the rows as stored. */
struct weft_product {
    bool transpose_a, transpose_b;
    enum weft_product_triangle triangle;
    int64_t diagonal;        /* not below 0 */
    enum weft_dtype dtype;   /* of a and b */
    enum weft_dtype c_dtype; /* f32, or a's and b's */
    int64_t m, n, k;
    const void *a, *b;
    int64_t a_stride, b_stride, c_stride;
    float alpha;
    bool accumulate; /* false: c is not read, and may hold anything */
    void *c;
    struct weft_product_finish finish;
};

/* With operands stored without gaps, alpha 1 and c of the same dtype, overwritten; a, b and c are
 * the caller's to set. */
struct weft_product weft_product_dense(bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                                       int64_t k, enum weft_dtype dtype);

/* Where row `row` as stored of the triangle ends: at a multiple of the group's rows, or with it. */
static inline int64_t weft_product_row_end(const struct weft_product *p, int64_t row)
{
    const int64_t rows = WEFT_TRIANGLE_ROWS;
    const int64_t columns = p->triangle == WEFT_C_IS_LOWER ? p->n : p->transpose_a ? p->m : p->k;
    const int64_t end = (p->diagonal + row / rows * rows + 2 * rows - 1) / rows * rows;
    return end < columns ? end : columns;
}

/* The first row as stored of which column `column` of the triangle is a part. */
static inline int64_t weft_product_column_begin(const struct weft_product *p, int64_t column)
{
    const int64_t rows = WEFT_TRIANGLE_ROWS, from = column / rows * rows - p->diagonal;
    return from > 0 ? from / rows * rows : 0;
}

#endif
