/* A gemm is the one matrix product that all layers are made of (but whole heads of f32 attention,
 * see kernels.h), c = alpha op(a) op(b) (+ c), row-major, computed by a library. a and b have one
 * dtype; sums are fp32 whatever it is, and c is rounded once. Products of 16 bits that the library
 * cannot do are emulated: parts of a and b are widened, multiplied in fp32, and the result is
 * rounded. oneDNN and OpenBLAS can each be in the build or not; bf16, and f32 split into three
 * parts of it, also go by our own kernels for AMX tiles (gemm_amx.h), and f32 by those for AVX-512
 * (gemm_avx512.h), beside one of them. "auto" measures what there is, on one thread and by its own
 * clock, and keeps the fastest; another one than the first only where it is 1.3 times as fast. For
 * one library, number of threads and kind of CPU the same numbers give the same bits, wherever they
 * lie. */
#ifndef WEFT_RUNTIME_NN_GEMM_H
#define WEFT_RUNTIME_NN_GEMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text.h"
#include "spec/model.h"

struct weft_gemm;

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

/* A library's side of it. `run` is asked for neither triangles nor finishing.
 * `open` may leave *state NULL. `run` is never called with m, n or k 0, and
 * with dtypes beside f32 only where `has` says so; it is called by one thread at a time. */
struct weft_gemm_library {
    const char *name;  /* in configs: "onednn" */
    const char *title; /* for people: "oneDNN" */
    enum weft_status (*open)(int32_t threads, void **state, struct weft_error *err);
    void (*close)(void *state);
    void (*version)(const void *state, char *text, size_t bytes);
    enum weft_status (*run)(void *state, const struct weft_product *product,
                            struct weft_error *err);
    /* Products of this dtype into itself and into f32. NULL: f32 alone. */
    bool (*has)(void *state, enum weft_dtype dtype);
};
extern const struct weft_gemm_library weft_gemm_onednn;
extern const struct weft_gemm_library weft_gemm_openblas;

/* For products of f32 and of `dtype`, in which "auto" measures. `name` "onednn", "openblas",
 * "onednn-emulated" (16 bits by its fp32 products), "amx" (bf16), "amx-bf16x3" and "avx512" (f32)
 * or "auto" (about 50 ms, in 16 bits 150). WEFT_E_USAGE for another name or threads < 1,
 * WEFT_E_ENVIRONMENT for a library that this build or machine does not have, or whose products are
 * wrong here (gemm_check.h); "auto" warns of that and takes another one. Freed by weft_gemm_close,
 * which accepts NULL. */
WEFT_MUST_USE enum weft_status weft_gemm_open(const char *name, int32_t threads,
                                              enum weft_dtype dtype, struct weft_gemm **out,
                                              struct weft_error *err);
void weft_gemm_close(struct weft_gemm *gemm);

const char *weft_gemm_name(const struct weft_gemm *gemm);     /* "onednn": a name to open */
const char *weft_gemm_describe(const struct weft_gemm *gemm); /* with the reason of the choice */

/* Appends ", oneDNN 2.6.3" for each library that this build has, with its version where it can be
 * loaded. */
void weft_gemm_add_libraries(struct weft_text *out);

/* Synchronous, by one thread at a time. WEFT_E_SYSTEM when the library fails (it could not allocate
 * its packing buffers, or a size exceeds its integers). */
WEFT_MUST_USE enum weft_status weft_gemm_run(const struct weft_gemm *gemm,
                                             const struct weft_product *product,
                                             struct weft_error *err);

#endif
