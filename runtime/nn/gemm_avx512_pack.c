#include "runtime/nn/gemm_avx512_pack.h"

#include <immintrin.h>

#include "base/compiler.h"
#include "runtime/nn/transpose.h"

enum {
    ROWS = WEFT_AVX512_ROWS,
    COLUMNS = WEFT_AVX512_COLUMNS,
    VECTOR = WEFT_AVX512_VECTOR,
    GROUP = WEFT_AVX512_GROUP
};

/* The first n of 16 lanes. */
WEFT_ALWAYS_INLINE __mmask16 lanes(int64_t n)
{
    return (__mmask16)(n >= VECTOR ? 0xffff : n > 0 ? (1u << n) - 1 : 0);
}

/* Rows of b are those of panels. */
static void copy_b(const float *from, int64_t stride, int64_t columns, int64_t depth, float *panels)
{
    for (int64_t k = 0; k < depth; k++, from += stride, panels += COLUMNS) {
        float *to = panels;
        int64_t j = 0;
        for (; j + COLUMNS <= columns; j += COLUMNS, to += depth * COLUMNS) {
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

/* Rows of b become columns of panels. Rows lie too far apart for the core to guess the next ones.
 */
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

/* A vector is a column of 12 and the beginning of the next one, which is written over it. */
void weft_avx512_pack_a(const struct weft_product *p, int64_t m, int64_t k, int64_t depth,
                        float *panels)
{
    const int64_t panel = weft_avx512_panel_elements(depth), rows = p->m - m;
    const float *from = (const float *)p->a + k * p->a_stride + m;
    const __mmask16 column = lanes(ROWS);
    for (int64_t l = 0; l < depth; l++, from += p->a_stride, panels += ROWS) {
        if (rows >= GROUP) {
            _mm512_storeu_ps(panels, _mm512_loadu_ps(from));
            _mm512_storeu_ps(panels + panel, _mm512_loadu_ps(from + ROWS));
            _mm512_storeu_ps(panels + 2 * panel, _mm512_loadu_ps(from + 2 * ROWS));
            _mm512_storeu_ps(panels + 3 * panel, _mm512_maskz_loadu_ps(column, from + 3 * ROWS));
            continue;
        }
        for (int64_t i = 0; i < rows; i += ROWS) {
            const __mmask16 there = lanes(rows - i < ROWS ? rows - i : ROWS);
            _mm512_storeu_ps(panels + i / ROWS * panel, _mm512_maskz_loadu_ps(there, from + i));
        }
    }
}
