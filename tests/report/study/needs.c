/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/needs.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define GIB (INT64_C(1) << 30)

static const struct weft_need need_rows[] = {
    {.policy = WEFT_POLICY_DP,
     .way = WEFT_NEED_PUBLISHED,
     .rule = "ddp",
     .applies = true,
     .bytes = 5 * GIB,
     .categories = {[WEFT_CATEGORY_OPTIMIZER_STATE] = 5 * GIB},
     .slot_name = "B:h.0",
     .unit_name = "wte",
     .step_ns = 1500000},
    {.policy = WEFT_POLICY_SDP, .way = WEFT_NEED_PUBLISHED, .rule = "other"},
    {.policy = WEFT_POLICY_FSDP,
     .way = WEFT_NEED_JUST_IN_TIME,
     .applies = true,
     .bytes = 2 * GIB,
     .slot_name = "B:encoder.layers.17",
     .unit_name = "encoder.layers.17+norm",
     .step_ns = 2500000},
    {.policy = WEFT_POLICY_FSDP,
     .way = WEFT_NEED_FASTEST,
     .applies = true,
     .bytes = 4 * GIB,
     .slot_name = "drain",
     .unit_name = "",
     .step_ns = 0},
};

static void expect_needs(int64_t limit_bytes, const char *text)
{
    struct weft_answer answer = {0};
    struct weft_text out;
    weft_text_init(&out);
    weft_report_needs(need_rows, 4, limit_bytes, true, &answer);
    weft_answer_text(&answer, &out);
    weft_answer_finish(&answer);
    cr_assert_str_eq(weft_text_chars(&out), text);
    weft_text_finish(&out);
}

Test(estimate, says_of_every_way_what_it_needs_and_by_how_much_it_does_not_fit)
{
    expect_needs(4 * GIB,
                 "policy  schedule         needs  of 4.00 GiB     step  peak slot       most by\n"
                 "dp      ddp           5.00 GiB    +1.00 GiB  1.50 ms  B:h.0           wte\n"
                 "fsdp    just in time  2.00 GiB         fits  2.50 ms  ..er.layers.17  "
                 "...17+norm\n"
                 "        fastest       4.00 GiB         fits        -  drain           -\n");
    expect_needs(0, "policy  schedule         needs     step  peak slot       most by\n"
                    "dp      ddp           5.00 GiB  1.50 ms  B:h.0           wte\n"
                    "fsdp    just in time  2.00 GiB  2.50 ms  ..er.layers.17  ...17+norm\n"
                    "        fastest       4.00 GiB        -  drain           -\n");
}

/* The widest that there is, but for names that are cut. */
Test(estimate, fits_into_80_columns)
{
    struct weft_need wide = need_rows[2];
    struct weft_answer answer = {0};
    struct weft_text out;
    wide.policy = WEFT_POLICY_ZERO1;
    wide.bytes = 1023 * 1024 * GIB - 1;
    wide.step_ns = 123456789;
    weft_text_init(&out);
    weft_report_needs(&wide, 1, 1023 * GIB - 2, true, &answer);
    weft_answer_text(&answer, &out);
    weft_answer_finish(&answer);
    for (const char *line = weft_text_chars(&out); *line; line += strcspn(line, "\n") + 1)
        cr_assert_leq(strcspn(line, "\n"), 80, "%s", line);
    weft_text_finish(&out);
}

Test(estimate, shows_categories_of_what_rules_hold)
{
    struct weft_answer answer = {0};
    struct weft_text out;
    weft_text_init(&out);
    weft_report_needs_memory(need_rows, 4, &answer);
    weft_answer_text(&answer, &out);
    weft_answer_finish(&answer);
    cr_assert_eq(strncmp(weft_text_chars(&out), "at the peak of            ddp\n", 30), 0, "%s",
                 weft_text_chars(&out));
    cr_assert_not_null(strstr(weft_text_chars(&out), "optimizer state      5.00 GiB\n"));
    cr_assert_null(strstr(weft_text_chars(&out), "other"));
    weft_text_finish(&out);
}

static char *json_of_needs(bool timed)
{
    struct weft_answer answer = {0};
    struct weft_text out;
    struct weft_json_writer writer;
    weft_text_init(&out);
    weft_json_writer_init(&writer, &out, 0);
    weft_report_needs(need_rows, 4, 4 * GIB, timed, &answer);
    weft_answer_json(&answer, &writer);
    weft_answer_finish(&answer);
    cr_assert(weft_text_ok(&out));
    return out.data;
}

Test(estimate, json_has_names_in_full_and_no_times_where_none_are_known)
{
    char *timed = json_of_needs(true), *untimed = json_of_needs(false);
    cr_assert_not_null(strstr(timed, "\"peak_unit\": \"encoder.layers.17+norm\""), "%s", timed);
    cr_assert_not_null(strstr(timed, "\"rule\": \"ddp\""), "%s", timed);
    cr_assert_not_null(strstr(timed, "\"fits\": false"), "%s", timed);
    cr_assert_not_null(strstr(timed, "\"step_ns\": 1500000"), "%s", timed);
    cr_assert_null(strstr(timed, "other"), "%s", timed);
    cr_assert_null(strstr(untimed, "1500000"), "%s", untimed);
    cr_assert_not_null(strstr(untimed, "\"step_ns\": null"), "%s", untimed);
    free(timed);
    free(untimed);
}
