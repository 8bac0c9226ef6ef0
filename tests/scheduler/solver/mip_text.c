#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "scheduler/solver/mip.h"
#include "tests/scheduler/solver/mip_example.h"

static const struct weft_mip_limits limits_mip_text = {.iterations = 12, .nodes = -1, .gap = 0.001};

static struct mip_example example;

static void make_example(void)
{
    mip_example_init(&example, 2);
    example.mip.n_incumbents = 1;
}

TestSuite(mip_text, .init = make_example);

static char *written_mip_text(void)
{
    struct weft_text text = {0};
    weft_mip_write(&example.mip, &limits_mip_text, &text);
    cr_assert(weft_text_ok(&text));
    return text.data;
}

Test(mip_text, reads_back_the_same_bits)
{
    struct weft_pool pool = {0};
    struct weft_mip mip = {0};
    struct weft_mip_limits read = {0};
    struct weft_error err = {0};
    char *text = written_mip_text();
    cr_assert_eq(weft_mip_parse(text, strlen(text), &pool, &mip, &read, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(mip.n_columns, 3);
    cr_assert_eq(mip.n_rows, 2);
    cr_assert_eq(mip.n_entries, 3);
    cr_assert_eq(memcmp(mip.cost, example.cost, sizeof example.cost), 0);
    cr_assert_eq(memcmp(mip.lower, example.lower, sizeof example.lower), 0);
    cr_assert_eq(memcmp(mip.upper, example.upper, sizeof example.upper), 0);
    cr_assert_eq(memcmp(mip.integer, example.integer, sizeof example.integer), 0);
    cr_assert_eq(memcmp(mip.priority, example.priority, sizeof example.priority), 0);
    cr_assert_eq(memcmp(mip.row_lower, example.row_lower, 2 * sizeof *mip.row_lower), 0);
    cr_assert_eq(memcmp(mip.row_upper, example.row_upper, 2 * sizeof *mip.row_upper), 0);
    cr_assert_eq(memcmp(mip.row_start, example.row_start, 3 * sizeof *mip.row_start), 0);
    cr_assert_eq(memcmp(mip.column, example.column, 3 * sizeof *mip.column), 0);
    cr_assert_eq(memcmp(mip.value, example.value, 3 * sizeof *mip.value), 0);
    cr_assert_eq(mip.n_incumbents, 1);
    cr_assert_eq(memcmp(mip.incumbents[0], example.point, sizeof example.point), 0);
    cr_assert_eq(read.iterations, 12);
    cr_assert_eq(read.nodes, -1);
    cr_assert_eq(read.gap, 0.001);
    free(text);
    weft_pool_finish(&pool);
}

Test(mip_text, every_truncation_is_an_error_with_its_line)
{
    char *text = written_mip_text();
    size_t length = strlen(text) - 1; /* without the last newline nothing is missing */
    for (size_t n = 0; n < length; n++) {
        struct weft_pool pool = {0};
        struct weft_mip mip = {.n_columns = -7};
        struct weft_mip_limits read = {0};
        struct weft_error err = {0};
        cr_assert_eq(weft_mip_parse(text, n, &pool, &mip, &read, &err), WEFT_E_DATA, "%zu", n);
        cr_assert_eq(mip.n_columns, -7, "untouched on failure");
        cr_assert_not_null(strstr(err.text, "line "));
        weft_pool_finish(&pool);
    }
    free(text);
}

/* A byte changed anywhere must give an error or a program whose indices are in range. */
Test(mip_text, changed_bytes_never_give_an_index_out_of_range)
{
    char *text = written_mip_text();
    size_t length = strlen(text);
    for (uint64_t k = 0; k < 20000; k++) {
        struct weft_pool pool = {0};
        struct weft_mip mip = {0};
        struct weft_mip_limits read = {0};
        size_t at = weft_rng_below(1, 2, 2 * k, length);
        char before = text[at];
        text[at] = "0123456789-.einfxrc \n"[weft_rng_below(1, 2, 2 * k + 1, 21)];
        if (weft_mip_parse(text, length, &pool, &mip, &read, NULL) == WEFT_OK) {
            cr_assert_eq(mip.row_start[mip.n_rows], mip.n_entries);
            for (int64_t e = 0; e < mip.n_entries; e++)
                cr_assert(mip.column[e] >= 0 && mip.column[e] < mip.n_columns);
        }
        text[at] = before;
        weft_pool_finish(&pool);
    }
    free(text);
}

static void refuse_mip_text(const char *text, const char *what)
{
    struct weft_pool pool = {0};
    struct weft_mip mip = {0};
    struct weft_mip_limits read = {0};
    struct weft_error err = {0};
    cr_assert_eq(weft_mip_parse(text, strlen(text), &pool, &mip, &read, &err), WEFT_E_DATA, "%s",
                 text);
    cr_assert_not_null(strstr(err.text, what), "%s", err.text);
    weft_pool_finish(&pool);
}

Test(mip_text, says_what_is_wrong)
{
    refuse_mip_text("weft-mip 1\n", "line 1: expected 2");
    refuse_mip_text("", "expected weft-mip");
    refuse_mip_text("weft-mip 2\nsize 1000000 1 1 0\nlimits 0 0 0\n",
                    "line 2: expected a number of col");
    refuse_mip_text("weft-mip 2\nsize 1 1 1 0\nlimits 0 -2 0\n",
                    "line 3: expected a limit of nodes");
    refuse_mip_text("weft-mip 2\nsize 1 1 1 0\nlimits 0 0 0\nc 0 0 1 0 0\nr 0 1 1 1 1\nend\n",
                    "line 5: expected a column's number");
    refuse_mip_text("weft-mip 2\nsize 1 1 1 0\nlimits 0 0 0\nc 0 0 1 0 0\nr 0 1 1 0 inf\nend\n",
                    "line 5: expected a finite coefficient");
    refuse_mip_text("weft-mip 2\nsize 1 1 1 0\nlimits 0 0 0\nc nan 0 1 0 0\nr 0 1 1 0 1\nend\n",
                    "line 4: expected a cost");
    refuse_mip_text("weft-mip 2\nsize 1 1 2 0\nlimits 0 0 0\nc 0 0 1 0 0\nr 0 1 1 0 1\nend\n",
                    "as many entries");
}

Test(mip_text, results_read_back)
{
    double duals[] = {0.1, -3}, lp_x[] = {1, 2, 1.0 / 3};
    struct weft_mip_result result = {.status = WEFT_MIP_FEASIBLE,
                                     .stop = "time limit in the relaxation",
                                     .has_lp = true,
                                     .lp_value = 1.0 / 9,
                                     .row_duals = duals,
                                     .lp_x = lp_x,
                                     .x = example.point,
                                     .objective = -4.5,
                                     .bound = -INFINITY,
                                     .iterations = 5,
                                     .nodes = 6};
    struct weft_mip_result read = {0};
    struct weft_pool pool = {0};
    struct weft_text text = {0};
    struct weft_error err = {0};
    weft_mip_result_write(&example.mip, &result, &text);
    cr_assert_eq(weft_mip_result_parse(text.data, text.length, &example.mip, &pool, &read, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(read.status, WEFT_MIP_FEASIBLE);
    cr_assert_str_eq(read.stop, result.stop);
    cr_assert(read.has_lp);
    cr_assert_eq(read.lp_value, result.lp_value);
    cr_assert_eq(memcmp(read.row_duals, duals, sizeof duals), 0);
    cr_assert_eq(memcmp(read.lp_x, lp_x, sizeof lp_x), 0);
    cr_assert_eq(memcmp(read.x, example.point, sizeof example.point), 0);
    cr_assert_eq(read.objective, -4.5);
    cr_assert_eq(read.bound, -INFINITY);
    cr_assert_eq(read.iterations, 5);
    cr_assert_eq(read.nodes, 6);
    for (size_t n = 0; n + 1 < text.length; n++)
        cr_assert_eq(weft_mip_result_parse(text.data, n, &example.mip, &pool, &read, NULL),
                     WEFT_E_DATA);
    weft_text_finish(&text);
    weft_pool_finish(&pool);
}

Test(mip_text, a_result_without_numbers_is_one_too_but_not_an_optimal_one)
{
    struct weft_mip_result read = {0};
    struct weft_pool pool = {0};
    const char unknown[] = "weft-mip-result 1\nstatus unknown\nstop \nwork 0 0\nbound -inf\nend\n";
    cr_assert_eq(
        weft_mip_result_parse(unknown, sizeof unknown - 1, &example.mip, &pool, &read, NULL),
        WEFT_OK);
    cr_assert_null(read.x);
    cr_assert_not(read.has_lp);
    cr_assert_str_eq(read.stop, "");
    const char optimal[] =
        "weft-mip-result 1\nstatus optimal\nstop optimal\nwork 0 0\nbound 0\nend\n";
    struct weft_error err = {0};
    cr_assert_eq(
        weft_mip_result_parse(optimal, sizeof optimal - 1, &example.mip, &pool, &read, &err),
        WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "the solution found"));
    weft_pool_finish(&pool);
}

/* What a solver says becomes counts of blocks, so it has to be within what was asked for. */
Test(mip_text, values_beyond_their_bounds_are_refused)
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
        for (int whole = 0; whole < 2; whole++) {
            struct weft_mip_result read = {0};
            struct weft_pool pool = {0};
            struct weft_error err = {0};
            struct weft_text text = {0};
            weft_text_addf(&text,
                           "weft-mip-result 1\nstatus %s\nstop s\nwork 0 0\nbound 0\n%s %s\nend\n",
                           whole ? "optimal" : "unknown",
                           whole ? "x 0" : "lp 0\nduals 0 0\nsolution", cases[i].x);
            enum weft_status status =
                weft_mip_result_parse(text.data, text.length, &example.mip, &pool, &read, &err);
            cr_assert_eq(status, cases[i].status, "case %zu, %d: %s", i, whole, err.text);
            if (status != WEFT_OK)
                cr_assert_not_null(strstr(err.text, "a column's value within its bounds"));
            weft_text_finish(&text);
            weft_pool_finish(&pool);
        }
    }
}
