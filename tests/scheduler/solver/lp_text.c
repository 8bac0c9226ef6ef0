/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "scheduler/solver/lp.h"
#include "tests/scheduler/solver/lp_example.h"

static const struct weft_lp_limits limits_lp_text = {.iterations = 12};

static struct lp_example example;

static void make_example(void)
{
    lp_example_init(&example, 2);
}

TestSuite(lp_text, .init = make_example);

static char *written_lp_text(void)
{
    struct weft_text text = {0};
    weft_lp_write(&example.lp, &limits_lp_text, &text);
    cr_assert(weft_text_ok(&text));
    return text.data;
}

Test(lp_text, reads_back_the_same_bits)
{
    struct weft_pool pool = {0};
    struct weft_lp lp = {0};
    struct weft_lp_limits read = {0};
    struct weft_error err = {0};
    char *text = written_lp_text();
    cr_assert_eq(weft_lp_parse(text, strlen(text), &pool, &lp, &read, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(lp.n_columns, 3);
    cr_assert_eq(lp.n_rows, 2);
    cr_assert_eq(lp.n_entries, 3);
    cr_assert_eq(memcmp(lp.cost, example.cost, sizeof example.cost), 0);
    cr_assert_eq(memcmp(lp.lower, example.lower, sizeof example.lower), 0);
    cr_assert_eq(memcmp(lp.upper, example.upper, sizeof example.upper), 0);
    cr_assert_eq(memcmp(lp.row_lower, example.row_lower, 2 * sizeof *lp.row_lower), 0);
    cr_assert_eq(memcmp(lp.row_upper, example.row_upper, 2 * sizeof *lp.row_upper), 0);
    cr_assert_eq(memcmp(lp.row_start, example.row_start, 3 * sizeof *lp.row_start), 0);
    cr_assert_eq(memcmp(lp.column, example.column, 3 * sizeof *lp.column), 0);
    cr_assert_eq(memcmp(lp.value, example.value, 3 * sizeof *lp.value), 0);
    cr_assert_eq(read.iterations, 12);
    free(text);
    weft_pool_finish(&pool);
}

Test(lp_text, every_truncation_is_an_error_with_its_line)
{
    char *text = written_lp_text();
    size_t length = strlen(text) - 1; /* without the last newline nothing is missing */
    for (size_t n = 0; n < length; n++) {
        struct weft_pool pool = {0};
        struct weft_lp lp = {.n_columns = -7};
        struct weft_lp_limits read = {0};
        struct weft_error err = {0};
        cr_assert_eq(weft_lp_parse(text, n, &pool, &lp, &read, &err), WEFT_E_DATA, "%zu", n);
        cr_assert_eq(lp.n_columns, -7, "untouched on failure");
        cr_assert_not_null(strstr(err.text, "line "));
        weft_pool_finish(&pool);
    }
    free(text);
}

/* A byte changed anywhere must give an error or a program whose indices are in range. */
Test(lp_text, changed_bytes_never_give_an_index_out_of_range)
{
    char *text = written_lp_text();
    size_t length = strlen(text);
    for (uint64_t k = 0; k < 20000; k++) {
        struct weft_pool pool = {0};
        struct weft_lp lp = {0};
        struct weft_lp_limits read = {0};
        size_t at = weft_rng_below(1, 2, 2 * k, length);
        char before = text[at];
        text[at] = "0123456789-.einfxrc \n"[weft_rng_below(1, 2, 2 * k + 1, 21)];
        if (weft_lp_parse(text, length, &pool, &lp, &read, NULL) == WEFT_OK) {
            cr_assert_eq(lp.row_start[lp.n_rows], lp.n_entries);
            for (int64_t e = 0; e < lp.n_entries; e++)
                cr_assert(lp.column[e] >= 0 && lp.column[e] < lp.n_columns);
        }
        text[at] = before;
        weft_pool_finish(&pool);
    }
    free(text);
}

static void refuse_lp_text(const char *text, const char *what)
{
    struct weft_pool pool = {0};
    struct weft_lp lp = {0};
    struct weft_lp_limits read = {0};
    struct weft_error err = {0};
    cr_assert_eq(weft_lp_parse(text, strlen(text), &pool, &lp, &read, &err), WEFT_E_DATA, "%s",
                 text);
    cr_assert_not_null(strstr(err.text, what), "%s", err.text);
    weft_pool_finish(&pool);
}

/* Integer columns and a start read back, and a byte changed anywhere is read or refused. */
Test(lp_text, integer_programs_read_back)
{
    bool integer[3] = {true, false, true};
    struct weft_pool pool = {0};
    struct weft_lp lp = {0};
    struct weft_lp_limits read = {0};
    struct weft_error err = {0};
    example.lp.integer = integer;
    example.lp.start = example.point;
    char *text = written_lp_text();
    const size_t length = strlen(text);
    cr_assert_eq(weft_lp_parse(text, length, &pool, &lp, &read, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(memcmp(lp.integer, integer, sizeof integer), 0);
    cr_assert_eq(memcmp(lp.start, example.point, sizeof example.point), 0);
    for (size_t n = 0; n + 1 < length; n++)
        cr_assert_eq(weft_lp_parse(text, n, &pool, &lp, &read, NULL), WEFT_E_DATA, "%zu", n);
    for (uint64_t k = 0; k < 5000; k++) {
        const size_t at = weft_rng_below(3, 4, 2 * k, length);
        const char before = text[at];
        text[at] = "0123456789-.einfxrcst \n"[weft_rng_below(3, 4, 2 * k + 1, 23)];
        if (weft_lp_parse(text, length, &pool, &lp, &read, NULL) == WEFT_OK)
            cr_assert(lp.start == NULL || (lp.integer != NULL && isfinite(lp.start[2])));
        text[at] = before;
    }
    free(text);
    weft_pool_finish(&pool);
}

/* A point is of whole numbers, and only a program with integer columns can be stopped at one. */
Test(lp_text, results_of_integer_programs_are_whole)
{
    bool integer[3] = {true, false, false};
    struct weft_lp_result read = {0};
    struct weft_pool pool = {0};
    struct weft_error err = {0};
    static const char good[] = "weft-lp-result 1\nstatus feasible\nstop iteration limit\nwork 3\n"
                               "bound -2\nvalue -1\nx 1 0 0.5\nend\n";
    char bad[sizeof good];
    example.lp.integer = integer;
    cr_assert_eq(weft_lp_result_parse(good, strlen(good), &example.lp, &pool, &read, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert(read.status == WEFT_LP_FEASIBLE && read.x[0] == 1 && !read.duals);
    memcpy(bad, good, sizeof good);
    memcpy(strstr(bad, "x 1 0 "), "x .5 0", 6);
    cr_assert_eq(weft_lp_result_parse(bad, strlen(bad), &example.lp, &pool, &read, &err),
                 WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "a whole value"), "%s", err.text);
    example.lp.integer = NULL;
    err = (struct weft_error){0};
    cr_assert_eq(weft_lp_result_parse(good, strlen(good), &example.lp, &pool, &read, &err),
                 WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "no integer column"), "%s", err.text);
    weft_pool_finish(&pool);
}

Test(lp_text, says_what_is_wrong)
{
    refuse_lp_text("weft-lp 2\n", "line 1: expected 1");
    refuse_lp_text("", "expected weft-lp");
    refuse_lp_text("weft-lp 1\nsize 1000000 1 1\nlimits 0\n", "line 2: expected a number of col");
    refuse_lp_text("weft-lp 1\nsize 1 1 1\nlimits -2\n", "line 3: expected a limit of iterations");
    refuse_lp_text("weft-lp 1\nsize 1 1 1\nlimits 0\nc 0 0 1 1\nr 0 1 1 0 1\nend\n",
                   "line 4: expected r");
    refuse_lp_text("weft-lp 1\nsize 1 1 1\nlimits 0\nc 0 0 1\nr 0 1 1 1 1\nend\n",
                   "line 5: expected a column's number");
    refuse_lp_text("weft-lp 1\nsize 1 1 1\nlimits 0\nc 0 0 1\nr 0 1 1 0 inf\nend\n",
                   "line 5: expected a finite coefficient");
    refuse_lp_text("weft-lp 1\nsize 1 1 1\nlimits 0\nc nan 0 1\nr 0 1 1 0 1\nend\n",
                   "line 4: expected a cost");
    refuse_lp_text("weft-lp 1\nsize 1 1 2\nlimits 0\nc 0 0 1\nr 0 1 1 0 1\nend\n",
                   "as many entries");
}

Test(lp_text, results_read_back)
{
    double duals[] = {0.1, -3};
    struct weft_lp_result result = {.status = WEFT_LP_OPTIMAL,
                                    .stop = "at the limit, by chance",
                                    .value = 1.0 / 9,
                                    .x = example.point,
                                    .duals = duals,
                                    .bound = 1.0 / 9,
                                    .iterations = 5};
    struct weft_lp_result read = {0};
    struct weft_pool pool = {0};
    struct weft_text text = {0};
    struct weft_error err = {0};
    weft_lp_result_write(&example.lp, &result, &text);
    cr_assert_eq(weft_lp_result_parse(text.data, text.length, &example.lp, &pool, &read, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(read.status, WEFT_LP_OPTIMAL);
    cr_assert_str_eq(read.stop, result.stop);
    cr_assert_eq(read.value, result.value);
    cr_assert_eq(memcmp(read.x, example.point, sizeof example.point), 0);
    cr_assert_eq(memcmp(read.duals, duals, sizeof duals), 0);
    cr_assert_eq(read.bound, 1.0 / 9);
    cr_assert_eq(read.iterations, 5);
    for (size_t n = 0; n + 1 < text.length; n++)
        cr_assert_eq(weft_lp_result_parse(text.data, n, &example.lp, &pool, &read, NULL),
                     WEFT_E_DATA);
    weft_text_finish(&text);
    weft_pool_finish(&pool);
}

Test(lp_text, only_an_optimal_result_has_numbers)
{
    struct weft_lp_result read = {0};
    struct weft_pool pool = {0};
    const char unknown[] = "weft-lp-result 1\nstatus unknown\nstop \nwork 0\nbound -inf\nend\n";
    cr_assert_eq(weft_lp_result_parse(unknown, sizeof unknown - 1, &example.lp, &pool, &read, NULL),
                 WEFT_OK);
    cr_assert(read.x == NULL && read.duals == NULL);
    cr_assert_eq(read.bound, -INFINITY);
    cr_assert_str_eq(read.stop, "");
    const char optimal[] = "weft-lp-result 1\nstatus optimal\nstop optimal\nwork 0\nbound 0\nend\n";
    struct weft_error err = {0};
    cr_assert_eq(weft_lp_result_parse(optimal, sizeof optimal - 1, &example.lp, &pool, &read, &err),
                 WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "line 6: expected value"), "%s", err.text);
    weft_pool_finish(&pool);
}

/* Plans have the name, and a terminal shows it. */
Test(lp_text, a_solver_may_have_a_printable_name)
{
    static const struct {
        const char *line, *name, *refused;
    } cases[] = {
        {"", NULL, NULL},
        {"by HiGHS 1.2.3\n", "HiGHS 1.2.3", NULL},
        {"by \n", NULL, "1 to 63 printable"},
        {"by a\033[31m\n", NULL, "1 to 63 printable"},
        {"by 0123456789012345678901234567890123456789012345678901234567890123\n", NULL,
         "1 to 63 printable"},
        {"of HiGHS\n", NULL, "work or by"},
        {"by a\nby b\n", NULL, "expected work"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_lp_result read = {.by = "untouched"};
        struct weft_pool pool = {0};
        struct weft_error err = {0};
        struct weft_text text = {0}, back = {0};
        weft_text_addf(&text,
                       "weft-lp-result 1\nstatus unknown\nstop s\n%swork 0\nbound -inf\nend\n",
                       cases[i].line);
        const enum weft_status status =
            weft_lp_result_parse(text.data, text.length, &example.lp, &pool, &read, &err);
        cr_assert_eq(status, cases[i].refused ? WEFT_E_DATA : WEFT_OK, "case %zu: %s", i, err.text);
        if (cases[i].refused) {
            cr_assert_not_null(strstr(err.text, cases[i].refused), "case %zu: %s", i, err.text);
            cr_assert_str_eq(read.by, "untouched");
        } else {
            weft_lp_result_write(&example.lp, &read, &back);
            cr_assert_str_eq(back.data, text.data);
            cr_assert_eq(read.by == NULL, cases[i].name == NULL);
            if (read.by) cr_assert_str_eq(read.by, cases[i].name);
        }
        weft_text_finish(&back);
        weft_text_finish(&text);
        weft_pool_finish(&pool);
    }
}

/* A solution becomes counts of blocks, so it must be within its bounds. */
Test(lp_text, values_beyond_their_bounds_are_refused)
{
    static const struct {
        const char *x;
        enum weft_status status;
    } cases[] = {
        {"1 -2.5 0.1", WEFT_OK},       {"1.0005 1e9 0.0995", WEFT_OK}, /* rounding of a solver */
        {"1.5 -2.5 0.1", WEFT_E_DATA}, {"-0.5 -2.5 0.1", WEFT_E_DATA},
        {"1 -2.5 0", WEFT_E_DATA},     {"1 inf 0.1", WEFT_E_DATA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct weft_lp_result read = {0};
        struct weft_pool pool = {0};
        struct weft_error err = {0};
        struct weft_text text = {0};
        weft_text_addf(&text,
                       "weft-lp-result 1\nstatus optimal\nstop s\nwork 0\nbound 0\n"
                       "value 0\nx %s\nduals 0 0\nend\n",
                       cases[i].x);
        enum weft_status status =
            weft_lp_result_parse(text.data, text.length, &example.lp, &pool, &read, &err);
        cr_assert_eq(status, cases[i].status, "case %zu: %s", i, err.text);
        if (status != WEFT_OK)
            cr_assert_not_null(strstr(err.text, "a column's value within its bounds"));
        weft_text_finish(&text);
        weft_pool_finish(&pool);
    }
}
