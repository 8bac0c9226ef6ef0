/* SPDX-License-Identifier: Apache-2.0 */
/* A document of the protocol (lp_words.h): the changes to the program before.
 *
 *     weft-lp-changes 1
 *     of COLUMNS ROWS                             of that program
 *     size COLUMNS ROWS ADDED ENTRIES             with other bounds; rows added, and their entries
 *     limits ITERATIONS
 *     c COLUMN LOWER UPPER                  ...
 *     r ROW LOWER UPPER                     ...
 *     a LOWER UPPER N (COLUMN VALUE) x N    ...
 *     end */
#include "scheduler/solver/lp_changes.h"

#include <string.h>

#include "scheduler/solver/lp_words.h"

static const char title[] = "weft-lp-changes";

static bool make_bounds(struct weft_lp_bounds *bounds, int32_t most, struct weft_pool *pool)
{
    bounds->index = weft_pool_array(pool, (size_t)most, sizeof *bounds->index);
    bounds->lower = weft_pool_array(pool, (size_t)most, sizeof *bounds->lower);
    bounds->upper = weft_pool_array(pool, (size_t)most, sizeof *bounds->upper);
    return bounds->index && bounds->lower && bounds->upper;
}

static void find_bounds(const double *lower, const double *upper, const double *new_lower,
                        const double *new_upper, int32_t n, struct weft_lp_bounds *out)
{
    for (int32_t k = 0; k < n; k++) {
        if (lower[k] == new_lower[k] && upper[k] == new_upper[k]) continue;
        out->index[out->n] = k;
        out->lower[out->n] = new_lower[k];
        out->upper[out->n++] = new_upper[k];
    }
}

static bool same_bytes(const void *a, const void *b, size_t count, size_t size)
{
    return count == 0 || memcmp(a, b, count * size) == 0;
}

/* True if columns and the rows of `before` differ in bounds alone. */
static bool same_matrix(const struct weft_lp *before, const struct weft_lp *after)
{
    size_t columns = (size_t)before->n_columns, rows = (size_t)before->n_rows;
    if (before->n_columns != after->n_columns || before->n_rows > after->n_rows) return false;
    size_t entries = (size_t)before->n_entries;
    return same_bytes(before->row_start, after->row_start, rows + 1, sizeof *before->row_start) &&
           same_bytes(before->column, after->column, entries, sizeof *before->column) &&
           same_bytes(before->value, after->value, entries, sizeof *before->value) &&
           same_bytes(before->cost, after->cost, columns, sizeof *before->cost);
}

bool weft_lp_changes_find(const struct weft_lp *before, const struct weft_lp *after,
                          struct weft_pool *pool, struct weft_lp_changes *out)
{
    struct weft_lp_changes changes = {.n_columns = before->n_columns, .n_rows = before->n_rows};
    if (before->integer || after->integer || !same_matrix(before, after)) return false;
    if (!make_bounds(&changes.columns, before->n_columns, pool) ||
        !make_bounds(&changes.rows, before->n_rows, pool))
        return false;
    find_bounds(before->lower, before->upper, after->lower, after->upper, before->n_columns,
                &changes.columns);
    find_bounds(before->row_lower, before->row_upper, after->row_lower, after->row_upper,
                before->n_rows, &changes.rows);
    changes.added = weft_lp_rows(after, before->n_rows);
    *out = changes;
    return true;
}

static void *copy_array(struct weft_pool *pool, const void *array, size_t count, size_t size)
{
    void *made = weft_pool_array(pool, count, size);
    if (made && count > 0) memcpy(made, array, count * size);
    return made;
}

enum weft_status weft_lp_copy(const struct weft_lp *lp, struct weft_pool *pool, struct weft_lp *out,
                              struct weft_error *err)
{
    size_t columns = (size_t)lp->n_columns, rows = (size_t)lp->n_rows;
    size_t entries = (size_t)lp->n_entries;
    struct weft_lp made = {
        .n_columns = lp->n_columns,
        .cost = copy_array(pool, lp->cost, columns, sizeof *lp->cost),
        .lower = copy_array(pool, lp->lower, columns, sizeof *lp->lower),
        .upper = copy_array(pool, lp->upper, columns, sizeof *lp->upper),
        .n_rows = lp->n_rows,
        .row_lower = copy_array(pool, lp->row_lower, rows, sizeof *lp->row_lower),
        .row_upper = copy_array(pool, lp->row_upper, rows, sizeof *lp->row_upper),
        .n_entries = lp->n_entries,
        .row_start = copy_array(pool, lp->row_start, rows + 1, sizeof *lp->row_start),
        .column = copy_array(pool, lp->column, entries, sizeof *lp->column),
        .value = copy_array(pool, lp->value, entries, sizeof *lp->value),
    };
    if (!made.cost || !made.lower || !made.upper || !made.row_lower || !made.row_upper ||
        !made.row_start || !made.column || !made.value)
        return weft_fail_memory(err, "a linear program");
    *out = made;
    return WEFT_OK;
}

static void write_bounds(struct weft_text *out, const char *letter,
                         const struct weft_lp_bounds *bounds)
{
    for (int32_t k = 0; k < bounds->n; k++) {
        weft_text_add(out, letter);
        weft_lp_add_integer(out, bounds->index[k]);
        weft_lp_add_number(out, bounds->lower[k]);
        weft_lp_add_number(out, bounds->upper[k]);
        weft_text_add(out, "\n");
    }
}

void weft_lp_changes_write(const struct weft_lp_changes *changes,
                           const struct weft_lp_limits *limits, struct weft_text *out)
{
    const struct weft_lp_rows *added = &changes->added;
    weft_text_addf(out, "%s 1\nof %d %d\nsize %d %d %d %lld\n", title, changes->n_columns,
                   changes->n_rows, changes->columns.n, changes->rows.n, added->n,
                   (long long)(added->start[added->n] - added->start[0]));
    weft_lp_add_limits(out, limits);
    write_bounds(out, "c", &changes->columns);
    write_bounds(out, "r", &changes->rows);
    weft_lp_add_rows(out, "a", added);
    weft_text_add(out, "end\n");
}

static void read_bounds(struct weft_lp_reader *in, const char *letter, int32_t n_there,
                        const char *what, struct weft_lp_bounds *bounds)
{
    for (int32_t k = 0; k < bounds->n && !in->failed; k++) {
        weft_lp_need_word(in, letter);
        int64_t least = k > 0 ? (int64_t)bounds->index[k - 1] + 1 : 0;
        bounds->index[k] = (int32_t)weft_lp_read_integer(in, least, (int64_t)n_there - 1, what);
        bounds->lower[k] = weft_lp_read_number(in, "a lower bound");
        bounds->upper[k] = weft_lp_read_number(in, "an upper bound");
    }
}

static bool make_rows(struct weft_lp_rows *rows, int64_t n_entries, struct weft_pool *pool)
{
    rows->lower = weft_pool_array(pool, (size_t)rows->n, sizeof *rows->lower);
    rows->upper = weft_pool_array(pool, (size_t)rows->n, sizeof *rows->upper);
    rows->start = weft_pool_array(pool, (size_t)rows->n + 1, sizeof *rows->start);
    rows->column = weft_pool_array(pool, (size_t)n_entries, sizeof *rows->column);
    rows->value = weft_pool_array(pool, (size_t)n_entries, sizeof *rows->value);
    return rows->lower && rows->upper && rows->start && rows->column && rows->value;
}

enum weft_status weft_lp_changes_parse(const char *bytes, size_t length, int32_t n_columns,
                                       int32_t n_rows, struct weft_pool *pool,
                                       struct weft_lp_changes *changes,
                                       struct weft_lp_limits *limits, struct weft_error *err)
{
    struct weft_lp_reader in = weft_lp_reader(bytes, length, err);
    struct weft_lp_changes read = {.n_columns = n_columns, .n_rows = n_rows};
    weft_lp_need_word(&in, title);
    weft_lp_need_word(&in, "1");
    weft_lp_need_word(&in, "of");
    weft_lp_read_integer(&in, n_columns, n_columns, "the number of columns of the program before");
    weft_lp_read_integer(&in, n_rows, n_rows, "the number of rows of the program before");
    weft_lp_need_word(&in, "size");
    int32_t words = weft_lp_most_words(&in);
    int32_t most_added = words < INT32_MAX - n_rows ? words : INT32_MAX - n_rows;
    read.columns.n = (int32_t)weft_lp_read_integer(&in, 0, n_columns, "a number of columns");
    read.rows.n = (int32_t)weft_lp_read_integer(&in, 0, n_rows, "a number of rows");
    read.added.n = (int32_t)weft_lp_read_integer(&in, 0, most_added, "a number of rows to add");
    int64_t n_entries = weft_lp_read_integer(&in, 0, words, "a number of entries");
    struct weft_lp_limits most = weft_lp_read_limits(&in);
    if (in.failed) return WEFT_E_DATA;
    if (!make_bounds(&read.columns, read.columns.n, pool) ||
        !make_bounds(&read.rows, read.rows.n, pool) || !make_rows(&read.added, n_entries, pool))
        return weft_fail_memory(err, "changes of a linear program");
    read_bounds(&in, "c", n_columns, "a column's number", &read.columns);
    read_bounds(&in, "r", n_rows, "a row's number", &read.rows);
    weft_lp_read_rows(&in, "a", n_columns, n_entries, &read.added);
    weft_lp_need_word(&in, "end");
    if (in.failed) return WEFT_E_DATA;
    *changes = read;
    *limits = most;
    return WEFT_OK;
}

bool weft_lp_is_changes(const char *bytes, size_t length)
{
    size_t n = sizeof title - 1;
    return length > n && memcmp(bytes, title, n) == 0 && bytes[n] == ' ';
}
