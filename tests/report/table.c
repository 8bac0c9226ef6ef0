#include "report/table.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static void expect(struct weft_table *table, int32_t indent, const char *text)
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
    expect(&table, 2,
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
    expect(&table, 0,
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
    expect(&table, 0, text);
}

Test(table, no_line_ends_in_spaces)
{
    struct weft_table table;
    weft_table_init(&table, "lrl");
    ADD(&table, "a", "b", "c", "long", "", "", "", "", "", "", "long", "");
    expect(&table, 2,
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
    expect(&table, 0, "a  b\nc\n");
}

Test(table, without_cells_is_empty)
{
    struct weft_table table;
    weft_table_init(&table, "l");
    expect(&table, 4, "");
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

/* All columns there may be, and one fewer and one more than there may. */
Test(table, columns_are_from_one_to_the_most)
{
    static const char align[] = "llllllllllllllll";
    _Static_assert(sizeof align - 1 == WEFT_TABLE_COLUMNS, "one letter a column");
    const struct {
        const char *align;
        bool ok;
    } cases[] = {{align, true}, {"", false}, {"lllllllllllllllll", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct weft_table table;
        struct weft_text out;
        weft_text_init(&out);
        weft_table_init(&table, cases[i].align);
        for (int32_t k = 0; k < WEFT_TABLE_COLUMNS; k++)
            weft_table_cell(&table, "%d", k);
        weft_table_render(&table, 0, &out);
        cr_assert_eq(weft_text_ok(&out), cases[i].ok);
        cr_assert_str_eq(weft_text_chars(&out),
                         cases[i].ok ? "0  1  2  3  4  5  6  7  8  9  10  11  12  13  14  15\n"
                                     : "");
        weft_table_finish(&table);
        weft_text_finish(&out);
    }
}
