/* SPDX-License-Identifier: Apache-2.0 */
/* An answer and its renderers. */
#include "report/answer.h"

#include <criterion/criterion.h>

enum { NAME, STEP, SHARE, FITS, INNER, OTHER, NOTE, N_COLUMNS };

static const struct weft_column columns[N_COLUMNS] = {
    [NAME] = {"name", "name", 'l', WEFT_FIGURE_WORD, 0},
    [STEP] = {"step_ns", "step", 'r', WEFT_FIGURE_NS, WEFT_COLUMN_NULL},
    [SHARE] = {"share", "share", 'r', WEFT_FIGURE_PERCENT, 0},
    [FITS] = {"fits", "fits", 'l', WEFT_FIGURE_BOOL, 0},
    [INNER] = {"bytes.state", NULL, 'r', WEFT_FIGURE_BYTES, 0},
    [OTHER] = {"bytes.saved", NULL, 'r', WEFT_FIGURE_BYTES, 0},
    [NOTE] = {NULL, "note", 'l', WEFT_FIGURE_WORD, 0},
};

/* Two rows of a table, a member of its own, and a row for data alone. */
static void fill_answer(struct weft_answer *answer)
{
    weft_answer_say(answer, "answer", "%s fits\n", "a");
    weft_answer_word(answer, "times", "analytic");
    weft_answer_integer(answer, "ranks", 8);
    struct weft_rows *rows = weft_answer_table(answer, "rows", columns, N_COLUMNS);
    rows->indent = 1;
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, NAME, "a, \"b\"");
    weft_rows_integer(rows, STEP, 1500000);
    weft_rows_real(rows, SHARE, 0.125);
    weft_rows_integer(rows, FITS, true);
    weft_rows_show(rows, FITS, WEFT_PAINT_GOOD, "yes");
    weft_rows_integer(rows, INNER, 1024);
    weft_rows_integer(rows, OTHER, 2048);
    weft_rows_word(rows, NOTE, "n");
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, NAME, "c");
    weft_rows_word(rows, NOTE, NULL);
    weft_rows_begin(rows, "joint");
    weft_rows_word(rows, NAME, "j");
    weft_rows_integer(rows, OTHER, 4);
    weft_rows_begin(rows, "best");
    weft_rows_word(rows, NAME, "hidden");
    weft_rows_hide(rows);
    weft_answer_say(answer, NULL, "end\n");
}

Test(answer, text_has_lines_and_tables_in_order)
{
    struct weft_answer answer = {0};
    struct weft_text out;
    fill_answer(&answer);
    weft_text_init(&out);
    weft_answer_text(&answer, &out);
    cr_assert_str_eq(weft_text_chars(&out), "a fits\n"
                                            " name       step    share  fits  note\n"
                                            " a, \"b\"  1.50 ms  12.50 %  yes   n\n"
                                            " c             -        -  -     -\n"
                                            " j             -        -  -     -\n"
                                            "end\n");
    weft_text_finish(&out);
    weft_answer_finish(&answer);
}

Test(answer, json_has_facts_inner_objects_and_members)
{
    struct weft_answer answer = {0};
    struct weft_text out;
    struct weft_json_writer writer;
    fill_answer(&answer);
    weft_text_init(&out);
    weft_json_writer_init(&writer, &out, 0);
    weft_answer_json(&answer, &writer);
    cr_assert_str_eq(weft_text_chars(&out),
                     "{\"answer\": \"a fits\", \"times\": \"analytic\", \"ranks\": 8, "
                     "\"rows\": [{\"name\": \"a, \\\"b\\\"\", \"step_ns\": 1500000, "
                     "\"share\": 0.125, \"fits\": true, "
                     "\"bytes\": {\"state\": 1024, \"saved\": 2048}}, "
                     "{\"name\": \"c\", \"step_ns\": null}], "
                     "\"joint\": {\"name\": \"j\", \"step_ns\": null, \"bytes\": {\"saved\": 4}}, "
                     "\"best\": {\"name\": \"hidden\", \"step_ns\": null}}");
    weft_text_finish(&out);
    weft_answer_finish(&answer);
}

Test(answer, csv_has_a_head_and_a_line_per_row)
{
    struct weft_answer answer = {0};
    struct weft_text out;
    fill_answer(&answer);
    weft_text_init(&out);
    weft_answer_csv(&answer, &out);
    cr_assert_str_eq(weft_text_chars(&out), "name,step_ns,share,fits,bytes.state,bytes.saved\n"
                                            "\"a, \"\"b\"\"\",1500000,0.125,1,1024,2048\n"
                                            "c,,,,,\n"
                                            "j,,,,,4\n");
    weft_text_finish(&out);
    weft_answer_finish(&answer);
}

Test(answer, a_head_may_change_or_leave_the_text)
{
    struct weft_answer answer = {0};
    struct weft_text out;
    struct weft_rows *rows = weft_answer_table(&answer, NULL, columns, STEP + 1);
    weft_rows_head(rows, NAME, "of %d", 3);
    weft_rows_head(rows, STEP, NULL);
    weft_rows_begin(rows, NULL);
    weft_rows_word(rows, NAME, "x");
    weft_text_init(&out);
    weft_answer_text(&answer, &out);
    cr_assert_str_eq(weft_text_chars(&out), "of 3\nx\n");
    weft_text_finish(&out);
    weft_answer_finish(&answer);
}

/* A table has a title, a count of hidden rows and a note; without rows in text it has none. */
Test(answer, tables_have_titles_and_notes)
{
    struct weft_answer answer = {0};
    struct weft_text out;
    weft_text_init(&out);
    for (int i = 0; i < 2; i++) {
        struct weft_rows *rows = weft_answer_table(&answer, NULL, columns, STEP + 1);
        weft_rows_title(rows, "title %d", i);
        weft_rows_note(rows, "note %d", i);
        weft_rows_more(rows, 3 * i);
        if (i > 0) weft_rows_begin(rows, NULL);
        weft_rows_integer(rows, STEP, 1000);
    }
    weft_answer_text(&answer, &out);
    cr_assert_str_eq(weft_text_chars(&out), "title 1\n  name     step\n  -     1.00 us\n"
                                            "  3 more, --all\nnote 1\n");
    weft_text_finish(&out);
    weft_answer_finish(&answer);
}

/* Lists break after commas where a line is full. */
Test(answer, lists_are_wrapped)
{
    struct weft_answer answer = {0};
    struct weft_text out;
    weft_text_init(&out);
    out.columns = 22;
    weft_answer_list(&answer, "head", "a one, b two, c three");
    weft_answer_list(&answer, "none", "");
    weft_answer_text(&answer, &out);
    cr_assert_str_eq(weft_text_chars(&out),
                     "head      a one,\n          b two,\n          c three\n");
    weft_text_finish(&out);
    weft_answer_finish(&answer);
}

/* Facts and tables may be in objects and lists, keys name inner objects, and rows may be series. */
Test(answer, data_is_nested)
{
    static const struct weft_column deep[] = {
        {"a", NULL, 'l', WEFT_FIGURE_WORD, 0},
        {"b.c.d", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
        {"b.c.e", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
        {"b.f", NULL, 'r', WEFT_FIGURE_INTEGER, 0},
        {"g", NULL, 'l', WEFT_FIGURE_WORD, WEFT_COLUMN_CSV | WEFT_COLUMN_QUOTED},
        {"h", NULL, 'l', WEFT_FIGURE_WORD, WEFT_COLUMN_JSON}};
    struct weft_answer answer = {0};
    struct weft_text out;
    struct weft_json_writer writer;
    weft_text_init(&out);
    weft_answer_open(&answer, "in");
    weft_answer_bool(&answer, "yes", true);
    weft_answer_word(&answer, "none", NULL);
    weft_answer_open_list(&answer, "list");
    weft_answer_flat(&answer);
    weft_answer_word(&answer, NULL, "x");
    weft_answer_open(&answer, NULL);
    weft_answer_integer(&answer, "y", 7);
    weft_answer_close(&answer);
    weft_answer_close_list(&answer);
    weft_answer_close(&answer);
    struct weft_rows *rows = weft_answer_table(&answer, "series", deep, 6);
    rows->points = "points";
    for (int i = 0; i < 3; i++) {
        weft_rows_begin(rows, NULL);
        if (i != 1) weft_rows_begin_series(rows);
        weft_rows_word(rows, 0, i < 2 ? "p" : "q");
        weft_rows_integer(rows, 1 + i, i);
        weft_rows_word(rows, 4, "w");
        weft_rows_word(rows, 5, "j");
    }
    weft_json_writer_init(&writer, &out, 0);
    weft_answer_json(&answer, &writer);
    cr_assert_str_eq(weft_text_chars(&out),
                     "{\"in\": {\"yes\": true, \"none\": null, \"list\": [\"x\", {\"y\": 7}]}, "
                     "\"series\": [{\"a\": \"p\", \"points\": "
                     "[{\"b\": {\"c\": {\"d\": 0}}, \"h\": \"j\"}, "
                     "{\"b\": {\"c\": {\"e\": 1}}, \"h\": \"j\"}]}, "
                     "{\"a\": \"q\", \"points\": [{\"b\": {\"f\": 2}, \"h\": \"j\"}]}]}");
    weft_text_finish(&out);
    weft_text_init(&out);
    weft_answer_csv(&answer, &out);
    cr_assert_str_eq(weft_text_chars(&out), "a,b.c.d,b.c.e,b.f,g\np,0,,,\"w\"\n"
                                            "p,,1,,\"w\"\nq,,,2,\"w\"\n");
    weft_text_finish(&out);
    weft_answer_finish(&answer);
}

/* The first line may come last, parts may be hidden in text, and all of it may be a list. */
Test(answer, a_list_may_have_a_first_line_and_hidden_parts)
{
    struct weft_answer answer = {.is_list = true};
    struct weft_text out;
    struct weft_json_writer writer;
    weft_text_init(&out);
    weft_answer_say(&answer, NULL, "shown\n");
    answer.is_hidden = true;
    weft_answer_say(&answer, NULL, "hidden\n");
    weft_answer_real(&answer, NULL, 1.5);
    weft_answer_lead(&answer, "first\n");
    weft_answer_text(&answer, &out);
    cr_assert_str_eq(weft_text_chars(&out), "first\nshown\n");
    weft_text_finish(&out);
    weft_text_init(&out);
    weft_json_writer_init(&writer, &out, 0);
    weft_answer_json(&answer, &writer);
    cr_assert_str_eq(weft_text_chars(&out), "[1.5]");
    weft_text_finish(&out);
    weft_answer_finish(&answer);
}

Test(answer, counts_have_three_digits)
{
    static const struct {
        double count;
        const char *shown;
    } counts[] = {{0.5, "0.50"},  {9.99, "9.99"},   {9.996, "10.0"},  {99.96, "100"},
                  {999.4, "999"}, {999.6, "1.00k"}, {70900, "70.9k"}, {1.5e6, "1.50M"}};
    char out[WEFT_UNITS_TEXT_BYTES];
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        cr_assert_str_eq(weft_answer_count(counts[i].count, out), counts[i].shown);
}
