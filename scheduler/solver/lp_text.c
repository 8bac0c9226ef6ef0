/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of the protocol (lp_words.h): a whole program, and a result.
 *
 *     weft-lp 1                                     weft-lp-result 1
 *     size COLUMNS ROWS ENTRIES                     status WORD
 *     limits ITERATIONS                             stop TEXT TO THE LINE'S END
 *     c COST LOWER UPPER                   ...      by TEXT TO THE LINE'S END  (may be absent)
 *     r LOWER UPPER N (COLUMN VALUE) x N   ...      work ITERATIONS
 *     start VALUE x COLUMNS    (may be absent)      bound VALUE
 *     end                                           value VALUE            (of a result with x)
 *                                                   x VALUE x COLUMNS      (the same)
 *                                                   duals VALUE x ROWS     (not with integers)
 *                                                   end
 *
 * An integer column has the letter i in place of c. `by` names the solver, for plans. GLPK leaves
 * the line out, so plans with different versions of GLPK have the same bytes. */
#include "scheduler/solver/lp.h"

#include <math.h>
#include <string.h>

#include "scheduler/solver/lp_words.h"

static const char *const status_names[WEFT_LP_STATUS_COUNT] = {"optimal", "feasible", "infeasible",
                                                               "unknown"};

/* Measured with GLPK on programs of 1,300 to 5,500 rows. */
enum { ROW_UNITS = 25, ENTRY_UNITS = 200 };

int64_t weft_lp_iteration_units(const struct weft_lp *lp)
{
    return ROW_UNITS * (int64_t)lp->n_rows + 1;
}

int64_t weft_lp_answer_units(const struct weft_lp *lp, const struct weft_lp_result *result)
{
    return result->iterations * weft_lp_iteration_units(lp) + ENTRY_UNITS * lp->n_entries;
}

struct weft_lp_rows weft_lp_rows(const struct weft_lp *lp, int32_t from)
{
    return (struct weft_lp_rows){.n = lp->n_rows - from,
                                 .lower = lp->row_lower + from,
                                 .upper = lp->row_upper + from,
                                 .start = lp->row_start + from,
                                 .column = lp->column,
                                 .value = lp->value};
}

void weft_lp_write(const struct weft_lp *lp, const struct weft_lp_limits *limits,
                   struct weft_text *out)
{
    struct weft_lp_rows rows = weft_lp_rows(lp, 0);
    weft_text_addf(out, "weft-lp 1\nsize %d %d %lld\n", lp->n_columns, lp->n_rows,
                   (long long)lp->n_entries);
    weft_lp_add_limits(out, limits);
    for (int32_t j = 0; j < lp->n_columns; j++) {
        weft_text_add(out, lp->integer && lp->integer[j] ? "i" : "c");
        weft_lp_add_number(out, lp->cost[j]);
        weft_lp_add_number(out, lp->lower[j]);
        weft_lp_add_number(out, lp->upper[j]);
        weft_text_add(out, "\n");
    }
    weft_lp_add_rows(out, "r", &rows);
    if (lp->integer && lp->start) {
        weft_text_add(out, "start");
        weft_lp_add_numbers(out, lp->start, lp->n_columns);
    }
    weft_text_add(out, "end\n");
}

static enum weft_status make_arrays(struct weft_lp *lp, struct weft_pool *pool,
                                    struct weft_error *err)
{
    size_t columns = (size_t)lp->n_columns, rows = (size_t)lp->n_rows;
    size_t entries = (size_t)lp->n_entries;
    lp->cost = weft_pool_array(pool, columns, sizeof *lp->cost);
    lp->lower = weft_pool_array(pool, columns, sizeof *lp->lower);
    lp->upper = weft_pool_array(pool, columns, sizeof *lp->upper);
    lp->row_lower = weft_pool_array(pool, rows, sizeof *lp->row_lower);
    lp->row_upper = weft_pool_array(pool, rows, sizeof *lp->row_upper);
    lp->row_start = weft_pool_array(pool, rows + 1, sizeof *lp->row_start);
    lp->column = weft_pool_array(pool, entries, sizeof *lp->column);
    lp->value = weft_pool_array(pool, entries, sizeof *lp->value);
    lp->integer = weft_pool_array(pool, columns, sizeof *lp->integer);
    lp->start = weft_pool_array(pool, columns, sizeof *lp->start);
    bool made = lp->integer && lp->start && lp->cost && lp->lower && lp->upper && lp->row_lower &&
                lp->row_upper && lp->row_start && lp->column && lp->value;
    return made ? WEFT_OK : weft_fail_memory(err, "a linear program");
}

/* Reads a start to the document's end. */
static void read_start(struct weft_lp_reader *in, const struct weft_lp *lp)
{
    for (int32_t j = 0; j < lp->n_columns && !in->failed; j++) {
        lp->start[j] = weft_lp_read_number(in, "a start's value");
        if (!in->failed && !isfinite(lp->start[j])) weft_lp_read_fail(in, "a finite value");
    }
    weft_lp_need_word(in, "end");
}

enum weft_status weft_lp_parse(const char *bytes, size_t length, struct weft_pool *pool,
                               struct weft_lp *lp, struct weft_lp_limits *limits,
                               struct weft_error *err)
{
    static const char *const letters[] = {"c", "i"}, *const ends[] = {"end", "start"};
    struct weft_lp_reader in = weft_lp_reader(bytes, length, err);
    struct weft_lp read = {0};
    struct weft_lp_limits most;
    weft_lp_need_word(&in, "weft-lp");
    weft_lp_need_word(&in, "1");
    weft_lp_need_word(&in, "size");
    int32_t words = weft_lp_most_words(&in);
    read.n_columns = (int32_t)weft_lp_read_integer(&in, 0, words, "a number of columns");
    read.n_rows = (int32_t)weft_lp_read_integer(&in, 0, words, "a number of rows");
    read.n_entries = weft_lp_read_integer(&in, 0, words, "a number of entries");
    most = weft_lp_read_limits(&in);
    if (in.failed) return WEFT_E_DATA;
    WEFT_TRY(make_arrays(&read, pool, err));
    bool any = false;
    for (int32_t j = 0; j < read.n_columns && !in.failed; j++) {
        read.integer[j] = weft_lp_read_name(&in, letters, 2, "c or i") == 1;
        any |= read.integer[j];
        read.cost[j] = weft_lp_read_number(&in, "a cost");
        read.lower[j] = weft_lp_read_number(&in, "a lower bound");
        read.upper[j] = weft_lp_read_number(&in, "an upper bound");
    }
    struct weft_lp_rows rows = weft_lp_rows(&read, 0);
    weft_lp_read_rows(&in, "r", read.n_columns, read.n_entries, &rows);
    if (weft_lp_read_name(&in, ends, any ? 2 : 1, "end") == 0)
        read.start = NULL;
    else
        read_start(&in, &read);
    if (!any) read.integer = NULL;
    if (in.failed) return WEFT_E_DATA;
    *lp = read;
    *limits = most;
    return WEFT_OK;
}

static bool has_point(enum weft_lp_status status)
{
    return status == WEFT_LP_OPTIMAL || status == WEFT_LP_FEASIBLE;
}

void weft_lp_result_write(const struct weft_lp *lp, const struct weft_lp_result *result,
                          struct weft_text *out)
{
    weft_text_addf(out, "weft-lp-result 1\nstatus %s\nstop %s\n", status_names[result->status],
                   result->stop ? result->stop : "");
    if (result->by) weft_text_addf(out, "by %s\n", result->by);
    weft_text_addf(out, "work %lld\nbound", (long long)result->iterations);
    weft_lp_add_numbers(out, &result->bound, 1);
    if (has_point(result->status)) {
        weft_text_add(out, "value");
        weft_lp_add_numbers(out, &result->value, 1);
        weft_text_add(out, "x");
        weft_lp_add_numbers(out, result->x, lp->n_columns);
    }
    if (result->status == WEFT_LP_OPTIMAL && !lp->integer) {
        weft_text_add(out, "duals");
        weft_lp_add_numbers(out, result->duals, lp->n_rows);
    }
    weft_text_add(out, "end\n");
}

/* The rest of the line, without the space before it. */
static const char *read_line(struct weft_lp_reader *in, struct weft_pool *pool)
{
    if (in->failed) return NULL;
    if (in->at < in->end && *in->at == ' ') in->at++;
    const char *from = in->at;
    while (in->at < in->end && *in->at != '\n')
        in->at++;
    return weft_pool_format(pool, "%.*s", (int)(in->at - from < 200 ? in->at - from : 200), from);
}

/* Reads the word "work", and the solver's name if that line is before it. Plans have the name, so
 * it has no byte that a terminal obeys. */
static const char *read_name(struct weft_lp_reader *in, struct weft_pool *pool)
{
    static const char *const words[] = {"work", "by"};
    if (in->failed || weft_lp_read_name(in, words, 2, "work or by") == 0) return NULL;
    const char *name = read_line(in, pool);
    bool good = name && *name != '\0' && strlen(name) < WEFT_LP_NAME_BYTES;
    for (const char *at = name; good && *at != '\0'; at++)
        good = *at >= ' ' && *at <= '~';
    if (!good) weft_lp_read_fail(in, "a solver's name of 1 to 63 printable characters");
    weft_lp_need_word(in, "work");
    return name;
}

/* Reads a solution. Its values may exceed the bounds by a rounding of the solver. */
static void read_columns(struct weft_lp_reader *in, const struct weft_lp *lp, double *x)
{
    static const double ROUNDING = 1e-3, WHOLE = 1e-5; /* GLPK's own of a whole value */
    for (int32_t j = 0; j < lp->n_columns && !in->failed; j++) {
        x[j] = weft_lp_read_number(in, "a column's value");
        bool inside = isfinite(x[j]) &&
                      x[j] >= lp->lower[j] - ROUNDING * (1 + fabs(lp->lower[j])) &&
                      x[j] <= lp->upper[j] + ROUNDING * (1 + fabs(lp->upper[j]));
        if (!in->failed && !inside) weft_lp_read_fail(in, "a column's value within its bounds");
        const bool whole = !lp->integer || !lp->integer[j] || fabs(x[j] - round(x[j])) <= WHOLE;
        if (!in->failed && !whole) weft_lp_read_fail(in, "a whole value of an integer column");
    }
}

enum weft_status weft_lp_result_parse(const char *bytes, size_t length, const struct weft_lp *lp,
                                      struct weft_pool *pool, struct weft_lp_result *result,
                                      struct weft_error *err)
{
    struct weft_lp_reader in = weft_lp_reader(bytes, length, err);
    struct weft_lp_result read = {0};
    double *x = weft_pool_array(pool, (size_t)lp->n_columns, sizeof *x);
    double *duals = weft_pool_array(pool, (size_t)lp->n_rows, sizeof *duals);
    if (!x || !duals) return weft_fail_memory(err, "a solver's result");

    weft_lp_need_word(&in, "weft-lp-result");
    weft_lp_need_word(&in, "1");
    weft_lp_need_word(&in, "status");
    read.status = (enum weft_lp_status)weft_lp_read_name(
        &in, status_names, WEFT_LP_STATUS_COUNT, "optimal, feasible, infeasible or unknown");
    if (!in.failed && read.status == WEFT_LP_FEASIBLE && !lp->integer)
        weft_lp_read_fail(&in, "optimal, infeasible or unknown: there is no integer column");
    weft_lp_need_word(&in, "stop");
    read.stop = read_line(&in, pool);
    read.by = read_name(&in, pool);
    read.iterations = weft_lp_read_integer(&in, 0, INT32_MAX, "a number of iterations");
    weft_lp_need_word(&in, "bound");
    read.bound = weft_lp_read_number(&in, "a bound");
    if (!in.failed && has_point(read.status)) {
        weft_lp_need_word(&in, "value");
        read.value = weft_lp_read_number(&in, "a value");
        weft_lp_need_word(&in, "x");
        read_columns(&in, lp, x);
        read.x = x;
    }
    if (!in.failed && read.status == WEFT_LP_OPTIMAL && !lp->integer) {
        weft_lp_need_word(&in, "duals");
        weft_lp_read_numbers(&in, duals, lp->n_rows, "a multiplier");
        read.duals = duals;
    }
    weft_lp_need_word(&in, "end");
    if (in.failed) return WEFT_E_DATA;
    if (!read.stop) return weft_fail_memory(err, "a solver's result");
    *result = read;
    return WEFT_OK;
}
