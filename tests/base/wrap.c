/* SPDX-License-Identifier: Apache-2.0 */
#include "base/wrap.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect_wrapped(const char *text, size_t columns, const char *expected)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_wrap(text, columns, &out);
    cr_assert(weft_text_ok(&out));
    cr_assert_str_eq(weft_text_chars(&out), expected, "got:\n%s", weft_text_chars(&out));
    weft_text_finish(&out);
}

Test(wrap, a_line_that_fits_stays_as_it_is)
{
    expect_wrapped("ten wide!!", 10, "ten wide!!");
    expect_wrapped("", 10, "");
    expect_wrapped("a\n\n  b  c\n", 10, "a\n\n  b  c\n");
}

Test(wrap, no_columns_break_nothing)
{
    expect_wrapped("a line of any length stays as it is", 0, "a line of any length stays as it is");
}

Test(wrap, prose_goes_on_two_columns_further_in)
{
    expect_wrapped("one two three four", 10, "one two\n  three\n  four");
    expect_wrapped(" one two three four", 12, " one two\n   three\n   four");
    /* Deep indentation is kept: it aligns text with a label. */
    expect_wrapped("         one two three", 18, "         one two\n         three");
}

Test(wrap, where_there_is_hardly_any_room_a_line_begins_further_left)
{
    expect_wrapped("         one two three", 16, "    one two\n    three");
    expect_wrapped("         one two", 16, "         one two");
    expect_wrapped("      one two", 8, "one two");
}

Test(wrap, what_has_a_label_goes_on_behind_it)
{
    expect_wrapped("memory  one two three four five", 24,
                   "memory  one two three\n        four five");
    /* A label that leaves little room is none. */
    expect_wrapped("a label that is long  one two", 24, "a label that is long\n  one two");
}

Test(wrap, each_line_for_itself)
{
    expect_wrapped("aa bb cc\ndd ee ff\n", 5, "aa bb\n  cc\ndd ee\n  ff\n");
}

Test(wrap, a_word_is_never_broken)
{
    expect_wrapped("a /a/path/that/is/long b", 8, "a\n/a/path/that/is/long\n  b");
    expect_wrapped("a b /a/path c", 8, "a b\n /a/path\n  c");
}

Test(wrap, columns_are_characters)
{
    static const char text[] = "\xC3\xA9\xC3\xA9\xC3\xA9 \xE2\x82\xAC \033[31mred\033[0m";
    cr_assert_eq(weft_shown_columns(text, strlen(text)), 9);
    expect_wrapped(text, 9, text);
    expect_wrapped(text, 8, "\xC3\xA9\xC3\xA9\xC3\xA9 \xE2\x82\xAC\n  \033[31mred\033[0m");
}

Test(wrap, an_escape_that_does_not_end_is_text)
{
    cr_assert_eq(weft_shown_columns("\033[31", 4), 4);
    cr_assert_eq(weft_shown_columns("\033", 1), 1);
    cr_assert_eq(weft_shown_columns("\033[2Jm", 5), 5, "and what is none of colour");
}

Test(wrap, lines_of_a_paragraph_are_broken_anew)
{
    static const char text[] = "One sentence that was\nbroken here. Another.\n\nA list:\n"
                               "  item: what it is\n  more: that\nand on.\n";
    struct weft_text out;
    weft_text_init(&out);
    weft_wrap_prose(text, 16, &out);
    cr_assert_str_eq(weft_text_chars(&out),
                     "One sentence\nthat was broken\nhere. Another.\n\n"
                     "A list:\n  item: what it\n    is\n  more: that\n"
                     "and on.\n",
                     "got:\n%s", weft_text_chars(&out));
    weft_text_finish(&out);
    weft_text_init(&out);
    weft_wrap_prose("a\nb", 0, &out);
    cr_assert_str_eq(weft_text_chars(&out), "a b");
    weft_text_finish(&out);
}

Test(wrap, a_beginning_is_whole_words)
{
    static const char text[] = "one two three";
    cr_assert_eq(weft_wrap_at(text, 13, 13), 13);
    cr_assert_eq(weft_wrap_at(text, 13, 12), 7);
    cr_assert_eq(weft_wrap_at(text, 13, 3), 3);
    cr_assert_eq(weft_wrap_at(text, 13, 1), 3, "a word is not broken");
    cr_assert_eq(weft_wrap_at(text, 0, 5), 0);
}

Test(wrap, a_unit_stays_with_its_number)
{
    expect_wrapped("it took 20.5 ms", 13, "it took\n  20.5 ms");
    expect_wrapped("step 20.5 ms, +1.5 % of it", 15, "step 20.5 ms,\n  +1.5 % of it");
    expect_wrapped("12345 ms", 5, "12345\n  ms");
}
