/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/solver/lp_changes.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/scheduler/solver/lp_example.h"

static const struct weft_lp_limits limits_lp_changes = {.iterations = 12};

/* The example with other bounds of a column and of a row, and with its third row. */
static void change(struct lp_example *e)
{
    lp_example_init(e, 3);
    e->lower[2] = e->upper[2] = 1.0 / 9;
    e->row_upper[0] = INFINITY;
}

Test(lp_changes, are_bounds_and_rows_at_the_end)
{
    struct weft_pool pool = {0};
    struct weft_lp before;
    struct lp_example e;
    struct weft_lp_changes changes;
    lp_example_init(&e, 2);
    cr_assert_eq(weft_lp_copy(&e.lp, &pool, &before, NULL), WEFT_OK);
    cr_assert(weft_lp_changes_find(&before, &e.lp, &pool, &changes));
    cr_assert(changes.columns.n == 0 && changes.rows.n == 0 && changes.added.n == 0);
    change(&e);
    cr_assert(weft_lp_changes_find(&before, &e.lp, &pool, &changes));
    cr_assert(changes.n_columns == 3 && changes.n_rows == 2);
    cr_assert(changes.columns.n == 1 && changes.columns.index[0] == 2);
    cr_assert(changes.columns.lower[0] == 1.0 / 9 && changes.columns.upper[0] == 1.0 / 9);
    cr_assert(changes.rows.n == 1 && changes.rows.index[0] == 0);
    cr_assert(changes.rows.lower[0] == -INFINITY && changes.rows.upper[0] == INFINITY);
    cr_assert_eq(changes.added.n, 1);
    cr_assert_eq(changes.added.start[1] - changes.added.start[0], 2);
    cr_assert_eq(changes.added.column[changes.added.start[0]], 2);
    weft_pool_finish(&pool);
}

Test(lp_changes, nothing_else_may_differ)
{
    struct weft_pool pool = {0};
    struct weft_lp before;
    struct weft_lp_changes changes;
    struct lp_example e;
    lp_example_init(&e, 3);
    cr_assert_eq(weft_lp_copy(&e.lp, &pool, &before, NULL), WEFT_OK);
    for (int what = 0; what < 5; what++) {
        lp_example_init(&e, 3);
        if (what == 0) e.cost[1] = 5;
        if (what == 1) e.value[4] = 2;
        if (what == 2) e.column[4] = 1;
        if (what == 3) e.row_start[1] = 1;
        if (what == 4) e.lp.n_rows = 2;
        cr_assert_not(weft_lp_changes_find(&before, &e.lp, &pool, &changes), "%d", what);
    }
    weft_pool_finish(&pool);
}

static char *written_lp_changes(void)
{
    struct weft_pool pool = {0};
    struct weft_lp before;
    struct weft_lp_changes changes;
    struct weft_text text = {0};
    struct lp_example e;
    lp_example_init(&e, 2);
    cr_assert_eq(weft_lp_copy(&e.lp, &pool, &before, NULL), WEFT_OK);
    change(&e);
    cr_assert(weft_lp_changes_find(&before, &e.lp, &pool, &changes));
    weft_lp_changes_write(&changes, &limits_lp_changes, &text);
    cr_assert(weft_text_ok(&text));
    cr_assert(weft_lp_is_changes(text.data, text.length));
    weft_pool_finish(&pool);
    return text.data;
}

static enum weft_status parse(const char *text, size_t length, struct weft_pool *pool,
                              struct weft_lp_changes *changes, struct weft_error *err)
{
    struct weft_lp_limits read = {0};
    enum weft_status status = weft_lp_changes_parse(text, length, 3, 2, pool, changes, &read, err);
    if (status == WEFT_OK) cr_assert_geq(read.iterations, 0);
    return status;
}

Test(lp_changes, read_back_the_same_bits)
{
    struct weft_pool pool = {0};
    struct weft_lp_changes read;
    struct weft_error err = {0};
    char *text = written_lp_changes();
    cr_assert_eq(parse(text, strlen(text), &pool, &read, &err), WEFT_OK, "%s", err.text);
    cr_assert(read.n_columns == 3 && read.n_rows == 2);
    cr_assert(read.columns.n == 1 && read.columns.index[0] == 2);
    cr_assert(read.columns.lower[0] == 1.0 / 9 && read.columns.upper[0] == 1.0 / 9);
    cr_assert(read.rows.n == 1 && read.rows.index[0] == 0);
    cr_assert(read.rows.lower[0] == -INFINITY && read.rows.upper[0] == INFINITY);
    cr_assert(read.added.n == 1 && read.added.start[0] == 0 && read.added.start[1] == 2);
    cr_assert(read.added.lower[0] == 0 && read.added.upper[0] == INFINITY);
    cr_assert(read.added.column[0] == 2 && read.added.value[0] == 3);
    cr_assert(read.added.column[1] == 0 && read.added.value[1] == 1.0 / 7);
    free(text);
    weft_pool_finish(&pool);
}

Test(lp_changes, every_truncation_is_an_error_with_its_line)
{
    char *text = written_lp_changes();
    size_t length = strlen(text) - 1; /* without the last newline nothing is missing */
    for (size_t n = 0; n < length; n++) {
        struct weft_pool pool = {0};
        struct weft_lp_changes changes = {.n_columns = -7};
        struct weft_error err = {0};
        cr_assert_eq(parse(text, n, &pool, &changes, &err), WEFT_E_DATA, "%zu", n);
        cr_assert_eq(changes.n_columns, -7, "untouched on failure");
        cr_assert_not_null(strstr(err.text, "line "));
        weft_pool_finish(&pool);
    }
    free(text);
}

static void expect_in_range(const struct weft_lp_bounds *bounds, int32_t n)
{
    for (int32_t k = 0; k < bounds->n; k++) {
        cr_assert(bounds->index[k] >= 0 && bounds->index[k] < n);
        cr_assert(k == 0 || bounds->index[k] > bounds->index[k - 1]);
    }
}

Test(lp_changes, changed_bytes_never_give_an_index_out_of_range)
{
    char *text = written_lp_changes();
    size_t length = strlen(text);
    for (uint64_t k = 0; k < 20000; k++) {
        struct weft_pool pool = {0};
        struct weft_lp_changes read;
        size_t at = weft_rng_below(1, 2, 2 * k, length);
        char before = text[at];
        text[at] = "0123456789-.einfxrca \n"[weft_rng_below(1, 2, 2 * k + 1, 22)];
        if (parse(text, length, &pool, &read, NULL) == WEFT_OK) {
            expect_in_range(&read.columns, 3);
            expect_in_range(&read.rows, 2);
            for (int64_t e = 0; e < read.added.start[read.added.n]; e++)
                cr_assert(read.added.column[e] >= 0 && read.added.column[e] < 3);
        }
        text[at] = before;
        weft_pool_finish(&pool);
    }
    free(text);
}

static void refuse_lp_changes(const char *text, const char *what)
{
    struct weft_pool pool = {0};
    struct weft_lp_changes changes;
    struct weft_error err = {0};
    cr_assert_eq(parse(text, strlen(text), &pool, &changes, &err), WEFT_E_DATA, "%s", text);
    cr_assert_not_null(strstr(err.text, what), "%s", err.text);
    weft_pool_finish(&pool);
}

#define BEGIN "weft-lp-changes 1\nof 3 2\n"

Test(lp_changes, say_what_is_wrong)
{
    refuse_lp_changes("weft-lp-changes 2\n", "line 1: expected 1");
    refuse_lp_changes("weft-lp-changes 1\nof 4 2\n", "line 2: expected the number of columns");
    refuse_lp_changes("weft-lp-changes 1\nof 3 1\n", "line 2: expected the number of rows");
    refuse_lp_changes(BEGIN "size 4 0 0 0\n", "line 3: expected a number of columns");
    refuse_lp_changes(BEGIN "size 0 0 1000000 0\n", "line 3: expected a number of rows to add");
    refuse_lp_changes(BEGIN "size 0 0 0 0\nlimits -1\nend\n", "line 4: expected a limit of iter");
    refuse_lp_changes(BEGIN "size 2 0 0 0\nlimits 0\nc 1 0 1\nc 1 0 1\nend\n",
                      "line 6: expected a column's number");
    refuse_lp_changes(BEGIN "size 0 1 0 0\nlimits 0\nr 2 0 1\nend\n",
                      "line 5: expected a row's number");
    refuse_lp_changes(BEGIN "size 0 0 1 1\nlimits 0\na 0 1 1 3 1\nend\n",
                      "line 5: expected a column's number");
    refuse_lp_changes(BEGIN "size 0 0 1 2\nlimits 0\na 0 1 1 2 1\nend\n", "as many entries");
}
