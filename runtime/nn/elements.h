/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of one element, shared by loops of the CPU and kernels of a GPU. The same operations,
 * each rounded as in IEEE 754, give the same bits. Products are contracted only by an explicit
 * fmaf. Of mathematical libraries only fmaf and sqrtf are used, which are exact everywhere. There
 * are no branches, so loops vectorise. */
#ifndef WEFT_RUNTIME_NN_ELEMENTS_H
#define WEFT_RUNTIME_NN_ELEMENTS_H

#include <math.h>

#include "base/compiler.h"
#include "base/numbers.h"
#include "runtime/nn/optimizer.h"

/* Cephes' expf without branches: range reduction by ln 2 in two parts, then a polynomial. For x
 * from -87.3 to 88.3; other results are undefined. fmaf is exact everywhere, and one instruction
 * except at the plain level of x86. */
WEFT_ALWAYS_INLINE float exponential_within(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23 rounds to int */
    const float shifted = fmaf(x, 1.44269504088896341f, magic);
    const float n = shifted - magic;
    const float r = fmaf(n, 2.12194440e-4f, fmaf(n, -0.693359375f, x));
    float p = fmaf(1.9875691500e-4f, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    p = fmaf(p, r * r, r) + 1.0f;
    return weft_float_of(weft_bits_of(p) + ((weft_bits_of(shifted) - weft_bits_of(magic)) << 23));
}

/* Accepts any x. Results below the least normal number are 0 (for x < -86.6), and above 88.3
 * inf. */
WEFT_ALWAYS_INLINE float exponential(float x)
{
    const float least = -86.6f, most = 88.3f;
    float y = x < least ? least : x;
    y = y > most ? most : y;
    float result = exponential_within(y);
    result = x < least ? 0.0f : result;
    result = x > most ? INFINITY : result;
    return x == x ? result : x;
}

/* Cephes' tanhf without branches: a polynomial near 0, and 1 - 2 / (e^2x + 1) elsewhere. Accepts
 * any x. */
WEFT_ALWAYS_INLINE float tanh_of(float x)
{
    const float square = x * x, size = x < 0.0f ? -x : x;
    float p = fmaf(-5.70498872745e-3f, square, 2.06390887954e-2f);
    p = fmaf(p, square, -5.37397155531e-2f);
    p = fmaf(p, square, 1.33314422036e-1f);
    p = fmaf(p, square, -3.33332819422e-1f);
    const float near = fmaf(p * square, x, x), clamped = size > 10.0f ? 10.0f : size;
    const float far = 1.0f - 2.0f / (exponential_within(2.0f * clamped) + 1.0f);
    float result = x < 0.0f ? -far : far;
    result = size < 0.625f ? near : result;
    return x == x ? result : x;
}

/* 2^x for x from -126 to 127; other results are undefined. The polynomial of degree 6 is 1 at 0.
 * For x minus its nearest integer it has the smallest maximal relative error, 2.6e-9. */
WEFT_ALWAYS_INLINE float power_of_two_within(float x)
{
    const float magic = 12582912.0f;
    const float shifted = x + magic, r = x - (shifted - magic);
    float p = fmaf(1.55946781613e-4f, r, 1.34066439024e-3f);
    p = fmaf(p, r, 9.61769297299e-3f);
    p = fmaf(p, r, 5.55031055101e-2f);
    p = fmaf(p, r, 2.40226527829e-1f);
    p = fmaf(p, r, 6.93147214968e-1f);
    p = fmaf(p, r, 1.0f);
    return weft_float_of(weft_bits_of(p) + ((weft_bits_of(shifted) - weft_bits_of(magic)) << 23));
}

/* GELU's tanh form is x / (1 + e^-2u) with u = sqrt(2/pi) (x + 0.044715 x^3), because (1 + tanh u)
 * / 2 = 1 / (1 + e^-2u). It takes one power and has no cancellation. Beyond +-10 the gate is 0 or 1
 * to the last bit, or within 1e-37 of it. */
static const float gelu_scale = 1.5957691216057308f; /* 2 sqrt(2/pi) */
static const float gelu_cubic = 1.5957691216057308f * 0.044715f;
static const float gelu_log2_e = 1.44269504088896341f;

/* Accepts any x; NaN stays NaN. */
WEFT_ALWAYS_INLINE float gelu_clamp(float x)
{
    const float c = x < -10.0f ? -10.0f : x;
    return c > 10.0f ? 10.0f : c;
}

/* Needs a clamped x: then 2^x stays between 2^-126 and 2^127. */
WEFT_ALWAYS_INLINE float gelu_gate(float clamped)
{
    const float by = fmaf(clamped * clamped, -gelu_log2_e * gelu_cubic, -gelu_log2_e * gelu_scale);
    return 1.0f / (1.0f + power_of_two_within(clamped * by));
}

/* Accepts any x. */
WEFT_ALWAYS_INLINE float gelu_of(float x)
{
    const float gate = gelu_gate(gelu_clamp(x));
    return x * (x < -10.0f ? 0.0f : gate);
}

/* Accepts any x. Beyond the clamp the slope is the clamp's. */
WEFT_ALWAYS_INLINE float gelu_slope(float x)
{
    const float c = gelu_clamp(x), gate = gelu_gate(c);
    const float du2 = fmaf(c * c, 3.0f * gelu_cubic, gelu_scale);
    return fmaf(c * fmaf(-gate, gate, gate), du2, gate);
}

/* The logistic function 1 / (1 + e^-x), for x from -86 to 86. There its result is normal, and
 * beyond 86 it would be 1. */
WEFT_ALWAYS_INLINE float silu_clamp(float x)
{
    const float c = x < -86.0f ? -86.0f : x;
    return c > 86.0f ? 86.0f : c;
}

WEFT_ALWAYS_INLINE float silu_gate(float clamped)
{
    return 1.0f / (1.0f + power_of_two_within(clamped * -gelu_log2_e));
}

/* SiLU is x / (1 + e^-x). Accepts any x; NaN stays NaN. Below the clamp it is 0, which is within
 * 4e-36. */
WEFT_ALWAYS_INLINE float silu_of(float x)
{
    const float gate = silu_gate(silu_clamp(x));
    return x * (x < -86.0f ? 0.0f : gate);
}

/* Accepts any x. Beyond the clamp the slope is the clamp's. */
WEFT_ALWAYS_INLINE float silu_slope(float x)
{
    const float c = silu_clamp(x), gate = silu_gate(c);
    return fmaf(c * gate, 1.0f - gate, gate);
}

/* Parts of AdamW and LAMB (optimizer.h), for the gradient g = clip * gradient. A finite gradient's
 * second moment may overflow to inf, and the step is then 0. */
WEFT_ALWAYS_INLINE float adam_moment1(struct weft_adamw a, float moment1, float g)
{
    return a.beta1 * moment1 + a.rest1 * g;
}

WEFT_ALWAYS_INLINE float adam_moment2(struct weft_adamw a, float moment2, float g)
{
    return a.beta2 * moment2 + a.rest2 * g * g;
}

WEFT_ALWAYS_INLINE float adam_step(struct weft_adamw a, float moment1, float moment2)
{
    return (moment1 * a.correction1) / (sqrtf(moment2 * a.correction2) + a.eps);
}

/* SGD's gradient, before momentum. */
WEFT_ALWAYS_INLINE float sgd_gradient(struct weft_sgd s, float parameter, float gradient)
{
    return s.clip * gradient + s.decay * parameter;
}

/* The finaliser of splitmix64 (Steele, Lea and Flood 2014), a bijection that mixes all bits. It
 * makes words of the fingerprint (runtime/exec) from element `element` of the tensor with the
 * hashed name `name`. */
WEFT_ALWAYS_INLINE uint64_t hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Two independent hashes of an element. A fingerprint sums them over all elements. */
WEFT_ALWAYS_INLINE uint64_t hash_place(uint64_t name, uint64_t element)
{
    return hash_mix(name + element * UINT64_C(0x9e3779b97f4a7c15));
}

WEFT_ALWAYS_INLINE uint64_t hash_high(uint64_t place, float value)
{
    return hash_mix(place ^ weft_bits_of(value));
}

WEFT_ALWAYS_INLINE uint64_t hash_low(uint64_t place, float value)
{
    return hash_mix(place + ((uint64_t)weft_bits_of(value) << 32 | 0x5bd1e995u));
}

#endif
