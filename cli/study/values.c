/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/values.h"

#include <stdio.h>
#include <string.h>

#include "base/boundary.h"
#include "base/units.h"
#include "base/watch.h"
#include "cli/study/least.h"
#include "cli/study/place.h"
#include "report/study/needs.h"
#include "spec/field.h"

enum { MOST_LAYERS = 16384, MOST_RANKS = 65536, MOST_VALUE = 1 << 24 };

/* One tried value and the figures of its rows; bytes are INT64_MAX if a row is not possible. */
struct trial {
    struct trial *next;
    int64_t value;
    uint32_t asked; /* known rows */
    struct {
        int64_t bytes, step_ns;
    } rows[WEFT_ESTIMATE_ROWS];
};

struct search {
    const struct weft_cli *cli;
    const char *named; /* the key as given */
    char key[WEFT_LIST_BYTES];
    bool least, timed;
    int64_t most;        /* last value of the search */
    int64_t node;        /* ranks per node */
    int64_t limit_bytes; /* the config's limit */
    int row;             /* row of the present search */
    int first_row;       /* the row to ask first: just in time in place of fastest */
    struct weft_error refusal;
    int64_t refused_at; /* the least value that the config refuses, with `refusal`; 0: none */
    struct weft_pool pool;
    struct trial *trials;
};

/* One row's result. */
struct found {
    int64_t value;   /* 0: no value fits */
    const char *end; /* limited by "memory", "config" or "search"; NULL: by nothing */
    int64_t bytes, step_ns;
};

static struct trial *find_trial(struct search *search, int64_t value)
{
    struct trial *trial = search->trials;
    while (trial != NULL && trial->value != value)
        trial = trial->next;
    if (trial != NULL) return trial;
    trial = weft_pool_array(&search->pool, 1, sizeof *trial);
    if (trial == NULL) return NULL;
    trial->value = value;
    trial->next = search->trials;
    search->trials = trial;
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++)
        trial->rows[i].bytes = INT64_MAX;
    return trial;
}

/* Returns the trial of a value, with at least the `asked` rows. */
static enum weft_status try_value(struct search *search, int64_t value, uint32_t asked,
                                  struct trial **out, struct weft_error *err)
{
    struct weft_place place = {0};
    struct weft_error refusal = {0};
    struct weft_estimate estimate;
    struct trial *trial = *out = find_trial(search, value);
    if (trial == NULL) return weft_fail_memory(err, "a search");
    if (!(asked & ~trial->asked)) return WEFT_OK;
    weft_place_add(&place, "%s=%lld", search->key, (long long)value);
    weft_watch_look(search->cli->watch);
    enum weft_status status = weft_place_estimate(search->cli, &place, asked, &estimate, &refusal);
    trial->asked |= status == WEFT_OK ? asked : WEFT_ESTIMATE_ALL;
    for (int i = 0; status == WEFT_OK && i < WEFT_ESTIMATE_ROWS; i++) {
        if (!(asked >> i & 1u) || !estimate.rows[i].applies) continue;
        trial->rows[i].bytes = estimate.rows[i].bytes;
        trial->rows[i].step_ns = estimate.rows[i].step_ns;
    }
    weft_estimate_finish(&estimate);
    if (status == WEFT_OK) return WEFT_OK;
    if (status != WEFT_E_DATA) return weft_fail(err, status, "%s", refusal.text);
    if (search->refused_at == 0 || value < search->refused_at) {
        search->refusal = refusal;
        search->refused_at = value;
    }
    return WEFT_OK;
}

/* Answers weft_boundary_find. The fastest row takes longest, so it is computed only if the policy
 * fits at all. Every row of --least asks for powers of two, so their other rows are computed at
 * once. */
static enum weft_status ask_need(void *context, int64_t value, int64_t *bytes,
                                 struct weft_error *err)
{
    struct search *search = context;
    struct trial *trial;
    const bool shared = search->least && (value & (value - 1)) == 0;
    const uint32_t cheap = WEFT_ESTIMATE_ALL & ~weft_estimate_rows_of(1u << WEFT_NEED_FASTEST);
    int row = search->first_row;
    WEFT_TRY(try_value(search, value, 1u << row | (shared ? cheap : 0), &trial, err));
    if (trial->rows[row].bytes <= search->limit_bytes) row = search->row;
    WEFT_TRY(try_value(search, value, 1u << row, &trial, err));
    *bytes = trial->rows[row].bytes;
    return WEFT_OK;
}

/* Answers weft_least_find. */
static enum weft_status ask_fit(void *context, int64_t value, bool *fits, struct weft_error *err)
{
    const struct search *search = context;
    int64_t bytes;
    WEFT_TRY(ask_need(context, value, &bytes, err));
    *fits = bytes <= search->limit_bytes;
    return WEFT_OK;
}

/* Finds a row's value; `guess` is the previous row's. Configs refuse ranks beyond one node that are
 * not whole nodes. */
static enum weft_status find_row(struct search *search, int64_t guess, struct found *out,
                                 struct weft_error *err)
{
    const struct weft_boundary boundary = {guess, search->most, search->limit_bytes, ask_need,
                                           search};
    const struct weft_least least = {search->most, search->node, 0, ask_fit, search};
    struct trial *trial;
    *out = (struct found){.value = 1, .end = "memory"};
    WEFT_TRY(search->least ? weft_least_find(&least, 0, &out->value, err)
                           : weft_boundary_find(&boundary, &out->value, err));
    if (out->value == 0) return WEFT_OK;
    WEFT_TRY(try_value(search, out->value, 1u << search->row, &trial, err));
    out->bytes = trial->rows[search->row].bytes;
    out->step_ns = trial->rows[search->row].step_ns;
    if (search->least && out->value == 1) out->end = NULL;
    if (search->refused_at > 0 && out->value + 1 == search->refused_at) out->end = "config";
    if (!search->least && out->value == search->most) out->end = "search";
    return WEFT_OK;
}

/* Returns the number of layers at a place; -1 if the config refuses it. */
static int32_t count_layers(const struct weft_cli *cli, const struct weft_place *place)
{
    struct weft_session session = {0};
    const bool ok = weft_place_open(cli, place, &session, NULL) == WEFT_OK;
    const int32_t n = ok ? session.config->model->n_layers : -1;
    weft_session_close(&session);
    return n;
}

/* Finds the entry for "layers": the only one whose repeat=1 makes fewer layers. */
static enum weft_status find_repeat(struct search *search, struct weft_error *err)
{
    struct weft_place place = {0};
    const int32_t all = count_layers(search->cli, &place);
    int32_t n_found = 0;
    for (int entry = 0;; entry++) {
        place.n = 0;
        weft_place_add(&place, "model.layers.%d.repeat=1", entry);
        const int32_t n = count_layers(search->cli, &place);
        if (n < 0) break;
        if (n < all && n_found++ == 0)
            snprintf(search->key, sizeof search->key, "model.layers.%d.repeat", entry);
    }
    if (n_found == 1) return WEFT_OK;
    if (n_found == 0)
        return weft_fail(err, WEFT_E_USAGE,
                         "--largest layers: the model has no repeated layer; name a key, such as "
                         "--largest model.layers.1.repeat");
    return weft_fail(err, WEFT_E_USAGE,
                     "--largest layers: the model has %d repeated layers; name one, such as "
                     "--largest %s",
                     (int)n_found, search->key);
}

static enum weft_status refuse_key(const struct search *search, struct weft_error *err)
{
    static const char *const names[] = {"train.micro_batch", "train.seq_len", "layers",
                                        "micro_batch", "seq_len"};
    if (search->least)
        return weft_fail(err, WEFT_E_USAGE,
                         "--least %s: only cluster.ranks is searched for its least", search->named);
    const char *near = weft_field_nearest(search->named, names, 5);
    return weft_fail(err, WEFT_E_USAGE,
                     "--largest %s: %s%s%sthere are train.micro_batch, train.seq_len and layers",
                     search->named, near ? "did you mean " : "", near ? near : "",
                     near ? "? " : "");
}

static enum weft_status read_key(struct search *search, struct weft_error *err)
{
    static const char *const names[] = {"cluster.ranks", "train.micro_batch", "train.seq_len"};
    const char *named = search->named, *name = NULL;
    const bool layers = strcmp(named, "layers") == 0 || strncmp(named, "model.layers.", 13) == 0;
    for (int i = search->least ? 0 : 1; i < (search->least ? 1 : 3); i++)
        if (strcmp(named, names[i]) == 0 || strcmp(named, strchr(names[i], '.') + 1) == 0)
            name = names[i];
    if (!name && (search->least || !layers)) return refuse_key(search, err);
    search->most = search->least ? MOST_RANKS : layers ? MOST_LAYERS : MOST_VALUE;
    snprintf(search->key, sizeof search->key, "%s", name ? name : named);
    return strcmp(named, "layers") == 0 ? find_repeat(search, err) : WEFT_OK;
}

/* Reads limits from the unchanged config. Its errors end the search. */
static enum weft_status read_limits(struct search *search, struct weft_error *err)
{
    const struct weft_place place = {0};
    struct weft_estimate estimate;
    enum weft_status status = weft_place_estimate(search->cli, &place, 0, &estimate, err);
    if (status == WEFT_OK) {
        search->limit_bytes = estimate.limit_bytes;
        search->timed = estimate.times[0] != '\0';
        search->node = estimate.ranks_per_node;
    }
    weft_estimate_finish(&estimate);
    WEFT_TRY(status);
    if (search->limit_bytes > 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "--%s needs a limit: give --memory-limit, or cluster.memory_limit",
                     search->least ? "least" : "largest");
}

enum { VALUE = WEFT_NEED_COLUMNS, NEEDS, STEP, END, N_COLUMNS };

static void put_found(struct weft_rows *rows, const struct found *found)
{
    const bool more = found->end && strcmp(found->end, "search") == 0;
    if (found->value == 0) {
        weft_rows_show(rows, VALUE, WEFT_PAINT_BAD, "none");
        return;
    }
    weft_rows_integer(rows, VALUE, found->value);
    if (more) weft_rows_show(rows, VALUE, WEFT_PAINT_NONE, ">= %lld", (long long)found->value);
    weft_rows_integer(rows, NEEDS, found->bytes);
    if (found->step_ns > 0) weft_rows_integer(rows, STEP, found->step_ns);
    weft_rows_word(rows, END, found->end);
}

/* Explains the table's ends: no fit, and the config's refusal. */
static void say_ends(const struct search *search, bool has_none, struct weft_answer *answer)
{
    if (has_none && search->least)
        weft_answer_say(answer, NULL, "none      nor with %d ranks, the most that are looked at\n",
                        MOST_RANKS);
    if (has_none && !search->least) weft_answer_say(answer, NULL, "none      not even 1 fits\n");
    if (search->refused_at == 0 || search->least) return;
    weft_answer_say(answer, NULL, "config    %s=%lld: %s\n", search->key,
                    (long long)search->refused_at, search->refusal.text);
    weft_answer_integer(answer, "refused", search->refused_at);
    weft_answer_word(answer, "refusal", search->refusal.text);
}

static enum weft_status find_rows(struct search *search, struct weft_need rows[WEFT_ESTIMATE_ROWS],
                                  struct found found[WEFT_ESTIMATE_ROWS], struct weft_error *err)
{
    int64_t guess = 1;
    int least_row = 0;
    weft_estimate_init(rows);
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        if (rows[i].way == WEFT_NEED_JUST_IN_TIME) least_row = i;
        search->row = i;
        search->first_row = rows[i].way == WEFT_NEED_FASTEST ? least_row : i;
        weft_watch_count(search->cli->watch, "row", i, WEFT_ESTIMATE_ROWS);
        WEFT_TRY(find_row(search, guess, &found[i], err));
        if (found[i].value > 0) guess = found[i].value;
        if (rows[i].way == WEFT_NEED_FASTEST && !search->timed) rows[i].way = WEFT_NEED_EARLIEST;
    }
    return WEFT_OK;
}

/* The first line: the best value of all rows. */
static void say_value(const struct search *search, const struct weft_need *rows,
                      const struct found *found, struct weft_answer *answer)
{
    char limit[WEFT_UNITS_TEXT_BYTES];
    const char *what = search->least ? "least" : "largest";
    int best = 0;
    for (int i = 1; i < WEFT_ESTIMATE_ROWS; i++)
        if (found[i].value > 0 &&
            (found[best].value == 0 || (search->least ? found[i].value < found[best].value
                                                      : found[i].value > found[best].value)))
            best = i;
    weft_units_show_bytes(search->limit_bytes, limit);
    if (found[best].value > 0)
        weft_answer_say(answer, "answer",
                        "the %s %s with which %s a rank are enough is %lld, with %s\n", what,
                        search->named, limit, (long long)found[best].value,
                        weft_policy_name(rows[best].policy));
    else
        weft_answer_say(answer, "answer", "no %s fits %s a rank\n", search->named, limit);
}

static enum weft_status answer_search(struct search *search, struct weft_answer *answer,
                                      struct weft_error *err)
{
    const struct weft_column columns[N_COLUMNS] = {
        WEFT_NEED_NAMES,
        [VALUE] = {"value", search->named, 'r', WEFT_FIGURE_INTEGER, WEFT_COLUMN_NULL},
        [NEEDS] = {"needs_bytes", "needs", 'r', WEFT_FIGURE_BYTES, 0},
        [STEP] = {NULL, "step", 'r', WEFT_FIGURE_NS, 0},
        [END] = {"bounded_by", "bounded by", 'l', WEFT_FIGURE_WORD, 0}};
    struct weft_need rows[WEFT_ESTIMATE_ROWS];
    struct found found[WEFT_ESTIMATE_ROWS];
    bool has_none = false;
    WEFT_TRY(find_rows(search, rows, found, err));
    weft_answer_word(answer, search->least ? "least" : "largest", search->key);
    weft_answer_integer(answer, "memory_limit_bytes", search->limit_bytes);
    say_value(search, rows, found, answer);
    struct weft_rows *table = weft_answer_table(answer, "rows", columns, N_COLUMNS);
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        has_none |= found[i].value == 0;
        weft_rows_begin(table, NULL);
        weft_need_put_name(table, &rows[i], i > 0 ? &rows[i - 1] : NULL);
        put_found(table, &found[i]);
    }
    say_ends(search, has_none, answer);
    return WEFT_OK;
}

enum weft_status weft_study_values(const struct weft_cli *cli, struct weft_answer *answer,
                                   struct weft_error *err)
{
    struct search search = {
        .cli = cli, .named = cli->largest ? cli->largest : cli->least, .least = cli->least != NULL};
    WEFT_TRY(read_limits(&search, err));
    WEFT_TRY(read_key(&search, err));
    const enum weft_status status = answer_search(&search, answer, err);
    weft_pool_finish(&search.pool);
    return status;
}
