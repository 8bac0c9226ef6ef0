#define _GNU_SOURCE /* memfd_create */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/job/job.h"
#include "cli/study/sweep.h"

/* Returns the name of this machine, on which measured times depend. */
static const char *name_machine(char out[256])
{
    if (gethostname(out, 255) != 0) out[0] = '\0';
    out[255] = '\0';
    return out;
}

enum weft_status weft_study_share(const struct weft_text *text, const char *what,
                                  char path[WEFT_SHARED_PATH_BYTES], int *fd,
                                  struct weft_error *err)
{
    size_t written = 0;
    *fd = memfd_create(what, MFD_CLOEXEC);
    while (*fd >= 0 && written < text->length) {
        const ssize_t n = write(*fd, weft_text_chars(text) + written, text->length - written);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        written += (size_t)n;
    }
    snprintf(path, WEFT_SHARED_PATH_BYTES, "/proc/%ld/fd/%d", (long)getpid(), *fd);
    if (*fd >= 0 && written == text->length) return WEFT_OK;
    weft_fail(err, WEFT_E_SYSTEM, "a memory file for a %s: %s", what, strerror(errno));
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return WEFT_E_SYSTEM;
}

enum weft_status weft_study_measure_once(const struct weft_cli *cli, struct weft_kept *kept,
                                         const struct weft_session *session, struct weft_text *text,
                                         struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    char machine[256];
    int code = 0;
    const struct weft_hash key = weft_kept_key(kept, "profile of %s", name_machine(machine));
    if (weft_kept_find(kept, key, &code, text)) {
        weft_log(WEFT_LOG_INFO, "%s: this machine was measured before it was stopped", cli->verb);
        return WEFT_OK;
    }
    WEFT_TRY(weft_cli_measure(session, &profile, err));
    weft_profile_write(profile, text);
    weft_profile_destroy(profile);
    if (!weft_text_ok(text)) return weft_fail_memory(err, "a profile");
    weft_kept_add(kept, key, 0, text);
    return WEFT_OK;
}

enum weft_status weft_study_measure(struct weft_study *study, struct weft_error *err)
{
    const bool trains = study->cli->measure && weft_session_must_measure(&study->session);
    if (!trains && !weft_cli_measures(&study->session)) return WEFT_OK;
    struct weft_text text;
    weft_text_init(&text);
    enum weft_status status =
        weft_study_measure_once(study->cli, &study->kept, &study->session, &text, err);
    if (status == WEFT_OK)
        status = weft_study_share(&text, "profile", study->profile, &study->profile_fd, err);
    weft_text_finish(&text);
    WEFT_TRY(status);
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
    if (study->profile[0] != '\0') weft_place_add(&place, "cluster.profile=%s", study->profile);
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
    char hash[WEFT_HASH_TEXT_BYTES], machine[256];
    int64_t figures[3];
    weft_hash_show(weft_hash_bytes(weft_text_chars(&row->plan), row->plan.length), hash);
    const struct weft_hash key = weft_kept_key(
        &study->kept, "run %s within %lld, %lld on %s", hash, (long long)point->limit_bytes,
        (long long)point->host_limit_bytes, name_machine(machine));
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
