/* The protocol of weft-solve: lines of space-separated words, numbers in a form that reads back to
 * the same bits. Whole documents, never a stream: the solver reads all of stdin first.
 *
 *     weft-mip 1                                    weft-mip-result 1
 *     size COLUMNS ROWS ENTRIES INCUMBENTS          status WORD
 *     limits ITERATIONS NODES TIME_NS GAP           stop TEXT TO THE LINE'S END
 *     c COST LOWER UPPER INTEGER PRIORITY  ...      work ITERATIONS NODES
 *     r LOWER UPPER N (COLUMN VALUE) x N   ...      bound VALUE
 *     x VALUE x COLUMNS                    ...      lp VALUE, duals ..., solution ...   (optional)
 *     end                                           x OBJECTIVE VALUE x COLUMNS         (optional)
 *                                                   end */
#include "scheduler/mip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const status_names[WEFT_MIP_STATUS_COUNT] = {"optimal", "feasible", "infeasible",
                                                                "unknown"};

enum { WORD_BYTES = 64 };

/* Most of what a relaxation takes would be the printing of its numbers: whole ones are written
 * digit by digit, the others in hexadecimal, which is exact and much faster than 17 digits. */
static void add_integer(struct weft_text *out, int64_t value)
{
    char word[24], *at = word + sizeof word - 1;
    uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    *at = '\0';
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0) *--at = '-';
    *--at = ' ';
    weft_text_add(out, at);
}

static void add_number(struct weft_text *out, double value)
{
    char word[WORD_BYTES];
    if (fabs(value) < 1e15 && value == floor(value)) {
        add_integer(out, (int64_t)value);
    } else {
        snprintf(word, sizeof word, " %a", value);
        weft_text_add(out, word);
    }
}

static void add_numbers(struct weft_text *out, const double *values, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        add_number(out, values[i]);
    weft_text_add(out, "\n");
}

void weft_mip_write(const struct weft_mip *mip, const struct weft_mip_limits *limits,
                    struct weft_text *out)
{
    weft_text_addf(out, "weft-mip 1\nsize %d %d %lld %d\n", mip->n_columns, mip->n_rows,
                   (long long)mip->n_entries, mip->n_incumbents);
    weft_text_addf(out, "limits %lld %lld %lld", (long long)limits->iterations,
                   (long long)limits->nodes, (long long)limits->time_ns);
    add_numbers(out, &limits->gap, 1);
    for (int32_t j = 0; j < mip->n_columns; j++) {
        weft_text_add(out, "c");
        add_number(out, mip->cost[j]);
        add_number(out, mip->lower[j]);
        add_number(out, mip->upper[j]);
        weft_text_addf(out, " %d %d\n", mip->integer[j] ? 1 : 0, mip->priority[j]);
    }
    for (int32_t i = 0; i < mip->n_rows; i++) {
        weft_text_add(out, "r");
        add_number(out, mip->row_lower[i]);
        add_number(out, mip->row_upper[i]);
        weft_text_addf(out, " %lld", (long long)(mip->row_start[i + 1] - mip->row_start[i]));
        for (int64_t k = mip->row_start[i]; k < mip->row_start[i + 1]; k++) {
            add_integer(out, mip->column[k]);
            add_number(out, mip->value[k]);
        }
        weft_text_add(out, "\n");
    }
    for (int32_t i = 0; i < mip->n_incumbents; i++) {
        weft_text_add(out, "x");
        add_numbers(out, mip->incumbents[i], mip->n_columns);
    }
    weft_text_add(out, "end\n");
}

/* Reads words; the first fault is remembered and everything after it reads as 0. */
struct reader {
    const char *at, *end;
    int64_t line;
    bool failed;
    struct weft_error *err;
};

static void fail(struct reader *in, const char *what)
{
    if (!in->failed) {
        weft_fail(in->err, WEFT_E_DATA, "solver protocol, line %lld: expected %s",
                  (long long)in->line, what);
    }
    in->failed = true;
}

/* Copies the next word of the line, with its NUL, into `word`. */
static const char *next_word(struct reader *in, char word[WORD_BYTES], const char *what)
{
    word[0] = '\0';
    if (in->failed) return word;
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\n')) {
        if (*in->at == '\n') in->line++;
        in->at++;
    }
    size_t length = 0;
    while (in->at < in->end && *in->at != ' ' && *in->at != '\n' && length < WORD_BYTES - 1)
        word[length++] = *in->at++;
    word[length] = '\0';
    if (length == 0) fail(in, what);
    return word;
}

static void need_word(struct reader *in, const char *wanted)
{
    char word[WORD_BYTES];
    if (strcmp(next_word(in, word, wanted), wanted) != 0) fail(in, wanted);
}

/* True, and consumed, when the next word is `wanted`. */
static bool has_word(struct reader *in, const char *wanted)
{
    struct reader before = *in;
    char word[WORD_BYTES];
    if (in->failed) return false;
    if (strcmp(next_word(in, word, wanted), wanted) == 0) return true;
    if (!in->failed) *in = before;
    return false;
}

static int64_t next_integer(struct reader *in, int64_t least, int64_t most, const char *what)
{
    char word[WORD_BYTES], *rest = NULL;
    next_word(in, word, what);
    if (in->failed) return 0;
    long long value = strtoll(word, &rest, 10);
    if (*rest != '\0' || value < least || value > most) {
        fail(in, what);
        return 0;
    }
    return value;
}

static double next_number(struct reader *in, const char *what)
{
    char word[WORD_BYTES], *rest = NULL;
    next_word(in, word, what);
    if (in->failed) return 0;
    double value = strtod(word, &rest);
    if (*rest != '\0' || isnan(value)) {
        fail(in, what);
        return 0;
    }
    return value;
}

static void read_numbers(struct reader *in, double *values, int32_t n, const char *what)
{
    for (int32_t i = 0; i < n && !in->failed; i++)
        values[i] = next_number(in, what);
}

/* Every number takes two bytes at least, so a count above this is a lie, found before anything is
 * allocated for it. */
static int64_t most_words(const struct reader *in)
{
    return (int64_t)((in->end - in->at) / 2 + 1);
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

static void read_rows(struct reader *in, struct weft_mip *mip)
{
    int64_t n_entries = 0;
    for (int32_t i = 0; i < mip->n_rows && !in->failed; i++) {
        need_word(in, "r");
        mip->row_lower[i] = next_number(in, "a row's lower bound");
        mip->row_upper[i] = next_number(in, "a row's upper bound");
        int64_t n = next_integer(in, 0, mip->n_entries - n_entries, "a row's number of entries");
        for (int64_t k = 0; k < n && !in->failed; k++) {
            mip->column[n_entries + k] =
                (int32_t)next_integer(in, 0, (int64_t)mip->n_columns - 1, "a column's number");
            mip->value[n_entries + k] = next_number(in, "a coefficient");
            if (!in->failed && !isfinite(mip->value[n_entries + k]))
                fail(in, "a finite coefficient");
        }
        n_entries += n;
        mip->row_start[i + 1] = n_entries;
    }
    if (!in->failed && n_entries != mip->n_entries) fail(in, "as many entries as `size` says");
}

enum weft_status weft_mip_parse(const char *bytes, size_t length, struct weft_pool *pool,
                                struct weft_mip *mip, struct weft_mip_limits *limits,
                                struct weft_error *err)
{
    struct reader in = {.at = bytes, .end = bytes + length, .line = 1, .err = err};
    struct weft_mip read = {0};
    struct weft_mip_limits most = {0};
    need_word(&in, "weft-mip");
    need_word(&in, "1");
    need_word(&in, "size");
    int64_t words = most_words(&in) < INT32_MAX ? most_words(&in) : INT32_MAX - 1;
    read.n_columns = (int32_t)next_integer(&in, 0, words, "a number of columns");
    read.n_rows = (int32_t)next_integer(&in, 0, words, "a number of rows");
    read.n_entries = next_integer(&in, 0, words, "a number of entries");
    read.n_incumbents = (int32_t)next_integer(
        &in, 0, words / (read.n_columns > 0 ? read.n_columns : 1), "a number of incumbents");
    need_word(&in, "limits");
    most.iterations = next_integer(&in, 0, INT64_MAX, "a limit of iterations");
    most.nodes = next_integer(&in, -1, INT64_MAX, "a limit of nodes");
    most.time_ns = next_integer(&in, 0, INT64_MAX, "a limit of time");
    most.gap = next_number(&in, "a gap");
    if (in.failed) return WEFT_E_DATA;
    WEFT_TRY(make_arrays(&read, pool, err));
    for (int32_t j = 0; j < read.n_columns && !in.failed; j++) {
        need_word(&in, "c");
        read.cost[j] = next_number(&in, "a cost");
        read.lower[j] = next_number(&in, "a lower bound");
        read.upper[j] = next_number(&in, "an upper bound");
        read.integer[j] = next_integer(&in, 0, 1, "0 or 1") != 0;
        read.priority[j] = (int32_t)next_integer(&in, 0, INT32_MAX, "a priority");
    }
    read_rows(&in, &read);
    for (int32_t i = 0; i < read.n_incumbents && !in.failed; i++) {
        need_word(&in, "x");
        read_numbers(&in, read.incumbents[i], read.n_columns, "an incumbent's value");
    }
    need_word(&in, "end");
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
    add_numbers(out, &result->bound, 1);
    if (result->has_lp) {
        weft_text_add(out, "lp");
        add_numbers(out, &result->lp_value, 1);
        weft_text_add(out, "duals");
        add_numbers(out, result->row_duals, mip->n_rows);
        weft_text_add(out, "solution");
        add_numbers(out, result->lp_x, mip->n_columns);
    }
    if (result->x) {
        weft_text_add(out, "x");
        add_number(out, result->objective);
        add_numbers(out, result->x, mip->n_columns);
    }
    weft_text_add(out, "end\n");
}

static enum weft_mip_status read_status(struct reader *in)
{
    char word[WORD_BYTES];
    next_word(in, word, "a status");
    for (int i = 0; i < WEFT_MIP_STATUS_COUNT; i++) {
        if (strcmp(word, status_names[i]) == 0) return (enum weft_mip_status)i;
    }
    fail(in, "optimal, feasible, infeasible or unknown");
    return WEFT_MIP_UNKNOWN;
}

/* The rest of the line, without the space before it. */
static const char *read_line(struct reader *in, struct weft_pool *pool)
{
    if (in->failed) return NULL;
    if (in->at < in->end && *in->at == ' ') in->at++;
    const char *from = in->at;
    while (in->at < in->end && *in->at != '\n')
        in->at++;
    return weft_pool_format(pool, "%.*s", (int)(in->at - from < 200 ? in->at - from : 200), from);
}

enum weft_status weft_mip_result_parse(const char *bytes, size_t length, const struct weft_mip *mip,
                                       struct weft_pool *pool, struct weft_mip_result *result,
                                       struct weft_error *err)
{
    struct reader in = {.at = bytes, .end = bytes + length, .line = 1, .err = err};
    struct weft_mip_result read = {0};
    size_t columns = (size_t)mip->n_columns, rows = (size_t)mip->n_rows;
    double *duals = weft_pool_array(pool, rows, sizeof *duals);
    double *lp_x = weft_pool_array(pool, columns, sizeof *lp_x);
    double *x = weft_pool_array(pool, columns, sizeof *x);
    if (!duals || !lp_x || !x) return weft_fail_memory(err, "a solver's result");

    need_word(&in, "weft-mip-result");
    need_word(&in, "1");
    need_word(&in, "status");
    read.status = read_status(&in);
    need_word(&in, "stop");
    read.stop = read_line(&in, pool);
    need_word(&in, "work");
    read.iterations = next_integer(&in, 0, INT64_MAX, "a number of iterations");
    read.nodes = next_integer(&in, 0, INT64_MAX, "a number of nodes");
    need_word(&in, "bound");
    read.bound = next_number(&in, "a bound");
    if (has_word(&in, "lp")) {
        read.has_lp = true;
        read.lp_value = next_number(&in, "a value");
        need_word(&in, "duals");
        read_numbers(&in, duals, mip->n_rows, "a multiplier");
        need_word(&in, "solution");
        read_numbers(&in, lp_x, mip->n_columns, "a column's value");
        read.row_duals = duals;
        read.lp_x = lp_x;
    }
    if (has_word(&in, "x")) {
        read.objective = next_number(&in, "an objective");
        read_numbers(&in, x, mip->n_columns, "a column's value");
        read.x = x;
    }
    need_word(&in, "end");
    if (!in.failed && !read.x && read.status <= WEFT_MIP_FEASIBLE) fail(&in, "the solution found");
    if (in.failed) return WEFT_E_DATA;
    if (!read.stop) return weft_fail_memory(err, "a solver's result");
    *result = read;
    return WEFT_OK;
}
