/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/table_look.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* The form of a line that is repeated, with its number at each %d, in pieces of `step` bytes. */
static enum weft_table_form form_of(const char *line, int lines, size_t step)
{
    static char text[1 << 18];
    size_t n = 0;
    struct weft_table_look look;
    bool more = true;
    for (int i = 0; i < lines; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, line, i, i, i);
    cr_assert_lt(n, sizeof text - 1);
    weft_table_look_init(&look);
    for (size_t at = 0; at < n && more; at += step)
        more = weft_table_look_add(&look, (const unsigned char *)text + at,
                                   n - at < step ? n - at : step);
    return weft_table_look_form(&look);
}

Test(table_look, tables_are_found)
{
    static const struct {
        const char *line;
        enum weft_table_form form;
    } cases[] = {
        {"%d,word,1\n", WEFT_TABLE_CSV},
        {"\"it was fine, day %d\",0\r\n", WEFT_TABLE_CSV},
        {"\"two\nlines, \"\"%d\"\" quoted\",good\n", WEFT_TABLE_CSV},
        {"%d,,x\n", WEFT_TABLE_CSV},
        {"a sentence, number %d\ta label\n", WEFT_TABLE_TSV},
        {"%d\tan \"unbalanced quote\t7\n", WEFT_TABLE_TSV},
        {"\"tabs\tand\nlines %d\"\tx\n", WEFT_TABLE_TSV},
        {"it was fine, day %d\n", WEFT_TABLE_NONE},
        {"it was fine on day %d\n", WEFT_TABLE_NONE},
        {"a verse that ends with a comma,\n", WEFT_TABLE_NONE},
        {"\tcode(%d);\n", WEFT_TABLE_NONE},
        {"name,%d\n\n\n", WEFT_TABLE_NONE},
        {"{%d,2}\n{1,2,3}\n", WEFT_TABLE_NONE},
        {"\n", WEFT_TABLE_NONE},
        {"\033[1m%d\tbold\n", WEFT_TABLE_NONE},
        {"one line,without an end", WEFT_TABLE_NONE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (size_t step = 1; step < 1 << 17; step *= 40)
            for (int lines = 30; lines < 3000; lines *= 30) {
                enum weft_table_form form = form_of(cases[i].line, lines, step);
                cr_assert_eq(form, cases[i].form, "%d: %s", (int)form, cases[i].line);
            }
}

Test(table_look, few_records_and_many_damaged_ones_are_no_table)
{
    cr_assert_eq(form_of("%d,x\n", WEFT_TABLE_LEAST_RECORDS - 1, 1), WEFT_TABLE_NONE);
    cr_assert_eq(form_of("%d,x\n", WEFT_TABLE_LEAST_RECORDS, 1), WEFT_TABLE_CSV);
    static char text[1 << 16];
    for (int every = 5; every <= 40; every += 35) {
        struct weft_table_look look;
        size_t n = 0;
        for (int i = 1; i <= 200; i++)
            n += (size_t)snprintf(text + n, sizeof text - n, i % every == 0 ? "1\n" : "1,2\n");
        weft_table_look_init(&look);
        weft_table_look_add(&look, (const unsigned char *)text, n);
        cr_assert_eq(weft_table_look_form(&look), every == 5 ? WEFT_TABLE_NONE : WEFT_TABLE_CSV);
    }
}

Test(table_look, comments_come_before_the_first_record)
{
    struct weft_table_look look;
    char text[400] = "# a title\n# by, somebody\n";
    for (int i = 0; i < 20; i++)
        strcat(text, "1,2,3\n");
    weft_table_look_init(&look);
    weft_table_look_add(&look, (const unsigned char *)text, strlen(text));
    cr_assert_eq(weft_table_look_form(&look), WEFT_TABLE_CSV);
}
