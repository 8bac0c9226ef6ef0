/* SPDX-License-Identifier: Apache-2.0 */
/* Uniform and normal random numbers, shared by loops of the CPU and kernels of a GPU. Each
 * operation is rounded as in IEEE 754 and none is contracted, so all devices give the same bits. Of
 * mathematical libraries only sqrt is used, which is exact everywhere. There are no branches, so
 * loops vectorise. */
#ifndef WEFT_BASE_NORMAL_H
#define WEFT_BASE_NORMAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/* Philox4x32-10 (Salmon et al., SC'11): four random words for a counter and a key. */
struct weft_philox {
    uint32_t word[4];
};

WEFT_ALWAYS_INLINE struct weft_philox weft_philox_of(struct weft_philox c, uint32_t key0,
                                                     uint32_t key1)
{
    enum { ROUNDS = 10 };
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t even = (uint64_t)0xD2511F53U * c.word[0];
        const uint64_t odd = (uint64_t)0xCD9E8D57U * c.word[2];
        c.word[0] = (uint32_t)(odd >> 32) ^ c.word[1] ^ key0;
        c.word[1] = (uint32_t)odd;
        c.word[2] = (uint32_t)(even >> 32) ^ c.word[3] ^ key1;
        c.word[3] = (uint32_t)even;
        key0 += 0x9E3779B9U;
        key1 += 0xBB67AE85U;
    }
    return c;
}

WEFT_ALWAYS_INLINE double weft_double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof(x));
    return x;
}

WEFT_ALWAYS_INLINE uint64_t weft_bits_of_double(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* An integer below 2^52, exactly: the mantissa of 2^52 takes it up. */
WEFT_ALWAYS_INLINE double weft_double_of_integer(uint64_t x)
{
    return weft_double_of(x | UINT64_C(0x4330000000000000)) - 0x1p52;
}

/* The upper 53 of 64 bits as a number in [0, 1), exactly. */
WEFT_ALWAYS_INLINE double weft_unit_of(uint32_t low, uint32_t high)
{
    return weft_double_of_integer(high) * 0x1p-32 + weft_double_of_integer(low >> 11) * 0x1p-53;
}

/* The four words of a draw. */
WEFT_ALWAYS_INLINE struct weft_philox weft_draw_of(uint64_t seed, uint64_t stream, uint64_t counter)
{
    const struct weft_philox c = {
        {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream, (uint32_t)(stream >> 32)}};
    return weft_philox_of(c, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* A number of weft_rng_uniform. */
WEFT_ALWAYS_INLINE double weft_uniform_of(uint64_t seed, uint64_t stream, uint64_t counter)
{
    const struct weft_philox c = weft_draw_of(seed, stream, counter);
    return weft_unit_of(c.word[0], c.word[1]);
}

/* ln x of a positive x that is not denormal, within 1 ulp. x = 2^n (1 + f) with 1 + f from
 * sqrt(1/2) to sqrt(2). With s = f / (2 + f), ln(1 + f) = 2 artanh(s), which is f - f^2/2 + s
 * (f^2/2 + 2s^2/3 + 2s^4/5 + ...). The series ends below 2^-60 of the sum. ln 2 has two parts. The
 * first has 33 bits, so its multiples are exact. */
WEFT_ALWAYS_INLINE double weft_logarithm(double x)
{
    const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
    const uint64_t root_half = UINT64_C(0x3fe6a09e667f3bcd);
    /* The upper 12 bits are n + 1024. */
    const uint64_t above = weft_bits_of_double(x) - root_half + (UINT64_C(1024) << 52);
    const uint64_t power = (above >> 52 << 52) - (UINT64_C(1024) << 52);
    const double n = weft_double_of_integer(above >> 52) - 1024;
    const double f = weft_double_of(weft_bits_of_double(x) - power) - 1;
    const double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double p = 2.0 / 23;
    p = p * z + 2.0 / 21;
    p = p * z + 2.0 / 19;
    p = p * z + 2.0 / 17;
    p = p * z + 2.0 / 15;
    p = p * z + 2.0 / 13;
    p = p * z + 2.0 / 11;
    p = p * z + 2.0 / 9;
    p = p * z + 2.0 / 7;
    p = p * z + 2.0 / 5;
    p = p * z + 2.0 / 3;
    const double rest = s * (half + p * z) + n * ln2_low;
    return n * ln2_high + (f - (half - rest));
}

/* cos (x + quarters pi/2) for x from 0 to 2^20, within 1.5 ulp or 2^-65; up to 2 pi within 1.5 ulp
 * or 2^-85. x = n pi/2 + r with |r| <= pi/4. pi/2 has two parts. The first has 33 bits, so its
 * multiples are exact. Both series end below 2^-58. */
WEFT_ALWAYS_INLINE double weft_turned_cosine(double x, uint64_t quarters)
{
    const double half_pi_high = 0x1.921fb54400000p+0, half_pi_low = 0x1.0b4611a626331p-34;
    const double magic = 0x1.8p52; /* rounds to an integer, in the low bits */
    const double shifted = x * 0.63661977236758134308 + magic, n = shifted - magic;
    const uint64_t quarter = weft_bits_of_double(shifted) + quarters;
    const double r = (x - n * half_pi_high) - n * half_pi_low, z = r * r;
    double c = 1.0 / 20922789888000;
    c = c * z - 1.0 / 87178291200;
    c = c * z + 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    const double half = 0.5 * z, near = 1 - half;
    const double cosine = near + (((1 - near) - half) + z * z * c);
    double s = 1.0 / 355687428096000;
    s = s * z - 1.0 / 1307674368000;
    s = s * z + 1.0 / 6227020800;
    s = s * z - 1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    const double sine = r + r * z * s;
    /* cos r, -sin r, -cos r, sin r */
    const uint64_t bits = weft_bits_of_double((quarter & 1) != 0 ? sine : cosine);
    return weft_double_of(bits ^ ((quarter + 1) & 2) << 62);
}

/* cos x and sin x, for x as above. */
WEFT_ALWAYS_INLINE double weft_cosine(double x)
{
    return weft_turned_cosine(x, 0);
}
WEFT_ALWAYS_INLINE double weft_sine(double x)
{
    return weft_turned_cosine(x, 3);
}

/* A normal law with mean 0. Its numbers are those of weft_rng_normal times `deviation`. */
struct weft_normal {
    uint64_t seed, stream;
    double deviation;
};

/* A standard normal number by Box-Muller on the two halves of a draw; its magnitude is below 9.
 * The logarithm's argument is at least 2^-53. */
WEFT_ALWAYS_INLINE double weft_normal_of(uint64_t seed, uint64_t stream, uint64_t counter)
{
    const double two_pi = 6.283185307179586476925286766559;
    const struct weft_philox c = weft_draw_of(seed, stream, counter);
    const double first = 1.0 - weft_unit_of(c.word[0], c.word[1]);
    const double second = weft_unit_of(c.word[2], c.word[3]);
    return sqrt(-2.0 * weft_logarithm(first)) * weft_cosine(two_pi * second);
}

/* Number `counter` of a law, rounded once. */
WEFT_ALWAYS_INLINE float weft_normal_at(struct weft_normal law, uint64_t counter)
{
    return (float)(weft_normal_of(law.seed, law.stream, counter) * law.deviation);
}

#endif
