#include "base/rng.h"

#include <math.h>

enum { PHILOX_ROUNDS = 10 };

void weft_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t even = (uint64_t)0xD2511F53U * c0;
        uint64_t odd = (uint64_t)0xCD9E8D57U * c2;
        c0 = (uint32_t)(odd >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)odd;
        c2 = (uint32_t)(even >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)even;
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Makes one draw: 128 bits as two halves. */
static void draw(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t halves[2])
{
    const uint32_t words[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream,
                               (uint32_t)(stream >> 32)};
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t out[4];
    weft_rng_philox(words, key, out);
    halves[0] = out[0] | (uint64_t)out[1] << 32;
    halves[1] = out[2] | (uint64_t)out[3] << 32;
}

static double to_unit_interval(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

uint64_t weft_rng_u64(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint64_t halves[2];
    draw(seed, stream, counter, halves);
    return halves[0];
}

double weft_rng_uniform(uint64_t seed, uint64_t stream, uint64_t counter)
{
    return to_unit_interval(weft_rng_u64(seed, stream, counter));
}

double weft_rng_normal(uint64_t seed, uint64_t stream, uint64_t counter)
{
    static const double two_pi = 6.283185307179586476925286766559;
    uint64_t halves[2];
    draw(seed, stream, counter, halves);
    /* In (0, 1], so that the logarithm is finite: at least 2^-53, hence radius <= 8.58. */
    double first = 1.0 - to_unit_interval(halves[0]);
    double second = to_unit_interval(halves[1]);
    return sqrt(-2.0 * log(first)) * cos(two_pi * second);
}

/* The upper 64 bits of the 128-bit product, in portable C. */
static uint64_t multiply_high(uint64_t a, uint64_t b)
{
    uint64_t a_low = (uint32_t)a, a_high = a >> 32;
    uint64_t b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t low = a_low * b_low;
    uint64_t middle = a_high * b_low + (low >> 32);
    uint64_t other = a_low * b_high + (uint32_t)middle;
    return a_high * b_high + (middle >> 32) + (other >> 32);
}

uint64_t weft_rng_below(uint64_t seed, uint64_t stream, uint64_t counter, uint64_t below)
{
    return multiply_high(weft_rng_u64(seed, stream, counter), below);
}
