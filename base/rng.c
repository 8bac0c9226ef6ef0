/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include "base/normal.h"

void weft_rng_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    struct weft_philox words;
    memcpy(words.word, counter, sizeof(words));
    words = weft_philox_of(words, key[0], key[1]);
    memcpy(out, words.word, sizeof(words));
}

uint64_t weft_rng_u64(uint64_t seed, uint64_t stream, uint64_t counter)
{
    const struct weft_philox draw = weft_draw_of(seed, stream, counter);
    return draw.word[0] | (uint64_t)draw.word[1] << 32;
}

double weft_rng_uniform(uint64_t seed, uint64_t stream, uint64_t counter)
{
    return weft_uniform_of(seed, stream, counter);
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
