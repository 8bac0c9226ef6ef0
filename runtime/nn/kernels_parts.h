/* What the loops of kernels.c and kernels_layers.c are made of. A reduction has lanes of its own
 * because a compiler may not reorder a sum. */
#ifndef WEFT_RUNTIME_NN_KERNELS_PARTS_H
#define WEFT_RUNTIME_NN_KERNELS_PARTS_H

#include <math.h>

#include "base/compiler.h"
#include "base/numbers.h"

enum { LANES = 16 };

/* Range reduction by ln 2 in two parts and the polynomial of Cephes' expf, without branches, for x
 * from -87.3 to 88.3; beyond, anything. fmaf is exact everywhere, and one instruction on every
 * level but the plain one of x86. */
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

/* Results below the least normal number are 0. */
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

WEFT_ALWAYS_INLINE float sum_lanes(float lanes[LANES])
{
    for (int width = LANES / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; i++) {
            lanes[i] += lanes[i + width];
        }
    }
    return lanes[0];
}

/* Runs `statement` for each i < n with its lane: whole groups of 16 first, so that the compiler
 * keeps `lanes` in registers, then the rest in the same lanes. */
#define FOR_LANES(i, lane, n, statement)                                                           \
    do {                                                                                           \
        int64_t group_ = 0;                                                                        \
        for (; group_ + LANES <= (n); group_ += LANES) {                                           \
            for (int lane = 0; lane < LANES; lane++) {                                             \
                const int64_t i = group_ + lane;                                                   \
                statement;                                                                         \
            }                                                                                      \
        }                                                                                          \
        for (int lane = 0; lane < (int)((n)-group_); lane++) {                                     \
            const int64_t i = group_ + lane;                                                       \
            statement;                                                                             \
        }                                                                                          \
    } while (0)

#endif
