/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numbers.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { ALL = 65536 };

struct format {
    const char *name;
    int exponent_bits, fraction_bits;
    float (*widen)(uint16_t x);
    uint16_t (*narrow)(float x);
};
static const struct format formats[] = {{"bf16", 8, 7, weft_bf16_widen, weft_bf16_narrow},
                                        {"f16", 5, 10, weft_f16_widen, weft_f16_narrow}};

/* The value by the definition of IEEE 754. */
static double value(const struct format *format, int bits)
{
    const int bias = (1 << (format->exponent_bits - 1)) - 1;
    const int exponent = bits >> format->fraction_bits & ((1 << format->exponent_bits) - 1);
    const int fraction = bits & ((1 << format->fraction_bits) - 1);
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == (1 << format->exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
    const int leading = exponent > 0 ? 1 << format->fraction_bits : 0;
    return sign *
           ldexp(leading + fraction, (exponent > 0 ? exponent : 1) - bias - format->fraction_bits);
}

Test(numbers, widening_is_the_definition_and_narrowing_its_inverse)
{
    for (int f = 0; f < 2; f++) {
        for (int bits = 0; bits < ALL; bits++) {
            const double expected = value(&formats[f], bits);
            const float wide = formats[f].widen((uint16_t)bits);
            if (isnan(expected)) {
                cr_assert(isnan(wide), "%s %x", formats[f].name, bits);
                const uint16_t back = formats[f].narrow(wide);
                cr_assert(isnan(formats[f].widen(back)), "%s %x", formats[f].name, bits);
                continue;
            }
            cr_assert_eq((double)wide, expected, "%s %x is %g", formats[f].name, bits, expected);
            cr_assert_eq(formats[f].narrow(wide), bits, "%s %x", formats[f].name, bits);
        }
    }
}

/* Between neighbours a and b, with a even: below the middle the result is a, above it b, and in
 * the middle a. */
Test(numbers, narrowing_goes_to_the_nearest_and_to_even)
{
    for (int f = 0; f < 2; f++) {
        const struct format *format = &formats[f];
        for (uint32_t bits = 0; value(format, (int)bits + 1) < INFINITY; bits++) {
            const float a = format->widen((uint16_t)bits), b = format->widen((uint16_t)(bits + 1));
            const float middle = (float)(0.5 * ((double)a + (double)b));
            const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
            cr_assert_eq(format->narrow(middle), even, "%s: %g", format->name, (double)middle);
            cr_assert_eq(format->narrow(nextafterf(middle, a)), bits);
            cr_assert_eq(format->narrow(nextafterf(middle, b)), bits + 1);
            cr_assert_eq(format->narrow(-middle), even | 0x8000u);
        }
    }
}

Test(numbers, what_is_too_large_is_infinite)
{
    cr_assert_eq(weft_f16_narrow(65504), 0x7bff);
    cr_assert_eq(weft_f16_narrow(65519.996f), 0x7bff);
    cr_assert_eq(weft_f16_narrow(65520), 0x7c00);
    cr_assert_eq(weft_f16_narrow(-1e30f), 0xfc00);
    cr_assert_eq(weft_bf16_narrow(3.4e38f), 0x7f80);
}

Test(numbers, limits_are_the_least_that_become_infinite)
{
    const float f16 = weft_dtype_limit(WEFT_F16), bf16 = weft_dtype_limit(WEFT_BF16);
    cr_assert_eq(weft_f16_narrow(f16), 0x7c00);
    cr_assert_eq(weft_f16_narrow(nextafterf(f16, 0)), 0x7bff);
    cr_assert_eq(weft_bf16_narrow(bf16), 0x7f80);
    cr_assert_eq(weft_bf16_narrow(nextafterf(bf16, 0)), 0x7f7f);
    cr_assert(isinf(weft_dtype_limit(WEFT_F32)));
}

Test(numbers, dtypes_have_names_and_sizes)
{
    cr_assert_str_eq(weft_dtype_name(WEFT_BF16), "bf16");
    cr_assert_eq(weft_dtype_bytes(WEFT_F32), 4);
    cr_assert_eq(weft_dtype_bytes(WEFT_F16), 2);
}
