/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdbool.h>

#include "base/numbers.h"
#include "runtime/nn/cpu/kernels/kernels.h"
#include "runtime/nn/exact.h"

/* A finite fp32 number is m 2^(e - 150), with a mantissa m < 2^24 and an exponent field e. Field 0
 * counts as 1 without the leading bit. Bin e takes m^2. Numbers are added in pieces. Nearly all
 * numbers of a piece lie in a window below the largest, and kernels add their squares in units of
 * the window. Numbers below it, and pieces near the end of the range, are added one by one. */
enum {
    EXPONENTS = 256,
    NOT_FINITE = EXPONENTS - 1,
    PIECE = WEFT_SQUARES_MOST,
    WORD_BITS = 24,
    WORD_MASK = (1 << WORD_BITS) - 1
};

/* Adds value 2^(24 word) in units of bin e. 2^48 of these units are one unit of bin e + 24. */
static void add_to_words(uint64_t bins[WEFT_NORM_WORDS], int e, int word, uint64_t value)
{
    for (; value > 0; word++, value >>= WORD_BITS) {
        bins[2 * (e + word / 2 * WORD_BITS) + word % 2] += value & WORD_MASK;
    }
}

static void add_below(uint64_t bins[WEFT_NORM_WORDS], int64_t n, const float *x, int window)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = weft_bits_of(x[i]), e = bits >> 23 & 255u;
        const uint64_t mantissa = (bits & 0x7fffffu) | (e > 0 ? 1u << 23 : 0u);
        if ((int)e >= window) continue;
        bins[2 * e] += mantissa * mantissa & WORD_MASK;
        bins[2 * e + 1] += mantissa * mantissa >> WORD_BITS;
    }
}

/* Keeps low words below 2^24 on each rank. A high word has room for 2^40 squares of 2^24 units. */
static void carry_bins(uint64_t bins[WEFT_NORM_WORDS])
{
    for (int e = 0; e < EXPONENTS; e++) {
        bins[2 * e + 1] += bins[2 * e] >> WORD_BITS;
        bins[2 * e] &= WORD_MASK;
    }
}

void weft_norm_add(uint64_t bins[WEFT_NORM_WORDS], const float *x, int64_t n)
{
    /* The highest words of sums need a bin too. */
    enum { LAST_WINDOW = NOT_FINITE - 1 - WORD_BITS };
    const struct weft_kernels *kernels = weft_kernels_best();
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t piece = n - at < PIECE ? n - at : PIECE;
        struct weft_squares squares;
        kernels->add_squares(piece, x + at, &squares);
        const bool fits = squares.window <= LAST_WINDOW;
        if (fits) {
            add_to_words(bins, squares.window, 0, squares.low);
            add_to_words(bins, squares.window, 1, squares.high);
        }
        if (!fits || squares.any_below)
            add_below(bins, piece, x + at, fits ? squares.window : EXPONENTS);
    }
    carry_bins(bins);
}

static bool is_finite(const uint64_t bins[WEFT_NORM_WORDS])
{
    return bins[2 * NOT_FINITE] == 0 && bins[2 * NOT_FINITE + 1] == 0;
}

static void add_bins(const uint64_t bins[WEFT_NORM_WORDS], uint64_t limbs[EXACT_LIMBS])
{
    for (int e = 0; e < NOT_FINITE; e++) {
        const int shift = e > 0 ? 2 * (e - 1) : 0;
        add_shifted(limbs, bins[2 * e], shift);
        add_shifted(limbs, bins[2 * e + 1], shift + 24);
    }
}

double weft_norm_result(const uint64_t bins[WEFT_NORM_WORDS], int *finite)
{
    *finite = is_finite(bins);
    if (!*finite) return INFINITY;
    uint64_t limbs[EXACT_LIMBS] = {0};
    add_bins(bins, limbs);
    return rounded_root(limbs);
}

enum { PACKED = WEFT_NORM_PACKED_WORDS - 1 };

void weft_norm_pack(const uint64_t bins[WEFT_NORM_WORDS], uint64_t words[WEFT_NORM_PACKED_WORDS])
{
    uint64_t limbs[EXACT_LIMBS] = {0};
    add_bins(bins, limbs);
    for (int i = 0; i < PACKED; i++) {
        words[i] = limbs[i / 2] >> i % 2 * EXACT_PACKED_BITS & UINT32_MAX;
    }
    words[PACKED] = !is_finite(bins);
}

double weft_norm_unpack(const uint64_t words[WEFT_NORM_PACKED_WORDS], int *finite)
{
    uint64_t limbs[EXACT_LIMBS];
    *finite = words[PACKED] == 0;
    return *finite ? unpacked_root(words, limbs) : INFINITY;
}
