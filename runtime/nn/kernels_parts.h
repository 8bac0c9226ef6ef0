/* What the loops of kernels.c and kernels_layers.c are made of. A reduction has lanes of its own
 * because a compiler may not reorder a sum. */
#ifndef WEFT_RUNTIME_NN_KERNELS_PARTS_H
#define WEFT_RUNTIME_NN_KERNELS_PARTS_H

#include <math.h>

#include "base/numbers.h"

enum { LANES = 16 };

/* Range reduction by ln 2 in two parts and the polynomial of Cephes' expf, in plain multiplies and
 * adds, without branches. Results below the least normal number are 0. */
static inline float exponential(float x)
{
    const float least = -86.6f, most = 88.3f, magic = 12582912.0f; /* 1.5 * 2^23 rounds to int */
    float y = x < least ? least : x;
    y = y > most ? most : y;
    const float shifted = y * 1.44269504088896341f + magic;
    const float n = shifted - magic;
    const float r = (y - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * (r * r) + r) + 1.0f;
    float result =
        weft_float_of(weft_bits_of(p) + ((weft_bits_of(shifted) - weft_bits_of(magic)) << 23));
    result = x < least ? 0.0f : result;
    result = x > most ? INFINITY : result;
    return x == x ? result : x;
}

static inline float sum_lanes(float lanes[LANES])
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
