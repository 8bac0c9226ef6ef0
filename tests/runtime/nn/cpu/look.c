/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>

#include "runtime/nn/cpu/units.h"

/* The declared count of numbers adds up exactly in the dtype. */
Test(look, numbers_add_up_as_often_as_is_said)
{
    for (int64_t terms = 1; terms <= 70; terms++) {
        float most = terms == 1 ? 0x1.fffffep127f : 0x1.fffffep126f, sum = 0;
        while (terms > 1 && !weft_nn_cpu_adds_up(WEFT_F32, &most, 1, terms))
            most /= 2;
        cr_assert(weft_nn_cpu_adds_up(WEFT_F32, &most, 1, terms), "%lld terms", (long long)terms);
        for (int64_t i = 0; i < terms; i++)
            sum += most;
        cr_assert(isfinite(sum), "%lld terms of %g are %g", (long long)terms, (double)most,
                  (double)sum);
        cr_assert(most * (double)terms > 0x1p125, "%lld terms of %g only", (long long)terms,
                  (double)most);
        uint16_t narrow = weft_bf16_narrow(most / 2), halves[] = {0, narrow, 0};
        cr_assert(weft_nn_cpu_adds_up(WEFT_BF16, halves, 3, terms), "%lld of bf16",
                  (long long)terms);
    }
    const float bad[] = {0, 1, NAN}, large[] = {-0x1p126f};
    const uint16_t infinite[] = {0, 0x7c00};
    cr_assert(!weft_nn_cpu_adds_up(WEFT_F32, bad, 3, 1) && weft_nn_cpu_adds_up(WEFT_F32, bad, 2, 1),
              "NaN is finite");
    cr_assert(!weft_nn_cpu_adds_up(WEFT_F32, large, 1, 2), "2^126 twice is below 2^127");
    cr_assert(!weft_nn_cpu_adds_up(WEFT_F16, infinite, 2, 1), "an infinity is finite");
}
