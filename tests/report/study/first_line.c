/* SPDX-License-Identifier: Apache-2.0 */
/* The line that begins a report. */
#include "report/study/first_line.h"

#include <string.h>

#include "tests/report/answer_text.h"
#include "tests/report/small_plan.h"

static void expect_line(struct weft_text *text, const char *wanted)
{
    cr_assert_str_eq(weft_text_chars(text), wanted);
    weft_text_finish(text);
    weft_text_init(text);
}

Test(first_line, a_bound_is_told_as_a_gain)
{
    struct weft_text out;
    weft_text_init(&out);
    weft_answer_bound(1000000, (struct weft_plan_claim){0}, &out);
    expect_line(&out, "");
    weft_answer_bound(1000000, (struct weft_plan_claim){1000000, 0}, &out);
    expect_line(&out, "no plan is faster");
    weft_answer_bound(1001100, (struct weft_plan_claim){1000000, 65536}, &out);
    expect_line(&out, "in pages of 64.0 KiB no plan is more than 0.11 % faster");
    weft_text_finish(&out);
}

Test(first_line, names_the_choices)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    weft_text_init(&out);
    weft_answer_ways(plan, &out);
    expect_line(&out, "sdp");
    plan->bound_ns = 0;
    ADD_TEXT(&out, weft_answer_plan(plan, 0, &answer));
    cr_assert(strstr(weft_text_chars(&out), "sdp: ") == weft_text_chars(&out), "%s",
              weft_text_chars(&out));
    cr_assert(strstr(weft_text_chars(&out), "1.66 KiB\n") != NULL, "%s", weft_text_chars(&out));
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}
