/* SPDX-License-Identifier: Apache-2.0 */
/* Transposes sixteen registers of AVX-512, taken as a square of double words. */
#ifndef WEFT_RUNTIME_NN_CPU_KERNELS_TRANSPOSE_H
#define WEFT_RUNTIME_NN_CPU_KERNELS_TRANSPOSE_H

#include <immintrin.h>

/* Rows become columns. */
static inline void weft_transpose_16(__m512i r[16])
{
    __m512i t[16];
    for (int i = 0; i < 16; i += 4) {
        const __m512i a = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        const __m512i b = _mm512_unpackhi_epi32(r[i], r[i + 1]);
        const __m512i c = _mm512_unpacklo_epi32(r[i + 2], r[i + 3]);
        const __m512i d = _mm512_unpackhi_epi32(r[i + 2], r[i + 3]);
        t[i] = _mm512_unpacklo_epi64(a, c);
        t[i + 1] = _mm512_unpackhi_epi64(a, c);
        t[i + 2] = _mm512_unpacklo_epi64(b, d);
        t[i + 3] = _mm512_unpackhi_epi64(b, d);
    }
    for (int i = 0; i < 4; i++) {
        const __m512i a = _mm512_shuffle_i32x4(t[i], t[4 + i], 0x88);
        const __m512i b = _mm512_shuffle_i32x4(t[i], t[4 + i], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(t[8 + i], t[12 + i], 0xdd);
        r[i] = _mm512_shuffle_i32x4(a, c, 0x88);
        r[4 + i] = _mm512_shuffle_i32x4(b, d, 0x88);
        r[8 + i] = _mm512_shuffle_i32x4(a, c, 0xdd);
        r[12 + i] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
}

#endif
