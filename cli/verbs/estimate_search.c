/* `weft estimate --largest` and `--least`. The search assumes that if a value fits, every smaller
 * one fits (for ranks: every larger one). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/boundary.h"
#include "base/units.h"
#include "base/watch.h"
#include "cli/verbs/estimate.h"
#include "report/study/needs.h"
#include "report/table.h"
#include "spec/field.h"

enum { SETTING_BYTES = 256, MOST_LAYERS = 16384, MOST_RANKS = 65536 };
static const int64_t MOST_VALUE = INT64_C(1) << 24;

/* One tried value and its rows. */
struct trial {
    int64_t value;
    bool refused; /* by the config */
    uint32_t asked;
    struct weft_need rows[WEFT_ESTIMATE_ROWS]; /* without names */
};

struct search {
    const struct weft_cli *cli;
    const char *named; /* the key as given */
    char key[SETTING_BYTES];
    bool least;
    bool timed;
    int64_t most;                       /* last value of the search */
    int64_t node;                       /* ranks per node */
    int64_t limit_bytes;                /* the config's limit */
    int row;                            /* row of the present search */
    uint32_t cheap_rows;                /* all but the fastest */
    int first_rows[WEFT_ESTIMATE_ROWS]; /* the row to ask first: just in time in place of fastest */
    struct weft_error *reason;
    int64_t refused_at; /* the least refused value, with that reason; 0: none */
    int32_t n_trials, capacity;
    struct trial *trials;
};

/* One row's result. */
struct found {
    int64_t value;   /* 0: no value fits */
    const char *end; /* limited by "memory", "config" or "search"; NULL: by nothing */
    struct weft_need need;
};

static enum weft_status find_trial(struct search *search, int64_t value, struct trial **out,
                                   struct weft_error *err)
{
    for (int32_t i = 0; i < search->n_trials; i++) {
        *out = &search->trials[i];
        if ((*out)->value == value) return WEFT_OK;
    }
    if (search->n_trials == search->capacity) {
        int32_t capacity = search->capacity * 2 + 32;
        struct trial *trials = realloc(search->trials, (size_t)capacity * sizeof *trials);
        if (!trials) return weft_fail_memory(err, "a search");
        search->trials = trials;
        search->capacity = capacity;
    }
    *out = &search->trials[search->n_trials++];
    **out = (struct trial){.value = value};
    return WEFT_OK;
}

static void note_refusal(struct search *search, struct trial *trial,
                         const struct weft_error *reason)
{
    trial->refused = true;
    if (search->refused_at > 0 && trial->value >= search->refused_at) return;
    *search->reason = *reason;
    search->refused_at = trial->value;
}

static void keep_rows(const struct weft_estimate *estimate, uint32_t asked, struct trial *out)
{
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        if (!(asked >> i & 1u)) continue;
        out->rows[i] = estimate->rows[i];
        out->rows[i].slot_name = out->rows[i].unit_name = "";
    }
    out->asked |= asked;
}

/* Returns the trial of a value, with at least the `asked` rows. */
static enum weft_status try_value(struct search *search, int64_t value, uint32_t asked,
                                  struct trial **out, struct weft_error *err)
{
    char setting[SETTING_BYTES + 32];
    const char *const settings[] = {setting};
    struct weft_error refusal = {0};
    struct weft_estimate estimate;
    WEFT_TRY(find_trial(search, value, out, err));
    if ((*out)->refused || !(asked & ~(*out)->asked)) return WEFT_OK;
    snprintf(setting, sizeof setting, "%s=%lld", search->key, (long long)value);
    weft_watch_look(search->cli->watch);
    enum weft_status status =
        weft_estimate_at(search->cli, settings, 1, asked, &estimate, &refusal);
    if (status == WEFT_OK) keep_rows(&estimate, asked, *out);
    weft_estimate_finish(&estimate);
    if (status == WEFT_E_DATA) note_refusal(search, *out, &refusal);
    if (status == WEFT_OK || status == WEFT_E_DATA) return WEFT_OK;
    return weft_fail(err, status, "%s", refusal.text);
}

/* Answers weft_boundary_find. The fastest row takes longest, so it is computed only if the policy
 * fits at all. Every row of --least asks for powers of two, so their other rows are computed at
 * once. */
static enum weft_status ask_need(void *context, int64_t value, int64_t *bytes,
                                 struct weft_error *err)
{
    struct search *search = context;
    struct trial *trial;
    int first = search->first_rows[search->row];
    bool shared = search->least && (value & (value - 1)) == 0;
    WEFT_TRY(
        try_value(search, value, 1u << first | (shared ? search->cheap_rows : 0), &trial, err));
    const struct weft_need *need = &trial->rows[first];
    if (!trial->refused && need->applies && need->bytes <= search->limit_bytes) {
        WEFT_TRY(try_value(search, value, 1u << search->row, &trial, err));
        need = &trial->rows[search->row];
    }
    *bytes = trial->refused || !need->applies ? INT64_MAX : need->bytes;
    return WEFT_OK;
}

static enum weft_status fits(struct search *search, int64_t value, bool *out,
                             struct weft_error *err)
{
    int64_t bytes;
    WEFT_TRY(ask_need(search, value, &bytes, err));
    *out = bytes <= search->limit_bytes;
    return WEFT_OK;
}

/* Halves (no, *yes], in multiples of `step`. */
static enum weft_status halve(struct search *search, int64_t no, int64_t *yes, int64_t step,
                              struct weft_error *err)
{
    while (*yes - no > step) {
        int64_t middle = no + (*yes - no) / 2 / step * step;
        bool fit;
        WEFT_TRY(fits(search, middle, &fit, err));
        if (fit)
            *yes = middle;
        else
            no = middle;
    }
    return WEFT_OK;
}

/* Finds the least ranks: one by one within a node, otherwise in whole nodes, since configs refuse
 * other counts. */
static enum weft_status find_least(struct search *search, int64_t *out, struct weft_error *err)
{
    int64_t value = 1, before = 0;
    bool fit;
    WEFT_TRY(fits(search, value, &fit, err));
    while (!fit && value * 2 <= search->most) {
        before = value;
        value = value < search->node && value * 2 > search->node ? search->node : value * 2;
        WEFT_TRY(fits(search, value, &fit, err));
    }
    *out = fit ? value : 0;
    return fit ? halve(search, before, out, before < search->node ? 1 : search->node, err)
               : WEFT_OK;
}

/* `guess`: the previous row's value. */
static enum weft_status find_row(struct search *search, int64_t guess, struct found *out,
                                 struct weft_error *err)
{
    struct weft_boundary boundary = {guess > 0 ? guess : 1, search->most, search->limit_bytes,
                                     ask_need, search};
    struct trial *trial;
    *out = (struct found){.end = "memory"};
    if (search->least)
        WEFT_TRY(find_least(search, &out->value, err));
    else
        WEFT_TRY(weft_boundary_find(&boundary, &out->value, err));
    if (out->value == 0) return WEFT_OK;
    WEFT_TRY(try_value(search, out->value, 1u << search->row, &trial, err));
    out->need = trial->rows[search->row];
    if (search->least && out->value == 1) out->end = NULL;
    if (search->refused_at > 0 && out->value + 1 == search->refused_at) out->end = "config";
    if (!search->least && out->value == search->most) out->end = "search";
    return WEFT_OK;
}

/* Returns the number of layers with this setting; -1 if the config refuses it. */
static int32_t count_layers(const struct weft_cli *cli, const char *setting)
{
    struct weft_session session = {0};
    struct weft_cli one = *cli;
    int32_t n = -1;
    if (setting && one.n_overrides < WEFT_CLI_OVERRIDES) one.overrides[one.n_overrides++] = setting;
    if (weft_cli_read_config(&one, one.operands[0], &session, NULL) == WEFT_OK)
        n = session.config->model->n_layers;
    weft_session_close(&session);
    return n;
}

/* Finds the entry for "layers": the only one whose repeat=1 makes fewer layers. */
static enum weft_status find_repeat(struct search *search, struct weft_error *err)
{
    int32_t all = count_layers(search->cli, NULL), n_found = 0;
    for (int entry = 0;; entry++) {
        char setting[64];
        snprintf(setting, sizeof setting, "model.layers.%d.repeat=1", entry);
        int32_t n = count_layers(search->cli, setting);
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
    bool layers = strcmp(named, "layers") == 0 || strncmp(named, "model.layers.", 13) == 0;
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
    struct weft_session session = {0};
    struct weft_estimate estimate = {0};
    enum weft_status status =
        weft_cli_read_config(search->cli, search->cli->operands[0], &session, err);
    if (status == WEFT_OK) status = weft_estimate_create(&session, 0, &estimate, err);
    if (status == WEFT_OK) {
        search->limit_bytes = estimate.limit_bytes;
        search->timed = estimate.times[0] != '\0';
        search->node = session.config->cluster.ranks_per_node;
    }
    weft_estimate_finish(&estimate);
    weft_session_close(&session);
    WEFT_TRY(status);
    if (search->limit_bytes > 0) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "--%s asks what fits: give --memory-limit, or cluster.memory_limit",
                     search->least ? "least" : "largest");
}

static void add_row(struct weft_table *table, const struct weft_need *row, bool same,
                    const struct found *found)
{
    char shown[WEFT_UNITS_TEXT_BYTES];
    bool has = found->value > 0, more = found->end && strcmp(found->end, "search") == 0;
    int64_t step_ns = has ? found->need.step_ns : 0;
    weft_table_cell(table, "%s", same ? "" : weft_policy_name(row->policy));
    weft_table_cell(table, "%s", weft_need_way_text(row));
    if (has)
        weft_table_cell(table, "%s%lld", more ? ">= " : "", (long long)found->value);
    else
        weft_table_cell_painted(table, WEFT_PAINT_BAD, "none");
    weft_table_cell(table, "%s", has ? weft_units_show_bytes(found->need.bytes, shown) : "-");
    weft_table_cell(table, "%s", step_ns > 0 ? weft_units_show_ns(step_ns, shown) : "-");
    weft_table_cell(table, "%s", has && found->end ? found->end : "-");
}

static void put_row(const struct weft_need *row, const struct found *found,
                    struct weft_json_writer *writer)
{
    weft_json_begin_object(writer);
    weft_json_put_string(writer, "policy", weft_policy_name(row->policy));
    weft_json_put_string(writer, "way", row->rule ? "published" : weft_need_way_text(row));
    if (row->rule) weft_json_put_string(writer, "rule", row->rule);
    weft_json_key(writer, "value");
    if (found->value > 0) {
        weft_json_add_integer(writer, found->value);
        weft_json_put_integer(writer, "needs_bytes", found->need.bytes);
        if (found->end) weft_json_put_string(writer, "bounded_by", found->end);
    } else {
        weft_json_add_null(writer);
    }
    weft_json_end_object(writer);
}

/* Explains the table's ends: no fit, and the config's refusal. */
static void say_ends(const struct search *search, bool has_none, struct weft_text *out)
{
    if (has_none && search->least)
        weft_text_addf(out, "none      nor with %d ranks, the most that are looked at\n",
                       MOST_RANKS);
    if (has_none && !search->least) weft_text_add(out, "none      not even 1 fits\n");
    if (search->refused_at > 0 && !search->least)
        weft_text_addf(out, "config    %s=%lld: %s\n", search->key, (long long)search->refused_at,
                       search->reason->text);
}

static void set_first_rows(struct search *search, const struct weft_need *rows)
{
    int least = 0;
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        if (rows[i].way == WEFT_NEED_JUST_IN_TIME) least = i;
        search->first_rows[i] = rows[i].way == WEFT_NEED_FASTEST ? least : i;
    }
    search->cheap_rows = WEFT_ESTIMATE_ALL & ~weft_estimate_rows_of(1u << WEFT_NEED_FASTEST);
}

static enum weft_status answer_rows(struct search *search, struct weft_table *table, bool *has_none,
                                    struct weft_json_writer *writer, struct weft_error *err)
{
    struct weft_need rows[WEFT_ESTIMATE_ROWS];
    int64_t guess = 1;
    weft_estimate_init(rows);
    set_first_rows(search, rows);
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        struct found found;
        search->row = i;
        weft_watch_count(search->cli->watch, "row", i, WEFT_ESTIMATE_ROWS);
        WEFT_TRY(find_row(search, guess, &found, err));
        if (found.value > 0) guess = found.value;
        *has_none = *has_none || found.value == 0;
        if (rows[i].way == WEFT_NEED_FASTEST && !search->timed) rows[i].way = WEFT_NEED_EARLIEST;
        add_row(table, &rows[i], i > 0 && rows[i].policy == rows[i - 1].policy, &found);
        put_row(&rows[i], &found, writer);
    }
    return WEFT_OK;
}

static enum weft_status answer(struct search *search, struct weft_text *out,
                               struct weft_json_writer *writer, struct weft_error *err)
{
    static const char *const head[] = {"policy", "way", "", "needs", "step", "bounded by"};
    struct weft_table table;
    char limit[WEFT_UNITS_TEXT_BYTES];
    bool has_none = false;
    weft_json_key(writer, "rows");
    weft_json_begin_array(writer);
    weft_table_init(&table, "llrrrl");
    for (size_t i = 0; i < sizeof head / sizeof *head; i++)
        weft_table_cell(&table, "%s", i == 2 ? search->named : head[i]);
    enum weft_status status = answer_rows(search, &table, &has_none, writer, err);
    weft_json_end_array(writer);
    weft_text_addf(out, "the %s %s with which %s a rank are enough\n",
                   search->least ? "least" : "largest", search->named,
                   weft_units_show_bytes(search->limit_bytes, limit));
    weft_table_render(&table, 0, out);
    weft_table_finish(&table);
    say_ends(search, has_none, out);
    if (search->refused_at > 0 && !search->least) {
        weft_json_put_integer(writer, "refused", search->refused_at);
        weft_json_put_string(writer, "refusal", search->reason->text);
    }
    return status;
}

enum weft_status weft_estimate_search(const struct weft_cli *cli, struct weft_text *out,
                                      struct weft_text *json, struct weft_error *err)
{
    struct weft_error reason = {0};
    struct search search = {.cli = cli,
                            .named = cli->largest ? cli->largest : cli->least,
                            .least = cli->least != NULL,
                            .reason = &reason};
    struct weft_json_writer writer;
    WEFT_TRY(read_limits(&search, err));
    WEFT_TRY(read_key(&search, err));
    weft_json_writer_init(&writer, json, 2);
    weft_json_begin_object(&writer);
    weft_json_put_string(&writer, search.least ? "least" : "largest", search.key);
    weft_json_put_integer(&writer, "memory_limit_bytes", search.limit_bytes);
    enum weft_status status = answer(&search, out, &writer, err);
    weft_json_end_object(&writer);
    free(search.trials);
    return status;
}
