/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shown.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json.h"
#include "base/log.h"
#include "base/status.h"

static void shows(const char *bytes, enum weft_shown_kept kept, const char *wanted)
{
    struct weft_text text;
    char out[WEFT_SHOWN_BYTES];
    weft_text_init(&text);
    weft_text_add_shown(&text, bytes, strlen(bytes), kept);
    cr_assert_str_eq(weft_text_chars(&text), wanted);
    cr_assert_str_eq(weft_shown_into(bytes, strlen(bytes), kept, out, sizeof out), wanted);
    cr_assert_eq(weft_shown_is_plain(bytes, strlen(bytes), kept), strcmp(bytes, wanted) == 0);
    weft_text_finish(&text);
}

Test(shown, what_a_person_can_read_stays)
{
    static const char *const plain[] = {"",
                                        "h.0.weight",
                                        "a\\b",
                                        "na\xC3\xAFve",
                                        "\xE2\x82\xAC",
                                        "\xF0\x9F\x98\x80",
                                        "\xD7\x90\xD7\x91",
                                        "\xC2\xA0"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        shows(plain[i], WEFT_SHOWN_LINE, plain[i]);
}

Test(shown, what_a_terminal_obeys_is_written_out)
{
    shows("\033[2J\a\x7F", WEFT_SHOWN_TEXT, "\\u001b[2J\\u0007\\u007f");
    shows("\xC2\x9B"
          "31m\xC2\x80\xC2\x9F",
          WEFT_SHOWN_TEXT, "\\u009b31m\\u0080\\u009f");
    shows("\xE2\x80\xAE"
          "evil\xE2\x81\xA6\xD8\x9C",
          WEFT_SHOWN_TEXT, "\\u202eevil\\u2066\\u061c");
    shows("a\xE2\x80\x8B\xEF\xBB\xBF\xE2\x80\xA8", WEFT_SHOWN_TEXT, "a\\u200b\\ufeff\\u2028");
    shows("\xF3\xA0\x81\x81", WEFT_SHOWN_TEXT, "\\ue0041");
    shows("\x9B"
          "31m\xC3(\xFF\xE2\x82",
          WEFT_SHOWN_TEXT, "\\x9b31m\\xc3(\\xff\\xe2\\x82");
}

Test(shown, lines_and_tabs_stay_where_they_are_the_callers)
{
    shows("a\nb\tc\r", WEFT_SHOWN_LINE, "a\\u000ab\\u0009c\\u000d");
    shows("a\nb\tc\r", WEFT_SHOWN_LINES, "a\nb\\u0009c\\u000d");
    shows("a\nb\tc\r", WEFT_SHOWN_TEXT, "a\nb\tc\\u000d");
}

Test(shown, what_has_no_room_is_cut_between_characters)
{
    char out[12];
    cr_assert_str_eq(weft_shown_into("elevenchars", 11, WEFT_SHOWN_LINE, out, 12), "elevenchars");
    cr_assert_str_eq(weft_shown_into("twelve chars", 12, WEFT_SHOWN_LINE, out, 12), "twelve c...");
    cr_assert_str_eq(weft_shown_into("1234\033\033", 6, WEFT_SHOWN_LINE, out, 12), "1234...");
    cr_assert_str_eq(weft_shown_into("123456\xE2\x82\xAC"
                                     "7890",
                                     13, WEFT_SHOWN_LINE, out, 12),
                     "123456...");
    cr_assert_str_eq(weft_shown_into("abc", 3, WEFT_SHOWN_LINE, out, 4), "abc");
    cr_assert_str_eq(weft_shown_into("abcd", 4, WEFT_SHOWN_LINE, out, 4), "...");
}

static char logged[256];

static void keep_line(void *context, enum weft_log_level level, const char *text)
{
    (void)context;
    (void)level;
    snprintf(logged, sizeof logged, "%s", text);
}

Test(shown, errors_and_log_lines_obey_nobody)
{
    struct weft_error err = {0};
    (void)weft_fail(&err, WEFT_E_DATA, "the tensor %s\nis too long",
                    "\xC2\x9B"
                    "2J\033c");
    cr_assert_str_eq(err.text, "the tensor \\u009b2J\\u001bc\nis too long");
    weft_log_set_sink(keep_line, NULL);
    weft_log(WEFT_LOG_INFO, "read %s", "\xE2\x80\xAE\a");
    weft_log_set_sink(NULL, NULL);
    cr_assert_str_eq(logged, "read \\u202e\\u0007");
}

/* Still JSON that means the same. */
Test(shown, json_is_written_without_what_a_terminal_obeys)
{
    static const char name[] = "\xC2\x9B\xE2\x80\xAE\xF3\xA0\x81\x81\xC3\xA9";
    struct weft_text text;
    struct weft_json_writer writer;
    struct weft_json *document = NULL;
    const char *back = NULL;
    weft_text_init(&text);
    weft_json_writer_init(&writer, &text, 0);
    weft_json_add_string(&writer, name);
    cr_assert_str_eq(weft_text_chars(&text), "\"\\u009b\\u202e\\udb40\\udc41\xC3\xA9\"");
    cr_assert_eq(weft_json_parse(text.data, text.length, "t", &document, NULL), WEFT_OK);
    cr_assert(weft_json_string(weft_json_root(document), &back));
    cr_assert_str_eq(back, name);
    weft_json_destroy(document);
    weft_text_finish(&text);
}
