/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rng.h"

#include <criterion/criterion.h>
#include <math.h>

/* The known answers that Random123 publishes for philox4x32-10 (kat_vectors). */
Test(rng, philox_gives_the_published_answers)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } vectors[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        uint32_t out[4];
        weft_rng_philox(vectors[i].counter, vectors[i].key, out);
        for (int j = 0; j < 4; j++)
            cr_assert_eq(out[j], vectors[i].out[j]);
    }
}

Test(rng, a_draw_maps_seed_to_key_and_stream_and_counter_to_the_counter)
{
    cr_assert_eq(weft_rng_u64(0, 0, 0), 0xe169c58d6627e8d5U);
    cr_assert_eq(weft_rng_u64(0x299f31d0a4093822U, 0x0370734413198a2eU, 0x85a308d3243f6a88U),
                 0x94fdccebd16cfe09U);
}

Test(rng, seed_stream_and_counter_all_matter)
{
    uint64_t base = weft_rng_u64(1, 2, 3);
    cr_assert_eq(weft_rng_u64(1, 2, 3), base);
    cr_assert_neq(weft_rng_u64(2, 2, 3), base);
    cr_assert_neq(weft_rng_u64(1, 3, 3), base);
    cr_assert_neq(weft_rng_u64(1, 2, 4), base);
    cr_assert_neq(weft_rng_u64(1 + ((uint64_t)1 << 40), 2, 3), base);
    cr_assert_neq(weft_rng_u64(1, 2 + ((uint64_t)1 << 40), 3), base);
    cr_assert_neq(weft_rng_u64(1, 2, 3 + ((uint64_t)1 << 40)), base);
}

/* The draws are fixed, so these bounds (six standard errors) either always hold or never. */
Test(rng, uniform_has_the_moments_of_its_law)
{
    enum { COUNT = 100000 };
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double x = weft_rng_uniform(7, 9, i);
        cr_assert(x >= 0 && x < 1);
        sum += x;
        squares += x * x;
    }
    cr_assert_float_eq(sum / COUNT, 0.5, 6 * sqrt(1.0 / 12 / COUNT));
    cr_assert_float_eq(squares / COUNT, 1.0 / 3, 6 * sqrt(4.0 / 45 / COUNT));
}

Test(rng, normal_has_the_moments_of_its_law)
{
    enum { COUNT = 100000 };
    double sum = 0, squares = 0, fourths = 0;
    for (uint64_t i = 0; i < COUNT; i++) {
        double x = weft_rng_normal(7, 9, i);
        cr_assert(fabs(x) < 9);
        sum += x;
        squares += x * x;
        fourths += x * x * x * x;
    }
    cr_assert_float_eq(sum / COUNT, 0, 6 / sqrt(COUNT));
    cr_assert_float_eq(squares / COUNT, 1, 6 * sqrt(2.0 / COUNT));
    cr_assert_float_eq(fourths / COUNT, 3, 6 * sqrt(96.0 / COUNT));
}

Test(rng, below_is_the_upper_half_of_the_product)
{
    int seen[6] = {0};
    for (uint64_t i = 0; i < 6000; i++) {
        uint64_t x = weft_rng_below(1, 1, i, 6);
        cr_assert_lt(x, 6);
        seen[x]++;
    }
    for (int i = 0; i < 6; i++)
        cr_assert(seen[i] > 850 && seen[i] < 1150);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t raw = weft_rng_u64(1, 1, i);
        cr_assert_eq(weft_rng_below(1, 1, i, 1), 0);
        cr_assert_eq(weft_rng_below(1, 1, i, (uint64_t)1 << 63), raw >> 1);
        /* raw * (2^64 - 1) = raw * 2^64 - raw, and its upper half is raw - 1 (for raw > 0). */
        cr_assert_eq(weft_rng_below(1, 1, i, UINT64_MAX), raw - 1);
    }
}
