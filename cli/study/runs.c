/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/job/hosts.h"
#include "cli/job/job.h"
#include "cli/process/children.h"
#include "cli/study/sweep.h"

/* Rows at most: curves of planners and rivals, or of a grid's hosts, and divisions of a study. */
static int64_t most_rows(const struct weft_study *study)
{
    const int64_t n = study->n_limits;
    const int64_t divisions = study->settles ? n * (n + 1) / 2 : 1;
    return (study->n_planners + study->n_rivals + study->n_hosts) * n + divisions;
}

/* Size of the longest problem of the study's periods, as text: most of a plan is its problem. */
static int64_t problem_bytes(const struct weft_study *study)
{
    int64_t most = 0;
    for (int32_t v = 0; v < study->n_periods; v++) {
        struct weft_text text;
        struct weft_json_writer writer;
        weft_text_init(&text);
        weft_json_writer_init(&writer, &text, 1);
        weft_problem_write(study->stages[v].problem, &writer);
        if ((int64_t)text.length > most) most = (int64_t)text.length;
        weft_text_finish(&text);
    }
    return most;
}

/* Bytes that the study itself holds at most: plans of all rows, and its periods. */
static enum weft_status count_records(struct weft_study *study, int64_t *bytes,
                                      struct weft_error *err)
{
    enum { FIXED_BYTES = 2 << 20, A_PLAN = 2, A_PERIOD = 8 }; /* times the problem's text */
    WEFT_TRY(weft_session_stage(&study->session, NULL, err));
    const enum weft_status status = weft_study_stage(study, err);
    *bytes = FIXED_BYTES +
             problem_bytes(study) * (A_PLAN * most_rows(study) + A_PERIOD * study->n_periods);
    while (study->n_periods > 0)
        weft_stages_finish(&study->stages[--study->n_periods]);
    return status;
}

static enum weft_status read_profile(const char *path, struct weft_profile **out,
                                     struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, INT64_C(1) << 30, &bytes, &length, err));
    const enum weft_status status = weft_profile_parse(bytes, length, path, out, err);
    free(bytes);
    return status;
}

/* Under MPI one process keeps the study's records next to its rank's memory. Opens the study again
 * with a profile whose bases hold them. Without a profile the config gives the base. */
static enum weft_status add_records(struct weft_study *study, struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    int64_t bytes;
    if (study->session.config->cluster.profile == NULL) return WEFT_OK;
    WEFT_TRY(count_records(study, &bytes, err));
    WEFT_TRY(read_profile(study->session.config->cluster.profile, &profile, err));
    if (profile->base_bytes >= 0) profile->base_bytes += bytes;
    for (int32_t i = 0; i < profile->n_bases; i++)
        profile->bases[i].bytes += bytes;
    const enum weft_status status = weft_times_of(profile, &study->times, err);
    weft_profile_destroy(profile);
    if (status != WEFT_OK) return status;
    const struct weft_place place = weft_study_place(study, NULL);
    weft_session_close(&study->session);
    return weft_place_open(study->cli, &place, &study->session, err);
}

enum weft_status weft_study_measure(struct weft_study *study, struct weft_error *err)
{
    const bool measures =
        study->settles && study->session.config->cluster.profile == NULL && !weft_hosts_are_ours();
    const bool trains = study->cli->measure && weft_session_must_measure(&study->session);
    if (!measures && !trains && !weft_cli_measures(&study->session))
        return study->cli->measure && weft_hosts_are_ours() ? add_records(study, err) : WEFT_OK;
    if (weft_hosts_are_ours())
        return weft_fail(err, WEFT_E_USAGE,
                         "%s: plans are made before MPI starts, so they need times: give --profile "
                         "FILE, by `weft profile` under the same launcher",
                         study->session.config->source);
    WEFT_TRY(weft_times_measure(study->cli, &study->kept, &study->session, "before", &study->times,
                                err));
    const struct weft_place place = weft_study_place(study, NULL);
    weft_session_close(&study->session);
    return weft_place_open(study->cli, &place, &study->session, err);
}

enum weft_status weft_study_measure_drift(struct weft_study *study, struct weft_error *err)
{
    const struct weft_place everywhere = {0};
    struct weft_session session = {0};
    struct weft_times after = {.fd = -1};
    if (!study->settles || study->times.path[0] == '\0' || weft_hosts_are_ours()) return WEFT_OK;
    enum weft_status status = weft_place_open(study->cli, &everywhere, &session, err);
    if (status == WEFT_OK)
        status = weft_times_measure(study->cli, &study->kept, &session, "after", &after, err);
    if (status == WEFT_OK) status = weft_times_compare(&study->times, &after, &study->drift, err);
    weft_times_finish(&after);
    weft_session_close(&session);
    return status;
}

struct weft_place weft_study_place(const struct weft_study *study,
                                   const struct weft_sweep_point *point)
{
    struct weft_place place = {0};
    if (point != NULL)
        weft_place_add(&place, "cluster.memory_limit=%lldB", (long long)point->limit_bytes);
    if (point != NULL && study->sweep.grid)
        weft_place_add(&place, "cluster.host.memory_limit=%lldB",
                       (long long)point->host_limit_bytes);
    if (point != NULL && point->policy_limit_bytes > 0)
        weft_place_add(&place, "plan.policy_limit=%lldB", (long long)point->policy_limit_bytes);
    weft_times_add(&study->times, &place);
    /* A curve is of plans that recompute alike. */
    if (study->session.config->recomputes == NULL) weft_place_add(&place, "plan.recompute=none");
    return place;
}

static enum weft_status train_plan(struct weft_study *study, const struct weft_study_row *row,
                                   struct weft_train_result *result, struct weft_error *err)
{
    const struct weft_place place = weft_study_place(study, row->point);
    struct weft_session session = {0};
    struct weft_text text;
    char bytes[WEFT_UNITS_TEXT_BYTES];
    weft_text_init(&text);
    weft_log(WEFT_LOG_INFO, "%s: training under %s within %s", study->cli->verb, row->planner,
             weft_units_show_bytes(row->point->limit_bytes, bytes));
    enum weft_status status = weft_place_open(study->cli, &place, &session, err);
    if (status == WEFT_OK) status = weft_session_stage(&session, NULL, err);
    if (status == WEFT_OK)
        status = weft_session_take(&session, weft_text_chars(&row->plan), row->plan.length,
                                   row->planner, err);
    if (status == WEFT_OK) {
        struct weft_job job = {.kind = WEFT_JOB_TRAIN,
                               .config = session.config,
                               .profile = session.profile,
                               .plan = session.plan,
                               .watch = study->cli->watch};
        struct weft_load before;
        weft_load_read(&before);
        status = weft_job_run(&job, &text, err);
        weft_load_spend(&before, &study->load);
    }
    if (status == WEFT_OK) status = weft_job_read_result(&text, result, err);
    if (status == WEFT_OK && result->stopped)
        status = weft_fail(err, WEFT_E_STOPPED, "%s: stopped by a signal under %s",
                           study->cli->verb, row->planner);
    weft_text_finish(&text);
    weft_session_close(&session);
    return status;
}

/* Figures of a run; a step of 0: it was not measured. */
enum { STEP, EXPOSED, CHANNEL, BYTES, N_FIGURES };

/* Trains a row's plan, unless that was done before the sweep was stopped. */
static enum weft_status run_row(struct weft_study *study, struct weft_study_row *row,
                                int32_t repeat, int64_t figures[N_FIGURES], struct weft_error *err)
{
    struct weft_sweep_point *point = row->point;
    struct weft_train_result result = {0};
    struct weft_error reason = {0};
    char hash[WEFT_HASH_TEXT_BYTES], machine[WEFT_MACHINE_BYTES];
    weft_hash_show(weft_hash_bytes(weft_text_chars(&row->plan), row->plan.length), hash);
    const struct weft_hash key =
        weft_kept_key(&study->kept, "run %d of %s within %lld, %lld on %s", (int)repeat, hash,
                      (long long)point->limit_bytes, (long long)point->host_limit_bytes,
                      weft_times_machine(machine));
    if (weft_kept_find_numbers(&study->kept, key, N_FIGURES, figures) == N_FIGURES) return WEFT_OK;
    weft_children_begin(); /* a signal before the ranks start stops the study too */
    const enum weft_status status =
        weft_children_end(train_plan(study, row, &result, &reason), &reason);
    if (status == WEFT_E_INFEASIBLE && !weft_hosts_are_over()) {
        weft_log(WEFT_LOG_WARNING, "not measured, planner %s: %s", row->planner, reason.text);
        figures[STEP] = 0;
        return WEFT_OK;
    }
    if (status != WEFT_OK) return weft_fail(err, status, "%s", reason.text);
    figures[STEP] = result.step_ns;
    figures[EXPOSED] = result.exposed_ns;
    figures[CHANNEL] = result.exposed_ns + result.overlapped_ns;
    figures[BYTES] = result.tiers[WEFT_LOCATION_DEVICE].measured_bytes;
    weft_kept_add_numbers(&study->kept, key, N_FIGURES, figures);
    return WEFT_OK;
}

static int compare_runs(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (x[STEP] > y[STEP]) - (x[STEP] < y[STEP]);
}

/* Takes the run with the median step, and the spread of all. Runs with a larger spread than
 * before are left. */
static void take_runs(int64_t (*runs)[N_FIGURES], int32_t n, struct weft_sweep_point *point)
{
    qsort(runs, (size_t)n, sizeof *runs, compare_runs);
    const int64_t spread_ns = runs[n - 1][STEP] - runs[0][STEP];
    if (runs[0][STEP] == 0) return;
    if (point->measured_ns > 0 && spread_ns >= point->measured_spread_ns) return;
    point->measured_ns = runs[n / 2][STEP];
    point->measured_exposed_ns = runs[n / 2][EXPOSED];
    point->measured_channel_ns = runs[n / 2][CHANNEL];
    point->measured_bytes = runs[n / 2][BYTES];
    point->measured_spread_ns = spread_ns;
}

/* Rows in the order of their runs. */
struct turns {
    int32_t n;
    int32_t *rows;
    int64_t (*runs)[N_FIGURES]; /* n_repeats of each turn */
};

/* True if row a runs before row b: by limits, then by curves. */
static bool runs_before(const struct weft_study *study, int32_t a, int32_t b)
{
    const struct weft_sweep_point *x = study->rows[a].point, *y = study->rows[b].point;
    if (x->limit_bytes != y->limit_bytes) return x->limit_bytes < y->limit_bytes;
    return a < b;
}

/* Fills the turns with all rows that have a plan, or only with rows that drift. */
static void fill_turns(const struct weft_study *study, bool drifting, struct turns *turns)
{
    turns->n = 0;
    for (int32_t i = 0; i < study->n_rows; i++) {
        if (!study->rows[i].point->fits) continue;
        if (drifting && !weft_sweep_drifts(study->rows[i].point)) continue;
        int32_t at = turns->n++;
        for (; at > 0 && runs_before(study, i, turns->rows[at - 1]); at--)
            turns->rows[at] = turns->rows[at - 1];
        turns->rows[at] = i;
    }
}

/* Runs all turns once for each repeat. Each repeat begins with another row, so a slow change of the
 * machine's speed meets all planners. `first`: number of the first repeat. */
static enum weft_status run_turns(struct weft_study *study, struct turns *turns, int32_t first,
                                  struct weft_error *err)
{
    struct weft_watch *watch = study->cli->watch;
    const int64_t begun_ns = weft_clock_now_ns();
    const int32_t n = study->n_repeats;
    for (int32_t repeat = 0; repeat < n; repeat++) {
        for (int32_t k = 0; k < turns->n; k++) {
            const int32_t turn = (k + repeat) % turns->n;
            weft_watch_part(watch, study->cli->verb, "run", (int64_t)repeat * turns->n + k,
                            (int64_t)turns->n * n, begun_ns);
            WEFT_TRY(run_row(study, &study->rows[turns->rows[turn]], first + repeat,
                             turns->runs[(int64_t)turn * n + repeat], err));
        }
    }
    for (int32_t turn = 0; turn < turns->n; turn++)
        take_runs(&turns->runs[(int64_t)turn * n], n, study->rows[turns->rows[turn]].point);
    return WEFT_OK;
}

/* Tells the number of runs, and their least time: steps as predicted, without the ranks' start. */
static void tell_runs(const struct weft_study *study, const struct turns *turns)
{
    const int64_t steps = study->session.config->train.steps;
    double step_ns = 0;
    for (int32_t turn = 0; turn < turns->n; turn++)
        step_ns += (double)study->rows[turns->rows[turn]].point->step_ns;
    weft_log(WEFT_LOG_INFO,
             "%s: %d plans run %d times for %lld steps: at least %.0f s of predicted steps, and "
             "%d starts of ranks",
             study->cli->verb, (int)turns->n, (int)study->n_repeats, (long long)steps,
             1e-9 * step_ns * (double)steps * study->n_repeats, (int)(turns->n * study->n_repeats));
}

enum weft_status weft_study_run(struct weft_study *study, struct weft_error *err)
{
    const size_t n = (size_t)study->n_rows;
    struct turns turns = {.rows = calloc(n + 1, sizeof *turns.rows),
                          .runs = calloc(n * (size_t)study->n_repeats + 1, sizeof *turns.runs)};
    enum weft_status status = WEFT_OK;
    if (!turns.rows || !turns.runs) status = weft_fail_memory(err, "runs");
    if (status == WEFT_OK) {
        fill_turns(study, false, &turns);
        if (study->settles) tell_runs(study, &turns);
        status = run_turns(study, &turns, 0, err);
    }
    if (status == WEFT_OK && study->settles) {
        fill_turns(study, true, &turns);
        study->n_repeated = turns.n;
        status = run_turns(study, &turns, study->n_repeats, err);
    }
    weft_watch_part(study->cli->watch, NULL, NULL, 0, 0, 0);
    free(turns.rows);
    free(turns.runs);
    return status;
}
