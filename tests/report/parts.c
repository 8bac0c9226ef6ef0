/* SPDX-License-Identifier: Apache-2.0 */
#include "report/parts.h"

#include <criterion/criterion.h>

static const int32_t parts_worth[] = {0, 2, 1};

static void expect_parts(struct weft_parts parts, int32_t columns, const char *expected)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_parts_render(&parts, columns, &out);
    cr_assert_str_eq(weft_text_chars(&out), expected, "got '%s'", weft_text_chars(&out));
    weft_text_finish(&out);
}

Test(parts, as_many_as_there_is_room_for)
{
    struct weft_parts parts = {
        .between = ", ", .worth = parts_worth, .n = 3, .texts = {"aaaa", "bbbb", "cccc"}};
    expect_parts(parts, 0, "aaaa, bbbb, cccc");
    expect_parts(parts, 16, "aaaa, bbbb, cccc");
    expect_parts(parts, 15, "aaaa, cccc");
    expect_parts(parts, 9, "aaaa");
    expect_parts(parts, 3, "");
    parts.always = 2;
    expect_parts(parts, 3, "aaaa, cccc");
}

/* A part that is too long makes room for a shorter one of lower rank. */
Test(parts, one_that_has_no_room_stops_no_other)
{
    struct weft_parts parts = {
        .between = "  ", .worth = parts_worth, .n = 3, .texts = {"a", "b", "a long part"}};
    expect_parts(parts, 5, "a  b");
}

Test(parts, empty_ones_are_none)
{
    struct weft_parts parts = {
        .between = "  ", .worth = parts_worth, .n = 3, .texts = {"", "b", ""}};
    expect_parts(parts, 0, "b");
}
