#include "cli/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/solver.h"
#include "scheduler/schedule.h"

enum { PLAN_MOST_BYTES = 1 << 30 };

enum weft_status weft_session_read(const struct weft_cli *cli, const char *path,
                                   struct weft_session *session, struct weft_error *err)
{
    const char *overrides[WEFT_CLI_OVERRIDES + 1];
    int32_t n = 0;
    for (; n < cli->n_overrides; n++)
        overrides[n] = cli->overrides[n];
    char ranks[64];
    if (cli->ranks > 0) {
        snprintf(ranks, sizeof ranks, "cluster.ranks=%lld", (long long)cli->ranks);
        overrides[n++] = ranks;
    }
    return weft_config_read(path, overrides, n, &session->config, err);
}

enum weft_status weft_session_stage(struct weft_session *session, struct weft_profile *profile,
                                    struct weft_error *err)
{
    session->profile = profile;
    if (!profile) WEFT_TRY(weft_profile_resolve(session->config, &session->profile, err));
    WEFT_TRY(weft_stages_create(session->config, session->profile, &session->stages, err));
    session->inputs = weft_lower_inputs_of(session->config, session->profile, &session->stages);
    return WEFT_OK;
}

static enum weft_status check_program(const struct weft_session *session, struct weft_error *err)
{
    return weft_program_verify(session->program, session->stages.problem->memory_limit_bytes, err);
}

enum weft_status weft_session_plan(struct weft_session *session, const char *planner,
                                   struct weft_error *err)
{
    const struct weft_plan_options *wanted = &session->config->plan;
    struct weft_schedule_options options = {
        .planner = planner ? planner : wanted->planner,
        .policy_limit_bytes = wanted->policy_limit_bytes,
        .seed = (uint64_t)wanted->seed,
        .time_limit_ns = wanted->time_limit_ns,
        .gap = wanted->gap,
        .solver = weft_solver_process(NULL),
        .now_ns = weft_clock_now_ns,
    };
    weft_session_drop_plan(session);
    WEFT_TRY(weft_schedule(session->stages.problem, &session->inputs, &options, &session->plan,
                           &session->program, err));
    return check_program(session, err);
}

enum weft_status weft_session_take(struct weft_session *session, const char *bytes, size_t length,
                                   const char *source, struct weft_error *err)
{
    weft_session_drop_plan(session);
    WEFT_TRY(weft_plan_parse(bytes, length, source, &session->plan, err));
    WEFT_TRY(weft_plan_matches(session->plan, session->stages.problem, err));
    WEFT_TRY(weft_plan_check_prediction(session->plan, err));
    WEFT_TRY(weft_program_lower(session->plan, &session->inputs, 0, &session->program, err));
    WEFT_TRY(weft_program_check_prediction(session->program, session->plan, err));
    return check_program(session, err);
}

enum weft_status weft_session_load(struct weft_session *session, const char *path,
                                   struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, PLAN_MOST_BYTES, &bytes, &length, err));
    enum weft_status status = weft_session_take(session, bytes, length, path, err);
    free(bytes);
    return status;
}

void weft_session_drop_plan(struct weft_session *session)
{
    weft_program_destroy(session->program);
    weft_plan_destroy(session->plan);
    session->program = NULL;
    session->plan = NULL;
}

void weft_session_close(struct weft_session *session)
{
    weft_session_drop_plan(session);
    weft_stages_finish(&session->stages);
    weft_profile_destroy(session->profile);
    weft_config_destroy(session->config);
    *session = (struct weft_session){0};
}
