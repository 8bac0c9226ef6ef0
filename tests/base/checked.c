/* SPDX-License-Identifier: Apache-2.0 */
#include "base/checked.h"

#include <criterion/criterion.h>

Test(checked, add_is_exact_or_refused)
{
    int64_t out = 7;
    cr_assert(weft_checked_add(INT64_MAX - 1, 1, &out));
    cr_assert_eq(out, INT64_MAX);
    out = 7;
    cr_assert_not(weft_checked_add(INT64_MAX, 1, &out));
    cr_assert_not(weft_checked_add(-1, 1, &out));
    cr_assert_not(weft_checked_add(1, -1, &out));
    cr_assert_eq(out, 7, "outputs stay untouched on failure");
}

Test(checked, multiply_is_exact_or_refused)
{
    int64_t out = 7;
    cr_assert(weft_checked_mul(INT64_MAX / 3, 3, &out));
    cr_assert_eq(out, INT64_MAX / 3 * 3);
    cr_assert(weft_checked_mul(INT64_MAX, 0, &out));
    cr_assert_eq(out, 0);
    out = 7;
    cr_assert_not(weft_checked_mul(INT64_MAX / 3 + 1, 3, &out));
    cr_assert_not(weft_checked_mul((int64_t)1 << 32, (int64_t)1 << 31, &out));
    cr_assert_not(weft_checked_mul(-1, 0, &out));
    cr_assert_eq(out, 7);
}

Test(checked, round_up_reaches_the_next_multiple)
{
    int64_t out = 7;
    cr_assert(weft_checked_round_up(0, 64, &out));
    cr_assert_eq(out, 0);
    cr_assert(weft_checked_round_up(64, 64, &out));
    cr_assert_eq(out, 64);
    cr_assert(weft_checked_round_up(65, 64, &out));
    cr_assert_eq(out, 128);
    cr_assert_not(weft_checked_round_up(INT64_MAX, 64, &out));
    cr_assert_not(weft_checked_round_up(1, 0, &out));
    cr_assert_not(weft_checked_round_up(-1, 8, &out));
    cr_assert_eq(out, 128);
}
