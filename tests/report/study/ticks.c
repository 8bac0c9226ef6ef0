/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/ticks.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"

static bool is_one_two_or_five(int64_t number)
{
    while (number > 0 && number % 10 == 0)
        number /= 10;
    return number == 1 || number == 2 || number == 5;
}

static void expect_rule(const struct weft_tick_unit *units, int64_t low, int64_t high, int32_t most)
{
    const struct weft_ticks ticks = weft_ticks_choose(units, low, high, most);
    const long long step = (long long)ticks.step;
    cr_assert(is_one_two_or_five(ticks.step / ticks.unit->size), "%lld %s", step, ticks.unit->name);
    cr_assert_eq(ticks.step % ticks.unit->size, 0, "%lld: no whole %s", step, ticks.unit->name);
    cr_assert(ticks.n >= 2 && ticks.n <= most, "%d ticks of %lld from %lld to %lld", ticks.n, step,
              (long long)low, (long long)high);
    cr_assert_eq(ticks.first % ticks.step, 0);
    cr_assert(ticks.first >= low && ticks.first - low < ticks.step);
    const int64_t last = ticks.first + (ticks.n - 1) * ticks.step;
    cr_assert(last <= high && high - last < ticks.step);
}

/* Ranges of every size, anywhere: from one byte to all that a number holds. */
Test(ticks, are_whole_and_one_two_or_five_of_a_unit_in_any_range)
{
    for (uint64_t i = 0; i < 20000; i++) {
        const int64_t high = 1 + (int64_t)(weft_rng_u64(27, 1, i) >> (1 + i % 62));
        const int64_t low = (int64_t)weft_rng_below(27, 2, i, (uint64_t)high);
        const int32_t most = 6 + (int32_t)(i % 5);
        expect_rule(weft_byte_ticks, low, high, most);
        expect_rule(weft_time_ticks, low, high, most);
    }
    expect_rule(weft_byte_ticks, 0, INT64_MAX, 6);
    expect_rule(weft_time_ticks, INT64_MAX - 1, INT64_MAX, 6);
}

static void expect_ticks(const struct weft_tick_unit *units, int64_t low, int64_t high,
                         const char *unit, int64_t first, int64_t step, int32_t n)
{
    const struct weft_ticks ticks = weft_ticks_choose(units, low, high, 6);
    cr_assert_str_eq(ticks.unit->name, unit);
    cr_assert_eq(ticks.first, first * ticks.unit->size, "%lld", (long long)ticks.first);
    cr_assert_eq(ticks.step, step * ticks.unit->size, "%lld", (long long)ticks.step);
    cr_assert_eq(ticks.n, n, "%d", ticks.n);
}

Test(ticks, have_the_least_step_that_is_not_too_many)
{
    const int64_t mib = 1 << 20, us = 1000;
    expect_ticks(weft_byte_ticks, 3000 * mib, 9000 * mib, "GiB", 3, 1, 6);
    expect_ticks(weft_byte_ticks, 1000 * mib, 1900 * mib, "MiB", 1000, 200, 5);
    expect_ticks(weft_byte_ticks, 0, 3, "B", 0, 1, 4);
    expect_ticks(weft_time_ticks, 81300 * us, 97100 * us, "ms", 85, 5, 3);
    expect_ticks(weft_time_ticks, 2505 * us, 2512 * us, "us", 2506, 2, 4);
}
