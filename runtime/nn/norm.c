#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/nn/kernels.h"
#include "runtime/nn/optimizer.h"

/* A finite fp32 number is m 2^(e - 150) with a mantissa m < 2^24 and an exponent field e, 0 read as
 * 1 without the leading bit. m^2 < 2^48, so 2^16 of them fit a word: they are gathered in small
 * tables, several so that a store need not wait for the one before, and then carried into the bins.
 * Low words stay below 2^24 on one rank; a high word's 2^40 squares of 2^24 units fit too. */
enum { EXPONENTS = 256, TABLES = 8, CHUNK = TABLES << 16, NOT_FINITE = EXPONENTS - 1 };

static void carry(uint64_t bins[WEFT_NORM_WORDS], uint64_t tables[TABLES][EXPONENTS])
{
    for (int e = 0; e < EXPONENTS; e++) {
        uint64_t low = bins[2 * e], high = bins[2 * e + 1];
        for (int t = 0; t < TABLES; t++) {
            low += tables[t][e] & 0xffffff;
            high += tables[t][e] >> 24;
        }
        bins[2 * e] = low & 0xffffff;
        bins[2 * e + 1] = high + (low >> 24);
    }
}

/* The squares are computed as vectors, some at a time; only their sums are left to do one by one.
 */
void weft_norm_add(uint64_t bins[WEFT_NORM_WORDS], const float *x, int64_t n)
{
    enum { PIECE = 512 };
    const struct weft_kernels *kernels = weft_kernels_best();
    uint64_t squares[PIECE];
    uint8_t exponents[PIECE];
    while (n > 0) {
        const int64_t chunk = n < CHUNK ? n : CHUNK;
        uint64_t tables[TABLES][EXPONENTS] = {{0}};
        for (int64_t at = 0; at < chunk; at += PIECE) {
            const int64_t piece = chunk - at < PIECE ? chunk - at : PIECE;
            kernels->square_mantissas(piece, x + at, squares, exponents);
            int64_t i = 0;
            for (; i + TABLES <= piece; i += TABLES) {
                for (int t = 0; t < TABLES; t++) {
                    tables[t][exponents[i + t]] += squares[i + t];
                }
            }
            for (int t = 0; i + t < piece; t++) {
                tables[t][exponents[i + t]] += squares[i + t];
            }
        }
        carry(bins, tables);
        x += chunk;
        n -= chunk;
    }
}

/* The sum as one integer in units of 2^-298, the square of the least denormal. */
enum { LIMBS = 11, UNIT_EXPONENT = -298 };

/* limbs += value << shift */
static void add_shifted(uint64_t limbs[LIMBS], uint64_t value, int shift)
{
    const int word = shift / 64, bit = shift % 64;
    const uint64_t parts[2] = {value << bit, bit ? value >> (64 - bit) : 0};
    uint64_t carried = 0;
    for (int i = word; i < LIMBS; i++) {
        const uint64_t part = i - word < 2 ? parts[i - word] : 0;
        const uint64_t sum = limbs[i] + part;
        const uint64_t total = sum + carried;
        carried = (sum < part) | (total < carried);
        limbs[i] = total;
    }
}

__extension__ typedef unsigned __int128 wide;

static uint64_t integer_root(wide square)
{
    uint64_t root = 0;
    for (int bit = 63; bit >= 0; bit--) {
        const uint64_t trial = root | (uint64_t)1 << bit;
        if ((wide)trial * trial <= square) root = trial;
    }
    return root;
}

/* The highest 127 or 128 bits, at an even distance from the lowest, and whether any below is set:
 * the root of the former, floored, has 64 bits and is rounded once. */
static double rounded_root(const uint64_t limbs[LIMBS])
{
    int top = LIMBS * 64 - 1;
    while (top >= 0 && !(limbs[top / 64] >> top % 64 & 1)) {
        top--;
    }
    if (top < 0) return 0;
    const int shift = (top | 1) - 127; /* even; negative: the integer is moved up */
    wide highest = 0;
    bool inexact = false;
    for (int bit = top; bit >= 0; bit--) {
        const uint64_t set = limbs[bit / 64] >> bit % 64 & 1;
        if (bit >= shift) {
            highest |= (wide)set << (bit - shift);
        } else {
            inexact |= set != 0;
        }
    }
    const uint64_t root = integer_root(highest);
    inexact |= (wide)root * root != highest;
    uint64_t mantissa = root >> 11;
    const uint64_t rest = root & 0x7ff, half = 0x400;
    if (rest > half || (rest == half && (inexact || (mantissa & 1)))) mantissa++;
    return ldexp((double)mantissa, 11 + (shift + UNIT_EXPONENT) / 2);
}

static bool is_finite(const uint64_t bins[WEFT_NORM_WORDS])
{
    return bins[2 * NOT_FINITE] == 0 && bins[2 * NOT_FINITE + 1] == 0;
}

static void add_bins(const uint64_t bins[WEFT_NORM_WORDS], uint64_t limbs[LIMBS])
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
    uint64_t limbs[LIMBS] = {0};
    add_bins(bins, limbs);
    return rounded_root(limbs);
}

/* 2^40 squares below 2^256 are less than 2^594 units: PACKED words of 32 bits. */
enum { PACKED = WEFT_NORM_PACKED_WORDS - 1, PACKED_BITS = 32 };

void weft_norm_pack(const uint64_t bins[WEFT_NORM_WORDS], uint64_t words[WEFT_NORM_PACKED_WORDS])
{
    uint64_t limbs[LIMBS] = {0};
    add_bins(bins, limbs);
    for (int i = 0; i < PACKED; i++) {
        words[i] = limbs[i / 2] >> i % 2 * PACKED_BITS & UINT32_MAX;
    }
    words[PACKED] = !is_finite(bins);
}

double weft_norm_unpack(const uint64_t words[WEFT_NORM_PACKED_WORDS], int *finite)
{
    *finite = words[PACKED] == 0;
    if (!*finite) return INFINITY;
    uint64_t limbs[LIMBS] = {0};
    for (int i = 0; i < PACKED; i++) {
        add_shifted(limbs, words[i], i * PACKED_BITS);
    }
    return rounded_root(limbs);
}
