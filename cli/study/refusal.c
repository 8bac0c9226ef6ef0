/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "cli/study/times.h"
#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "spec/config_batch.h"
#include "spec/config_recompute.h"

/* MOST_RANKS is how many times the ranks may double; DRAFT_WORK limits the draft of one change. */
enum { MOST_CHANGES = 16, MOST_RANKS = 6, CHANGE_BYTES = 256, DRAFT_WORK = 300000000 };

/* A change of the config, and its plan. */
struct change {
    struct weft_place place;
    char flags[CHANGE_BYTES]; /* as typed */
    const char *price;        /* the promise that it gives up; NULL: none */
    int64_t needs_bytes;      /* least limit, without pages */
    int64_t step_ns;          /* of a drafted plan; 0: no times */
    int64_t total_bytes;
    double samples_per_s;
    double rank_ns; /* time of all ranks a sample; 0: no times */
};

struct refusal {
    const struct weft_cli *cli;
    const struct weft_session *refused;
    int64_t limit_bytes;
    const struct weft_place *base; /* settings of all changes */
    struct weft_times times;       /* of a machine that was measured */
    int32_t n;
    struct change changes[MOST_CHANGES];
};

/* Begins a change in the next free place, with the measured times. `recomputes`: layers recompute
 * if nothing fits without and the config leaves that open. */
static struct change *begin_change(struct refusal *refusal, bool recomputes)
{
    struct change *change = &refusal->changes[refusal->n];
    *change = (struct change){.place = *refusal->base};
    if (recomputes && weft_config_recomputes_if_needed(refusal->refused->config))
        weft_place_add(&change->place, "plan.recompute=auto");
    weft_times_add(&refusal->times, &change->place);
    return change;
}

/* Adds a setting to a change, and its flag. */
static void add_setting(struct change *change, const char *setting)
{
    const size_t length = strlen(change->flags);
    const bool quotes = strpbrk(setting, "\"[ ") != NULL;
    weft_place_add(&change->place, "%s", setting);
    snprintf(change->flags + length, sizeof change->flags - length, "%s--set %s%s%s",
             length > 0 ? " " : "", quotes ? "'" : "", setting, quotes ? "'" : "");
}

/* Drafts the plan of a change. False if its times are known and it has none. */
static bool draft_plan(struct weft_session *session, struct change *change)
{
    struct weft_error ignored = {0};
    if (weft_session_stage(session, NULL, &ignored) != WEFT_OK) return true;
    session->draft = session->hint = true;
    if (session->config->plan.work_limit > DRAFT_WORK)
        session->config->plan.work_limit = DRAFT_WORK;
    if (weft_session_plan_levels(session, NULL, &ignored) != WEFT_OK) return false;
    change->step_ns = session->plan->prediction.step_ns;
    change->total_bytes = session->plan->prediction.total_bytes;
    const double samples = (double)weft_config_samples(session->config);
    if (change->step_ns > 0) change->samples_per_s = 1e9 * samples / (double)change->step_ns;
    change->rank_ns = (double)change->step_ns * (double)session->config->cluster.ranks / samples;
    return true;
}

/* Keeps the change begun last if a plan with it fits `limit_bytes`. */
static bool try_change(struct refusal *refusal, int64_t limit_bytes)
{
    struct change *change = &refusal->changes[refusal->n];
    struct weft_session session = {0};
    struct weft_error ignored = {0};
    struct weft_text missing;
    bool fits = false;
    weft_text_init(&missing);
    const enum weft_status opened =
        weft_place_open(refusal->cli, &change->place, &session, &ignored);
    session.watch = NULL; /* no progress of its own */
    if (opened == WEFT_OK &&
        weft_session_stage_for_memory(&session, &missing, &ignored) == WEFT_OK &&
        weft_session_find_least(&session, &change->needs_bytes, &ignored) == WEFT_OK) {
        fits = change->needs_bytes <= limit_bytes && draft_plan(&session, change);
    }
    weft_text_finish(&missing);
    weft_session_close(&session);
    refusal->n += fits;
    return fits;
}

/* A larger limit: the least one in pages, rounded up to four digits. */
static enum weft_status try_limit(struct refusal *refusal, struct weft_error *err)
{
    const struct weft_session *refused = refusal->refused;
    struct change *change = begin_change(refusal, true);
    int64_t bytes = weft_least_limit(refused->stages.problem, 0, NULL), unit = 1024;
    char shown[WEFT_UNITS_TEXT_BYTES];
    if (bytes <= 0 || bytes == INT64_MAX) return WEFT_OK;
    WEFT_TRY(weft_least_paged_limit(refused->stages.problem, &refused->inputs, &bytes, err));
    while (bytes / unit >= 8192)
        unit *= 1024;
    bytes = (bytes + unit - 1) / unit * unit;
    weft_place_add(&change->place, "cluster.memory_limit=%lldB", (long long)bytes);
    snprintf(change->flags, sizeof change->flags, "--memory-limit %s",
             weft_units_write_bytes(bytes, shown));
    (void)try_change(refusal, bytes);
    return WEFT_OK;
}

/* Settings that need less memory. The second one adds to the first. */
static void try_settings(struct refusal *refusal)
{
    static const char parameters[] = "plan.offload.parameters=[\"device\",\"host\"]";
    static const char state[] = "plan.offload.state=[\"device\",\"host\"]";
    static const char saved[] = "plan.offload.activations=[\"device\",\"host\"]";
    static const char inputs[] = "plan.offload.inputs=[\"device\",\"host\"]";
    static const char split[] = "train.micro_batch=auto", all[] = "plan.recompute=auto";
    static const char backward[] = "plan.update_in=backward";
    static const char *const ways[][2] = {{"plan.recompute=selective", NULL},
                                          {"plan.recompute=whole", NULL},
                                          {all, NULL},
                                          {split, NULL},
                                          {split, all},
                                          {state, NULL},
                                          {saved, NULL},
                                          {parameters, NULL},
                                          {inputs, NULL},
                                          {inputs, all},
                                          {backward, NULL},
                                          {backward, all}};
    const struct weft_config *config = refusal->refused->config;
    const bool forward = config->plan.update_in == WEFT_UPDATE_IN_FORWARD;
    char batch[64];
    snprintf(batch, sizeof batch, "train.batch=%lld", (long long)weft_config_samples(config));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        if (ways[i][0] == backward && !forward) continue;
        struct change *change = begin_change(refusal, strstr(ways[i][0], "recompute") == NULL);
        if (ways[i][0] == backward) change->price = weft_update_in_price;
        if (ways[i][0] == split) add_setting(change, batch);
        for (int k = 0; k < 2 && ways[i][k] != NULL; k++)
            add_setting(change, ways[i][k]);
        (void)try_change(refusal, refusal->limit_bytes);
    }
}

/* The fewest ranks, by doubling. */
static void try_ranks(struct refusal *refusal)
{
    int64_t ranks = refusal->refused->config->cluster.ranks;
    for (int i = 0; i < MOST_RANKS; i++) {
        struct change *change = begin_change(refusal, true);
        ranks *= 2;
        weft_place_add(&change->place, "cluster.ranks=%lld", (long long)ranks);
        snprintf(change->flags, sizeof change->flags, "-n %lld", (long long)ranks);
        if (try_change(refusal, refusal->limit_bytes)) return;
    }
}

/* The least time of ranks a sample comes first; changes without times follow by memory. Changes
 * with a price come last. */
static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if ((x->price != NULL) != (y->price != NULL)) return x->price != NULL ? 1 : -1;
    if ((x->rank_ns > 0) != (y->rank_ns > 0)) return x->rank_ns > 0 ? -1 : 1;
    if (x->rank_ns != y->rank_ns) return x->rank_ns < y->rank_ns ? -1 : 1;
    return (x->needs_bytes > y->needs_bytes) - (x->needs_bytes < y->needs_bytes);
}

static void add_changes(const struct refusal *refusal, struct weft_answer *answer)
{
    enum { STEP, RATE, MEMORY, LEAST, FLAGS, N_COLUMNS };
    static const struct weft_column columns[N_COLUMNS] = {
        [STEP] = {"step_ns", "step", 'r', WEFT_FIGURE_NS, WEFT_COLUMN_NULL},
        [RATE] = {"samples_per_s", "samples/s", 'r', WEFT_FIGURE_SHORT, WEFT_COLUMN_NULL},
        [MEMORY] = {"total_bytes", "memory", 'r', WEFT_FIGURE_BYTES, WEFT_COLUMN_NULL},
        [LEAST] = {"least_bytes", "at least", 'r', WEFT_FIGURE_BYTES, 0},
        [FLAGS] = {"change", "would fit with", 'w', WEFT_FIGURE_WORD, 0}};
    struct weft_rows *rows = weft_answer_table(answer, "would_fit", columns, N_COLUMNS);
    for (int32_t i = 0; i < refusal->n; i++) {
        const struct change *change = &refusal->changes[i];
        weft_rows_begin(rows, NULL);
        weft_rows_word(rows, FLAGS, change->flags);
        weft_rows_integer(rows, LEAST, change->needs_bytes);
        if (change->step_ns == 0) continue;
        weft_rows_integer(rows, STEP, change->step_ns);
        weft_rows_real(rows, RATE, change->samples_per_s);
        weft_rows_integer(rows, MEMORY, change->total_bytes);
    }
    /* The last one: changes with a price update in backward. */
    const char *price = refusal->changes[refusal->n - 1].price;
    if (price != NULL)
        weft_answer_say(answer, "price", "with plan.update_in=backward, %s\n", price);
}

/* The error for --json, and the first line. */
static void add_head(const struct refusal *refusal, const struct weft_error *why,
                     struct weft_answer *answer)
{
    char limit[WEFT_UNITS_TEXT_BYTES], step[WEFT_UNITS_TEXT_BYTES];
    weft_answer_error(answer, why);
    const struct change *first = refusal->changes;
    weft_units_show_bytes(refusal->limit_bytes, limit);
    if (refusal->n == 0)
        weft_answer_say(answer, "answer", "nothing fits %s, and no change that was tried does\n",
                        limit);
    else if (first->step_ns == 0)
        weft_answer_say(answer, "answer", "nothing fits %s: the least change is %s\n", limit,
                        first->flags);
    else
        weft_answer_say(answer, "answer", "nothing fits %s: the cheapest change is %s, %s\n", limit,
                        first->flags, weft_units_show_ns(first->step_ns, step));
    weft_answer_integer(answer, "memory_limit_bytes", refusal->limit_bytes);
}

static enum weft_status find_changes(struct refusal *refusal, struct weft_error *err)
{
    const struct weft_session *refused = refusal->refused;
    if (weft_cli_measures(refused)) WEFT_TRY(weft_times_of(refused->profile, &refusal->times, err));
    WEFT_TRY(try_limit(refusal, err));
    try_settings(refusal);
    try_ranks(refusal);
    qsort(refusal->changes, (size_t)refusal->n, sizeof *refusal->changes, compare_changes);
    return WEFT_OK;
}

enum weft_status weft_refusal_add(const struct weft_cli *cli, const struct weft_session *refused,
                                  const struct weft_place *base, const struct weft_error *why,
                                  struct weft_answer *answer, struct weft_error *err)
{
    static const struct weft_place nowhere = {0};
    const int64_t limit_bytes = refused->config->cluster.memory_limit_bytes;
    if (limit_bytes == 0 || refused->stages.problem == NULL) return WEFT_OK;
    struct refusal *refusal = calloc(1, sizeof *refusal);
    if (refusal == NULL) return weft_fail_memory(err, "a table of changes");
    *refusal = (struct refusal){.cli = cli,
                                .refused = refused,
                                .limit_bytes = limit_bytes,
                                .base = base != NULL ? base : &nowhere,
                                .times.fd = -1};
    const enum weft_status status = find_changes(refusal, err);
    if (status == WEFT_OK && why != NULL) add_head(refusal, why, answer);
    if (status == WEFT_OK && refusal->n > 0) add_changes(refusal, answer);
    weft_times_finish(&refusal->times);
    free(refusal);
    return status;
}

void weft_refusal_answer(const struct weft_cli *cli, const struct weft_session *refused,
                         const struct weft_error *why)
{
    /* The output of train is JSON Lines. */
    struct weft_answer answer = {.is_line = strcmp(cli->verb, "train") == 0};
    struct weft_error failure = {0};
    if (cli->output != NULL && strcmp(cli->output, "-") == 0) return;
    enum weft_status status = weft_refusal_add(cli, refused, NULL, why, &answer, &failure);
    if (status == WEFT_OK && answer.first != NULL)
        status = weft_cli_print_answer(cli, &answer, &failure);
    if (status != WEFT_OK) weft_log(WEFT_LOG_WARNING, "no table of changes: %s", failure.text);
    weft_answer_finish(&answer);
}
