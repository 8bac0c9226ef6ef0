/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/nn/cpu/gemm/avx512_pack.h"

#include <immintrin.h>

#include "base/compiler.h"
#include "runtime/nn/cpu/kernels/transpose.h"

enum {
    ROWS = WEFT_AVX512_ROWS,
    COLUMNS = WEFT_AVX512_COLUMNS,
    VECTOR = WEFT_AVX512_VECTOR,
    GROUP = WEFT_AVX512_GROUP,
    AHEAD = 4, /* rows of b */
};

/* Mask of the first n of 16 lanes. */
WEFT_ALWAYS_INLINE __mmask16 lanes(int64_t n)
{
    return (__mmask16)(n >= VECTOR ? 0xffff : n > 0 ? (1u << n) - 1 : 0);
}

/* Rows of b are rows of panels. The prefetch covers the rows in other pages, which the hardware
 * does not predict. */
static void copy_b(const float *from, int64_t stride, int64_t columns, int64_t depth, float *panels)
{
    for (int64_t k = 0; k < depth; k++, from += stride, panels += COLUMNS) {
        float *to = panels;
        int64_t j = 0;
        for (; j + COLUMNS <= columns; j += COLUMNS, to += depth * COLUMNS) {
            _mm_prefetch(from + j + AHEAD * stride, _MM_HINT_T0);
            _mm_prefetch(from + j + AHEAD * stride + VECTOR, _MM_HINT_T0);
            _mm512_store_ps(to, _mm512_loadu_ps(from + j));
            _mm512_store_ps(to + VECTOR, _mm512_loadu_ps(from + j + VECTOR));
        }
        if (j == columns) continue;
        const int64_t left = columns - j;
        _mm512_store_ps(to, _mm512_maskz_loadu_ps(lanes(left), from + j));
        _mm512_store_ps(to + VECTOR,
                        _mm512_maskz_loadu_ps(lanes(left - VECTOR), from + j + VECTOR));
    }
}

/* Rows of b become columns of panels. The prefetch covers the next rows, which are too far apart
 * for the hardware to predict. */
static void turn_b(const float *from, int64_t stride, int64_t columns, int64_t depth, float *panels)
{
    const int64_t padded = (columns + COLUMNS - 1) / COLUMNS * COLUMNS;
    for (int64_t j = 0; j < padded; j += VECTOR) {
        float *to = panels + j / COLUMNS * COLUMNS * depth + j % COLUMNS;
        for (int64_t k = 0; k < depth; k += VECTOR) {
            const float *square = from + j * stride + k;
            __m512i r[VECTOR];
            for (int64_t i = 0; i < VECTOR; i++) {
                const __mmask16 there = j + i < columns ? lanes(depth - k) : 0;
                r[i] = _mm512_maskz_loadu_epi32(there, square + i * stride);
                _mm_prefetch(square + (VECTOR + i) * stride, _MM_HINT_T0);
            }
            weft_transpose_16(r);
            for (int64_t i = 0; i < VECTOR && k + i < depth; i++) {
                _mm512_store_si512(to + (k + i) * COLUMNS, r[i]);
            }
        }
    }
}

void weft_avx512_pack_b(const struct weft_product *p, int64_t n, int64_t columns, int64_t k,
                        int64_t depth, float *panels)
{
    const float *b = p->b;
    if (p->transpose_b) {
        turn_b(b + n * p->b_stride + k, p->b_stride, columns, depth, panels);
    } else {
        copy_b(b + k * p->b_stride + n, p->b_stride, columns, depth, panels);
    }
}

/* Packs four columns of 12 into three vectors. Each vector is completed by the start of the next
 * column. */
WEFT_ALWAYS_INLINE void pack_four(const float *from, int64_t stride, __mmask16 there, float *to)
{
    const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19),
                  second =
                      _mm512_setr_epi32(4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23),
                  third = _mm512_setr_epi32(8, 9, 10, 11, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
                                            26, 27);
    const __m512 a = _mm512_maskz_loadu_ps(there, from);
    const __m512 b = _mm512_maskz_loadu_ps(there, from + stride);
    const __m512 c = _mm512_maskz_loadu_ps(there, from + 2 * stride);
    const __m512 d = _mm512_maskz_loadu_ps(there, from + 3 * stride);
    _mm512_store_ps(to, _mm512_permutex2var_ps(a, first, b));
    _mm512_store_ps(to + VECTOR, _mm512_permutex2var_ps(b, second, c));
    _mm512_store_ps(to + 2 * VECTOR, _mm512_permutex2var_ps(c, third, d));
}

/* Packs all panels of a group at once, because they share lines of memory. */
static void pack_columns(const float *from, int64_t stride, int64_t rows, int64_t depth,
                         float *panels)
{
    const int64_t panel = ROWS * weft_avx512_row_elements(depth);
    int64_t l = 0;
    for (; l + 4 <= depth; l += 4, from += 4 * stride, panels += 4 * ROWS) {
        for (int64_t i = 0; i < rows; i += ROWS) {
            const __mmask16 there = lanes(rows - i < ROWS ? rows - i : ROWS);
            pack_four(from + i, stride, there, panels + i / ROWS * panel);
        }
    }
    for (; l < depth; l++, from += stride, panels += ROWS) {
        for (int64_t i = 0; i < rows; i += ROWS) {
            const __mmask16 there = lanes(rows - i < ROWS ? rows - i : ROWS);
            _mm512_storeu_ps(panels + i / ROWS * panel, _mm512_maskz_loadu_ps(there, from + i));
        }
    }
}

static void pack_rows(const float *from, int64_t stride, int64_t rows, int64_t depth, float *panels)
{
    for (int64_t i = 0; i < rows; i++, from += stride, panels += weft_avx512_row_elements(depth)) {
        for (int64_t l = 0; l < depth; l += VECTOR) {
            _mm512_store_ps(panels + l, _mm512_maskz_loadu_ps(lanes(depth - l), from + l));
        }
    }
}

void weft_avx512_pack_a(const struct weft_product *p, int64_t m, int64_t k, int64_t depth,
                        float *panels)
{
    const int64_t stride = p->a_stride, rows = p->m - m < GROUP ? p->m - m : GROUP;
    const float *a = p->a;
    if (p->transpose_a) {
        pack_columns(a + k * stride + m, stride, rows, depth, panels);
    } else {
        pack_rows(a + m * stride + k, stride, rows, depth, panels);
    }
}
