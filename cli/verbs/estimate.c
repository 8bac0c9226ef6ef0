#include <string.h>

#include "base/units.h"
#include "base/watch.h"
#include "cli/study/place.h"
#include "cli/study/values.h"
#include "cli/terminal.h"
#include "report/study/needs.h"
#include "report/study/ways.h"
#include "report/table.h"

enum { MOST_VALUES = 64 };

/* The values of one key. */
struct axis {
    int32_t n;
    char key[WEFT_LIST_BYTES];
    char values[MOST_VALUES][WEFT_LIST_BYTES];
};

/* The answer while it is made. Places are those of no key, the values of one, or all pairs of the
 * values of two. */
struct answer {
    const struct weft_cli *cli;
    struct axis axes[2];
    struct weft_table grid;
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

/* Adds a line for each tier that may hold state. */
static void say_homes(const struct weft_estimate *estimate, struct weft_text *out)
{
    char a[WEFT_UNITS_TEXT_BYTES], b[WEFT_UNITS_TEXT_BYTES];
    for (int home = 0; home < WEFT_HOME_COUNT; home++) {
        const struct weft_estimate_home *it = &estimate->homes[home];
        if (!it->given) continue;
        weft_text_addf(out, "state     all on the %s: ", weft_home_names[home]);
        if (it->least_bytes == INT64_MAX)
            weft_text_add(out, "no room");
        else
            weft_text_addf(out, "a rank's device needs %s at the least",
                           weft_units_show_bytes(it->least_bytes, a));
        if (it->ring_bytes > 0)
            weft_text_addf(out, ", a ring of %s in it", weft_units_show_bytes(it->ring_bytes, a));
        if (home != WEFT_HOME_DEVICE)
            weft_text_addf(out, "; there it takes %s of %s",
                           weft_units_show_bytes(it->held_bytes, a),
                           weft_units_show_bytes(it->limit_bytes, b));
        weft_text_add(out, "\n");
    }
}

static void put_homes(const struct weft_estimate *estimate, struct weft_json_writer *writer)
{
    bool any = false;
    for (int home = 0; home < WEFT_HOME_COUNT; home++) {
        const struct weft_estimate_home *it = &estimate->homes[home];
        if (!it->given) continue;
        if (!any) {
            weft_json_key(writer, "state_homes");
            weft_json_begin_object(writer);
            any = true;
        }
        weft_json_key(writer, weft_home_names[home]);
        weft_json_begin_object(writer);
        weft_json_put_bool(writer, "fits", it->least_bytes != INT64_MAX);
        if (it->least_bytes != INT64_MAX)
            weft_json_put_integer(writer, "device_needs_bytes", it->least_bytes);
        weft_json_put_integer(writer, "ring_bytes", it->ring_bytes);
        if (home != WEFT_HOME_DEVICE) weft_json_put_integer(writer, "held_bytes", it->held_bytes);
        weft_json_end_object(writer);
    }
    if (any) weft_json_end_object(writer);
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
static void say_answer(const struct weft_estimate *estimate, struct weft_text *out)
{
    char bytes[WEFT_UNITS_TEXT_BYTES], limit[WEFT_UNITS_TEXT_BYTES], more[WEFT_UNITS_TEXT_BYTES];
    const struct weft_need *row = choose_row(estimate);
    if (row == NULL) return;
    const char *policy = weft_policy_name(row->policy);
    const int64_t limit_bytes = estimate->limit_bytes;
    weft_units_show_bytes(row->bytes, bytes);
    weft_units_show_bytes(limit_bytes, limit);
    if (limit_bytes == 0)
        weft_text_addf(out, "%s needs the least: %s a rank\n", policy, bytes);
    else if (row->way == WEFT_NEED_PUBLISHED)
        weft_text_addf(out, "%s fits %s as its rule issues: it needs %s a rank\n", policy, limit,
                       bytes);
    else if (row->bytes <= limit_bytes)
        weft_text_addf(out, "no rule fits %s as published; %s fits just in time: it needs %s\n",
                       limit, policy, bytes);
    else
        weft_text_addf(out, "nothing fits %s: %s needs the least, %s, which is %s more\n", limit,
                       policy, bytes, weft_units_show_bytes(row->bytes - limit_bytes, more));
}

static void say_all(const struct weft_cli *cli, const struct weft_estimate *estimate,
                    struct weft_text *out)
{
    char limit[WEFT_UNITS_TEXT_BYTES];
    const bool timed = estimate->times[0] != '\0';
    say_answer(estimate, out);
    weft_text_addf(out, "estimate  %s, %lld ranks", cli->operands[0], (long long)estimate->ranks);
    if (estimate->limit_bytes > 0)
        weft_text_addf(out, ", limit %s a rank",
                       weft_units_show_bytes(estimate->limit_bytes, limit));
    if (cli->hf)
        weft_text_addf(out, "\nmodel     %lld parameters", (long long)estimate->parameters);
    weft_text_addf(out, "\ntimes     %s%s\n", timed ? "" : "unknown: they need ",
                   timed ? estimate->times : estimate->missing);
    weft_report_needs(estimate->rows, WEFT_ESTIMATE_ROWS, estimate->limit_bytes, out);
    say_homes(estimate, out);
    weft_text_add(out, "needs     a rank's fullest slot; addresses may cost per cents more\n");
    weft_text_add(out, timed ? "fastest   the least at which more memory makes the policy no "
                               "faster\n"
                             : "earliest  every gather as early as its window allows\n");
    if (estimate->base_bytes == 0)
        weft_text_add(out,
                      "base      0 B: nothing outside the arena is counted; give cluster.base, "
                      "or a profile\n");
    weft_text_add(out, "\n");
    weft_report_needs_memory(estimate->rows, WEFT_ESTIMATE_ROWS, out);
}

/* Puts the members of an estimate into an open object. */
static void put_all(const struct weft_estimate *estimate, const struct weft_place *place,
                    struct weft_json_writer *writer)
{
    const bool timed = estimate->times[0] != '\0';
    if (place->n > 0) {
        weft_json_key(writer, "set");
        weft_json_begin_array(writer);
        for (int32_t i = 0; i < place->n; i++)
            weft_json_add_string(writer, place->settings[i]);
        weft_json_end_array(writer);
    }
    weft_json_put_integer(writer, "ranks", estimate->ranks);
    weft_json_put_integer(writer, "parameters", estimate->parameters);
    if (estimate->limit_bytes > 0)
        weft_json_put_integer(writer, "memory_limit_bytes", estimate->limit_bytes);
    weft_json_put_integer(writer, "base_bytes", estimate->base_bytes);
    weft_json_put_string(writer, timed ? "times" : "missing",
                         timed ? estimate->times : estimate->missing);
    weft_json_key(writer, "rows");
    weft_report_needs_json(estimate->rows, WEFT_ESTIMATE_ROWS, estimate->limit_bytes, timed,
                           writer);
    if (place->n == 0) put_homes(estimate, writer);
}

/* Adds the strategies of units and layers to both reports. */
static enum weft_status add_ways(struct answer *answer, bool timed, struct weft_error *err)
{
    const struct weft_place nowhere = {0};
    struct weft_session session = {0};
    enum weft_status status = weft_place_open(answer->cli, &nowhere, &session, err);
    if (status == WEFT_OK) status = weft_estimate_stage_ways(&session, err);
    if (status == WEFT_OK) {
        const struct weft_model *model = session.config->model;
        weft_report_ways(session.stages.problem, model, timed, answer->out);
        weft_report_ways_json(session.stages.problem, model, timed, &answer->writer);
    }
    weft_session_close(&session);
    return status;
}

static void add_cell(struct weft_table *table, const struct weft_estimate *estimate)
{
    char bytes[WEFT_UNITS_TEXT_BYTES], fit[WEFT_UNITS_TEXT_BYTES + 8];
    const struct weft_need *row = choose_row(estimate);
    if (!row) {
        weft_table_cell(table, "-");
        return;
    }
    const char *policy = weft_policy_name(row->policy);
    weft_units_show_bytes(row->bytes, bytes);
    weft_need_show_fit(row, estimate->limit_bytes, fit);
    if (row->way == WEFT_NEED_PUBLISHED)
        weft_table_cell_painted(table, WEFT_PAINT_GOOD, "%s %s", policy, bytes);
    else if (row->bytes <= estimate->limit_bytes)
        weft_table_cell(table, "(%s) %s", policy, bytes);
    else
        weft_table_cell_painted(table, WEFT_PAINT_BAD, "%s", fit);
}

static enum weft_status add_place(struct answer *answer, const struct weft_place *place,
                                  struct weft_error *err)
{
    const uint32_t asked =
        place->n < 2
            ? WEFT_ESTIMATE_ALL
            : weft_estimate_rows_of(1u << WEFT_NEED_JUST_IN_TIME | 1u << WEFT_NEED_PUBLISHED);
    struct weft_estimate estimate;
    enum weft_status status = weft_place_estimate(answer->cli, place, asked, &estimate, err);
    if (status == WEFT_OK && place->n == 2 && estimate.limit_bytes == 0)
        status =
            weft_fail(err, WEFT_E_USAGE,
                      "--sweep twice needs a limit: give --memory-limit, or cluster.memory_limit");
    if (status == WEFT_OK) {
        answer->limit_bytes = estimate.limit_bytes;
        weft_json_begin_object(&answer->writer);
        put_all(&estimate, place, &answer->writer);
        if (place->n == 0) {
            say_all(answer->cli, &estimate, answer->out);
            status = add_ways(answer, estimate.times[0] != '\0', err);
        }
        weft_json_end_object(&answer->writer);
        if (place->n == 1) {
            weft_text_addf(answer->out, "%s%s\n", answer->out->length > 0 ? "\n" : "",
                           place->settings[0]);
            weft_report_needs(estimate.rows, WEFT_ESTIMATE_ROWS, estimate.limit_bytes, answer->out);
        }
        if (place->n == 2) add_cell(&answer->grid, &estimate);
    }
    weft_estimate_finish(&estimate);
    return status;
}

static enum weft_status add_places(struct answer *answer, struct weft_error *err)
{
    const struct axis *down = &answer->axes[0], *across = &answer->axes[1];
    const int32_t n_rows = down->n > 0 ? down->n : 1, n_columns = across->n > 0 ? across->n : 1;
    for (int32_t i = 0; i < n_rows * n_columns; i++) {
        const int32_t r = i / n_columns, c = i % n_columns;
        struct weft_place place = {0};
        if (down->n > 0) {
            weft_place_add(&place, "%s=%s", down->key, down->values[r]);
            weft_watch_count(answer->cli->watch, across->n > 0 ? "place" : "value", i,
                             n_rows * n_columns);
        }
        if (across->n > 0) {
            weft_place_add(&place, "%s=%s", across->key, across->values[c]);
            if (c == 0) weft_table_cell(&answer->grid, "%s", down->values[r]);
        }
        WEFT_TRY(add_place(answer, &place, err));
    }
    return WEFT_OK;
}

/* Answers for all places. With two keys a table shows the pairs that fit. */
static enum weft_status answer_places(struct answer *answer, struct weft_error *err)
{
    const struct axis *down = &answer->axes[0], *across = &answer->axes[1];
    char align[MOST_VALUES + 2], limit[WEFT_UNITS_TEXT_BYTES];
    memset(align, 'r', sizeof align);
    align[across->n + 1] = '\0';
    weft_table_init(&answer->grid, align);
    weft_table_cell(&answer->grid, "%s", down->key);
    for (int32_t c = 0; c < across->n; c++)
        weft_table_cell(&answer->grid, "%s", across->values[c]);
    if (down->n > 0) weft_json_begin_array(&answer->writer);
    enum weft_status status = add_places(answer, err);
    if (down->n > 0) weft_json_end_array(&answer->writer);
    if (across->n > 0) {
        weft_text_addf(answer->out, "what fits in %s a rank: %s down, %s across\n",
                       weft_units_show_bytes(answer->limit_bytes, limit), down->key, across->key);
        weft_table_render(&answer->grid, 0, answer->out);
        weft_text_add(answer->out,
                      "the first of dp, zero1, sdp, fsdp that fits as its rule issues; (in "
                      "brackets): just in time alone; +: what is lacking for any\n");
    }
    weft_table_finish(&answer->grid);
    return status;
}

static enum weft_status estimate_places(const struct weft_cli *cli, struct weft_text *out,
                                        struct weft_text *json, struct weft_error *err)
{
    struct answer answer = {.cli = cli, .out = out};
    for (int32_t i = 0; i < cli->n_sweeps; i++)
        WEFT_TRY(read_axis(cli->sweeps[i], &answer.axes[i], err));
    if (cli->n_sweeps == 2 && strcmp(answer.axes[0].key, answer.axes[1].key) == 0)
        return weft_fail(err, WEFT_E_USAGE, "--sweep %s: the same key twice", answer.axes[0].key);
    weft_json_writer_init(&answer.writer, json, 2);
    return answer_places(&answer, err);
}

static enum weft_status run_estimate(const struct weft_cli *given, struct weft_error *err)
{
    struct weft_text out, json;
    struct weft_cli line, *cli = &line;
    WEFT_TRY(weft_cli_make_config(given, cli, err));
    const bool searches = cli->largest || cli->least;
    if ((cli->largest && cli->least) || (searches && cli->n_sweeps > 0))
        return weft_fail(err, WEFT_E_USAGE, "--largest, --least, --sweep: one question at a time");
    weft_cli_report_init(cli, cli->output, &out);
    weft_text_init(&json);
    weft_watch_begin(cli->watch, "estimate");
    enum weft_status status = searches ? weft_study_values(cli, &out, &json, err)
                                       : estimate_places(cli, &out, &json, err);
    weft_watch_end(cli->watch);
    weft_text_add(&json, "\n");
    if (status == WEFT_OK) status = weft_cli_emit(cli, cli->json ? &json : &out, err);
    weft_text_finish(&out);
    weft_text_finish(&json);
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
