/* Documents of the protocol (mip_words.h): a whole program, and a result.
 *
 *     weft-mip 2                                    weft-mip-result 1
 *     size COLUMNS ROWS ENTRIES INCUMBENTS          status WORD
 *     limits ITERATIONS NODES GAP                   stop TEXT TO THE LINE'S END
 *     c COST LOWER UPPER INTEGER PRIORITY  ...      work ITERATIONS NODES
 *     r LOWER UPPER N (COLUMN VALUE) x N   ...      bound VALUE
 *     x VALUE x COLUMNS                    ...      lp VALUE, duals ..., solution ...   (optional)
 *     end                                           x OBJECTIVE VALUE x COLUMNS         (optional)
 *                                                   end */
#include "scheduler/solver/mip.h"

#include <math.h>

#include "scheduler/solver/mip_words.h"

static const char *const status_names[WEFT_MIP_STATUS_COUNT] = {"optimal", "feasible", "infeasible",
                                                                "unknown"};

/* As measured with GLPK on programs of 1,300 to 5,500 rows. */
enum { ROW_UNITS = 25, ENTRY_UNITS = 200, NODE_ENTRY_UNITS = 100 };

int64_t weft_mip_iteration_units(const struct weft_mip *mip)
{
    return ROW_UNITS * (int64_t)mip->n_rows + 1;
}

int64_t weft_mip_answer_units(const struct weft_mip *mip, const struct weft_mip_result *result)
{
    return result->iterations * weft_mip_iteration_units(mip) + ENTRY_UNITS * mip->n_entries +
           result->nodes * NODE_ENTRY_UNITS * mip->n_entries;
}

struct weft_mip_rows weft_mip_rows(const struct weft_mip *mip, int32_t from)
{
    return (struct weft_mip_rows){.n = mip->n_rows - from,
                                  .lower = mip->row_lower + from,
                                  .upper = mip->row_upper + from,
                                  .start = mip->row_start + from,
                                  .column = mip->column,
                                  .value = mip->value};
}

void weft_mip_write(const struct weft_mip *mip, const struct weft_mip_limits *limits,
                    struct weft_text *out)
{
    struct weft_mip_rows rows = weft_mip_rows(mip, 0);
    weft_text_addf(out, "weft-mip 2\nsize %d %d %lld %d\n", mip->n_columns, mip->n_rows,
                   (long long)mip->n_entries, mip->n_incumbents);
    weft_mip_add_limits(out, limits);
    for (int32_t j = 0; j < mip->n_columns; j++) {
        weft_text_add(out, "c");
        weft_mip_add_number(out, mip->cost[j]);
        weft_mip_add_number(out, mip->lower[j]);
        weft_mip_add_number(out, mip->upper[j]);
        weft_text_addf(out, " %d %d\n", mip->integer[j] ? 1 : 0, mip->priority[j]);
    }
    weft_mip_add_rows(out, "r", &rows);
    for (int32_t i = 0; i < mip->n_incumbents; i++) {
        weft_text_add(out, "x");
        weft_mip_add_numbers(out, mip->incumbents[i], mip->n_columns);
    }
    weft_text_add(out, "end\n");
}

static enum weft_status make_arrays(struct weft_mip *mip, struct weft_pool *pool,
                                    struct weft_error *err)
{
    size_t columns = (size_t)mip->n_columns, rows = (size_t)mip->n_rows;
    size_t entries = (size_t)mip->n_entries, incumbents = (size_t)mip->n_incumbents;
    mip->cost = weft_pool_array(pool, columns, sizeof *mip->cost);
    mip->lower = weft_pool_array(pool, columns, sizeof *mip->lower);
    mip->upper = weft_pool_array(pool, columns, sizeof *mip->upper);
    mip->integer = weft_pool_array(pool, columns, sizeof *mip->integer);
    mip->priority = weft_pool_array(pool, columns, sizeof *mip->priority);
    mip->row_lower = weft_pool_array(pool, rows, sizeof *mip->row_lower);
    mip->row_upper = weft_pool_array(pool, rows, sizeof *mip->row_upper);
    mip->row_start = weft_pool_array(pool, rows + 1, sizeof *mip->row_start);
    mip->column = weft_pool_array(pool, entries, sizeof *mip->column);
    mip->value = weft_pool_array(pool, entries, sizeof *mip->value);
    mip->incumbents = weft_pool_array(pool, incumbents, sizeof *mip->incumbents);
    bool ok = mip->cost && mip->lower && mip->upper && mip->integer && mip->priority &&
              mip->row_lower && mip->row_upper && mip->row_start && mip->column && mip->value &&
              mip->incumbents;
    for (size_t i = 0; ok && i < incumbents; i++) {
        mip->incumbents[i] = weft_pool_array(pool, columns, sizeof **mip->incumbents);
        ok = mip->incumbents[i] != NULL;
    }
    return ok ? WEFT_OK : weft_fail_memory(err, "a mixed-integer program");
}

enum weft_status weft_mip_parse(const char *bytes, size_t length, struct weft_pool *pool,
                                struct weft_mip *mip, struct weft_mip_limits *limits,
                                struct weft_error *err)
{
    struct weft_mip_reader in = weft_mip_reader(bytes, length, err);
    struct weft_mip read = {0};
    struct weft_mip_limits most;
    weft_mip_need_word(&in, "weft-mip");
    weft_mip_need_word(&in, "2");
    weft_mip_need_word(&in, "size");
    int32_t words = weft_mip_most_words(&in);
    read.n_columns = (int32_t)weft_mip_read_integer(&in, 0, words, "a number of columns");
    read.n_rows = (int32_t)weft_mip_read_integer(&in, 0, words, "a number of rows");
    read.n_entries = weft_mip_read_integer(&in, 0, words, "a number of entries");
    read.n_incumbents = (int32_t)weft_mip_read_integer(
        &in, 0, words / (read.n_columns > 0 ? read.n_columns : 1), "a number of incumbents");
    most = weft_mip_read_limits(&in);
    if (in.failed) return WEFT_E_DATA;
    WEFT_TRY(make_arrays(&read, pool, err));
    for (int32_t j = 0; j < read.n_columns && !in.failed; j++) {
        weft_mip_need_word(&in, "c");
        read.cost[j] = weft_mip_read_number(&in, "a cost");
        read.lower[j] = weft_mip_read_number(&in, "a lower bound");
        read.upper[j] = weft_mip_read_number(&in, "an upper bound");
        read.integer[j] = weft_mip_read_integer(&in, 0, 1, "0 or 1") != 0;
        read.priority[j] = (int32_t)weft_mip_read_integer(&in, 0, INT32_MAX, "a priority");
    }
    struct weft_mip_rows rows = weft_mip_rows(&read, 0);
    weft_mip_read_rows(&in, "r", read.n_columns, read.n_entries, &rows);
    for (int32_t i = 0; i < read.n_incumbents && !in.failed; i++) {
        weft_mip_need_word(&in, "x");
        weft_mip_read_numbers(&in, read.incumbents[i], read.n_columns, "an incumbent's value");
    }
    weft_mip_need_word(&in, "end");
    if (in.failed) return WEFT_E_DATA;
    *mip = read;
    *limits = most;
    return WEFT_OK;
}

void weft_mip_result_write(const struct weft_mip *mip, const struct weft_mip_result *result,
                           struct weft_text *out)
{
    weft_text_addf(out, "weft-mip-result 1\nstatus %s\nstop %s\nwork %lld %lld\nbound",
                   status_names[result->status], result->stop ? result->stop : "",
                   (long long)result->iterations, (long long)result->nodes);
    weft_mip_add_numbers(out, &result->bound, 1);
    if (result->has_lp) {
        weft_text_add(out, "lp");
        weft_mip_add_numbers(out, &result->lp_value, 1);
        weft_text_add(out, "duals");
        weft_mip_add_numbers(out, result->row_duals, mip->n_rows);
        weft_text_add(out, "solution");
        weft_mip_add_numbers(out, result->lp_x, mip->n_columns);
    }
    if (result->x) {
        weft_text_add(out, "x");
        weft_mip_add_number(out, result->objective);
        weft_mip_add_numbers(out, result->x, mip->n_columns);
    }
    weft_text_add(out, "end\n");
}

/* The rest of the line, without the space before it. */
static const char *read_line(struct weft_mip_reader *in, struct weft_pool *pool)
{
    if (in->failed) return NULL;
    if (in->at < in->end && *in->at == ' ') in->at++;
    const char *from = in->at;
    while (in->at < in->end && *in->at != '\n')
        in->at++;
    return weft_pool_format(pool, "%.*s", (int)(in->at - from < 200 ? in->at - from : 200), from);
}

/* Values that a solution may have: solvers keep bounds to some rounding, whatever their units. */
static void read_columns(struct weft_mip_reader *in, const struct weft_mip *mip, double *x)
{
    static const double ROUNDING = 1e-3;
    for (int32_t j = 0; j < mip->n_columns && !in->failed; j++) {
        x[j] = weft_mip_read_number(in, "a column's value");
        bool inside = isfinite(x[j]) &&
                      x[j] >= mip->lower[j] - ROUNDING * (1 + fabs(mip->lower[j])) &&
                      x[j] <= mip->upper[j] + ROUNDING * (1 + fabs(mip->upper[j]));
        if (!in->failed && !inside) weft_mip_read_fail(in, "a column's value within its bounds");
    }
}

enum weft_status weft_mip_result_parse(const char *bytes, size_t length, const struct weft_mip *mip,
                                       struct weft_pool *pool, struct weft_mip_result *result,
                                       struct weft_error *err)
{
    struct weft_mip_reader in = weft_mip_reader(bytes, length, err);
    struct weft_mip_result read = {0};
    size_t columns = (size_t)mip->n_columns, rows = (size_t)mip->n_rows;
    double *duals = weft_pool_array(pool, rows, sizeof *duals);
    double *lp_x = weft_pool_array(pool, columns, sizeof *lp_x);
    double *x = weft_pool_array(pool, columns, sizeof *x);
    if (!duals || !lp_x || !x) return weft_fail_memory(err, "a solver's result");

    weft_mip_need_word(&in, "weft-mip-result");
    weft_mip_need_word(&in, "1");
    weft_mip_need_word(&in, "status");
    read.status = (enum weft_mip_status)weft_mip_read_name(
        &in, status_names, WEFT_MIP_STATUS_COUNT, "optimal, feasible, infeasible or unknown");
    weft_mip_need_word(&in, "stop");
    read.stop = read_line(&in, pool);
    weft_mip_need_word(&in, "work");
    read.iterations = weft_mip_read_integer(&in, 0, INT64_MAX, "a number of iterations");
    read.nodes = weft_mip_read_integer(&in, 0, INT64_MAX, "a number of nodes");
    weft_mip_need_word(&in, "bound");
    read.bound = weft_mip_read_number(&in, "a bound");
    if (weft_mip_has_word(&in, "lp")) {
        read.has_lp = true;
        read.lp_value = weft_mip_read_number(&in, "a value");
        weft_mip_need_word(&in, "duals");
        weft_mip_read_numbers(&in, duals, mip->n_rows, "a multiplier");
        weft_mip_need_word(&in, "solution");
        read_columns(&in, mip, lp_x);
        read.row_duals = duals;
        read.lp_x = lp_x;
    }
    if (weft_mip_has_word(&in, "x")) {
        read.objective = weft_mip_read_number(&in, "an objective");
        read_columns(&in, mip, x);
        read.x = x;
    }
    weft_mip_need_word(&in, "end");
    if (!in.failed && !read.x && read.status <= WEFT_MIP_FEASIBLE)
        weft_mip_read_fail(&in, "the solution found");
    if (in.failed) return WEFT_E_DATA;
    if (!read.stop) return weft_fail_memory(err, "a solver's result");
    *result = read;
    return WEFT_OK;
}
