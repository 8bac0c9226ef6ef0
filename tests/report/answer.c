/* An answer and its renderers. */
#include "report/answer.h"

#include <criterion/criterion.h>

enum { NAME, STEP, SHARE, FITS, INNER, OTHER, NOTE, N_COLUMNS };

static const struct weft_column columns[N_COLUMNS] = {
    [NAME] = {"name", "name", 'l', WEFT_FIGURE_WORD, false},
    [STEP] = {"step_ns", "step", 'r', WEFT_FIGURE_NS, true},
    [SHARE] = {"share", "share", 'r', WEFT_FIGURE_PERCENT, false},
    [FITS] = {"fits", "fits", 'l', WEFT_FIGURE_BOOL, false},
    [INNER] = {"bytes.state", NULL, 'r', WEFT_FIGURE_BYTES, false},
    [OTHER] = {"bytes.saved", NULL, 'r', WEFT_FIGURE_BYTES, false},
    [NOTE] = {NULL, "note", 'l', WEFT_FIGURE_WORD, false},
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
