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

/* The question. Places are those of no key, the values of one, or all pairs of the values of two.
 */
struct question {
    const struct weft_cli *cli;
    struct axis axes[2];
    struct weft_rows *grid; /* of pairs, in text */
    struct weft_answer in_text;
    int64_t limit_bytes; /* of the last place */
    struct weft_text *out;
    struct weft_json_writer writer;
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

/* Adds a line for each tier that may hold state, and the table "state_homes" of data. */
static void say_homes(const struct weft_estimate *estimate, struct weft_answer *answer)
{
    enum { FITS, NEEDS, RING, HELD, N_COLUMNS };
    static const struct weft_column columns[N_COLUMNS] = {
        [FITS] = {"fits", NULL, 'l', WEFT_FIGURE_BOOL, 0},
        [NEEDS] = {"device_needs_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0},
        [RING] = {"ring_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0},
        [HELD] = {"held_bytes", NULL, 'r', WEFT_FIGURE_BYTES, 0}};
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    struct weft_rows *rows = NULL;
    for (int home = 0; home < WEFT_HOME_COUNT; home++) {
        const struct weft_estimate_home *it = &estimate->homes[home];
        const bool fits = it->least_bytes != INT64_MAX;
        if (!it->given) continue;
        if (rows == NULL) rows = weft_answer_table(answer, "state_homes", columns, N_COLUMNS);
        if (rows != NULL) rows->is_object = true;
        weft_rows_begin(rows, weft_home_names[home]);
        weft_rows_integer(rows, FITS, fits);
        if (fits) weft_rows_integer(rows, NEEDS, it->least_bytes);
        weft_rows_integer(rows, RING, it->ring_bytes);
        if (home != WEFT_HOME_DEVICE) weft_rows_integer(rows, HELD, it->held_bytes);
        weft_answer_say(answer, NULL, "state     all on the %s: %s%s", weft_home_names[home],
                        fits ? "a rank's device needs " : "no room",
                        fits ? weft_units_show_bytes(it->least_bytes, a) : "");
        if (fits) weft_answer_say(answer, NULL, " at the least");
        if (it->ring_bytes > 0)
            weft_answer_say(answer, NULL, ", a ring of %s in it",
                            weft_units_show_bytes(it->ring_bytes, a));
        if (home != WEFT_HOME_DEVICE)
            weft_answer_say(answer, NULL, "; there it takes %s of %s",
                            weft_units_show_bytes(it->held_bytes, a),
                            weft_units_show_bytes(it->limit_bytes, b));
        weft_answer_say(answer, NULL, "\n");
    }
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

/* The first line: the least policy that fits, or what is lacking. */
static void say_answer(const struct weft_estimate *estimate, struct weft_answer *out)
{
    char bytes[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES], more[WEFT_UNITS_TEXT_BYTES];
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
        weft_answer_say(out, NULL, "nothing fits %s: %s needs the least, %s, which is %s more\n",
                        limit, policy, bytes,
                        weft_units_show_bytes(row->bytes - limit_bytes, more));
}

/* The lines above the tables of one place. */
static void say_head(const struct weft_cli *cli, const struct weft_estimate *estimate,
                     struct weft_answer *answer)
{
    char limit[WEFT_UNITS_TEXT_BYTES];
    const bool timed = estimate->times[0] != '\0', limited = estimate->limit_bytes > 0;
    say_answer(estimate, answer);
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
    say_homes(estimate, answer);
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

static void put_facts(const struct weft_estimate *estimate, struct weft_answer *answer)
{
    const bool timed = estimate->times[0] != '\0';
    weft_answer_integer(answer, "ranks", estimate->ranks);
    weft_answer_integer(answer, "parameters", estimate->parameters);
    if (estimate->limit_bytes > 0)
        weft_answer_integer(answer, "memory_limit_bytes", estimate->limit_bytes);
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
    if (status == WEFT_OK)
        weft_report_ways(session.stages.problem, session.config->model, timed, answer);
    weft_session_close(&session);
    return status;
}

/* Shows a pair of values in the grid's column. */
static void add_cell(struct weft_rows *grid, int32_t column, const struct weft_estimate *estimate)
{
    char bytes[WEFT_UNITS_TEXT_BYTES], fit[WEFT_UNITS_TEXT_BYTES + 8];
    const struct weft_need *row = choose_row(estimate);
    if (row == NULL) return;
    const char *policy = weft_policy_name(row->policy);
    weft_units_show_bytes(row->bytes, bytes);
    weft_need_show_fit(row, estimate->limit_bytes, fit);
    if (row->way == WEFT_NEED_PUBLISHED)
        weft_rows_show(grid, column, WEFT_PAINT_GOOD, "%s %s", policy, bytes);
    else if (row->bytes <= estimate->limit_bytes)
        weft_rows_show(grid, column, WEFT_PAINT_NONE, "(%s) %s", policy, bytes);
    else
        weft_rows_show(grid, column, WEFT_PAINT_BAD, "%s", fit);
}

/* Makes the answer of one place. */
static enum weft_status answer_place(const struct question *question,
                                     const struct weft_place *place,
                                     const struct weft_estimate *estimate,
                                     struct weft_answer *answer, struct weft_error *err)
{
    const bool timed = estimate->times[0] != '\0';
    if (place->n == 0) say_head(question->cli, estimate, answer);
    if (place->n == 1)
        weft_answer_say(answer, NULL, "%s%s\n", question->out->length > 0 ? "\n" : "",
                        place->settings[0]);
    put_facts(estimate, answer);
    weft_report_needs(estimate->rows, WEFT_ESTIMATE_ROWS, estimate->limit_bytes, timed, answer);
    if (place->n > 0) return WEFT_OK;
    say_rest(estimate, answer);
    return add_ways(question->cli, timed, answer, err);
}

/* Writes the answer of one place, with its settings in JSON. Pairs are in the grid in text. */
static void render_place(struct question *question, const struct weft_place *place,
                         const struct weft_answer *answer)
{
    struct weft_json_writer *writer = &question->writer;
    if (!question->cli->json) {
        if (place->n < 2) weft_answer_text(answer, question->out);
        return;
    }
    weft_json_begin_object(writer);
    if (place->n > 0) {
        weft_json_key(writer, "set");
        weft_json_begin_array(writer);
        for (int32_t i = 0; i < place->n; i++)
            weft_json_add_string(writer, place->settings[i]);
        weft_json_end_array(writer);
    }
    weft_answer_members(answer, writer);
    weft_json_end_object(writer);
}

static enum weft_status add_place(struct question *question, const struct weft_place *place,
                                  int32_t column, struct weft_error *err)
{
    const uint32_t asked =
        place->n < 2
            ? WEFT_ESTIMATE_ALL
            : weft_estimate_rows_of(1u << WEFT_NEED_JUST_IN_TIME | 1u << WEFT_NEED_PUBLISHED);
    struct weft_estimate estimate;
    struct weft_answer answer = {0};
    enum weft_status status = weft_place_estimate(question->cli, place, asked, &estimate, err);
    if (status == WEFT_OK && place->n == 2 && estimate.limit_bytes == 0)
        status =
            weft_fail(err, WEFT_E_USAGE,
                      "--sweep twice needs a limit: give --memory-limit, or cluster.memory_limit");
    if (status == WEFT_OK) status = answer_place(question, place, &estimate, &answer, err);
    if (status == WEFT_OK) {
        question->limit_bytes = estimate.limit_bytes;
        if (place->n == 2) add_cell(question->grid, column, &estimate);
        render_place(question, place, &answer);
    }
    weft_answer_finish(&answer);
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
        WEFT_TRY(add_place(question, &place, 1 + c, err));
    }
    return WEFT_OK;
}

/* Begins the table of pairs. */
static void begin_grid(struct question *question)
{
    const struct axis *down = &question->axes[0], *across = &question->axes[1];
    struct weft_column columns[MOST_VALUES + 1];
    for (int32_t c = 0; c <= across->n; c++)
        columns[c] = (struct weft_column){NULL, c == 0 ? down->key : across->values[c - 1], 'r',
                                          WEFT_FIGURE_WORD, 0};
    question->grid = weft_answer_table(&question->in_text, NULL, columns, across->n + 1);
}

/* Answers for all places. With two keys a table shows the pairs that fit. */
static enum weft_status answer_places(struct question *question, struct weft_error *err)
{
    const struct axis *down = &question->axes[0], *across = &question->axes[1];
    char limit[WEFT_UNITS_TEXT_BYTES];
    if (across->n > 0) begin_grid(question);
    if (question->cli->json && down->n > 0) weft_json_begin_array(&question->writer);
    enum weft_status status = add_places(question, err);
    if (question->cli->json && down->n > 0) weft_json_end_array(&question->writer);
    if (across->n > 0 && !question->cli->json) {
        weft_text_addf(question->out, "what fits in %s a rank: %s down, %s across\n",
                       weft_units_show_bytes(question->limit_bytes, limit), down->key, across->key);
        weft_answer_text(&question->in_text, question->out);
        weft_text_add(question->out,
                      "the first of dp, zero1, sdp, fsdp that fits as its rule issues; (in "
                      "brackets): just in time alone; +: what is lacking for any\n");
    }
    weft_answer_finish(&question->in_text);
    return status;
}

static enum weft_status estimate_places(const struct weft_cli *cli, struct weft_text *out,
                                        struct weft_error *err)
{
    struct question question = {.cli = cli, .out = out};
    for (int32_t i = 0; i < cli->n_sweeps; i++)
        WEFT_TRY(read_axis(cli->sweeps[i], &question.axes[i], err));
    if (cli->n_sweeps == 2 && strcmp(question.axes[0].key, question.axes[1].key) == 0)
        return weft_fail(err, WEFT_E_USAGE, "--sweep %s: the same key twice", question.axes[0].key);
    weft_json_writer_init(&question.writer, out, 2);
    const enum weft_status status = answer_places(&question, err);
    if (cli->json) weft_text_add(out, "\n");
    return status;
}

static enum weft_status run_estimate(const struct weft_cli *given, struct weft_error *err)
{
    struct weft_text out;
    struct weft_cli line, *cli = &line;
    WEFT_TRY(weft_cli_make_config(given, cli, err));
    const bool searches = cli->largest || cli->least;
    if ((cli->largest && cli->least) || (searches && cli->n_sweeps > 0))
        return weft_fail(err, WEFT_E_USAGE, "--largest, --least, --sweep: one question at a time");
    weft_cli_report_init(cli, cli->output, &out);
    weft_watch_begin(cli->watch, "estimate");
    struct weft_answer answer = {0};
    enum weft_status status =
        searches ? weft_study_values(cli, &answer, err) : estimate_places(cli, &out, err);
    weft_watch_end(cli->watch);
    if (status == WEFT_OK)
        status = searches ? weft_cli_emit_answer(cli, &answer, err) : weft_cli_emit(cli, &out, err);
    weft_answer_finish(&answer);
    weft_text_finish(&out);
    return status;
}

const struct weft_command weft_command_estimate = {
    .name = "estimate",
    .usage = "[CONFIG]",
    .summary = "memory and time that every policy needs, at once and without a run",
    .details =
        "For each policy, given to every unit, a row shows the memory of a rank: just in time "
        "(the\n"
        "least: gathers wait in the slot that uses them), as published rules issue, and at the\n"
        "least memory above which it gets no faster. It also shows whether that fits the memory\n"
        "limit, and the slot and unit of the peak. plan.policies is not applied. Memory needs no\n"
        "times: without figures of the device or a profile they are \"-\". One line per tier: the\n"
        "device memory needed if all state is there. Two tables have the bytes and times of each\n"
        "strategy: of the largest unit by policy and location of its state, and of the largest\n"
        "layer's saved activations by location and recomputation, with the tensors that it keeps.\n"
        "--hf config.json asks for a model of Hugging Face without a config, as in\n"
        "weft estimate --hf config.json -n 8 --for fsdp2 --memory-limit 80GiB.\n"
        "--sweep train.micro_batch=1,2,4 asks for each value; twice, a grid shows the pairs that\n"
        "fit. --largest train.micro_batch (train.seq_len, layers) and --least cluster.ranks "
        "search\n"
        "for the value at which each row still fits.",
    .flags = "--sweep --largest --least --set --model --cluster --hf --for --layers --ranks --seed "
             "--profile "
             "--memory-limit",
    .least_operands = 0,
    .most_operands = 1,
    .run = run_estimate,
};
