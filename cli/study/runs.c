/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/job/job.h"
#include "cli/study/sweep.h"

enum weft_status weft_study_measure(struct weft_study *study, struct weft_error *err)
{
    const bool trains = study->cli->measure && weft_session_must_measure(&study->session);
    if (!trains && !weft_cli_measures(&study->session)) return WEFT_OK;
    WEFT_TRY(weft_times_measure(study->cli, &study->kept, &study->session, &study->times, err));
    const struct weft_place place = weft_study_place(study, NULL);
    weft_session_close(&study->session);
    return weft_place_open(study->cli, &place, &study->session, err);
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
    weft_log(WEFT_LOG_INFO, "sweep: training under %s within %s", row->planner,
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
        status =
            weft_fail(err, WEFT_E_STOPPED, "sweep: stopped by a signal under %s", row->planner);
    weft_text_finish(&text);
    weft_session_close(&session);
    return status;
}

/* Figures of a run: step, exposed communication and bytes; a step of 0: it was not measured. */
enum { STEP, EXPOSED, BYTES, N_FIGURES };

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
    const enum weft_status status = train_plan(study, row, &result, &reason);
    if (status == WEFT_E_INFEASIBLE) {
        weft_log(WEFT_LOG_WARNING, "not measured, planner %s: %s", row->planner, reason.text);
        figures[STEP] = 0;
        return WEFT_OK;
    }
    if (status != WEFT_OK) return weft_fail(err, status, "%s", reason.text);
    figures[STEP] = result.step_ns;
    figures[EXPOSED] = result.exposed_ns;
    figures[BYTES] = result.tiers[WEFT_HOME_DEVICE].measured_bytes;
    weft_kept_add_numbers(&study->kept, key, N_FIGURES, figures);
    return WEFT_OK;
}

static int compare_runs(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (x[STEP] > y[STEP]) - (x[STEP] < y[STEP]);
}

/* Takes the run with the median step, and the spread of all. */
static void take_runs(int64_t (*runs)[N_FIGURES], int32_t n, struct weft_sweep_point *point)
{
    qsort(runs, (size_t)n, sizeof *runs, compare_runs);
    if (runs[0][STEP] == 0) return;
    point->measured_ns = runs[n / 2][STEP];
    point->measured_exposed_ns = runs[n / 2][EXPOSED];
    point->measured_bytes = runs[n / 2][BYTES];
    point->measured_spread_ns = runs[n - 1][STEP] - runs[0][STEP];
}

/* Runs all rows once for each repeat. Each repeat begins with another row, so a slow change of the
 * machine's speed meets all planners. */
static enum weft_status run_rows(struct weft_study *study, int64_t (*runs)[N_FIGURES], int64_t n,
                                 struct weft_error *err)
{
    struct weft_watch *watch = study->cli->watch;
    const int64_t begun_ns = weft_clock_now_ns();
    int64_t done = 0;
    for (int32_t repeat = 0; repeat < study->n_repeats; repeat++) {
        for (int32_t k = 0; k < study->n_rows; k++) {
            const int32_t i = (k + repeat) % study->n_rows;
            if (!study->rows[i].point->fits) continue;
            weft_watch_part(watch, "sweep", "run", done++, n * study->n_repeats, begun_ns);
            WEFT_TRY(run_row(study, &study->rows[i], repeat,
                             runs[(int64_t)i * study->n_repeats + repeat], err));
        }
    }
    return WEFT_OK;
}

enum weft_status weft_study_run(struct weft_study *study, struct weft_error *err)
{
    int64_t n = 0;
    int64_t(*runs)[N_FIGURES] =
        calloc((size_t)study->n_rows * (size_t)study->n_repeats + 1, sizeof *runs);
    if (runs == NULL) return weft_fail_memory(err, "runs");
    for (int32_t i = 0; i < study->n_rows; i++)
        n += study->rows[i].point->fits;
    const enum weft_status status = run_rows(study, runs, n, err);
    weft_watch_part(study->cli->watch, NULL, NULL, 0, 0, 0);
    for (int32_t i = 0; i < study->n_rows && status == WEFT_OK; i++)
        take_runs(&runs[(int64_t)i * study->n_repeats], study->n_repeats, study->rows[i].point);
    free(runs);
    return status;
}
