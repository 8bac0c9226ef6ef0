/* SPDX-License-Identifier: Apache-2.0 */
/* Dtypes of tensors, and 16-bit floating-point numbers as bits. There are no branches, so loops
 * over them become vectors. Widening is exact; narrowing rounds to nearest, ties to even. bf16 is
 * the upper half of an fp32, f16 is IEEE 754 binary16 with denormals. NaNs stay NaNs. */
#ifndef WEFT_BASE_NUMBERS_H
#define WEFT_BASE_NUMBERS_H

#include <stdint.h>
#include <string.h>

#include "base/compiler.h"
#include "include/weft.h"

int64_t weft_dtype_bytes(enum weft_dtype dtype);
const char *weft_dtype_name(enum weft_dtype dtype); /* "f32", "bf16", "f16" */
/* The least fp32 magnitude that rounds to infinity; infinity for f32. */
float weft_dtype_limit(enum weft_dtype dtype);

WEFT_ALWAYS_INLINE uint32_t weft_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

WEFT_ALWAYS_INLINE float weft_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

WEFT_ALWAYS_INLINE float weft_bf16_widen(uint16_t x)
{
    return weft_float_of((uint32_t)x << 16);
}

WEFT_ALWAYS_INLINE uint16_t weft_bf16_narrow(float x)
{
    const uint32_t bits = weft_bits_of(x);
    const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    const uint32_t kept = x == x ? rounded : bits | 0x400000u;
    return (uint16_t)(kept >> 16);
}

/* A product moves the exponent: 2^112 turns the f16 field into an fp32, also for denormals. */
WEFT_ALWAYS_INLINE float weft_f16_widen(uint16_t x)
{
    const uint32_t magnitude = x & 0x7fffu, sign = (uint32_t)(x & 0x8000u) << 16;
    const float finite = weft_float_of(magnitude << 13) * 0x1p112f;
    const uint32_t special = 0x7f800000u | (magnitude & 0x3ffu) << 13;
    return weft_float_of(sign | (magnitude >= 0x7c00u ? special : weft_bits_of(finite)));
}

/* Below 2^-14, adding 1/2 leaves the units of 2^-24 in the low bits, rounded by the addition. */
WEFT_ALWAYS_INLINE uint16_t weft_f16_narrow(float x)
{
    const uint32_t bits = weft_bits_of(x), magnitude = bits & 0x7fffffffu;
    const uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    const uint32_t denormal = weft_bits_of(weft_float_of(magnitude) + 0.5f) - 0x3f000000u;
    uint32_t out = magnitude < 0x38800000u ? denormal : normal;
    out = magnitude >= 0x477ff000u ? 0x7c00u : out; /* 65520: halfway above the largest */
    out = magnitude > 0x7f800000u ? 0x7e00u : out;
    return (uint16_t)(out | (bits >> 16 & 0x8000u));
}

#endif
