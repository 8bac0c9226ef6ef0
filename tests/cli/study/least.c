/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/least.h"

#include <criterion/criterion.h>

/* Values from `from` on pass. Counts the questions, and checks that larger units are kept. */
struct asked {
    int64_t from, unit;
    int n;
};

static enum weft_status ask_from(void *context, int64_t value, bool *passes, struct weft_error *err)
{
    struct asked *asked = context;
    (void)err;
    cr_assert(value <= asked->unit || value % asked->unit == 0, "%lld", (long long)value);
    asked->n++;
    *passes = value >= asked->from;
    return WEFT_OK;
}

static int64_t find_least(struct asked *asked, int64_t most, int64_t share)
{
    const struct weft_least least = {most, asked->unit, share, ask_from, asked};
    struct weft_error err = {0};
    int64_t yes = 1;
    cr_assert_eq(weft_least_find(&least, 0, &yes, &err), WEFT_OK, "%s", err.text);
    return yes;
}

Test(least, is_exact_for_every_value_and_unit)
{
    for (int64_t unit = 1; unit <= 9; unit++) {
        for (int64_t from = 1; from <= 100; from++) {
            struct asked asked = {from, unit, 0};
            const int64_t whole = (from + unit - 1) / unit * unit;
            cr_assert_eq(find_least(&asked, 1000, 0), from <= unit ? from : whole);
            cr_assert_leq(asked.n, 16);
        }
    }
}

Test(least, is_none_where_the_most_does_not_pass)
{
    struct asked asked = {65, 1, 0};
    cr_assert_eq(find_least(&asked, 64, 0), 0);
    asked.from = 64;
    cr_assert_eq(find_least(&asked, 64, 0), 64);
}

Test(least, may_be_too_large_by_a_share)
{
    for (int64_t from = 1; from < 100000; from += 997) {
        struct asked asked = {from, 1, 0};
        const int64_t found = find_least(&asked, INT64_MAX, 100);
        cr_assert(found >= from && found - from <= found / 100 + 1, "%lld", (long long)found);
    }
}

static enum weft_status ask_failing(void *context, int64_t value, bool *passes,
                                    struct weft_error *err)
{
    (void)context;
    *passes = value >= 8;
    return value == 6 ? weft_fail(err, WEFT_E_DATA, "six") : WEFT_OK;
}

Test(least, a_question_that_fails_ends_the_search)
{
    const struct weft_least least = {100, 1, 0, ask_failing, NULL};
    struct weft_error err = {0};
    int64_t yes = 1;
    cr_assert_eq(weft_least_find(&least, 0, &yes, &err), WEFT_E_DATA);
    cr_assert_str_eq(err.text, "six");
}
