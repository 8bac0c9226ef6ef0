/* SPDX-License-Identifier: Apache-2.0 */
/* The exponential, powers of two, GELU and its slope, for 16 numbers in an AVX-512 register.
 * Operations and order are those of parts.h, so the bits are equal. In loops with other loads and
 * stores compilers rebuild these from several constants and masks each time. */
#ifndef WEFT_RUNTIME_NN_CPU_KERNELS_GELU_AVX512_H
#define WEFT_RUNTIME_NN_CPU_KERNELS_GELU_AVX512_H

#include <immintrin.h>

#include "runtime/nn/cpu/kernels/parts.h"

/* Equals exponential_within. */
WEFT_ALWAYS_INLINE __m512 weft_avx512_exponential(__m512 x)
{
    const __m512 magic = _mm512_set1_ps(12582912.0f), one = _mm512_set1_ps(1);
    const __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(1.44269504088896341f), magic);
    const __m512 n = _mm512_sub_ps(shifted, magic);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-0.693359375f), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(2.12194440e-4f), r);
    __m512 p = _mm512_set1_ps(1.9875691500e-4f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.3981999507e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
    p = _mm512_add_ps(_mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r), one);
    /* The magic number's low bits are 0, and the shift drops all others. */
    const __m512i power = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), power));
}

/* Equals exponential for numbers not above 0. */
WEFT_ALWAYS_INLINE __m512 weft_avx512_exponential_below(__m512 x)
{
    const __m512 least = _mm512_set1_ps(-86.6f);
    const __m512 result = weft_avx512_exponential(_mm512_max_ps(least, x));
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ), result);
}

/* Equals gelu_clamp: with NaN the instructions return their second operand. */
WEFT_ALWAYS_INLINE __m512 weft_avx512_gelu_clamp(__m512 x)
{
    return _mm512_min_ps(_mm512_set1_ps(10), _mm512_max_ps(_mm512_set1_ps(-10), x));
}

/* Equals power_of_two_within. */
WEFT_ALWAYS_INLINE __m512 weft_avx512_power_of_two(__m512 x)
{
    const __m512 magic = _mm512_set1_ps(12582912.0f);
    const __m512 shifted = _mm512_add_ps(x, magic);
    const __m512 r = _mm512_sub_ps(x, _mm512_sub_ps(shifted, magic));
    __m512 p = _mm512_set1_ps(1.55946781613e-4f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.34066439024e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(9.61769297299e-3f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.55031055101e-2f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(2.40226527829e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(6.93147214968e-1f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1));
    const __m512i power = _mm512_slli_epi32(_mm512_castps_si512(shifted), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), power));
}

WEFT_ALWAYS_INLINE __m512 weft_avx512_gelu_gate(__m512 c)
{
    const __m512 one = _mm512_set1_ps(1);
    const __m512 by =
        _mm512_fmadd_ps(_mm512_mul_ps(c, c), _mm512_set1_ps(-gelu_log2_e * gelu_cubic),
                        _mm512_set1_ps(-gelu_log2_e * gelu_scale));
    return _mm512_div_ps(one, _mm512_add_ps(one, weft_avx512_power_of_two(_mm512_mul_ps(c, by))));
}

/* Equals gelu_of: below the clamp the gate is 0. */
WEFT_ALWAYS_INLINE __m512 weft_avx512_gelu(__m512 x)
{
    const __mmask16 within = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-10), _CMP_NLT_UQ);
    const __m512 gate = weft_avx512_gelu_gate(weft_avx512_gelu_clamp(x));
    return _mm512_mul_ps(x, _mm512_maskz_mov_ps(within, gate));
}

/* Equals gelu_slope. */
WEFT_ALWAYS_INLINE __m512 weft_avx512_gelu_slope(__m512 x)
{
    const __m512 c = weft_avx512_gelu_clamp(x), gate = weft_avx512_gelu_gate(c);
    const __m512 du2 = _mm512_fmadd_ps(_mm512_mul_ps(c, c), _mm512_set1_ps(3.0f * gelu_cubic),
                                       _mm512_set1_ps(gelu_scale));
    const __m512 bend = _mm512_mul_ps(c, _mm512_fnmadd_ps(gate, gate, gate));
    return _mm512_fmadd_ps(bend, du2, gate);
}

#endif
