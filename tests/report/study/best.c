/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/best.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/report/answer_text.h"

enum { BY_HAND, JOINT, BACKWARD, N_ROWS };

struct small_best {
    struct weft_best_row rows[N_ROWS];
    struct weft_best best;
};

/* A row by hand and the joint plan take 300 and 200 ns, and updates in backward 100. */
static void make_best(struct small_best *out)
{
    static const int64_t step_ns[N_ROWS] = {300, 200, 100};
    *out = (struct small_best){.best = {.config = "run.json",
                                        .times = "analytic",
                                        .ranks = 1,
                                        .limit_bytes = 1000,
                                        .samples = 1,
                                        .seq_len = 1,
                                        .n_rows = N_ROWS,
                                        .n_hand = JOINT}};
    for (int i = 0; i < N_ROWS; i++)
        out->rows[i] = (struct weft_best_row){.policy = i == BY_HAND ? "dp" : "joint",
                                              .recompute = "none",
                                              .offload = "none",
                                              .mark = WEFT_BEST_FITS,
                                              .reason = "no plan fits",
                                              .ways = "dp",
                                              .step_ns = step_ns[i],
                                              .total_bytes = 900};
    out->rows[BACKWARD].other = &weft_best_others[WEFT_BEST_IN_BACKWARD];
    out->rows[BACKWARD].price = "the run ends";
    out->best.rows = out->rows;
}

/* Lines are joined, so that their length does not matter. */
static void expect_told(const struct small_best *small, const char *words)
{
    struct weft_text text, joined;
    weft_text_init(&text);
    weft_text_init(&joined);
    ADD_TEXT(&text, weft_best_report(&small->best, &answer));
    for (char *word = strtok(text.data, " \n"); word != NULL; word = strtok(NULL, " \n"))
        weft_text_addf(&joined, "%s ", word);
    cr_assert_not_null(strstr(weft_text_chars(&joined), words), "%s in: %s", words,
                       weft_text_chars(&joined));
    weft_text_finish(&joined);
    weft_text_finish(&text);
}

Test(best, a_row_with_a_price_is_named_and_not_taken)
{
    struct small_best small;
    make_best(&small);
    cr_assert_eq(weft_best_fastest(&small.best), &small.rows[JOINT]);
    expect_told(&small, "; 100 ns with plan.update_in=backward, at a price");
    expect_told(&small, "--set plan.update_in=backward has a price: the run ends");
    small.rows[BACKWARD].step_ns = 200;
    small.rows[BACKWARD].total_bytes = 1;
    cr_assert_eq(weft_best_fastest(&small.best), &small.rows[JOINT]);
    expect_told(&small,
                "update_in backward: the joint plan takes 200 ns, as fast as the row joint");
    /* The config updates in backward already. */
    small.rows[BACKWARD].price = NULL;
    cr_assert_eq(weft_best_fastest(&small.best), &small.rows[BACKWARD]);
}

Test(best, a_row_with_a_price_is_the_best_if_nothing_else_fits)
{
    struct small_best small;
    make_best(&small);
    small.rows[BY_HAND].mark = small.rows[JOINT].mark = WEFT_BEST_ABOVE;
    cr_assert_eq(weft_best_fastest(&small.best), &small.rows[BACKWARD]);
    expect_told(&small, "dp, update_in backward: 100 ns");
    expect_told(&small, "; the run ends");
    expect_told(&small, "only plans with plan.update_in=backward fit the limit");
    small.rows[BACKWARD].mark = WEFT_BEST_ABOVE;
    small.rows[BACKWARD].least_bytes = 1200;
    small.rows[JOINT].least_bytes = 1500;
    expect_told(&small, "offload none, update_in backward");
    small.best.update_in_refused = "clipping needs the norm";
    expect_told(&small, "update_in backward: not allowed: clipping needs the norm");
}
