/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of 16 numbers (AVX-512) or 8 (AVX2), for code that is built for both. VECTOR_OP(mul) is
 * the instruction set's own function. WEFT_KERNELS_LANES is 16 or 8. Both have the same bits. */
#ifndef WEFT_RUNTIME_NN_CPU_KERNELS_VECTORS_H
#define WEFT_RUNTIME_NN_CPU_KERNELS_VECTORS_H

#include <immintrin.h>

#include "runtime/nn/cpu/kernels/parts.h"

enum { VECTOR = WEFT_KERNELS_LANES };

#if WEFT_KERNELS_LANES == 16

#include "runtime/nn/cpu/kernels/gelu_avx512.h"
#include "runtime/nn/cpu/kernels/transpose.h"

#define VECTOR_OP(name) _mm512_##name##_ps
typedef __m512 vector;

WEFT_ALWAYS_INLINE vector vector_exponential_below(vector x)
{
    return weft_avx512_exponential_below(x);
}

WEFT_ALWAYS_INLINE void transpose_vectors(vector r[VECTOR])
{
    __m512i square[VECTOR];
    for (int i = 0; i < VECTOR; i++) {
        square[i] = _mm512_castps_si512(r[i]);
    }
    weft_transpose_16(square);
    for (int i = 0; i < VECTOR; i++) {
        r[i] = _mm512_castsi512_ps(square[i]);
    }
}

#else

#define VECTOR_OP(name) _mm256_##name##_ps
typedef __m256 vector;

/* Equals weft_avx512_exponential_below: with NaN the maximum is the second operand. */
WEFT_ALWAYS_INLINE vector vector_exponential_below(vector x)
{
    const vector least = _mm256_set1_ps(-86.6f), y = _mm256_max_ps(least, x);
    const vector magic = _mm256_set1_ps(12582912.0f);
    const vector shifted = _mm256_fmadd_ps(y, _mm256_set1_ps(1.44269504088896341f), magic);
    const vector n = _mm256_sub_ps(shifted, magic);
    vector r = _mm256_fmadd_ps(n, _mm256_set1_ps(-0.693359375f), y);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(2.12194440e-4f), r);
    vector p = _mm256_set1_ps(1.9875691500e-4f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
    p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1));
    const __m256i power = _mm256_slli_epi32(_mm256_castps_si256(shifted), 23);
    const vector result = _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), power));
    return _mm256_and_ps(_mm256_cmp_ps(x, least, _CMP_NLT_UQ), result);
}

/* Rows become columns. */
WEFT_ALWAYS_INLINE void transpose_vectors(vector r[VECTOR])
{
    vector t[VECTOR];
#pragma GCC unroll 2
    for (int i = 0; i < VECTOR; i += 4) {
        const vector a = _mm256_unpacklo_ps(r[i], r[i + 1]);
        const vector b = _mm256_unpackhi_ps(r[i], r[i + 1]);
        const vector c = _mm256_unpacklo_ps(r[i + 2], r[i + 3]);
        const vector d = _mm256_unpackhi_ps(r[i + 2], r[i + 3]);
        t[i] = _mm256_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
        t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(t[i], t[4 + i], 0x20);
        r[4 + i] = _mm256_permute2f128_ps(t[i], t[4 + i], 0x31);
    }
}

#endif

#endif
