/* SPDX-License-Identifier: Apache-2.0 */
#include "base/boundary.h"

#include <criterion/criterion.h>

#include "base/rng.h"

struct needs {
    int64_t base, slope, curve, noise, refused, fails;
    int n_asked;
};

static int64_t need_at(const struct needs *needs, int64_t value)
{
    if (needs->refused > 0 && value >= needs->refused) return INT64_MAX;
    int64_t rough = value + (needs->noise > 0 ? value / needs->noise * needs->noise : 0);
    return needs->base + needs->slope * rough + needs->curve * value * value;
}

static enum weft_status ask_need(void *context, int64_t value, int64_t *need,
                                 struct weft_error *err)
{
    struct needs *needs = context;
    if (value < 1) return weft_fail(err, WEFT_E_INTERNAL, "asked for %lld", (long long)value);
    if (value == needs->fails) return weft_fail(err, WEFT_E_DATA, "no such thing as 13");
    needs->n_asked++;
    *need = need_at(needs, value);
    return WEFT_OK;
}

static int64_t find_boundary(struct needs *needs, int64_t guess, int64_t most, int64_t limit)
{
    struct weft_boundary boundary = {guess, most, limit, ask_need, needs};
    struct weft_error err = {0};
    int64_t value = -1;
    cr_assert_eq(weft_boundary_find(&boundary, &value, &err), WEFT_OK, "%s", err.text);
    return value;
}

Test(boundary, of_a_line_is_found_with_a_handful_of_questions)
{
    struct needs needs = {.base = 1000, .slope = 7};
    cr_assert_eq(find_boundary(&needs, 1, 1 << 24, 7 * 12345 + 1000), 12345);
    cr_assert_leq(needs.n_asked, 7, "%d", needs.n_asked);
    needs.n_asked = 0;
    cr_assert_eq(find_boundary(&needs, 1, 1 << 24, 7 * 12345 + 1003), 12345);
    cr_assert_leq(needs.n_asked, 7, "%d", needs.n_asked);
    needs.n_asked = 0;
    cr_assert_eq(find_boundary(&needs, 12345, 1 << 24, 7 * 12345 + 1003), 12345);
    cr_assert_leq(needs.n_asked, 5, "who guesses it: %d", needs.n_asked);
}

Test(boundary, is_none_or_the_most_where_all_is_too_much_or_nothing_is)
{
    struct needs needs = {.base = 1000, .slope = 7};
    cr_assert_eq(find_boundary(&needs, 1, 100, 1006), 0);
    cr_assert_eq(find_boundary(&needs, 50, 100, 1006), 0);
    cr_assert_eq(find_boundary(&needs, 1, 100, 1007), 1);
    cr_assert_eq(find_boundary(&needs, 1, 100, 1700), 100);
    cr_assert_eq(find_boundary(&needs, 1, 1, 5000), 1);
    cr_assert_eq(find_boundary(&needs, 100, 100, 5000), 100);
    needs.slope = 0;
    cr_assert_eq(find_boundary(&needs, 2, INT64_C(1) << 40, 5000), INT64_C(1) << 40);
}

Test(boundary, an_answer_that_fails_ends_the_search)
{
    struct needs needs = {.slope = 1, .fails = 13};
    struct weft_boundary boundary = {13, 100, 50, ask_need, &needs};
    struct weft_error err = {0};
    int64_t value = -1;
    cr_assert_eq(weft_boundary_find(&boundary, &value, &err), WEFT_E_DATA);
    cr_assert_str_eq(err.text, "no such thing as 13");
    cr_assert_eq(value, -1);
}

static int64_t draw(int i, uint64_t what, uint64_t below)
{
    return (int64_t)weft_rng_below(1, what, (uint64_t)i, below);
}

/* Steps, curves, and values beyond which there is no need at all. */
Test(boundary, is_exact_for_any_need_that_grows)
{
    for (int i = 0; i < 3000; i++) {
        struct needs needs = {.base = draw(i, 0, 1000),
                              .slope = draw(i, 1, 9),
                              .curve = draw(i, 2, 3),
                              .noise = draw(i, 3, 40),
                              .refused = draw(i, 4, 300)};
        int64_t most = 20 + draw(i, 5, 2000), limit = draw(i, 6, 30000);
        int64_t guess = 1 + draw(i, 7, (uint64_t)most), expected = 0;
        while (expected < most && need_at(&needs, expected + 1) <= limit)
            expected++;
        cr_assert_eq(find_boundary(&needs, guess, most, limit), expected, "%d", i);
        cr_assert_leq(needs.n_asked, 30, "%d: %d", i, needs.n_asked);
    }
}
