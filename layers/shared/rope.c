/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/shared/rope.h"

#include <math.h>

#include "base/normal.h"

/* e^x for x from 0 to 700, within 2 ulp. x = n ln 2 + r with |r| <= ln 2 / 2, and Taylor's series
 * ends below 2^-57. ln 2 has two parts, as in weft_logarithm. */
static double exponential_of(double x)
{
    const double ln2_high = 0x1.62e42fee00000p-1, ln2_low = 0x1.a39ef35793c76p-33;
    const double magic = 0x1.8p52;
    const double n = (x * 1.44269504088896340736 + magic) - magic;
    const double r = (x - n * ln2_high) - n * ln2_low;
    double sum = 1;
    for (int i = 13; i > 0; i--) {
        sum = 1 + sum * r / i;
    }
    return ldexp(sum, (int)n);
}

static float scaled_frequency(float frequency, const struct weft_rope_scaling *scaling)
{
    const double two_pi = 6.283185307179586476925286766559;
    const float wave = (float)(two_pi / (double)frequency), original = (float)scaling->original;
    const float factor = (float)scaling->factor;
    if (wave > (float)((double)scaling->original / scaling->low)) return frequency / factor;
    if (wave < (float)((double)scaling->original / scaling->high)) return frequency;
    const float part =
        (original / wave - (float)scaling->low) / (float)(scaling->high - scaling->low);
    return (1 - part) * frequency / factor + part * frequency;
}

void weft_rope_frequencies(int64_t size, double base, const struct weft_rope_scaling *scaling,
                           float *frequencies)
{
    const double logarithm = weft_logarithm(base);
    for (int64_t j = 0; 2 * j < size; j++) {
        const float exponent = (float)(2 * j) / (float)size;
        const float power = (float)exponential_of((double)exponent * logarithm);
        frequencies[j] = 1.0f / power;
        if (scaling->factor > 0) frequencies[j] = scaled_frequency(frequencies[j], scaling);
    }
}
