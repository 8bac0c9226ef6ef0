/* SPDX-License-Identifier: Apache-2.0 */
#include "report/table.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void expect_table(struct weft_table *table, int32_t indent, const char *text)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_table_render(table, indent, &out);
    cr_assert(weft_text_ok(&out));
    cr_assert_str_eq(weft_text_chars(&out), text);
    weft_text_finish(&out);
    weft_table_finish(table);
}

static void add_cells(struct weft_table *table, const char *const *cells, size_t n)
{
    for (size_t i = 0; i < n; i++)
        weft_table_cell(table, "%s", cells[i]);
}

#define ADD(table, ...)                                                                            \
    add_cells(table, (const char *const[]){__VA_ARGS__},                                           \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

Test(table, columns_are_as_wide_as_their_widest_cell)
{
    struct weft_table table;
    weft_table_init(&table, "lrl");
    ADD(&table, "unit", "bytes", "why", "h.0", "1", "x", "wte.tokens", "123456", "yy");
    expect_table(&table, 2,
                 "  unit         bytes  why\n"
                 "  h.0              1  x\n"
                 "  wte.tokens  123456  yy\n");
}

Test(table, a_character_is_one_column_whatever_its_bytes)
{
    struct weft_table table;
    weft_table_init(&table, "lrl");
    ADD(&table, "\xC3\xA9t\xC3\xA9", "\xCE\xBCs", "|", "abcd", "12345", "|", "\xF0\x9D\x94\x98",
        "\xE2\x82\xAC", "|");
    expect_table(&table, 0,
                 "\xC3\xA9t\xC3\xA9      \xCE\xBCs  |\n"
                 "abcd  12345  |\n"
                 "\xF0\x9D\x94\x98         \xE2\x82\xAC  |\n");
}

Test(table, cells_of_any_length_stay_whole)
{
    enum { LENGTH = 5000 };
    static char name[LENGTH + 1], text[LENGTH + 16];
    for (size_t i = 0; i < LENGTH; i += 2)
        memcpy(name + i, "\xC3\xA9", 2);
    struct weft_table table;
    weft_table_init(&table, "lr");
    weft_table_cell(&table, "%s", name);
    weft_table_cell(&table, "%d %%", 100);
    snprintf(text, sizeof text, "%s  100 %%\n", name);
    expect_table(&table, 0, text);
}

Test(table, no_line_ends_in_spaces)
{
    struct weft_table table;
    weft_table_init(&table, "lrl");
    ADD(&table, "a", "b", "c", "long", "", "", "", "", "", "", "long", "");
    expect_table(&table, 2,
                 "  a        b  c\n"
                 "  long\n"
                 "\n"
                 "        long\n");
}

Test(table, a_row_begun_is_ended)
{
    struct weft_table table;
    weft_table_init(&table, "ll");
    ADD(&table, "a", "b", "c");
    expect_table(&table, 0, "a  b\nc\n");
}

Test(table, without_cells_is_empty)
{
    struct weft_table table;
    weft_table_init(&table, "l");
    expect_table(&table, 4, "");
}

Test(table, rendering_appends)
{
    struct weft_table table;
    struct weft_text out;
    weft_text_init(&out);
    weft_text_add(&out, "before\n");
    weft_table_init(&table, "l");
    weft_table_cell(&table, "cell");
    weft_table_render(&table, 1, &out);
    weft_table_render(&table, 0, &out);
    cr_assert_str_eq(weft_text_chars(&out), "before\n cell\ncell\n");
    weft_table_finish(&table);
    weft_text_finish(&out);
}

static void expect_within(struct weft_table *table, int32_t columns, bool color, const char *text)
{
    struct weft_text out;
    weft_text_init(&out);
    out.columns = columns;
    out.color = color;
    weft_table_render(table, 2, &out);
    cr_assert(weft_text_ok(&out));
    cr_assert_str_eq(weft_text_chars(&out), text, "got:\n%s", weft_text_chars(&out));
    weft_text_finish(&out);
}

/* Nine limits break into five and four columns, not eight and one. */
Test(table, columns_without_room_stand_below_in_even_parts)
{
    struct weft_table table;
    weft_table_init(&table, "lrrrrrrrrr");
    ADD(&table, "at", "1 GiB", "2 GiB", "3 GiB", "4 GiB", "5 GiB", "6 GiB", "7 GiB", "8 GiB",
        "9 GiB", "step", "1 s", "2 s", "3 s", "4 s", "5 s", "6 s", "7 s", "8 s", "9 s");
    expect_within(&table, 68, false,
                  "  at    1 GiB  2 GiB  3 GiB  4 GiB  5 GiB\n"
                  "  step    1 s    2 s    3 s    4 s    5 s\n"
                  "\n"
                  "  at    6 GiB  7 GiB  8 GiB  9 GiB\n"
                  "  step    6 s    7 s    8 s    9 s\n");
    expect_within(&table, 69, false,
                  "  at    1 GiB  2 GiB  3 GiB  4 GiB  5 GiB  6 GiB  7 GiB  8 GiB  9 GiB\n"
                  "  step    1 s    2 s    3 s    4 s    5 s    6 s    7 s    8 s    9 s\n");
    expect_within(&table, 27, false,
                  "  at    1 GiB  2 GiB  3 GiB\n"
                  "  step    1 s    2 s    3 s\n"
                  "\n"
                  "  at    4 GiB  5 GiB  6 GiB\n"
                  "  step    4 s    5 s    6 s\n"
                  "\n"
                  "  at    7 GiB  8 GiB  9 GiB\n"
                  "  step    7 s    8 s    9 s\n");
    weft_table_finish(&table);
}

Test(table, a_column_that_has_no_room_anywhere_stands_alone)
{
    struct weft_table table;
    weft_table_init(&table, "lll");
    ADD(&table, "name", "path", "ok", "a", "/a/path/that/is/long", "yes");
    expect_within(&table, 12, false,
                  "  name  path\n"
                  "  a     /a/path/that/is/long\n"
                  "\n"
                  "  name  ok\n"
                  "  a     yes\n");
    weft_table_finish(&table);
}

Test(table, text_goes_on_below_itself)
{
    struct weft_table table;
    weft_table_init(&table, "llw");
    ADD(&table, "block", "at", "why", "1 of 2", "F1", "channel order: behind all_gather of h.0",
        "2 of 2", "F2", "window");
    expect_within(&table, 40, false,
                  "  block   at  why\n"
                  "  1 of 2  F1  channel order: behind\n"
                  "              all_gather of h.0\n"
                  "  2 of 2  F2  window\n");
    /* If text does not fit, it gets a part of its own. */
    expect_within(&table, 29, false,
                  "  block   at\n"
                  "  1 of 2  F1\n"
                  "  2 of 2  F2\n"
                  "\n"
                  "  block   why\n"
                  "  1 of 2  channel order:\n"
                  "          behind all_gather\n"
                  "          of h.0\n"
                  "  2 of 2  window\n");
    weft_table_finish(&table);
}

Test(table, colours_stand_around_words_and_take_no_room)
{
    struct weft_table table;
    weft_table_init(&table, "lrl");
    ADD(&table, "plan", "fits", "");
    weft_table_cell(&table, "ilp");
    weft_table_cell_painted(&table, WEFT_PAINT_GOOD, "yes");
    weft_table_cell(&table, "|");
    weft_table_cell(&table, "all-sdp");
    weft_table_cell_painted(&table, WEFT_PAINT_BAD, "no");
    weft_table_cell_painted(&table, WEFT_PAINT_FAINT, "%s", "-");
    expect_within(&table, 0, true,
                  "  plan     fits\n"
                  "  ilp       \033[32myes\033[0m  |\n"
                  "  all-sdp    \033[31mno\033[0m  \033[2m-\033[0m\n");
    expect_within(&table, 0, false,
                  "  plan     fits\n"
                  "  ilp       yes  |\n"
                  "  all-sdp    no  -\n");
    weft_table_finish(&table);
}

/* The number of columns at its limits, and one beyond each. */
Test(table, columns_are_from_one_to_the_most)
{
    static char align[WEFT_TABLE_COLUMNS + 2];
    static char cells[4 * WEFT_TABLE_COLUMNS];
    for (int32_t k = 0; k < WEFT_TABLE_COLUMNS; k++)
        strcat(cells, k == 0 ? "x" : "  x");
    strcat(cells, "\n");
    const int32_t counts[] = {0, 1, WEFT_TABLE_COLUMNS, WEFT_TABLE_COLUMNS + 1};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct weft_table table;
        struct weft_text out;
        bool ok = counts[i] >= 1 && counts[i] <= WEFT_TABLE_COLUMNS;
        memset(align, 'l', sizeof align);
        align[counts[i]] = '\0';
        weft_text_init(&out);
        weft_table_init(&table, align);
        for (int32_t k = 0; k < counts[i]; k++)
            weft_table_cell(&table, "x");
        weft_table_render(&table, 0, &out);
        cr_assert_eq(weft_text_ok(&out), ok);
        cr_assert_str_eq(weft_text_chars(&out), !ok ? "" : counts[i] == 1 ? "x\n" : cells);
        weft_table_finish(&table);
        weft_text_finish(&out);
    }
}
