/* A document of the protocol (mip_words.h): what differs from the program before.
 *
 *     weft-mip-changes 2
 *     of COLUMNS ROWS                             which that program has
 *     size COLUMNS ROWS ADDED ENTRIES             whose bounds differ; rows at the end
 *     limits ITERATIONS -1 GAP
 *     c COLUMN LOWER UPPER                  ...
 *     r ROW LOWER UPPER                     ...
 *     a LOWER UPPER N (COLUMN VALUE) x N    ...
 *     end */
#include "scheduler/solver/mip_changes.h"

#include <string.h>

#include "scheduler/solver/mip_words.h"

static const char title[] = "weft-mip-changes";

static bool make_bounds(struct weft_mip_bounds *bounds, int32_t most, struct weft_pool *pool)
{
    bounds->index = weft_pool_array(pool, (size_t)most, sizeof *bounds->index);
    bounds->lower = weft_pool_array(pool, (size_t)most, sizeof *bounds->lower);
    bounds->upper = weft_pool_array(pool, (size_t)most, sizeof *bounds->upper);
    return bounds->index && bounds->lower && bounds->upper;
}

static void find_bounds(const double *lower, const double *upper, const double *new_lower,
                        const double *new_upper, int32_t n, struct weft_mip_bounds *out)
{
    for (int32_t k = 0; k < n; k++) {
        if (lower[k] == new_lower[k] && upper[k] == new_upper[k]) continue;
        out->index[out->n] = k;
        out->lower[out->n] = new_lower[k];
        out->upper[out->n++] = new_upper[k];
    }
}

static bool same(const void *a, const void *b, size_t count, size_t size)
{
    return count == 0 || memcmp(a, b, count * size) == 0;
}

/* All but bounds, of the columns and of the rows that `before` has. */
static bool same_matrix(const struct weft_mip *before, const struct weft_mip *after)
{
    size_t columns = (size_t)before->n_columns, rows = (size_t)before->n_rows;
    if (before->n_columns != after->n_columns || before->n_rows > after->n_rows) return false;
    size_t entries = (size_t)before->n_entries;
    return same(before->row_start, after->row_start, rows + 1, sizeof *before->row_start) &&
           same(before->column, after->column, entries, sizeof *before->column) &&
           same(before->value, after->value, entries, sizeof *before->value) &&
           same(before->cost, after->cost, columns, sizeof *before->cost) &&
           same(before->integer, after->integer, columns, sizeof *before->integer) &&
           same(before->priority, after->priority, columns, sizeof *before->priority);
}

bool weft_mip_changes_find(const struct weft_mip *before, const struct weft_mip *after,
                           struct weft_pool *pool, struct weft_mip_changes *out)
{
    struct weft_mip_changes changes = {.n_columns = before->n_columns, .n_rows = before->n_rows};
    if (after->n_incumbents > 0 || !same_matrix(before, after)) return false;
    if (!make_bounds(&changes.columns, before->n_columns, pool) ||
        !make_bounds(&changes.rows, before->n_rows, pool))
        return false;
    find_bounds(before->lower, before->upper, after->lower, after->upper, before->n_columns,
                &changes.columns);
    find_bounds(before->row_lower, before->row_upper, after->row_lower, after->row_upper,
                before->n_rows, &changes.rows);
    changes.added = weft_mip_rows(after, before->n_rows);
    *out = changes;
    return true;
}

static void *copy(struct weft_pool *pool, const void *array, size_t count, size_t size)
{
    void *made = weft_pool_array(pool, count, size);
    if (made && count > 0) memcpy(made, array, count * size);
    return made;
}

enum weft_status weft_mip_copy(const struct weft_mip *mip, struct weft_pool *pool,
                               struct weft_mip *out, struct weft_error *err)
{
    size_t columns = (size_t)mip->n_columns, rows = (size_t)mip->n_rows;
    size_t entries = (size_t)mip->n_entries;
    struct weft_mip made = {
        .n_columns = mip->n_columns,
        .cost = copy(pool, mip->cost, columns, sizeof *mip->cost),
        .lower = copy(pool, mip->lower, columns, sizeof *mip->lower),
        .upper = copy(pool, mip->upper, columns, sizeof *mip->upper),
        .integer = copy(pool, mip->integer, columns, sizeof *mip->integer),
        .priority = copy(pool, mip->priority, columns, sizeof *mip->priority),
        .n_rows = mip->n_rows,
        .row_lower = copy(pool, mip->row_lower, rows, sizeof *mip->row_lower),
        .row_upper = copy(pool, mip->row_upper, rows, sizeof *mip->row_upper),
        .n_entries = mip->n_entries,
        .row_start = copy(pool, mip->row_start, rows + 1, sizeof *mip->row_start),
        .column = copy(pool, mip->column, entries, sizeof *mip->column),
        .value = copy(pool, mip->value, entries, sizeof *mip->value),
    };
    if (!made.cost || !made.lower || !made.upper || !made.integer || !made.priority ||
        !made.row_lower || !made.row_upper || !made.row_start || !made.column || !made.value)
        return weft_fail_memory(err, "a mixed-integer program");
    *out = made;
    return WEFT_OK;
}

static void write_bounds(struct weft_text *out, const char *letter,
                         const struct weft_mip_bounds *bounds)
{
    for (int32_t k = 0; k < bounds->n; k++) {
        weft_text_add(out, letter);
        weft_mip_add_integer(out, bounds->index[k]);
        weft_mip_add_number(out, bounds->lower[k]);
        weft_mip_add_number(out, bounds->upper[k]);
        weft_text_add(out, "\n");
    }
}

void weft_mip_changes_write(const struct weft_mip_changes *changes,
                            const struct weft_mip_limits *limits, struct weft_text *out)
{
    const struct weft_mip_rows *added = &changes->added;
    weft_text_addf(out, "%s 2\nof %d %d\nsize %d %d %d %lld\n", title, changes->n_columns,
                   changes->n_rows, changes->columns.n, changes->rows.n, added->n,
                   (long long)(added->start[added->n] - added->start[0]));
    weft_mip_add_limits(out, limits);
    write_bounds(out, "c", &changes->columns);
    write_bounds(out, "r", &changes->rows);
    weft_mip_add_rows(out, "a", added);
    weft_text_add(out, "end\n");
}

static void read_bounds(struct weft_mip_reader *in, const char *letter, int32_t n_there,
                        const char *what, struct weft_mip_bounds *bounds)
{
    for (int32_t k = 0; k < bounds->n && !in->failed; k++) {
        weft_mip_need_word(in, letter);
        int64_t least = k > 0 ? (int64_t)bounds->index[k - 1] + 1 : 0;
        bounds->index[k] = (int32_t)weft_mip_read_integer(in, least, (int64_t)n_there - 1, what);
        bounds->lower[k] = weft_mip_read_number(in, "a lower bound");
        bounds->upper[k] = weft_mip_read_number(in, "an upper bound");
    }
}

static bool make_rows(struct weft_mip_rows *rows, int64_t n_entries, struct weft_pool *pool)
{
    rows->lower = weft_pool_array(pool, (size_t)rows->n, sizeof *rows->lower);
    rows->upper = weft_pool_array(pool, (size_t)rows->n, sizeof *rows->upper);
    rows->start = weft_pool_array(pool, (size_t)rows->n + 1, sizeof *rows->start);
    rows->column = weft_pool_array(pool, (size_t)n_entries, sizeof *rows->column);
    rows->value = weft_pool_array(pool, (size_t)n_entries, sizeof *rows->value);
    return rows->lower && rows->upper && rows->start && rows->column && rows->value;
}

enum weft_status weft_mip_changes_parse(const char *bytes, size_t length, int32_t n_columns,
                                        int32_t n_rows, struct weft_pool *pool,
                                        struct weft_mip_changes *changes,
                                        struct weft_mip_limits *limits, struct weft_error *err)
{
    struct weft_mip_reader in = weft_mip_reader(bytes, length, err);
    struct weft_mip_changes read = {.n_columns = n_columns, .n_rows = n_rows};
    weft_mip_need_word(&in, title);
    weft_mip_need_word(&in, "2");
    weft_mip_need_word(&in, "of");
    weft_mip_read_integer(&in, n_columns, n_columns, "the number of columns of the program before");
    weft_mip_read_integer(&in, n_rows, n_rows, "the number of rows of the program before");
    weft_mip_need_word(&in, "size");
    int32_t words = weft_mip_most_words(&in);
    int32_t most_added = words < INT32_MAX - n_rows ? words : INT32_MAX - n_rows;
    read.columns.n = (int32_t)weft_mip_read_integer(&in, 0, n_columns, "a number of columns");
    read.rows.n = (int32_t)weft_mip_read_integer(&in, 0, n_rows, "a number of rows");
    read.added.n = (int32_t)weft_mip_read_integer(&in, 0, most_added, "a number of rows to add");
    int64_t n_entries = weft_mip_read_integer(&in, 0, words, "a number of entries");
    struct weft_mip_limits most = weft_mip_read_limits(&in);
    if (!in.failed && most.nodes != -1) weft_mip_read_fail(&in, "the nodes of a relaxation, -1");
    if (in.failed) return WEFT_E_DATA;
    if (!make_bounds(&read.columns, read.columns.n, pool) ||
        !make_bounds(&read.rows, read.rows.n, pool) || !make_rows(&read.added, n_entries, pool))
        return weft_fail_memory(err, "changes of a mixed-integer program");
    read_bounds(&in, "c", n_columns, "a column's number", &read.columns);
    read_bounds(&in, "r", n_rows, "a row's number", &read.rows);
    weft_mip_read_rows(&in, "a", n_columns, n_entries, &read.added);
    weft_mip_need_word(&in, "end");
    if (in.failed) return WEFT_E_DATA;
    *changes = read;
    *limits = most;
    return WEFT_OK;
}

bool weft_mip_is_changes(const char *bytes, size_t length)
{
    size_t n = sizeof title - 1;
    return length > n && memcmp(bytes, title, n) == 0 && bytes[n] == ' ';
}
