/* SPDX-License-Identifier: Apache-2.0 */
#include "spec/profile/curve.h"

#include <criterion/criterion.h>

static const int64_t xs[] = {10, 20, 40};
static const int64_t times[] = {100, 100, 300};
static const struct weft_curve curve = {3, xs, times};

Test(curve, is_piecewise_linear)
{
    static const int64_t cases[][2] = {{0, 100},  {9, 100},  {10, 100}, {15, 100}, {20, 100},
                                       {30, 200}, {31, 210}, {40, 300}, {41, 310}, {1000, 9900}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_assert_eq(weft_curve_at(&curve, cases[i][0]), cases[i][1], "at %d", (int)cases[i][0]);
    }
}

Test(curve, edges)
{
    static const int64_t falling[] = {100, 50}, at[] = {0, 3};
    struct weft_curve empty = {0}, one = {1, xs, times}, down = {2, at, falling};
    cr_assert_eq(weft_curve_at(&empty, 5), 0);
    cr_assert_eq(weft_curve_at(&one, 5), 100);
    cr_assert_eq(weft_curve_at(&one, 50), 100);
    cr_assert_eq(weft_curve_at(&down, 1), 83, "rounded to nearest");
    cr_assert_eq(weft_curve_at(&down, 100), 0, "never negative");
    cr_assert_gt(weft_curve_at(&curve, INT64_MAX), 0, "no overflow");
}
