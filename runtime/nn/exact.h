/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of squares as one integer, with a root rounded once, for CPU and GPU. */
#ifndef WEFT_RUNTIME_NN_EXACT_H
#define WEFT_RUNTIME_NN_EXACT_H

#include <math.h>

#include "base/compiler.h"
#include "runtime/nn/optimizer.h"

/* The sum is one integer in units of 2^-298, the square of the least denormal. */
enum { EXACT_LIMBS = 11, EXACT_UNIT_EXPONENT = -298 };

/* limbs += value << shift */
WEFT_ALWAYS_INLINE void add_shifted(uint64_t limbs[EXACT_LIMBS], uint64_t value, int shift)
{
    const int word = shift / 64, bit = shift % 64;
    const uint64_t low = value << bit, high = bit ? value >> (64 - bit) : 0;
    uint64_t carried = 0;
    for (int i = word; i < EXACT_LIMBS; i++) {
        const uint64_t part = i == word ? low : i == word + 1 ? high : 0;
        const uint64_t sum = limbs[i] + part;
        const uint64_t total = sum + carried;
        carried = (sum < part) | (total < carried);
        limbs[i] = total;
    }
}

__extension__ typedef unsigned __int128 exact_wide;

WEFT_ALWAYS_INLINE uint64_t integer_root(exact_wide square)
{
    uint64_t root = 0;
    for (int bit = 63; bit >= 0; bit--) {
        const uint64_t trial = root | (uint64_t)1 << bit;
        if ((exact_wide)trial * trial <= square) root = trial;
    }
    return root;
}

/* Takes the highest 127 or 128 bits, at an even distance from the lowest, and notes whether a lower
 * bit is set. The floored root of these has 64 bits and is rounded once. */
WEFT_ALWAYS_INLINE double rounded_root(const uint64_t limbs[EXACT_LIMBS])
{
    int top = EXACT_LIMBS * 64 - 1;
    while (top >= 0 && !(limbs[top / 64] >> top % 64 & 1)) {
        top--;
    }
    if (top < 0) return 0;
    const int shift = (top | 1) - 127; /* even; if negative the integer is shifted up */
    exact_wide highest = 0;
    bool inexact = false;
    for (int bit = top; bit >= 0; bit--) {
        const uint64_t set = limbs[bit / 64] >> bit % 64 & 1;
        if (bit >= shift) {
            highest |= (exact_wide)set << (bit - shift);
        } else {
            inexact |= set != 0;
        }
    }
    const uint64_t root = integer_root(highest);
    inexact |= (exact_wide)root * root != highest;
    uint64_t mantissa = root >> 11;
    const uint64_t rest = root & 0x7ff, half = 0x400;
    if (rest > half || (rest == half && (inexact || (mantissa & 1)))) mantissa++;
    return ldexp((double)mantissa, 11 + (shift + EXACT_UNIT_EXPONENT) / 2);
}

/* 2^40 squares below 2^256 are less than 2^594 units, so packed words of 32 bits suffice. */
enum { EXACT_PACKED_BITS = 32 };

/* The root of the sum in WEFT_NORM_PACKED_WORDS words (weft_norm_pack); limbs is scratch. */
WEFT_ALWAYS_INLINE double unpacked_root(const uint64_t *words, uint64_t limbs[EXACT_LIMBS])
{
    for (int i = 0; i < EXACT_LIMBS; i++) {
        limbs[i] = 0;
    }
    for (int i = 0; i < WEFT_NORM_PACKED_WORDS - 1; i++) {
        add_shifted(limbs, words[i], i * EXACT_PACKED_BITS);
    }
    return rounded_root(limbs);
}

#endif
