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

/* Trains a row's plan, unless that was done before the sweep was stopped. */
static enum weft_status run_row(struct weft_study *study, struct weft_study_row *row,
                                struct weft_error *err)
{
    struct weft_sweep_point *point = row->point;
    struct weft_train_result result = {0};
    struct weft_error reason = {0};
    char hash[WEFT_HASH_TEXT_BYTES], machine[WEFT_MACHINE_BYTES];
    int64_t figures[3];
    weft_hash_show(weft_hash_bytes(weft_text_chars(&row->plan), row->plan.length), hash);
    const struct weft_hash key = weft_kept_key(
        &study->kept, "run %s within %lld, %lld on %s", hash, (long long)point->limit_bytes,
        (long long)point->host_limit_bytes, weft_times_machine(machine));
    if (weft_kept_find_numbers(&study->kept, key, 3, figures) != 3) {
        const enum weft_status status = train_plan(study, row, &result, &reason);
        if (status == WEFT_E_INFEASIBLE) {
            weft_log(WEFT_LOG_WARNING, "not measured, planner %s: %s", row->planner, reason.text);
            return WEFT_OK;
        }
        if (status != WEFT_OK) return weft_fail(err, status, "%s", reason.text);
        figures[0] = result.step_ns;
        figures[1] = result.exposed_ns;
        figures[2] = result.tiers[WEFT_HOME_DEVICE].measured_bytes;
        weft_kept_add_numbers(&study->kept, key, 3, figures);
    }
    point->measured_ns = figures[0];
    point->measured_exposed_ns = figures[1];
    point->measured_bytes = figures[2];
    return WEFT_OK;
}

enum weft_status weft_study_run(struct weft_study *study, struct weft_error *err)
{
    struct weft_watch *watch = study->cli->watch;
    int64_t begun_ns = weft_clock_now_ns(), n = 0, done = 0;
    enum weft_status status = WEFT_OK;
    for (int32_t i = 0; i < study->n_rows; i++)
        n += study->rows[i].point->fits;
    for (int32_t i = 0; i < study->n_rows && status == WEFT_OK; i++) {
        if (!study->rows[i].point->fits) continue;
        weft_watch_part(watch, "sweep", "run", done++, n, begun_ns);
        status = run_row(study, &study->rows[i], err);
    }
    weft_watch_part(watch, NULL, NULL, 0, 0, 0);
    return status;
}
