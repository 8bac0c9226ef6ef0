/* SPDX-License-Identifier: Apache-2.0 */
/* The functions against the processor's, which have 64 bits of mantissa, and numbers of a law. */
#include "base/normal.h"

#include <criterion/criterion.h>
#include <float.h>

#include "base/rng.h"

enum { DRAWS = 300000 };

/* The error in units of the last place of the true value. */
static double ulps_of(double got, long double wanted)
{
    int exponent;
    (void)frexpl(wanted, &exponent);
    return (double)(fabsl((long double)got - wanted) / ldexpl(1, exponent - 53));
}

/* Near 1, down to 2^-53, and between. */
static double logarithm_argument(uint64_t i)
{
    const double x = 1 - weft_rng_uniform(1, 1, i);
    if (i % 3 == 0) return x;
    return i % 3 == 1 ? 1 - (1 - x) * 0x1p-8 : ldexp(x, -(int)(i % 53));
}

Test(normal, logarithm_is_within_an_ulp)
{
    double worst = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double x = logarithm_argument(i);
        worst = fmax(worst, ulps_of(weft_logarithm(x), logl((long double)x)));
    }
    cr_assert_lt(worst, 1);
    cr_assert_gt(worst, LDBL_MANT_DIG > DBL_MANT_DIG ? 0.5 : -1, "suspiciously exact");
    cr_assert_eq(weft_logarithm(1), 0);
    cr_assert_lt(ulps_of(weft_logarithm(0x1p-53), logl(0x1p-53L)), 1);
    cr_assert_lt(ulps_of(weft_logarithm(DBL_MAX), logl((long double)DBL_MAX)), 1);
    cr_assert_lt(ulps_of(weft_logarithm(DBL_MIN), logl((long double)DBL_MIN)), 1);
}

/* Anywhere, and close to multiples of pi/4. */
static double cosine_argument(uint64_t i)
{
    const double pi = acos(-1), x = 2 * pi * weft_rng_uniform(1, 2, i);
    if (i % 2 == 0) return x;
    const double near = (double)(1 + i / 2 % 7) * (pi / 4);
    return near + (x - pi) * ldexp(1, -(int)(i % 53) - 4);
}

Test(normal, cosine_is_as_near_as_it_says)
{
    double worst = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double x = cosine_argument(i), got = weft_cosine(x);
        const long double wanted = cosl((long double)x);
        if (fabsl((long double)got - wanted) > 0x1p-85L) worst = fmax(worst, ulps_of(got, wanted));
    }
    cr_assert_lt(worst, 1.5);
    cr_assert_gt(worst, LDBL_MANT_DIG > DBL_MANT_DIG ? 0.5 : -1, "suspiciously exact");
    cr_assert_eq(weft_cosine(0), 1);
    cr_assert_eq(weft_cosine(acos(-1)), -1);
}

/* Angles of rotary positions, and next to multiples of pi/2. */
Test(normal, cosine_and_sine_are_near_for_many_turns)
{
    const double half_pi = acos(-1) / 2;
    for (uint64_t i = 0; i < DRAWS; i++) {
        double x = weft_rng_uniform(1, 7, i) * 0x1p20;
        if (i % 3 == 0) x = (double)(float)(floor(x / half_pi) * half_pi);
        const long double c = cosl((long double)x), s = sinl((long double)x);
        cr_assert(fabsl((long double)weft_cosine(x) - c) <= 0x1p-52L, "cos %.17g", x);
        cr_assert(fabsl((long double)weft_sine(x) - s) <= 0x1p-52L, "sin %.17g", x);
        cr_assert(fabsl((long double)weft_sine(x) - s) <= 0x1p-65L + fabsl(s) * 0x1p-51L);
    }
    cr_assert_eq(weft_sine(0), 0);
}

Test(normal, integers_and_shares_are_exact)
{
    const uint32_t words[] = {0, 1, 0x7ff, 0x800, 0xfffff800, 0xffffffff};
    for (int i = 0; i < 36; i++) {
        const uint64_t bits = (uint64_t)words[i / 6] << 32 | words[i % 6];
        const double wanted = ldexp((double)(bits >> 11), -53);
        cr_assert_eq(weft_unit_of(words[i % 6], words[i / 6]), wanted);
        cr_assert_eq(weft_double_of_integer(words[i / 6]), (double)words[i / 6]);
    }
}

/* Stored bits: those of any machine, library and compiler. */
Test(normal, numbers_have_the_same_bits_everywhere)
{
    static const struct weft_normal law = {5, 9, 0.02};
    uint64_t sum = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const double x = weft_rng_normal(5, 9, i);
        cr_assert_eq(weft_normal_at(law, i), (float)(x * 0.02));
        sum = sum * 31 + weft_bits_of_double(x);
    }
    cr_assert_eq(sum, UINT64_C(0x442ee271be5857e), "%#llx", (unsigned long long)sum);
}
