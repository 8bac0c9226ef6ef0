/* SPDX-License-Identifier: Apache-2.0 */
#include "layers/shared/rope.h"

#include <criterion/criterion.h>
#include <math.h>

static const struct weft_rope_scaling unscaled = {0};

Test(rope, frequencies_are_powers_of_the_base)
{
    static const double bases[] = {1, 10000, 500000, 1000000, 1e9};
    static const int64_t sizes[] = {2, 32, 80, 96, 128, 1024};
    static float frequencies[WEFT_ROPE_MOST_SIZE / 2];
    for (int i = 0; i < 30; i++) {
        const int64_t size = sizes[i % 6];
        weft_rope_frequencies(size, bases[i / 6], &unscaled, frequencies);
        for (int64_t j = 0; 2 * j < size; j++) {
            const double exponent = (double)((float)(2 * j) / (float)size);
            const float wanted = 1.0f / (float)pow(bases[i / 6], exponent);
            cr_assert_eq(frequencies[j], wanted, "%d, %d", i, (int)j);
        }
    }
}

/* Llama 3.1's: a factor of 8 beyond 8192 positions. */
Test(rope, frequencies_are_scaled_as_llama_3s)
{
    const struct weft_rope_scaling scaling = {8, 1, 4, 8192};
    float frequencies[64], before[64];
    weft_rope_frequencies(128, 500000, &scaling, frequencies);
    weft_rope_frequencies(128, 500000, &unscaled, before);
    int kept = 0, mixed = 0, divided = 0;
    for (int j = 0; j < 64; j++) {
        const double wave = 2 * acos(-1) / (double)before[j], old = (double)before[j];
        const double part = (8192 / wave - 1) / 3;
        const double wanted = wave < 2048   ? old
                              : wave > 8192 ? old / 8
                                            : (1 - part) * old / 8 + part * old;
        kept += wave < 2048;
        divided += wave > 8192;
        mixed += wave >= 2048 && wave <= 8192;
        cr_assert(fabs((double)frequencies[j] / wanted - 1) < 1e-6, "%d", j);
    }
    cr_assert(kept > 20 && mixed > 3 && divided > 10, "%d %d %d", kept, mixed, divided);
}
