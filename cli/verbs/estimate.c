/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/units.h"
#include "base/watch.h"
#include "cli/study/place.h"
#include "cli/study/values.h"
#include "cli/terminal.h"
#include "report/study/needs.h"
#include "report/study/ways.h"

enum { MOST_VALUES = 64 };

/* The values of one key. */
struct axis {
    int32_t n;
    char key[WEFT_LIST_BYTES];
    char values[MOST_VALUES][WEFT_LIST_BYTES];
};

/* How a place fits its limit, by the row of its answer. */
enum fit { AS_ISSUED, JUST_IN_TIME, RECOMPUTED, NOT, N_FITS };

/* The question. Places are those of no key, the values of one, or all pairs of the values of two.
 */
struct question {
    const struct weft_cli *cli;
    struct axis axes[2];
    struct weft_answer *answer;
    struct weft_rows *grid;          /* of pairs, in text */
    int64_t limit_bytes;             /* of the last place */
    int32_t n_fit[N_FITS];           /* places */
    struct weft_text values[N_FITS]; /* of one key */
    struct {
        int64_t bytes;
        const char *policy, *value;
    } least; /* of all places */
};

static enum weft_status read_axis(const char *text, struct axis *out, struct weft_error *err)
{
    struct weft_list list = {.rest = strchr(text, '=')};
    const size_t key = list.rest ? (size_t)(list.rest - text) : 0;
    if (key == 0 || list.rest[1] == '\0')
        return weft_fail(err, WEFT_E_USAGE, "--sweep %s: write --sweep path.key=a,b,c", text);
    for (list.rest++; weft_list_next(&list);) {
        if (out->n == MOST_VALUES)
            return weft_fail(err, WEFT_E_USAGE, "--sweep %s: at most %d values", text, MOST_VALUES);
        if (list.item[0] == '\0' || list.cut || key >= sizeof out->key)
            return weft_fail(err, WEFT_E_USAGE, "--sweep %s: an empty or over-long value", text);
        memcpy(out->values[out->n++], list.item, sizeof list.item);
    }
    memcpy(out->key, text, key);
    return WEFT_OK;
}

/* Adds a line for each tier that may hold state, and "state_locations" of data. */
static void say_locations(const struct weft_estimate *estimate, struct weft_answer *answer)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    bool any = false;
    for (int location = 0; location < WEFT_LOCATION_COUNT; location++) {
        const struct weft_estimate_location *it = &estimate->locations[location];
        const bool fits = it->least_bytes != INT64_MAX;
        if (!it->given) continue;
        if (!any) weft_answer_open(answer, "state_homes");
        any = true;
        weft_answer_open(answer, weft_location_names[location]);
        weft_answer_bool(answer, "fits", fits);
        if (fits) weft_answer_integer(answer, "device_needs_bytes", it->least_bytes);
        weft_answer_integer(answer, "ring_bytes", it->ring_bytes);
        if (location != WEFT_LOCATION_DEVICE)
            weft_answer_integer(answer, "held_bytes", it->held_bytes);
        weft_answer_close(answer);
        weft_answer_say(answer, NULL, "state     all on the %s: %s%s",
                        weft_location_names[location], fits ? "a rank's device needs " : "no room",
                        fits ? weft_units_show_bytes(it->least_bytes, a) : "");
        if (fits) weft_answer_say(answer, NULL, " at the least");
        if (it->ring_bytes > 0)
            weft_answer_say(answer, NULL, ", a ring of %s in it",
                            weft_units_show_bytes(it->ring_bytes, a));
        if (location != WEFT_LOCATION_DEVICE)
            weft_answer_say(answer, NULL, "; there it takes %s of %s",
                            weft_units_show_bytes(it->held_bytes, a),
                            weft_units_show_bytes(it->limit_bytes, b));
        weft_answer_say(answer, NULL, "\n");
    }
    if (any) weft_answer_close(answer);
}

/* Chooses the row of an answer: the first published rule that fits, which communicates least;
 * otherwise the smallest just-in-time row. */
static const struct weft_need *choose_row(const struct weft_estimate *estimate)
{
    const struct weft_need *least = NULL;
    for (int i = 0; i < WEFT_ESTIMATE_ROWS; i++) {
        const struct weft_need *row = &estimate->rows[i];
        if (!row->applies) continue;
        if (row->way == WEFT_NEED_PUBLISHED && row->bytes <= estimate->limit_bytes) return row;
        if (row->way == WEFT_NEED_JUST_IN_TIME && (!least || row->bytes < least->bytes))
            least = row;
    }
    return least;
}

/* Finds the memory of a plan that recomputes if no row fits and the config allows that; otherwise
 * 0. */
static enum weft_status find_recomputed(const struct weft_cli *cli, const struct weft_place *place,
                                        const struct weft_estimate *estimate, int64_t *bytes,
                                        struct weft_error *err)
{
    const struct weft_need *row = choose_row(estimate);
    struct weft_session session = {0};
    *bytes = 0;
    if (row == NULL || estimate->limit_bytes == 0 || row->bytes <= estimate->limit_bytes)
        return WEFT_OK;
    enum weft_status status = weft_place_open(cli, place, &session, err);
    if (status == WEFT_OK) status = weft_estimate_recomputed(&session, bytes, err);
    weft_session_close(&session);
    return status;
}

/* The first line where no row fits. */
static void say_nothing_fits(const struct weft_need *row, int64_t limit_bytes,
                             int64_t recomputed_bytes, struct weft_answer *out)
{
    char least[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES], more[WEFT_UNITS_TEXT_BYTES];
    const bool recomputes = recomputed_bytes > 0 && recomputed_bytes < row->bytes;
    const int64_t least_bytes = recomputes ? recomputed_bytes : row->bytes;
    const char *policy = weft_policy_name(row->policy);
    weft_units_show_bytes(limit_bytes, limit);
    weft_units_show_bytes(least_bytes, least);
    if (recomputes && least_bytes <= limit_bytes)
        weft_answer_say(out, NULL,
                        "nothing fits %s without recomputation: %s needs the least, %s; a plan "
                        "that recomputes needs %s\n",
                        limit, policy, weft_units_show_bytes(row->bytes, more), least);
    else
        weft_answer_say(out, NULL, "nothing fits %s: %s needs the least, %s, which is %s more\n",
                        limit, recomputes ? "a plan that recomputes" : policy, least,
                        weft_units_show_bytes(least_bytes - limit_bytes, more));
}

/* The first line: the least policy that fits, or what is lacking. */
static void say_answer(const struct weft_estimate *estimate, int64_t recomputed_bytes,
                       struct weft_answer *out)
{
    char bytes[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES];
    const struct weft_need *row = choose_row(estimate);
    if (row == NULL) return;
    const char *policy = weft_policy_name(row->policy);
    const int64_t limit_bytes = estimate->limit_bytes;
    weft_units_show_bytes(row->bytes, bytes);
    weft_units_show_bytes(limit_bytes, limit);
    if (limit_bytes == 0)
        weft_answer_say(out, NULL, "%s needs the least: %s a rank\n", policy, bytes);
    else if (row->way == WEFT_NEED_PUBLISHED)
        weft_answer_say(out, NULL, "%s fits %s as its rule issues: it needs %s a rank\n", policy,
                        limit, bytes);
    else if (row->bytes <= limit_bytes)
        weft_answer_say(out, NULL,
                        "no rule fits %s as published; %s fits just in time: it needs %s\n", limit,
                        policy, bytes);
    else
        say_nothing_fits(row, limit_bytes, recomputed_bytes, out);
}

/* The lines above the tables of one place. */
static void say_head(const struct weft_cli *cli, const struct weft_estimate *estimate,
                     int64_t recomputed_bytes, struct weft_answer *answer)
{
    char limit[WEFT_UNITS_TEXT_BYTES];
    const bool timed = estimate->times[0] != '\0', limited = estimate->limit_bytes > 0;
    say_answer(estimate, recomputed_bytes, answer);
    weft_answer_say(answer, NULL, "estimate  %s, %lld ranks%s%s%s", cli->operands[0],
                    (long long)estimate->ranks, limited ? ", limit " : "",
                    limited ? weft_units_show_bytes(estimate->limit_bytes, limit) : "",
                    limited ? " a rank" : "");
    if (cli->hf)
        weft_answer_say(answer, NULL, "\nmodel     %lld parameters",
                        (long long)estimate->parameters);
    weft_answer_say(answer, NULL, "\ntimes     %s%s\n", timed ? "" : "unknown: they need ",
                    timed ? estimate->times : estimate->missing);
}

/* The lines and tables below the table of needs. */
static void say_rest(const struct weft_estimate *estimate, struct weft_answer *answer)
{
    say_locations(estimate, answer);
    weft_answer_say(answer, NULL,
                    "needs     a rank's fullest slot; addresses may cost per cents more\n%s\n",
                    estimate->times[0] != '\0'
                        ? "fastest   the least at which more memory makes the policy no faster"
                        : "earliest  every gather as early as its window allows");
    if (estimate->base_bytes == 0)
        weft_answer_say(answer, NULL,
                        "base      0 B: nothing outside the arena is counted; give cluster.base, "
                        "or a profile\n");
    weft_answer_say(answer, NULL, "\n");
    weft_report_needs_memory(estimate->rows, WEFT_ESTIMATE_ROWS, answer);
}

static void put_facts(const struct weft_estimate *estimate, int64_t recomputed_bytes,
                      struct weft_answer *answer)
{
    const bool timed = estimate->times[0] != '\0';
    weft_answer_integer(answer, "ranks", estimate->ranks);
    weft_answer_integer(answer, "parameters", estimate->parameters);
    if (estimate->limit_bytes > 0)
        weft_answer_integer(answer, "memory_limit_bytes", estimate->limit_bytes);
    if (recomputed_bytes > 0) weft_answer_integer(answer, "recomputed_bytes", recomputed_bytes);
    weft_answer_integer(answer, "base_bytes", estimate->base_bytes);
    weft_answer_word(answer, timed ? "times" : "missing",
                     timed ? estimate->times : estimate->missing);
}

/* Adds the strategies of units and layers. */
static enum weft_status add_ways(const struct weft_cli *cli, bool timed, struct weft_answer *answer,
                                 struct weft_error *err)
{
    const struct weft_place nowhere = {0};
    struct weft_session session = {0};
    enum weft_status status = weft_place_open(cli, &nowhere, &session, err);
    if (status == WEFT_OK) status = weft_estimate_stage_ways(&session, err);
    if (status == WEFT_OK) {
        const struct weft_batch batch = weft_config_batch(session.config);
        weft_report_ways(session.stages.problem, session.config->model, &batch, timed, answer);
    }
    weft_session_close(&session);
    return status;
}

/* Counts a place for the first line, and shows a pair of values in the grid's column. */
static void add_fit(struct question *question, const struct weft_place *place, const char *value,
                    int32_t column, const struct weft_estimate *estimate, int64_t recomputed_bytes)
{
    static const enum weft_paint paints[N_FITS] = {WEFT_PAINT_GOOD, WEFT_PAINT_NONE,
                                                   WEFT_PAINT_NONE, WEFT_PAINT_BAD};
    char bytes[WEFT_UNITS_TEXT_BYTES];
    const struct weft_need *row = choose_row(estimate);
    if (row == NULL || place->n == 0) return;
    const char *policy = weft_policy_name(row->policy);
    const int64_t limit_bytes = estimate->limit_bytes;
    const int64_t least_bytes =
        recomputed_bytes > 0 && recomputed_bytes < row->bytes ? recomputed_bytes : row->bytes;
    enum fit fit = NOT;
    if (row->way == WEFT_NEED_PUBLISHED)
        fit = AS_ISSUED;
    else if (row->bytes <= limit_bytes)
        fit = JUST_IN_TIME;
    else if (least_bytes <= limit_bytes)
        fit = RECOMPUTED;
    weft_units_show_bytes(least_bytes, bytes);
    weft_text_addf(&question->values[fit], "%s%s", question->n_fit[fit]++ > 0 ? ", " : "", value);
    if (question->least.policy == NULL || row->bytes < question->least.bytes) {
        question->least.bytes = row->bytes;
        question->least.policy = policy;
        question->least.value = value;
    }
    if (fit == NOT)
        weft_rows_show(question->grid, column, paints[fit], "+%s",
                       weft_units_show_bytes(least_bytes - limit_bytes, bytes));
    else
        weft_rows_show(question->grid, column, paints[fit], fit == AS_ISSUED ? "%s %s" : "(%s) %s",
                       fit == RECOMPUTED ? "recomputed" : policy, bytes);
}

/* The first line of several places: those that fit, or without a limit the one that needs the
 * least. */
static void lead_places(struct question *question)
{
    static const char *const hows[N_FITS] = {"as rules issue", "just in time alone",
                                             "with recomputation", "not"};
    const struct axis *down = &question->axes[0], *across = &question->axes[1];
    char bytes[WEFT_UNITS_TEXT_BYTES];
    struct weft_text line;
    weft_text_init(&line);
    weft_units_show_bytes(question->limit_bytes, bytes);
    if (across->n > 0) {
        weft_answer_lead(question->answer, "what fits in %s a rank: %s down, %s across\n", bytes,
                         down->key, across->key);
        weft_text_addf(&line, "within %s a rank, of %d pairs", bytes, down->n * across->n);
    } else if (question->limit_bytes > 0) {
        weft_text_addf(&line, "within %s a rank, by %s", bytes, down->key);
    } else if (question->least.policy != NULL) {
        weft_text_addf(&line, "%s=%s needs the least: %s a rank, %s", down->key,
                       question->least.value, weft_units_show_bytes(question->least.bytes, bytes),
                       question->least.policy);
    }
    for (int fit = 0, n = 0; fit < N_FITS && question->limit_bytes > 0; fit++) {
        if (question->n_fit[fit] == 0) continue;
        weft_text_add(&line, n++ > 0 ? "; " : ": ");
        if (across->n > 0)
            weft_text_addf(&line, "%d %s", question->n_fit[fit], hows[fit]);
        else
            weft_text_addf(&line, "%s %s", weft_text_chars(&question->values[fit]), hows[fit]);
    }
    weft_answer_lead(question->answer, "%s\n", weft_text_chars(&line));
    weft_text_finish(&line);
}

/* Adds the answer of one of several places, with its settings. Text has pairs in the grid. */
static void answer_one(const struct weft_place *place, const struct weft_estimate *estimate,
                       int64_t recomputed_bytes, struct weft_answer *answer)
{
    const bool is_first = answer->first == NULL;
    answer->is_hidden = place->n > 1;
    weft_answer_say(answer, NULL, "%s%s\n", is_first ? "" : "\n", place->settings[0]);
    weft_answer_open(answer, NULL);
    weft_answer_open_list(answer, "set");
    for (int32_t i = 0; i < place->n; i++)
        weft_answer_word(answer, NULL, place->settings[i]);
    weft_answer_close_list(answer);
    put_facts(estimate, recomputed_bytes, answer);
    weft_report_needs(estimate->rows, WEFT_ESTIMATE_ROWS, estimate->limit_bytes,
                      estimate->times[0] != '\0', answer);
    weft_answer_close(answer);
    answer->is_hidden = false;
}

/* Makes the answer of the only place. */
static enum weft_status answer_only(const struct question *question,
                                    const struct weft_estimate *estimate, int64_t recomputed_bytes,
                                    struct weft_error *err)
{
    const bool timed = estimate->times[0] != '\0';
    say_head(question->cli, estimate, recomputed_bytes, question->answer);
    put_facts(estimate, recomputed_bytes, question->answer);
    weft_report_needs(estimate->rows, WEFT_ESTIMATE_ROWS, estimate->limit_bytes, timed,
                      question->answer);
    say_rest(estimate, question->answer);
    return add_ways(question->cli, timed, question->answer, err);
}

static enum weft_status add_place(struct question *question, const struct weft_place *place,
                                  const char *value, int32_t column, struct weft_error *err)
{
    const uint32_t asked =
        place->n < 2
            ? WEFT_ESTIMATE_ALL
            : weft_estimate_rows_of(1u << WEFT_NEED_JUST_IN_TIME | 1u << WEFT_NEED_PUBLISHED);
    struct weft_estimate estimate;
    int64_t recomputed_bytes = 0;
    enum weft_status status = weft_place_estimate(question->cli, place, asked, &estimate, err);
    if (status == WEFT_OK && place->n == 2 && estimate.limit_bytes == 0)
        status =
            weft_fail(err, WEFT_E_USAGE,
                      "--sweep twice needs a limit: give --memory-limit, or cluster.memory_limit");
    question->limit_bytes = estimate.limit_bytes;
    if (status == WEFT_OK)
        status = find_recomputed(question->cli, place, &estimate, &recomputed_bytes, err);
    if (status == WEFT_OK && place->n == 0)
        status = answer_only(question, &estimate, recomputed_bytes, err);
    if (status == WEFT_OK && place->n > 0)
        answer_one(place, &estimate, recomputed_bytes, question->answer);
    if (status == WEFT_OK) add_fit(question, place, value, column, &estimate, recomputed_bytes);
    weft_estimate_finish(&estimate);
    return status;
}

static enum weft_status add_places(struct question *question, struct weft_error *err)
{
    const struct axis *down = &question->axes[0], *across = &question->axes[1];
    const int32_t n_rows = down->n > 0 ? down->n : 1, n_columns = across->n > 0 ? across->n : 1;
    for (int32_t i = 0; i < n_rows * n_columns; i++) {
        const int32_t r = i / n_columns, c = i % n_columns;
        struct weft_place place = {0};
        if (down->n > 0) {
            weft_place_add(&place, "%s=%s", down->key, down->values[r]);
            weft_watch_count(question->cli->watch, across->n > 0 ? "place" : "value", i,
                             n_rows * n_columns);
        }
        if (across->n > 0) {
            weft_place_add(&place, "%s=%s", across->key, across->values[c]);
            if (c == 0) weft_rows_begin(question->grid, NULL);
            if (c == 0) weft_rows_word(question->grid, 0, down->values[r]);
        }
        WEFT_TRY(add_place(question, &place, down->values[r], 1 + c, err));
    }
    return WEFT_OK;
}

/* Begins the table of pairs. Data has none. */
static void begin_grid(struct question *question)
{
    const struct axis *down = &question->axes[0], *across = &question->axes[1];
    struct weft_column columns[MOST_VALUES + 1];
    for (int32_t c = 0; c <= across->n; c++)
        columns[c] = (struct weft_column){NULL, c == 0 ? down->key : across->values[c - 1], 'r',
                                          WEFT_FIGURE_WORD, 0};
    question->grid = weft_answer_table(question->answer, NULL, columns, across->n + 1);
    weft_rows_note(question->grid,
                   "the first of dp, zero1, sdp, fsdp that fits as its rule issues; (in "
                   "brackets): just in time alone, or recomputed; +: what is lacking for any");
}

/* Answers for all places. With two keys a table shows the pairs that fit. */
static enum weft_status answer_places(struct question *question, struct weft_error *err)
{
    if (question->axes[1].n > 0) begin_grid(question);
    for (int i = 0; i < N_FITS; i++)
        weft_text_init(&question->values[i]);
    const enum weft_status status = add_places(question, err);
    if (status == WEFT_OK && question->axes[0].n > 0) lead_places(question);
    for (int i = 0; i < N_FITS; i++)
        weft_text_finish(&question->values[i]);
    return status;
}

static enum weft_status estimate_places(const struct weft_cli *cli, struct weft_answer *answer,
                                        struct weft_error *err)
{
    struct question question = {.cli = cli, .answer = answer};
    for (int32_t i = 0; i < cli->n_sweeps; i++)
        WEFT_TRY(read_axis(cli->sweeps[i], &question.axes[i], err));
    if (cli->n_sweeps == 2 && strcmp(question.axes[0].key, question.axes[1].key) == 0)
        return weft_fail(err, WEFT_E_USAGE, "--sweep %s: the same key twice", question.axes[0].key);
    answer->is_list = cli->n_sweeps > 0;
    return answer_places(&question, err);
}

static enum weft_status run_estimate(const struct weft_cli *given, struct weft_error *err)
{
    struct weft_cli line, *cli = &line;
    WEFT_TRY(weft_cli_make_config(given, cli, err));
    const bool searches = cli->largest || cli->least;
    if ((cli->largest && cli->least) || (searches && cli->n_sweeps > 0))
        return weft_fail(err, WEFT_E_USAGE, "--largest, --least, --sweep: one question at a time");
    weft_watch_begin(cli->watch, "estimate");
    struct weft_answer answer = {0};
    enum weft_status status =
        searches ? weft_study_values(cli, &answer, err) : estimate_places(cli, &answer, err);
    weft_watch_end(cli->watch);
    if (status == WEFT_OK) status = weft_cli_emit_answer(cli, &answer, err);
    weft_answer_finish(&answer);
    return status;
}

const struct weft_command weft_command_estimate = {
    .name = "estimate",
    .usage = "[CONFIG]",
    .summary = "memory and time that every policy needs, at once and without a run",
    .details =
        "For each policy, given to every unit, a row shows the memory of a rank: just in time "
        "(the least: gathers wait in the slot that uses them), as published rules issue, and at "
        "the least memory above which it gets no faster. It also shows whether that fits the "
        "memory limit, and the slot and unit of the peak. plan.policies is not applied. Memory "
        "needs no times: without figures of the device or a profile they are \"-\". One line per "
        "tier: the device memory needed if all state is there. Two tables have the bytes and "
        "times of each strategy: of the largest unit by policy and location of its state, and of "
        "the largest layer's saved activations by location and recomputation, with the tensors "
        "that it keeps. --hf config.json asks for a model of Hugging Face without a config, as in "
        "weft estimate --hf config.json -n 8 --for fsdp2 --memory-limit 80GiB. --sweep "
        "train.micro_batch=1,2,4 asks for each value; twice, a grid shows the pairs that fit. "
        "--largest train.micro_batch (train.seq_len, layers) and --least cluster.ranks search for "
        "the value at which each row still fits.",
    .flags = "--sweep --largest --least --set --model --cluster --hf --for --layers --ranks "
             "--seed --profile --memory-limit",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_estimate,
};
