/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of include/weft.h: one handle for a session, a rank's machine and a run. */
#include "include/weft.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/stack.h"
#include "layers/supplied.h"
#include "library/check_layers.h"
#include "library/machine.h"
#include "library/mappings.h"
#include "library/run.h"
#include "library/session.h"
#include "library/solver/solve_text.h"
#include "runtime/launch/launch.h"
#include "runtime/train/train.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "spec/config_batch.h"

enum { MOST_KINDS = 64, MOST_OVERRIDES = 256 };

struct weft {
    struct weft_rendezvous meeting;
    struct weft_pool kinds_pool;
    const struct weft_kind *kinds[MOST_KINDS];
    struct weft_kinds known; /* refers to `kinds` */
    struct weft_text_solver solver;
    struct weft_session session;
    struct weft_machine machine;
    bool working; /* the machine is open */
    struct weft_text shown;
    atomic_int stop;
};

const char *weft_version(void)
{
    return WEFT_VERSION;
}

/* Clears the caller's error, so that each function sets its own. */
static struct weft_error *clear_error(struct weft_error *error, struct weft_error *unwanted)
{
    struct weft_error *err = error != NULL ? error : unwanted;
    err->status = WEFT_OK;
    err->exit_code = 0;
    err->text[0] = '\0';
    return err;
}

enum weft_status weft_open(struct weft **out, struct weft_error *error)
{
    struct weft_error unwanted, *err = clear_error(error, &unwanted);
    struct weft *weft = calloc(1, sizeof *weft);
    if (weft == NULL) return weft_fail_memory(err, "a run");
    enum weft_status status = weft_stack_check(err);
    if (status == WEFT_OK) status = weft_rendezvous_from_environment(&weft->meeting, err);
    if (status == WEFT_OK)
        *out = weft;
    else
        free(weft);
    return status;
}

static bool is_launched(const struct weft *weft)
{
    return weft->meeting.control_fd >= 0;
}

static void close_machine(struct weft *weft)
{
    weft_machine_close(&weft->machine);
    weft->working = false;
}

void weft_close(struct weft *weft)
{
    if (weft == NULL) return;
    close_machine(weft);
    weft_session_close(&weft->session);
    weft_text_finish(&weft->shown);
    weft_rendezvous_finish(&weft->meeting);
    weft_pool_finish(&weft->kinds_pool);
    free(weft);
}

int32_t weft_rank(const struct weft *weft)
{
    return weft->meeting.rank;
}

int32_t weft_ranks(const struct weft *weft)
{
    return weft->meeting.ranks;
}

enum weft_status weft_add_kind(struct weft *weft, const struct weft_layer_kind *kind,
                               struct weft_error *error)
{
    struct weft_error unwanted, *err = clear_error(error, &unwanted);
    if (weft->known.n == MOST_KINDS)
        return weft_fail(err, WEFT_E_USAGE, "more than %d layer kinds", MOST_KINDS);
    WEFT_TRY(weft_supplied_check(kind, &weft->known, err));
    const struct weft_kind *wrapped = weft_supplied_wrap(kind, &weft->kinds_pool);
    if (wrapped == NULL) return weft_fail_memory(err, "a layer kind");
    weft->kinds[weft->known.n++] = wrapped;
    weft->known.kinds = weft->kinds;
    return WEFT_OK;
}

void weft_set_solver(struct weft *weft, weft_solve_text_fn *solve, void *context)
{
    weft->solver = (struct weft_text_solver){solve, context};
}

static enum weft_status load_config(struct weft *weft, struct weft_config_input *input,
                                    struct weft_error *err)
{
    const char *overrides[MOST_OVERRIDES + 1];
    struct weft_config *config = NULL;
    char ranks[64];
    int32_t n = 0;
    if (input->n_overrides < 0 || input->n_overrides > MOST_OVERRIDES)
        return weft_fail(err, WEFT_E_USAGE, "%d overrides: 0 to %d are possible",
                         (int)input->n_overrides, MOST_OVERRIDES);
    if (is_launched(weft) && weft->working)
        return weft_fail(err, WEFT_E_USAGE,
                         "launched ranks have met for one config, and cannot take another: launch "
                         "the program again for that");
    for (; n < input->n_overrides; n++)
        overrides[n] = input->overrides[n];
    if (is_launched(weft)) {
        snprintf(ranks, sizeof ranks, "cluster.ranks=%d", (int)weft->meeting.ranks);
        overrides[n++] = ranks;
    }
    input->overrides = overrides;
    input->n_overrides = n;
    input->kinds = &weft->known;
    WEFT_TRY(weft_config_load(input, &config, err));
    const enum weft_status status = weft_config_set_plain(config, weft_machine_is_plain(), err);
    if (status != WEFT_OK) weft_config_destroy(config);
    WEFT_TRY(status);
    close_machine(weft);
    weft_session_close(&weft->session);
    weft->session.config = config;
    return WEFT_OK;
}

enum weft_status weft_read_config(struct weft *weft, const char *path, const char *const *overrides,
                                  int32_t n, struct weft_error *error)
{
    struct weft_error unwanted, *err = clear_error(error, &unwanted);
    struct weft_config_input input = {.source = path, .overrides = overrides, .n_overrides = n};
    return load_config(weft, &input, err);
}

enum weft_status weft_take_config(struct weft *weft, const char *json, const char *directory,
                                  const char *const *overrides, int32_t n, struct weft_error *error)
{
    struct weft_error unwanted, *err = clear_error(error, &unwanted);
    struct weft_config_input input = {.bytes = json,
                                      .length = strlen(json),
                                      .source = "config",
                                      .directory = directory == NULL ? "." : directory,
                                      .overrides = overrides,
                                      .n_overrides = n};
    return load_config(weft, &input, err);
}

static enum weft_status need_config(const struct weft *weft, struct weft_error *err)
{
    if (weft->session.config != NULL) return WEFT_OK;
    return weft_fail(err, WEFT_E_USAGE,
                     "there is no config yet: call weft_read_config or weft_take_config");
}

enum weft_status weft_check_layers(struct weft *weft, struct weft_error *error)
{
    struct weft_error unwanted, *err = clear_error(error, &unwanted);
    WEFT_TRY(need_config(weft, err));
    return weft_config_check_layers(weft->session.config, err);
}

/* Opens the machine; collective the first time. */
static enum weft_status open_machine(struct weft *weft, struct weft_error *err)
{
    const struct weft_config *config = weft->session.config;
    if (weft->working) return WEFT_OK;
    if (!is_launched(weft) && config->cluster.ranks != 1)
        return weft_fail(err, WEFT_E_DISAGREE,
                         "%s: $.cluster.ranks is %lld, and this program was started once: start it "
                         "with `weft launch -n %lld PROGRAM`, or set cluster.ranks to 1",
                         config->source, (long long)config->cluster.ranks,
                         (long long)config->cluster.ranks);
    enum weft_status status = weft_machine_open(&weft->meeting, config, false, &weft->machine, err);
    if (status != WEFT_OK) weft_machine_close(&weft->machine);
    weft->working = status == WEFT_OK;
    return status;
}

/* Measures everything, or only the parts that the config's profile lacks. */
static enum weft_status measure_profile(struct weft *weft, bool all, struct weft_error *err)
{
    struct weft_profile *profile = NULL;
    WEFT_TRY(open_machine(weft, err));
    const struct weft_cluster *cluster = &weft->session.config->cluster;
    const bool contends = cluster->contention.compute > 0 || cluster->contention.channel > 0;
    WEFT_TRY(weft_machine_measure(&weft->machine, weft->session.config,
                                  !all && cluster->profile != NULL && contends, 0, NULL, NULL,
                                  &profile, err));
    if (!all) WEFT_TRY(weft_session_complete(&weft->session, &profile, err));
    return weft_session_stage(&weft->session, profile, err);
}

enum weft_status weft_measure_machine(struct weft *weft, struct weft_error *error)
{
    struct weft_error unwanted, *err = clear_error(error, &unwanted);
    WEFT_TRY(need_config(weft, err));
    return measure_profile(weft, true, err);
}

static enum weft_status stage_session(struct weft *weft, struct weft_error *err)
{
    if (weft->session.stages.problem != NULL) return WEFT_OK;
    if (weft_session_must_measure(&weft->session)) {
        WEFT_TRY(weft_planner_need(weft->session.config->plan.planner, err));
        return measure_profile(weft, false, err);
    }
    return weft_session_stage(&weft->session, NULL, err);
}

/* Checks mappings only if these ranks will run the plan. */
static enum weft_status plan_to_run(struct weft *weft, struct weft_error *err)
{
    struct weft_session *session = &weft->session;
    WEFT_TRY(weft_session_plan(session, NULL, err));
    const bool runs = weft->meeting.ranks == session->config->cluster.ranks;
    return runs ? weft_session_fit_mappings(session, weft->meeting.ranks, true, err) : WEFT_OK;
}

/* Rank 0 plans for all: two ranks' clocks could give two plans. */
static enum weft_status make_plan(struct weft *weft, struct weft_error *err)
{
    struct weft_session *session = &weft->session;
    enum weft_status status = WEFT_OK;
    WEFT_TRY(stage_session(weft, err));
    session->solver = weft_solver_of_text(&weft->solver);
    if (weft->meeting.ranks == 1) return plan_to_run(weft, err);
    WEFT_TRY(open_machine(weft, err));
    struct weft_text text;
    weft_text_init(&text);
    if (weft->meeting.rank == 0) {
        status = plan_to_run(weft, err);
        if (status == WEFT_OK) weft_plan_write(session->plan, &text);
    }
    status = weft_machine_share(&weft->machine, &text, status, err);
    if (status == WEFT_OK && weft->meeting.rank != 0)
        status =
            weft_session_take(session, weft_text_chars(&text), text.length, "rank 0's plan", err);
    weft_text_finish(&text);
    return status;
}

enum weft_status weft_make_plan(struct weft *weft, struct weft_error *error)
{
    struct weft_error unwanted, *err = clear_error(error, &unwanted);
    WEFT_TRY(need_config(weft, err));
    enum weft_status status = make_plan(weft, err);
    if (status != WEFT_OK) weft_session_drop_plan(&weft->session);
    return status;
}

enum weft_status weft_take_plan(struct weft *weft, const char *json, struct weft_error *error)
{
    struct weft_error unwanted, *err = clear_error(error, &unwanted);
    WEFT_TRY(need_config(weft, err));
    WEFT_TRY(stage_session(weft, err));
    enum weft_status status = weft_session_take(&weft->session, json, strlen(json), "plan", err);
    if (status != WEFT_OK) weft_session_drop_plan(&weft->session);
    return status;
}

static const char *shown_text(struct weft *weft)
{
    return weft_text_ok(&weft->shown) ? weft_text_chars(&weft->shown) : NULL;
}

static void clear_shown(struct weft *weft)
{
    weft_text_finish(&weft->shown);
    weft_text_init(&weft->shown);
}

const char *weft_config_json(struct weft *weft)
{
    if (weft->session.config == NULL) return NULL;
    clear_shown(weft);
    weft_config_write(weft->session.config, &weft->shown);
    return shown_text(weft);
}

const char *weft_profile_json(struct weft *weft)
{
    if (weft->session.profile == NULL) return NULL;
    clear_shown(weft);
    weft_profile_write(weft->session.profile, &weft->shown);
    return shown_text(weft);
}

const char *weft_plan_json(struct weft *weft)
{
    if (weft->session.plan == NULL) return NULL;
    clear_shown(weft);
    weft_plan_write(weft->session.plan, &weft->shown);
    return shown_text(weft);
}

static void fill_result(const struct weft *weft, const struct weft_train_result *from,
                        struct weft_run_result *to)
{
    _Static_assert(sizeof to->fingerprint == WEFT_HASH_TEXT_BYTES, "a hash as text");
    const struct weft_tier_use *device = &from->tiers[WEFT_LOCATION_DEVICE];
    *to = (struct weft_run_result){
        .steps_done = from->steps_done,
        .saved_step = from->saved_step,
        .stopped = from->stopped,
        .first_loss = from->first_loss,
        .last_loss = from->last_loss,
        .step_ns = from->step_ns == WEFT_UNMEASURED ? 0 : from->step_ns,
        .predicted_step_ns = weft->session.plan->prediction.step_ns,
        .memory_bytes = device->measured_bytes == WEFT_UNMEASURED ? 0 : device->measured_bytes,
        .planned_bytes = device->planned_bytes,
    };
    weft_hash_show(from->fingerprint, to->fingerprint);
}

enum weft_status weft_run(struct weft *weft, const struct weft_run_settings *settings,
                          struct weft_run_result *out, struct weft_error *error)
{
    static const struct weft_run_settings usual;
    struct weft_error unwanted, *err = clear_error(error, &unwanted);
    struct weft_train_result result = {0};
    if (settings == NULL) settings = &usual;
    WEFT_TRY(need_config(weft, err));
    WEFT_TRY(weft_train_check(weft->session.config, err));
    WEFT_TRY(open_machine(weft, err));
    const struct weft_run_of of = {&weft->meeting, &weft->session, &weft->machine, &weft->stop};
    WEFT_TRY(weft_run_check(&of, settings, err));
    if (weft->session.plan == NULL) WEFT_TRY(make_plan(weft, err));
    enum weft_status status = weft_run_session(&of, settings, &result, err);
    if (status == WEFT_OK && out != NULL) fill_result(weft, &result, out);
    return status;
}

void weft_stop(struct weft *weft)
{
    atomic_store(&weft->stop, 1);
}
