/* The line that begins a report. */
#include "report/study/answer.h"

#include <string.h>

#include "tests/report/small_plan.h"

static void expect_text(struct weft_text *text, const char *wanted)
{
    cr_assert_str_eq(weft_text_chars(text), wanted);
    weft_text_finish(text);
    weft_text_init(text);
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

Test(answer, a_bound_is_told_as_a_gain)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_answer_bound(1000000, 0, &out);
    expect_text(&out, "");
    weft_answer_bound(1000000, 1000000, &out);
    expect_text(&out, "no plan is faster");
    weft_answer_bound(1001100, 1000000, &out);
    expect_text(&out, "no plan is more than 0.11 % faster");
    weft_text_finish(&out);
}

Test(answer, names_the_choices)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    weft_text_init(&out);
    weft_answer_ways(plan, &out);
    expect_text(&out, "sdp");
    plan->bound_ns = 0;
    weft_answer_plan(plan, 0, &out);
    cr_assert(strstr(weft_text_chars(&out), "sdp: ") == weft_text_chars(&out), "%s",
              weft_text_chars(&out));
    cr_assert(strstr(weft_text_chars(&out), "1.66 KiB\n") != NULL, "%s", weft_text_chars(&out));
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}
