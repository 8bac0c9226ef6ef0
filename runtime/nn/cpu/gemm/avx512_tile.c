/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/gemm/avx512_tile.h"

#include <immintrin.h>

#include "runtime/nn/cpu/gemm/finish.h"
#include "runtime/nn/cpu/kernels/gelu_avx512.h"

enum {
    ROWS = WEFT_AVX512_ROWS,
    COLUMNS = WEFT_AVX512_COLUMNS,
    VECTOR = WEFT_AVX512_VECTOR,
    AT_ONCE = 4, /* steps of k */
};
_Static_assert((int)COLUMNS == (int)WEFT_FINISH_MOST, "a row of a tile is finished at once");

/* Rows 0, 3, 6 and 9 of a; an instruction reaches two more rows from each by multiples of the
 * stride. For a panel only the first one is used. */
struct rows {
    const float *at[ROWS / 3];
    int64_t stride;
};

WEFT_ALWAYS_INLINE void add_step(int rows, bool packed, const struct rows *a, const float *b, int k,
                                 __m512 sums[ROWS][2])
{
    const __m512 left = _mm512_load_ps(b + k * COLUMNS);
    const __m512 right = _mm512_load_ps(b + k * COLUMNS + VECTOR);
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        const float x = packed ? a->at[0][k * ROWS + i] : a->at[i / 3][i % 3 * a->stride + k];
        sums[i][0] = _mm512_fmadd_ps(_mm512_set1_ps(x), left, sums[i][0]);
        sums[i][1] = _mm512_fmadd_ps(_mm512_set1_ps(x), right, sums[i][1]);
    }
}

WEFT_ALWAYS_INLINE void advance(bool packed, struct rows *a, int k)
{
#pragma GCC unroll 4
    for (int i = 0; i < ROWS / 3; i++) {
        a->at[i] += packed ? k * ROWS : k;
    }
}

WEFT_ALWAYS_INLINE const float *add_steps(int rows, bool packed, struct rows *a, const float *b,
                                          int64_t steps, __m512 sums[ROWS][2])
{
    for (; steps >= AT_ONCE; steps -= AT_ONCE, b += AT_ONCE * COLUMNS) {
#pragma GCC unroll 4
        for (int k = 0; k < AT_ONCE; k++) {
            add_step(rows, packed, a, b, k, sums);
        }
        advance(packed, a, AT_ONCE);
    }
    for (; steps > 0; steps--, b += COLUMNS) {
        add_step(rows, packed, a, b, 0, sums);
        advance(packed, a, 1);
    }
    return b;
}

WEFT_ALWAYS_INLINE void fetch(const void *x, int64_t at, bool to_write)
{
    if (!x) return;
    const float *row = (const float *)x + at;
    if (to_write) {
        __builtin_prefetch(row, 1, 3);
        __builtin_prefetch(row + COLUMNS - 1, 1, 3);
    } else {
        __builtin_prefetch(row, 0, 3);
        __builtin_prefetch(row + COLUMNS - 1, 0, 3);
    }
}

/* Prefetches a row of c and of its finish, and a row's share of the next lines. */
WEFT_ALWAYS_INLINE void fetch_row(const struct weft_avx512_tile *t, int64_t row, int64_t at)
{
    const struct weft_product_finish *f = &t->product->finish;
    const char *next = t->fetch + row * t->fetch_stride_bytes;
    fetch(t->product->c, at, true);
    if (t->last) {
        fetch(f->residual, at, false);
        fetch(f->gelu_input, at, false);
        fetch(f->gelu, at, true);
    }
    for (int32_t i = 0; i < t->fetch_lines; i++) {
        _mm_prefetch(next + 64 * i, _MM_HINT_T1);
    }
}

/* Sums along k in as many parts as a tile has rows, and prefetches one row's lines before each. */
WEFT_ALWAYS_INLINE void sum_tile(int rows, const struct weft_avx512_tile *t, bool packed,
                                 __m512 sums[ROWS][2])
{
    const struct weft_product *p = t->product;
    const int64_t part = t->depth / ROWS / AT_ONCE * AT_ONCE, stride = packed ? 0 : t->a_stride;
    const int64_t at = t->m * p->c_stride + t->n;
    struct rows a = {{t->a, t->a + 3 * stride, t->a + 6 * stride, t->a + 9 * stride}, stride};
    const float *b = t->b;
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        sums[i][0] = sums[i][1] = _mm512_setzero_ps();
    }
    for (int i = 0; i < ROWS; i++) {
        fetch_row(t, i, at + (i < rows ? i : 0) * p->c_stride);
        b = add_steps(rows, packed, &a, b, i < ROWS - 1 ? part : t->depth - i * part, sums);
    }
}

/* Stores sums to a whole tile of c without a finish. alpha is nearly always 1, and a multiplication
 * would take as long as a multiply-add. */
WEFT_ALWAYS_INLINE void store_tile(int rows, const struct weft_avx512_tile *t, __m512 sums[ROWS][2])
{
    const struct weft_product *p = t->product;
    const __m512 alpha = _mm512_set1_ps(p->alpha);
    const bool scaled = p->alpha != 1;
    float *c = (float *)p->c + t->m * p->c_stride + t->n;
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++, c += p->c_stride) {
        __m512 left = sums[i][0], right = sums[i][1];
        if (scaled) {
            left = _mm512_mul_ps(alpha, left);
            right = _mm512_mul_ps(alpha, right);
        }
        if (t->add) {
            left = _mm512_add_ps(left, _mm512_loadu_ps(c));
            right = _mm512_add_ps(right, _mm512_loadu_ps(c + VECTOR));
        }
        _mm512_storeu_ps(c, left);
        _mm512_storeu_ps(c + VECTOR, right);
    }
}

WEFT_ALWAYS_INLINE void finish_row(const struct weft_avx512_tile *t, int64_t n, const float *sums,
                                   int64_t at, bool finished)
{
    const struct weft_product *p = t->product;
    const float alpha = p->alpha;
    float row[COLUMNS];
    for (int64_t j = 0; j < n; j++) {
        row[j] = alpha * sums[j];
    }
    for (int64_t j = 0; t->add && j < n; j++) {
        row[j] += ((const float *)p->c)[at + j];
    }
    if (finished) {
        weft_finish_row(p, true, n, row, t->n, at);
        return;
    }
    for (int64_t j = 0; j < n; j++) {
        ((float *)p->c)[at + j] = row[j];
    }
}

/* Steps of the finish, in order. */
struct steps {
    bool add, bias, residual, slope, gelu, sums;
};

/* Finishes 16 columns of a row with the sums `row`. */
WEFT_ALWAYS_INLINE __m512 finish_vector(const struct weft_product *p, struct steps steps,
                                        __m512 row, int64_t column, int64_t at)
{
    const struct weft_product_finish *f = &p->finish;
    float *c = (float *)p->c + at;
    if (steps.add) row = _mm512_add_ps(row, _mm512_loadu_ps(c));
    if (steps.bias) {
        __m512 added = _mm512_loadu_ps((const float *)f->bias + column);
        if (steps.residual)
            added = _mm512_add_ps(_mm512_loadu_ps((const float *)f->residual + at), added);
        row = _mm512_add_ps(row, added);
    }
    if (steps.slope) {
        const __m512 x = _mm512_loadu_ps((const float *)f->gelu_input + at);
        row = _mm512_mul_ps(row, weft_avx512_gelu_slope(x));
    }
    _mm512_storeu_ps(c, row);
    if (steps.gelu) _mm512_storeu_ps((float *)f->gelu + at, weft_avx512_gelu(row));
    return row;
}

/* Finishes whole rows of a tile, with the bits of weft_finish_row. */
WEFT_ALWAYS_INLINE void finish_rows(const struct weft_avx512_tile *t, struct steps steps, int rows,
                                    float sums[ROWS][COLUMNS])
{
    const struct weft_product *p = t->product;
    for (int i = 0; p->alpha != 1 && i < rows; i++) {
        for (int j = 0; j < COLUMNS; j++) {
            sums[i][j] *= p->alpha;
        }
    }
    float *columns = steps.sums ? p->finish.column_sums + t->n : NULL;
    __m512 left = steps.sums ? _mm512_loadu_ps(columns) : _mm512_setzero_ps();
    __m512 right = steps.sums ? _mm512_loadu_ps(columns + VECTOR) : _mm512_setzero_ps();
    int64_t at = t->m * p->c_stride + t->n;
    for (int i = 0; i < rows; i++, at += p->c_stride) {
        left = _mm512_add_ps(left, finish_vector(p, steps, _mm512_load_ps(sums[i]), t->n, at));
        right = _mm512_add_ps(right, finish_vector(p, steps, _mm512_load_ps(sums[i] + VECTOR),
                                                   t->n + VECTOR, at + VECTOR));
    }
    if (!steps.sums) return;
    _mm512_storeu_ps(columns, left);
    _mm512_storeu_ps(columns + VECTOR, right);
}

/* If the steps are those of a layer, does them and returns true. Constant steps give loops without
 * conditions. */
static bool finish_whole(const struct weft_avx512_tile *t, int rows, float sums[ROWS][COLUMNS])
{
    const struct weft_product_finish *f = &t->product->finish;
    const bool add = t->add;
    if (f->bias && !f->gelu_input && !f->column_sums) {
        if (f->residual && !f->gelu && add) {
            finish_rows(t, (struct steps){.add = true, .bias = true, .residual = true}, rows, sums);
        } else if (f->residual && !f->gelu) {
            finish_rows(t, (struct steps){.bias = true, .residual = true}, rows, sums);
        } else if (!f->residual && f->gelu && !add) {
            finish_rows(t, (struct steps){.bias = true, .gelu = true}, rows, sums);
        } else if (!f->residual && !f->gelu && !add) {
            finish_rows(t, (struct steps){.bias = true}, rows, sums);
        } else {
            return false;
        }
        return true;
    }
    if (f->bias || f->residual || f->gelu || !f->gelu_input || !f->column_sums || add) return false;
    finish_rows(t, (struct steps){.slope = true, .sums = true}, rows, sums);
    return true;
}

/* Finishes any other tile, through a near buffer. */
static void finish_tile(const struct weft_avx512_tile *t, int rows, float sums[ROWS][COLUMNS],
                        bool finished)
{
    const struct weft_product *p = t->product;
    const int64_t n = p->n - t->n < COLUMNS ? p->n - t->n : COLUMNS;
    if (n == COLUMNS && finish_whole(t, rows, sums)) return;
    for (int i = 0; i < rows; i++) {
        const int64_t at = (t->m + i) * p->c_stride + t->n;
        if (n == COLUMNS) {
            finish_row(t, COLUMNS, sums[i], at, finished);
        } else {
            finish_row(t, n, sums[i], at, finished);
        }
    }
}

WEFT_ALWAYS_INLINE void multiply(int rows, const struct weft_avx512_tile *t, bool packed)
{
    const bool finished = t->last && weft_finish_wanted(&t->product->finish);
    __m512 sums[ROWS][2];
    sum_tile(rows, t, packed, sums);
    if (!finished && t->product->n - t->n >= COLUMNS) {
        store_tile(rows, t, sums);
        return;
    }
    _Alignas(64) float near[ROWS][COLUMNS];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        _mm512_store_ps(near[i], sums[i][0]);
        _mm512_store_ps(near[i] + VECTOR, sums[i][1]);
    }
    finish_tile(t, rows, near, finished);
}

/* Constant row counts keep sums in registers. The last tile has the remaining rows of c. */
WEFT_ALWAYS_INLINE void multiply_rows(int64_t rows, const struct weft_avx512_tile *t, bool packed)
{
    switch (rows) {
    case 1:
        multiply(1, t, packed);
        break;
    case 2:
        multiply(2, t, packed);
        break;
    case 3:
        multiply(3, t, packed);
        break;
    case 4:
        multiply(4, t, packed);
        break;
    case 5:
        multiply(5, t, packed);
        break;
    case 6:
        multiply(6, t, packed);
        break;
    case 7:
        multiply(7, t, packed);
        break;
    case 8:
        multiply(8, t, packed);
        break;
    case 9:
        multiply(9, t, packed);
        break;
    case 10:
        multiply(10, t, packed);
        break;
    case 11:
        multiply(11, t, packed);
        break;
    default:
        multiply(ROWS, t, packed);
        break;
    }
}

void weft_avx512_multiply(const struct weft_avx512_tile *tile)
{
    const int64_t rows = tile->product->m - tile->m;
    if (tile->packed) {
        multiply_rows(rows, tile, true);
    } else {
        multiply_rows(rows, tile, false);
    }
}
