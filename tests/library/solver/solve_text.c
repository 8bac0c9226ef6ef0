/* SPDX-License-Identifier: Apache-2.0 */
/* A caller's solver that speaks text: its question, its answer, and each way to fail. */
#include "library/solver/solve_text.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Minimise 2 x + 3 y with x + y >= 1 in [0, 4]. */
static double cost[] = {2, 3}, lower[] = {0, 0}, upper[] = {4, 4}, row_lower[] = {1};
static double row_upper[] = {INFINITY}, value[] = {1, 1};
static int64_t row_start[] = {0, 2};
static int32_t column[] = {0, 1};
static const struct weft_lp lp = {.n_columns = 2,
                                  .cost = cost,
                                  .lower = lower,
                                  .upper = upper,
                                  .n_rows = 1,
                                  .row_lower = row_lower,
                                  .row_upper = row_upper,
                                  .n_entries = 2,
                                  .row_start = row_start,
                                  .column = column,
                                  .value = value};
static const struct weft_lp_limits limits = {.iterations = 77};

/* The caller's side. */
struct caller {
    const char *answer; /* NULL: none */
    enum weft_status status;
    int calls;
};

static enum weft_status solve_question(void *context, const char *question, size_t length,
                                       char **answer, struct weft_error *err)
{
    struct caller *caller = context;
    struct weft_text known;
    caller->calls++;
    weft_text_init(&known);
    weft_lp_write(&lp, &limits, &known);
    cr_assert_eq(length, known.length);
    cr_assert_eq(memcmp(question, weft_text_chars(&known), length), 0);
    weft_text_finish(&known);
    if (caller->answer != NULL) *answer = strdup(caller->answer);
    return caller->status == WEFT_OK ? WEFT_OK : weft_fail(err, caller->status, "no solver today");
}

static enum weft_status ask_solver(struct caller *caller, struct weft_lp_result *result,
                                   struct weft_pool *pool, struct weft_error *err)
{
    struct weft_text_solver text = {solve_question, caller};
    const struct weft_solver solver = weft_solver_of_text(&text);
    *err = (struct weft_error){0};
    cr_assert_not_null(solver.solve);
    cr_assert_null(solver.release);
    return solver.solve(solver.context, &lp, &limits, pool, result, err);
}

Test(solve_text, an_answer_is_the_result)
{
    double x[] = {1, 0}, duals[] = {2};
    const struct weft_lp_result known = {.status = WEFT_LP_OPTIMAL,
                                         .stop = "optimal",
                                         .value = 2,
                                         .x = x,
                                         .duals = duals,
                                         .bound = 2,
                                         .iterations = 5};
    struct weft_lp_result result = {0};
    struct weft_pool pool = {0};
    struct weft_text text;
    struct weft_error err;
    weft_text_init(&text);
    weft_lp_result_write(&lp, &known, &text);
    struct caller caller = {.answer = weft_text_chars(&text)};
    cr_assert_eq(ask_solver(&caller, &result, &pool, &err), WEFT_OK, "%s", err.text);
    cr_assert(caller.calls == 1 && result.status == WEFT_LP_OPTIMAL && result.iterations == 5);
    cr_assert(result.value == 2 && result.x[0] == 1 && result.x[1] == 0 && result.duals[0] == 2);
    weft_text_finish(&text);
    weft_pool_finish(&pool);
}

Test(solve_text, failures_are_the_solver_s)
{
    struct weft_lp_result result = {0};
    struct weft_pool pool = {0};
    struct weft_error err;
    struct caller fails = {.status = WEFT_E_SYSTEM, .answer = "left, and freed"};
    cr_assert_eq(ask_solver(&fails, &result, &pool, &err), WEFT_E_SYSTEM);
    cr_assert_str_eq(err.text, "no solver today");
    struct caller silent = {0};
    cr_assert_eq(ask_solver(&silent, &result, &pool, &err), WEFT_E_INTERNAL);
    cr_assert_str_eq(err.text, "gave no answer");
    static const char *const wrong[] = {"", "optimal", "end\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct caller caller = {.answer = wrong[i]};
        cr_assert_eq(ask_solver(&caller, &result, &pool, &err), WEFT_E_DATA, "\"%s\"", wrong[i]);
        cr_assert_neq(err.text[0], '\0');
    }
    weft_pool_finish(&pool);
}

Test(solve_text, no_function_is_no_solver)
{
    struct weft_text_solver none = {NULL, NULL};
    cr_assert_null(weft_solver_of_text(&none).solve);
}
