/* SPDX-License-Identifier: Apache-2.0 */
#include "report/explain.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/report/answer_text.h"
#include "tests/report/small_plan.h"

/* The JSON has the same price, in as many slots, and its sum once. */
static void expect_json(const struct weft_plan *plan, const char *price, int times)
{
    struct weft_text out;
    int n = 0;
    weft_text_init(&out);
    ADD_JSON(&out, 2, weft_explain_price(plan, no_stairs, &answer));
    cr_assert_not_null(strstr(weft_text_chars(&out), price), "%s", weft_text_chars(&out));
    for (const char *at = weft_text_chars(&out); (at = strstr(at, "ns_per_gib")) != NULL; at++)
        n++;
    cr_assert_eq(n, times, "%s", weft_text_chars(&out));
    weft_text_finish(&out);
}

Test(explain_price, a_gib_is_priced_by_the_sum_of_mu)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = small_plan(&problem);
    struct weft_text out;
    int64_t lambda[64] = {0}, mu[64] = {0};
    struct weft_prices prices = {.lambda = lambda, .mu = mu};
    cr_assert_lt(plan->problem->n_slots, 64);
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain_price(plan, no_stairs, &answer));
    cr_assert_null(strstr(weft_text_chars(&out), "price"), "without a certificate");
    plan->certificate.prices = &prices;
    plan->certificate.n_prices = 1;
    ADD_TEXT(&out, weft_explain_price(plan, no_stairs, &answer));
    cr_assert_not_null(strstr(weft_text_chars(&out), "the price of memory: none"));
    /* 2^-10 and 3 * 2^-10 ns a byte: 4 * 2^20 ns a GiB. */
    mu[3] = WEFT_PRICE_ONE >> 10;
    mu[4] = 3 * mu[3];
    ADD_TEXT(&out, weft_explain_price(plan, no_stairs, &answer));
    cr_assert_not_null(strstr(weft_text_chars(&out), "by 4.19 ms; 2 slots are priced"), "%s",
                       weft_text_chars(&out));
    cr_assert_not_null(strstr(weft_text_chars(&out), plan->problem->slot_names[4]));
    /* Whole rows add to their slots: 2^20 ns a GiB and a slot more. */
    struct weft_whole_price whole = {.row = 5, .step_bytes = 256, .nu = mu[3]};
    prices.whole = &whole;
    prices.n_whole = 1;
    weft_text_finish(&out);
    weft_text_init(&out);
    ADD_TEXT(&out, weft_explain_price(plan, no_stairs, &answer));
    cr_assert_not_null(strstr(weft_text_chars(&out), "by 5.24 ms; 3 slots are priced"), "%s",
                       weft_text_chars(&out));
    expect_json(plan, "\"ns_per_gib\": 5242880\n", 4);
    whole.nu = 4 * mu[3];
    cr_assert_eq(weft_explain_dearest(plan), 5);
    plan->certificate = (struct weft_certificate){0};
    weft_text_finish(&out);
    weft_plan_destroy(plan);
}
