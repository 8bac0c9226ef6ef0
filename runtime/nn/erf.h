/* SPDX-License-Identifier: Apache-2.0 */
/* GELU with the error function: x Phi(x), where Phi is the distribution of normal numbers. The
 * tail Phi(-t) is e^(-t^2/2) times a smooth factor: u = 1 / (1 + t / 2) times a polynomial in
 * 1 - 2 u, fitted by weighted least squares to a relative error of 5e-8. So small results keep
 * their digits. The rules are those of elements.h: no branches, and one set of bits everywhere. */
#ifndef WEFT_RUNTIME_NN_ERF_H
#define WEFT_RUNTIME_NN_ERF_H

#include "runtime/nn/elements.h"

/* Beyond it the tail is below 2^-120, and its exponential still normal. */
static const float erf_most = 12.9f;

struct erf_parts {
    float tail;    /* Phi(-|x|) */
    float density; /* e^(-x^2/2) */
};

WEFT_ALWAYS_INLINE struct erf_parts erf_parts_of(float x)
{
    const float size = x < 0.0f ? -x : x, t = size < erf_most ? size : erf_most;
    const float u = 1.0f / fmaf(t, 0.5f, 1.0f), q = fmaf(u, -2.0f, 1.0f);
    struct erf_parts out;
    out.density = exponential_within(-0.5f * (t * t));
    float p = 5.58836473e-05f;
    p = fmaf(p, q, 0.000311025768f);
    p = fmaf(p, q, 0.000390104513f);
    p = fmaf(p, q, -0.000919494312f);
    p = fmaf(p, q, -0.00335354474f);
    p = fmaf(p, q, -0.000247626129f);
    p = fmaf(p, q, 0.0183573309f);
    p = fmaf(p, q, 0.0143997632f);
    p = fmaf(p, q, -0.165702149f);
    p = fmaf(p, q, 0.336203992f);
    out.tail = out.density * (p * u);
    return out;
}

/* Accepts any x; NaN stays NaN. Below -erf_most it is within 1e-35 of 0. */
WEFT_ALWAYS_INLINE float gelu_erf_of(float x)
{
    const float tail = erf_parts_of(x).tail, within = x < -erf_most ? -erf_most : x;
    return within * (x < 0.0f ? tail : 1.0f - tail);
}

/* The slope Phi(x) + x phi(x), with the density phi. Accepts any x; NaN stays NaN. */
WEFT_ALWAYS_INLINE float gelu_erf_slope(float x)
{
    const struct erf_parts parts = erf_parts_of(x);
    const float c = x < -erf_most ? -erf_most : x, within = c > erf_most ? erf_most : c;
    return fmaf(within * 0.398942280401432678f, parts.density,
                within < 0.0f ? parts.tail : 1.0f - parts.tail);
}

#endif
