/* SPDX-License-Identifier: Apache-2.0 */
/* The exact sum of squares of a warp's tile of numbers (optimizer.h), in units of a window of
 * exponents below the tile's largest number. Further windows follow until no number is left. */
#ifndef WEFT_RUNTIME_NN_CUDA_KERNELS_WINDOW_H
#define WEFT_RUNTIME_NN_CUDA_KERNELS_WINDOW_H

#include "runtime/nn/cuda/kernels/access.h"
#include "runtime/nn/optimizer.h"

enum { SQUARES_EACH = 32 }; /* numbers of a lane in a tile */

/* A number is m 2^(e - 150) with m < 2^24. Bin e is two words with m^2, in units of 1 and of
 * 2^24. */
enum { NORM_EXPONENTS = 256, NORM_NOT_FINITE = NORM_EXPONENTS - 1, NORM_WORD_BITS = 24 };
static const uint32_t NORM_WORD_MASK = (1u << NORM_WORD_BITS) - 1;

/* A window is NORM_WINDOW exponents from its first one, whose bin has the unit u. A square in it is
 * below 2^(48 + 2 (NORM_WINDOW - 1)) u = 2^94 u. A lane adds it to two doubles: `high` takes the
 * nearest multiple of 2^48 u, below 2^52 of them in all, and `low` takes the rest, at most 2^47 u
 * each and 2^52 u in all. Both sums are exact. */
enum {
    NORM_WINDOW = 24,
    NORM_CUT = 2 * NORM_WORD_BITS,
    NORM_SUM_WORDS = 5,
    NORM_TOP = NORM_NOT_FINITE - 1 /* the last bin of finite numbers */
};
static_assert(NORM_CUT + 52 >= 48 + 2 * (NORM_WINDOW - 1) + 5 && SQUARES_EACH == 1 << 5,
              "`high` has fewer than 2^52 units");
static_assert(NORM_CUT - 1 + 5 <= 53, "`low` is exact");

GPU void add_word(uint64_t *bins, uint32_t word, uint64_t value)
{
    atomicAdd((unsigned long long *)bins + word, (unsigned long long)value);
}

GPU uint32_t exponent_of(float x)
{
    return weft_bits_of(x) >> 23 & 255u;
}
/* Twice the bits, without the sign: larger numbers have larger ones. The exponent is on top. */
GPU uint32_t doubled_bits(float x)
{
    return weft_bits_of(x) << 1;
}

GPU uint64_t bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}
GPU double double_power_of_two(int exponent)
{
    const uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* Adds a warp's sums of low + 2^48 high in units of bin `window`. A negative low takes from high. A
 * total has five words of 24 bits, and lane i adds word i. Two words on is the bin 24 exponents
 * up. A word above the last bin is shifted into it: 2^28 tiles of numbers above 2^102 fit. */
GPU void add_sums(int64_t low, uint64_t high, uint32_t window, uint64_t *bins)
{
    const uint32_t lane = threadIdx.x % WARP;
    const uint64_t rest = (uint64_t)low & ((UINT64_C(1) << NORM_CUT) - 1);
    high += (uint64_t)(low >> NORM_CUT);
    const uint32_t words[NORM_SUM_WORDS] = {
        (uint32_t)rest & NORM_WORD_MASK, (uint32_t)(rest >> NORM_WORD_BITS),
        (uint32_t)high & NORM_WORD_MASK, (uint32_t)(high >> NORM_WORD_BITS) & NORM_WORD_MASK,
        (uint32_t)(high >> 2 * NORM_WORD_BITS)};
    uint32_t own = 0;
#pragma unroll
    for (uint32_t i = 0; i < NORM_SUM_WORDS; i++) {
        const uint32_t sum = __reduce_add_sync(ALL_LANES, words[i]);
        own = lane == i ? sum : own;
    }
    if (own == 0) return;
    uint32_t exponent = window + lane / 2 * NORM_WORD_BITS, word = lane % 2, up = 0;
    if (exponent > NORM_TOP) {
        up = 2 * (exponent - NORM_TOP);
        exponent = NORM_TOP;
        if (word == 0 && up >= NORM_WORD_BITS) {
            up -= NORM_WORD_BITS;
            word = 1;
        }
    }
    add_word(bins, 2 * exponent + word, (uint64_t)own << up);
}

/* Adds a tile's squares in the window and sets their numbers to 0. With ALL, all numbers are in it
 * and stay. */
template <bool ALL> GPU void add_window(float (&x)[SQUARES_EACH], uint32_t window, uint64_t *bins)
{
    /* Numbers with field 0 have the exponent of field 1. */
    const uint32_t least = window > 1 ? window << 24 : 0;
    const int unit = 2 * ((int)window - 150);
    const double base = double_power_of_two(unit + NORM_CUT + 52);
    double high = base, low = 0;
#pragma unroll
    for (int i = 0; i < SQUARES_EACH; i++) {
        const bool in = ALL || doubled_bits(x[i]) >= least;
        const double number = in ? (double)x[i] : 0.0;
        const double sum = fma(number, number, high);
        low += fma(number, number, high - sum);
        high = sum;
        if (!ALL && in) x[i] = 0;
    }
    add_sums((int64_t)(low * double_power_of_two(-unit)),
             bits_of_double(high) - bits_of_double(base), window, bins);
}

/* Marks infinities and NaNs and sets them to 0. */
GPU void take_bad(float (&x)[SQUARES_EACH], uint64_t *bins)
{
    bool bad = false;
#pragma unroll
    for (int i = 0; i < SQUARES_EACH; i++) {
        const bool finite = exponent_of(x[i]) < NORM_NOT_FINITE;
        bad = bad || !finite;
        x[i] = finite ? x[i] : 0.0f;
    }
    const bool any = __ballot_sync(ALL_LANES, bad) != 0;
    if (any && threadIdx.x % WARP == 0) add_word(bins, 2 * NORM_NOT_FINITE + 1, 1);
}

/* The doubled bits of a tile's largest number. */
GPU uint32_t largest_of(const float (&x)[SQUARES_EACH])
{
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < SQUARES_EACH; i++) {
        most = doubled_bits(x[i]) > most ? doubled_bits(x[i]) : most;
    }
    return __reduce_max_sync(ALL_LANES, most);
}

/* 2^32 less the doubled bits of a tile's least number but 0; 0 if all numbers are 0. */
GPU uint32_t least_of(const float (&x)[SQUARES_EACH])
{
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < SQUARES_EACH; i++) {
        const uint32_t negated = 0u - doubled_bits(x[i]);
        most = negated > most ? negated : most;
    }
    return __reduce_max_sync(ALL_LANES, most);
}

/* Adds the squares of a warp's tile; all lanes call it. `bins` are in shared memory. x becomes
 * undefined. */
GPU void add_squares(float (&x)[SQUARES_EACH], uint64_t *bins)
{
    uint32_t largest = largest_of(x);
    const uint32_t least = 0u - least_of(x);
    if (largest >> 24 == NORM_NOT_FINITE) {
        take_bad(x, bins);
        largest = largest_of(x);
    }
#pragma unroll 1
    while (largest > 0) {
        const uint32_t exponent = largest >> 24;
        const uint32_t window = exponent > NORM_WINDOW ? exponent - (NORM_WINDOW - 1) : 1;
        if (window == 1 || least >> 24 >= window) {
            add_window<true>(x, window, bins);
            return;
        }
        add_window<false>(x, window, bins);
        largest = largest_of(x);
    }
}

#endif
