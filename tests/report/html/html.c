/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/html.h"

#include <criterion/criterion.h>
#include <string.h>

static void check_text(const char *text, const char *wanted)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_html_add(&out, text);
    cr_assert_str_eq(weft_text_chars(&out), wanted);
    weft_text_finish(&out);
}

Test(html, untrusted_text_is_text)
{
    check_text("<script>\"'&", "&lt;script&gt;&quot;&#39;&amp;");
    check_text("a\u202eb\x01\xff", "a\\u202eb\\u0001\\xff");
    check_text("two\nlines \u00b7", "two\nlines \u00b7");
}

Test(html, a_cut_never_splits_an_escape)
{
    struct weft_text out;
    for (int width = 1; width < 200; width++) {
        weft_text_init(&out);
        weft_html_add_cut(&out, "<<<<\u00e9\u00e9&&&&&&&&", 10, width);
        const char *text = weft_text_chars(&out);
        for (const char *at = text; (at = strchr(at, '&')) != NULL; at++)
            cr_assert(strncmp(at, "&lt;", 4) == 0 || strncmp(at, "&amp;", 5) == 0, "%s", text);
        cr_assert(width > 81 || strstr(text, "\u2026") != NULL, "%d: %s", width, text);
        weft_text_finish(&out);
    }
}

Test(html, places_have_one_digit)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_html_add_place(&out, 12.04);
    weft_text_add(&out, " ");
    weft_html_add_place(&out, 12.96);
    weft_text_add(&out, " ");
    weft_html_add_place(&out, 0.26);
    weft_text_add(&out, " ");
    weft_html_add_place(&out, -0.04);
    cr_assert_str_eq(weft_text_chars(&out), "12 13 0.3 0");
    weft_text_finish(&out);
}

Test(html, an_answer_has_a_table_with_its_heads)
{
    static const struct weft_column columns[] = {{"name", "name", 'l', WEFT_FIGURE_WORD, 0},
                                                 {"ns", "time", 'r', WEFT_FIGURE_NS, 0},
                                                 {"hidden", NULL, 'r', WEFT_FIGURE_INTEGER, 0}};
    struct weft_answer answer = {0};
    struct weft_text out;
    struct weft_rows *rows = weft_answer_table(&answer, "rows", columns, 3);
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, 0, "<a>");
    weft_rows_integer(rows, 1, 1500000);
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, 0, "not shown");
    weft_rows_hide(rows);
    weft_text_init(&out);
    weft_html_tables(&answer, &out);
    const char *text = weft_text_chars(&out);
    cr_assert_not_null(strstr(text, "<th class=\"l\">name</th><th class=\"r\">time</th></tr>"));
    cr_assert_not_null(strstr(text, "<td class=\"l\">&lt;a&gt;</td><td class=\"r\">1.50 ms</td>"));
    cr_assert_null(strstr(text, "hidden"));
    cr_assert_null(strstr(text, "not shown"));
    weft_text_finish(&out);
    weft_answer_finish(&answer);
}

/* Counts a word of a table of one row and n columns. */
static int count_in_table(int32_t n, const char *word)
{
    enum { MOST = 20 };
    struct weft_column columns[MOST];
    struct weft_answer answer = {0};
    struct weft_text out;
    int found = 0;
    for (int32_t c = 0; c < n; c++)
        columns[c] = (struct weft_column){"key", "head", 'r', WEFT_FIGURE_INTEGER, 0};
    struct weft_rows *rows = weft_answer_table(&answer, "rows", columns, n);
    weft_rows_begin(rows, NULL);
    for (int32_t c = 0; c < n; c++)
        weft_rows_integer(rows, c, c);
    weft_text_init(&out);
    weft_html_tables(&answer, &out);
    for (const char *at = weft_text_chars(&out); (at = strstr(at, word)) != NULL; at++)
        found++;
    weft_text_finish(&out);
    weft_answer_finish(&answer);
    return found;
}

Test(html, a_table_of_many_columns_has_a_line_for_each)
{
    cr_assert_eq(count_in_table(12, "<tr>"), 2);
    cr_assert_eq(count_in_table(13, "<tr>"), 13);
    cr_assert_eq(count_in_table(13, "<td"), 13);
    cr_assert_eq(count_in_table(13, "<th"), 13 + 1, "and a <thead>");
    cr_assert_eq(count_in_table(13, "</thead><tbody>"), 1);
}
