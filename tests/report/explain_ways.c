/* SPDX-License-Identifier: Apache-2.0 */
#include "report/explain.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/report/answer_text.h"
#include "tests/report/small_plan.h"

static void expect_ways(const struct weft_plan *plan, int32_t most_rows, const char *text)
{
    struct weft_text out;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain_ways(plan, most_rows, &answer));
    cr_assert_str_eq(weft_text_chars(&out), text);
    weft_text_finish(&out);
}

/* The plan has sdp, and B:a is its fullest slot: unit a holds 400 bytes there, b 100 and dp none.
 * dp's update takes 200 ns more, and one AllReduce of 1200 ns replaces two collectives of 1200. */
Test(explain_ways, prices_each_strategy_next_to_the_chosen_one)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    expect_ways(plan, 20,
                "the price of each strategy: bytes in slot B:a, time of compute and lanes without "
                "overlap\n"
                "  decision  strategy   frees      adds  a ms frees\n"
                "  a         dp        +400 B  -1.00 us           -\n"
                "            sdp *          -         -           -\n"
                "  b         dp        +100 B  -1.00 us           -\n"
                "            sdp *          -         -           -\n"
                "  next with less memory: a dp, which frees +400 B for -1.00 us\n\n");
    plan->strategies[0] = IS_DP;
    expect_ways(plan, 2,
                "the price of each strategy: bytes in slot B:a, time of compute and lanes without "
                "overlap\n"
                "  decision  strategy   frees      adds  a ms frees\n"
                "  a         dp *           -         -           -\n"
                "            sdp       -400 B  +1.00 us           -\n"
                "  2 more, --all\n"
                "  next with less memory: b dp, which frees +100 B for -1.00 us\n\n");
    weft_plan_destroy(plan);
}

/* Two units trade bytes for time. The one with more bytes a ns is next with less memory,
 * and the one with fewer is next with more. */
Test(explain_ways, names_the_best_exchange_in_both_directions)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    problem.items[A_ALL_REDUCE].block_ns = 2000; /* dp adds 1800 ns for 400 bytes */
    problem.items[B_ALL_REDUCE].block_ns = 1200; /* and 200 ns for 100 */
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain_ways(plan, 20, &answer));
    cr_assert_not_null(strstr(weft_text_chars(&out),
                              "next with less memory: b dp, which frees +100 B for +200 ns\n"),
                       "%s", weft_text_chars(&out));
    cr_assert_null(strstr(weft_text_chars(&out), "next with more"));
    weft_text_finish(&out);
    plan->strategies[0] = plan->strategies[1] = IS_DP;
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain_ways(plan, 20, &answer));
    cr_assert_not_null(strstr(weft_text_chars(&out),
                              "next with more memory: a sdp, which frees -400 B for -1.80 us\n"),
                       "%s", weft_text_chars(&out));
    cr_assert_null(strstr(weft_text_chars(&out), "next with less"));
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}

Test(explain_ways, json_has_every_strategy)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    weft_text_init(&out);
    ADD_JSON(&out, 0, weft_explain_ways(plan, 1, &answer));
    cr_assert_str_eq(
        weft_text_chars(&out),
        "{\"strategies\": [{\"decision\": \"a\", \"strategy\": \"dp\", \"chosen\": false, "
        "\"freed_bytes\": 400, \"added_ns\": -1000}, {\"decision\": \"a\", \"strategy\": \"sdp\", "
        "\"chosen\": true, \"freed_bytes\": 0, \"added_ns\": 0}, {\"decision\": \"b\", "
        "\"strategy\": \"dp\", \"chosen\": false, \"freed_bytes\": 100, \"added_ns\": -1000}, "
        "{\"decision\": \"b\", \"strategy\": \"sdp\", \"chosen\": true, \"freed_bytes\": 0, "
        "\"added_ns\": 0}]}");
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}
