#include "base/rng.h"

#include "base/normal.h"

void weft_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    struct weft_philox words;
    memcpy(words.word, counter, sizeof(words));
    words = weft_philox_of(words, key[0], key[1]);
    memcpy(out, words.word, sizeof(words));
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
    return weft_normal_of(seed, stream, counter);
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
