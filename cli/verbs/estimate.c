#include "cli/verbs/estimate.h"

#include <string.h>

#include "base/units.h"
#include "base/watch.h"
#include "cli/terminal.h"
#include "report/study/needs.h"

enum weft_status weft_estimate_at(const struct weft_cli *cli, const char *const *settings,
                                  int32_t n, uint32_t asked, struct weft_estimate *out,
                                  struct weft_error *err)
{
    struct weft_session session = {0};
    struct weft_cli one = *cli;
    *out = (struct weft_estimate){0};
    for (int32_t i = 0; i < n; i++) {
        if (one.n_overrides == WEFT_CLI_OVERRIDES)
            return weft_fail(err, WEFT_E_USAGE, "--set: too many overrides for an estimate");
        if (strncmp(settings[i], "cluster.ranks=", 14) == 0) one.ranks = 0; /* -n would win */
        one.overrides[one.n_overrides++] = settings[i];
    }
    enum weft_status status = weft_cli_read_config(&one, one.operands[0], &session, err);
    if (status == WEFT_OK) status = weft_estimate_create(&session, asked, out, err);
    weft_session_close(&session);
    return status;
}

/* A line a tier that state may be in. */
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
    for (int home = 0; home < WEFT_HOME_COUNT; home++)
        any |= estimate->homes[home].given;
    if (!any) return;
    weft_json_key(writer, "state_homes");
    weft_json_begin_object(writer);
    for (int home = 0; home < WEFT_HOME_COUNT; home++) {
        const struct weft_estimate_home *it = &estimate->homes[home];
        if (!it->given) continue;
        weft_json_key(writer, weft_home_names[home]);
        weft_json_begin_object(writer);
        weft_json_put_bool(writer, "fits", it->least_bytes != INT64_MAX);
        if (it->least_bytes != INT64_MAX)
            weft_json_put_integer(writer, "device_needs_bytes", it->least_bytes);
        weft_json_put_integer(writer, "ring_bytes", it->ring_bytes);
        if (home != WEFT_HOME_DEVICE) weft_json_put_integer(writer, "held_bytes", it->held_bytes);
        weft_json_end_object(writer);
    }
    weft_json_end_object(writer);
}

/* What the figures stand on, and what they leave out. */
static void say_source(const struct weft_cli *cli, const struct weft_estimate *estimate,
                       struct weft_text *out)
{
    char limit[WEFT_UNITS_TEXT_BYTES];
    weft_text_addf(out, "estimate  %s, %lld ranks", cli->operands[0], (long long)estimate->ranks);
    if (estimate->limit_bytes > 0)
        weft_text_addf(out, ", limit %s a rank",
                       weft_units_show_bytes(estimate->limit_bytes, limit));
    weft_text_add(out, "\n");
    if (estimate->times[0])
        weft_text_addf(out, "times     %s\n", estimate->times);
    else
        weft_text_addf(out, "times     unknown: they need %s\n", estimate->missing);
}

static void say_notes(const struct weft_estimate *estimate, struct weft_text *out)
{
    weft_text_add(out, "needs     a rank's fullest slot; addresses may cost per cents more\n");
    weft_text_add(out, estimate->times[0]
                           ? "fastest   the least at which more memory makes the policy no faster\n"
                           : "earliest  every gather as early as its window allows\n");
    if (estimate->base_bytes == 0)
        weft_text_add(out,
                      "base      0 B: nothing outside the arena is counted; give cluster.base, "
                      "or a profile\n");
}

void weft_estimate_put(const struct weft_estimate *estimate, struct weft_json_writer *writer)
{
    bool timed = estimate->times[0] != '\0';
    weft_json_put_integer(writer, "ranks", estimate->ranks);
    if (estimate->limit_bytes > 0)
        weft_json_put_integer(writer, "memory_limit_bytes", estimate->limit_bytes);
    weft_json_put_integer(writer, "base_bytes", estimate->base_bytes);
    weft_json_put_string(writer, timed ? "times" : "missing",
                         timed ? estimate->times : estimate->missing);
    weft_json_key(writer, "rows");
    weft_report_needs_json(estimate->rows, WEFT_ESTIMATE_ROWS, estimate->limit_bytes, timed,
                           writer);
}

static enum weft_status estimate_one(const struct weft_cli *cli, struct weft_text *out,
                                     struct weft_text *json, struct weft_error *err)
{
    struct weft_estimate estimate;
    struct weft_json_writer writer;
    enum weft_status status = weft_estimate_at(cli, NULL, 0, WEFT_ESTIMATE_ALL, &estimate, err);
    if (status == WEFT_OK) {
        say_source(cli, &estimate, out);
        weft_report_needs(estimate.rows, WEFT_ESTIMATE_ROWS, estimate.limit_bytes, out);
        say_homes(&estimate, out);
        say_notes(&estimate, out);
        weft_text_add(out, "\n");
        weft_report_needs_memory(estimate.rows, WEFT_ESTIMATE_ROWS, out);
        weft_json_writer_init(&writer, json, 2);
        weft_json_begin_object(&writer);
        weft_estimate_put(&estimate, &writer);
        put_homes(&estimate, &writer);
        weft_json_end_object(&writer);
    }
    weft_estimate_finish(&estimate);
    return status;
}

static enum weft_status run(const struct weft_cli *cli, struct weft_error *err)
{
    struct weft_text out, json;
    bool searches = cli->largest || cli->least;
    if ((cli->largest && cli->least) || (searches && cli->n_sweeps > 0))
        return weft_fail(err, WEFT_E_USAGE, "--largest, --least, --sweep: one question at a time");
    weft_cli_report_init(cli, cli->output, &out);
    weft_text_init(&json);
    weft_watch_begin(cli->watch, "estimate");
    enum weft_status status = searches            ? weft_estimate_search(cli, &out, &json, err)
                              : cli->n_sweeps > 0 ? weft_estimate_sweep(cli, &out, &json, err)
                                                  : estimate_one(cli, &out, &json, err);
    weft_watch_end(cli->watch);
    weft_text_add(&json, "\n");
    if (status == WEFT_OK) status = weft_cli_emit(cli, cli->json ? &json : &out, err);
    weft_text_finish(&out);
    weft_text_finish(&json);
    return status;
}

const struct weft_command weft_command_estimate = {
    .name = "estimate",
    .usage = "CONFIG",
    .summary = "memory and time that every policy needs, at once and without a run",
    .details =
        "For each policy, given to every unit, what a rank needs just in time (the least: gathers\n"
        "wait in the slot that uses them), as published rules issue, and where more memory no\n"
        "longer makes it faster; whether that fits the memory limit, and the slot and unit of the\n"
        "peak. plan.policies is not applied. Memory needs no times: without figures of the device\n"
        "or a profile they are \"-\". A line a tier says what state all there leaves to need.\n"
        "--sweep train.micro_batch=1,2,4 asks for each value; twice, what fits as a grid.\n"
        "--largest train.micro_batch (train.seq_len, layers) and --least cluster.ranks search for\n"
        "the value at which each row still fits.",
    .flags = "--sweep --largest --least --set --layers --ranks --seed --profile --memory-limit",
    .least_operands = 1,
    .most_operands = 1,
    .run = run,
};
