/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

Test(text, an_empty_one_reads_as_the_empty_string)
{
    struct weft_text text = {0};
    cr_assert_str_eq(weft_text_chars(&text), "");
    weft_text_append(&text, NULL, 0);
    weft_text_add(&text, "");
    cr_assert_str_eq(weft_text_chars(&text), "");
    cr_assert(weft_text_ok(&text));
    weft_text_finish(&text);
}

Test(text, grows_and_stays_terminated)
{
    struct weft_text text;
    weft_text_init(&text);
    for (int i = 0; i < 10000; i++) {
        weft_text_add(&text, "ab");
        weft_text_append(&text, "cde", 1);
        weft_text_addf(&text, "%04d", i);
        cr_assert_eq(text.length, 7 * ((size_t)i + 1));
        cr_assert_eq(text.data[text.length], '\0');
    }
    cr_assert_eq(strncmp(weft_text_chars(&text), "abc0000abc0001", 14), 0);
    cr_assert_str_eq(weft_text_chars(&text) + text.length - 7, "abc9999");
    weft_text_finish(&text);
    cr_assert_str_eq(weft_text_chars(&text), "");
}

Test(text, keeps_nul_bytes_that_are_appended)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_append(&text, "a\0b", 3);
    cr_assert_eq(text.length, 3);
    cr_assert_eq(memcmp(text.data, "a\0b", 4), 0);
    weft_text_finish(&text);
}

Test(text, failure_is_remembered_until_finished)
{
    struct weft_text text;
    weft_text_init(&text);
    weft_text_add(&text, "kept");
    weft_text_append(&text, "x", SIZE_MAX - 10);
    cr_assert_not(weft_text_ok(&text));
    weft_text_add(&text, "lost");
    weft_text_addf(&text, "%s", "lost");
    cr_assert_not(weft_text_ok(&text));
    cr_assert_str_eq(weft_text_chars(&text), "kept");
    weft_text_finish(&text);
    cr_assert(weft_text_ok(&text));
}

/* Foreign text in a report is seen and not obeyed, however it came into it. */
Test(text, a_report_keeps_what_may_be_shown)
{
    struct weft_text text;
    weft_text_init(&text);
    text.columns = 80;
    weft_text_add(&text, "a\033b\n");
    weft_text_append(&text, "\xC2\x9B", 2);
    weft_text_addf(&text, "%s %d\n", "c\007", 5);
    weft_text_add_escape(&text, "\033[31m");
    weft_text_addf(&text, "\xC3\xA9");
    cr_assert_str_eq(weft_text_chars(&text), "a\\u001bb\n\\u009bc\\u0007 5\n\033[31m\xC3\xA9");
    weft_text_finish(&text);
}

Test(text, words_are_quoted_for_a_shell)
{
    static const char *const cases[][2] = {
        {"a/b.json", "a/b.json"}, {"a b", "'a b'"}, {"", "''"}, {"it's", "'it'\\''s'"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_text text;
        weft_text_init(&text);
        weft_text_add_word(&text, cases[i][0]);
        cr_assert_str_eq(weft_text_chars(&text), cases[i][1]);
        weft_text_finish(&text);
    }
}
