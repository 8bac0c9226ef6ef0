/* SPDX-License-Identifier: Apache-2.0 */
#include "report/explain_other.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/report/answer_text.h"
#include "tests/report/small_plan.h"

static void expect_told(const struct weft_plan *plan, const struct weft_other_choice *other,
                        const char *words, const char *json)
{
    const enum weft_other_kind kind = other != NULL ? other->kind : WEFT_OTHER_ORDER;
    struct weft_text text, data;
    weft_text_init(&text);
    weft_text_init(&data);
    ADD_TEXT(&text, weft_explain_other(plan, kind, other, &answer));
    ADD_JSON(&data, 0, weft_explain_other(plan, kind, other, &answer));
    cr_assert_not_null(strstr(weft_text_chars(&text), words), "%s in: %s", words,
                       weft_text_chars(&text));
    cr_assert_not_null(strstr(weft_text_chars(&data), json), "%s in: %s", json,
                       weft_text_chars(&data));
    weft_text_finish(&text);
    weft_text_finish(&data);
}

Test(explain_other, an_unknown_or_impossible_order_is_told)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    const struct weft_other_choice refused = {.layers = 1, .refused = "a step has one micro-step"};
    const struct weft_other_choice lost = {.layers = 4, .least_bytes = INT64_MAX};
    expect_told(plan, NULL, "", "\"other_order\": null");
    expect_told(plan, &refused, "by layer\n  not possible here: a step has one micro-step",
                "\"refused\": \"a step has one micro-step\"");
    expect_told(plan, &lost, "by 4 layers\n  no plan of it was found", "\"fits\": false");
    expect_told(plan, &lost, "fits the limits of other tiers", "\"layers\": 4");
    weft_plan_destroy(plan);
}

/* A place without a plan has no number of layers. Equal needs are no difference. */
Test(explain_other, the_place_of_updates_is_told_with_its_price)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem), *there = small_plan(&problem);
    struct weft_other_choice other = {
        .kind = WEFT_OTHER_UPDATES, .layers = 1, .refused = "clipping needs the norm"};
    expect_told(plan, &other, "place of updates: in backward\n  not possible here: clipping",
                "\"update_in\": \"backward\"");
    other = (struct weft_other_choice){.kind = WEFT_OTHER_UPDATES,
                                       .layers = 2,
                                       .price = "the run ends",
                                       .fits = true,
                                       .plan = there,
                                       .least_bytes = 1700,
                                       .own_least_bytes = 1700};
    expect_told(plan, &other, "in backward, 2 layers after a unit's own\n  a step takes",
                "\"layers\": 2");
    expect_told(plan, &other, "as that of the plan's place\n", "\"other_updates\": {");
    expect_told(plan, &other, "\n  price: the run ends\n", "\"price\": \"the run ends\"");
    other.bound_ns = 70;
    expect_told(plan, &other, "; no plan of it is faster than 70 ns", "\"bound_ns\": 70");
    problem.period.n_micro = 2;
    expect_told(plan, &other, "; no plan of it in the plan's cadence is faster than 70 ns",
                "\"bound_ns\": 70");
    problem.period.n_micro = 1;
    other.layers = 0;
    other.price = NULL;
    expect_told(plan, &other, "in forward\n", "\"update_in\": \"forward\"");
    weft_plan_destroy(there);
    weft_plan_destroy(plan);
}

/* The other plan has one slot of 2000 ns more, and 5000 bytes more of activations in slot 6, which
 * the small problem's plan holds most in too. */
Test(explain_other, the_lane_and_the_row_are_named)
{
    struct weft_problem problem = small_problem(), slower = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_hold more[64];
    cr_assert_lt(slower.n_common, 64);
    memcpy(more, slower.common, (size_t)slower.n_common * sizeof *more);
    more[slower.n_common++] = (struct weft_hold){WEFT_CATEGORY_ACTIVATIONS, 3, 6, 5000, 0};
    slower.common = more;
    struct weft_plan *other = small_plan(&slower);
    other->prediction.step_ns = 3 * plan->prediction.step_ns;
    struct weft_other_choice found = {
        .plan = other, .fits = true, .bound_ns = 70, .least_bytes = 6700, .own_least_bytes = 1700};
    expect_told(plan, &found, "one after the other\n  a step takes", "\"order\": \"step\"");
    expect_told(plan, &found, "3.00 times slower; no plan of it is faster than 70 ns",
                "\"bound_ns\": 70");
    expect_told(plan, &found, "4.88 KiB more than that of the", "\"own_least_bytes\": 1700");
    expect_told(plan, &found, "lane network is busy", "\"gathers\": 1");
    expect_told(plan, &found, " of activations of 1 micro-step; the plan's",
                "\"category\": \"activations\"");
    other->prediction.step_ns = plan->prediction.step_ns;
    expect_told(plan, &found, "as fast", "\"fits\": true");
    /* Above the limit there is a step at the least limit, and no bound at the plan's. */
    problem.tiers[0].limit_bytes = 6000;
    found.fits = false;
    expect_told(plan, &found, "fits 5.86 KiB: it needs 700 B more", "\"fits\": false");
    expect_told(plan, &found, "within its least limit", "\"own_gathers\": 1");
    weft_plan_destroy(other);
    weft_plan_destroy(plan);
}
