/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/axis.h"

#include <criterion/criterion.h>
#include <math.h>

Test(axis, ends_map_to_ends)
{
    const struct weft_axis axis = {WEFT_MEASURE_NUMBER, 2, 6, 100, 20};
    cr_assert_float_eq(weft_axis_place(&axis, 2), 100, 1e-9);
    cr_assert_float_eq(weft_axis_place(&axis, 6), 20, 1e-9);
    cr_assert_float_eq(weft_axis_place(&axis, 4), 60, 1e-9);
}

/* A widened axis holds its values, has a range, and is not much longer. */
Test(axis, widening_keeps_all_values)
{
    static const double lows[] = {-3.25, 0, 1e-9, 5.25, 1e6, 3e9};
    static const double ranges[] = {0, 1e-6, 0.3, 17, 1e7, 2.9e9};
    for (int measure = WEFT_MEASURE_NUMBER; measure <= WEFT_MEASURE_BYTES; measure++) {
        for (size_t i = 0; i < sizeof lows / sizeof *lows; i++) {
            for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
                const bool is_whole = measure >= WEFT_MEASURE_COUNT;
                const double low = is_whole ? floor(fabs(lows[i])) : lows[i];
                const double high = low + (is_whole ? floor(ranges[k]) : ranges[k]);
                struct weft_axis axis = {(enum weft_measure)measure, low, high, 0, 1};
                weft_axis_widen(&axis);
                cr_assert(axis.low < axis.high, "%d: %g to %g", measure, low, high);
                cr_assert(axis.low <= low + 1e-9 * fabs(low) &&
                              axis.high >= high - 1e-9 * fabs(high),
                          "%d: %g to %g in %g to %g", measure, low, high, axis.low, axis.high);
            }
        }
    }
}
