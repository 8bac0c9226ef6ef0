/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/strip.h"

#include <criterion/criterion.h>
#include <string.h>

Test(strip, a_second_choice_of_a_hue_is_half_as_high)
{
    static const char *const members[] = {"a", "b"};
    static const struct weft_strip_choice first = {"fsdp", WEFT_HUE_BLUE, false},
                                          second = {"<script>", WEFT_HUE_BLUE, true};
    const struct weft_strip_choice *choices[] = {&first, &second};
    const struct weft_strip_row row = {"units", choices};
    const struct weft_strip strip = {
        .label = "units", .n_members = 2, .n_rows = 1, .members = members, .rows = &row};
    struct weft_text out;
    weft_text_init(&out);
    weft_drawing_strip.draw(&strip, &out);
    const char *text = weft_text_chars(&out);
    cr_assert_not_null(strstr(text, " 4H"), "%s", text);
    cr_assert_not_null(strstr(text, "v24H"), "%s", text);
    cr_assert_not_null(strstr(text, " 16H"), "from the middle of the cell: %s", text);
    cr_assert_not_null(strstr(text, "v12H"), "%s", text);
    cr_assert_not_null(strstr(text, "class=\"solid c0\"></i>fsdp"), "%s", text);
    cr_assert_not_null(strstr(text, "class=\"low c0\"></i>&lt;script&gt;"), "%s", text);
    cr_assert_null(strstr(text, "<script"), "%s", text);
    weft_text_finish(&out);
}
