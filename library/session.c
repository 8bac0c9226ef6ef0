#include "library/session.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "scheduler/schedule.h"

enum { PLAN_MOST_BYTES = 1 << 30 };

/* Gives the session the stages of another period. It has no plan then. */
static enum weft_status restage(struct weft_session *session, const struct weft_period_rule *rule,
                                struct weft_error *err)
{
    weft_session_drop_plan(session);
    weft_stages_finish(&session->stages);
    WEFT_TRY(
        weft_stages_create_variant(session->config, session->profile, rule, &session->stages, err));
    session->inputs = weft_lower_inputs_of(session->config, session->profile, &session->stages);
    return WEFT_OK;
}

enum weft_status weft_session_stage(struct weft_session *session, struct weft_profile *profile,
                                    struct weft_error *err)
{
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    session->profile = profile;
    if (!profile) WEFT_TRY(weft_profile_resolve(session->config, &session->profile, err));
    (void)weft_stages_variants(session->config, variants);
    return restage(session, &variants[0], err);
}

static enum weft_status check_program(const struct weft_session *session, struct weft_error *err)
{
    return weft_program_verify(session->program, session->stages.problem->memory_limit_bytes, err);
}

static bool same_period(const struct weft_period_rule *a, const struct weft_period_rule *b)
{
    return a->n_micro == b->n_micro && a->cadence == b->cadence && a->rotated == b->rotated &&
           a->update_ahead == b->update_ahead;
}

/* The best plan so far, with the stages that its program was made from. */
struct best {
    struct weft_stages stages;
    struct weft_plan *plan;
    struct weft_program *program;
    int64_t bound_ns; /* no plan of the variants so far is faster */
};

/* Keeps the session's plan when it is the fastest yet; the session is left without. */
static void keep_faster(struct weft_session *session, struct best *best)
{
    if (best->plan == NULL || session->plan->prediction.step_ns < best->plan->prediction.step_ns) {
        struct best old = *best;
        best->stages = session->stages;
        best->plan = session->plan;
        best->program = session->program;
        session->stages = old.stages;
        session->plan = old.plan;
        session->program = old.program;
    }
    weft_session_drop_plan(session);
}

/* Of a problem that the planner finds no plan for: none computes for less, and where it is certain
 * that there is none, none is faster than anything. */
static int64_t bound_without_plan(const struct weft_problem *problem)
{
    if (weft_is_hopeless(problem)) return INT64_MAX;
    int64_t ns = problem->agree_ns;
    for (int32_t s = 0; s < problem->n_slots; s++)
        if (problem->slots[s].kind != WEFT_SLOT_UPDATE) ns += problem->slot_ns[s];
    for (int32_t u = 0; u < problem->n_units; u++) {
        const struct weft_problem_unit *unit = &problem->units[u];
        int64_t least = INT64_MAX;
        for (int p = 0; p < WEFT_POLICY_COUNT; p++)
            if ((unit->policies >> p & 1u) != 0 && unit->update_ns[p] < least)
                least = unit->update_ns[p];
        if (unit->update_slot >= 0) ns += least;
    }
    return ns;
}

/* Plans every period that the config leaves open and keeps the fastest that fits. Without any, what
 * is said is said of the first, which holds least. */
static enum weft_status plan_variants(struct weft_session *session,
                                      const struct weft_schedule_options *options,
                                      const struct weft_period_rule *variants, int32_t n,
                                      struct weft_error *err)
{
    struct best best = {.bound_ns = INT64_MAX};
    struct weft_error first = {0};
    enum weft_status status = WEFT_OK;
    for (int32_t v = 0; v < n; v++) {
        struct weft_error refusal = {0};
        status = restage(session, &variants[v], err);
        if (status != WEFT_OK) break;
        status = weft_schedule(session->stages.problem, &session->inputs, options, &session->plan,
                               &session->program, &refusal);
        if (status != WEFT_OK && status != WEFT_E_INFEASIBLE) {
            (void)weft_fail(err, status, "%s", refusal.text);
            break;
        }
        int64_t bound_ns = status == WEFT_OK ? session->plan->bound_ns
                                             : bound_without_plan(session->stages.problem);
        if (bound_ns < best.bound_ns) best.bound_ns = bound_ns;
        if (v == 0) first = refusal;
        if (status == WEFT_OK) keep_faster(session, &best);
        status = WEFT_OK;
    }
    if (best.plan != NULL) {
        weft_stages_finish(&session->stages);
        session->stages = best.stages;
        session->plan = best.plan;
        session->program = best.program;
        session->inputs = weft_lower_inputs_of(session->config, session->profile, &session->stages);
        session->plan->n_variants = n;
        session->plan->variants_bound_ns = best.bound_ns;
    }
    if (status != WEFT_OK || best.plan != NULL) return status;
    return weft_fail(err, WEFT_E_INFEASIBLE, "%s", first.text);
}

enum weft_status weft_session_start(struct weft_session *session, const char *path,
                                    struct weft_error *err)
{
    char *bytes = NULL;
    size_t length = 0;
    WEFT_TRY(weft_file_read(path, PLAN_MOST_BYTES, &bytes, &length, err));
    enum weft_status status = weft_plan_parse(bytes, length, path, &session->start, err);
    free(bytes);
    WEFT_TRY(status);
    int32_t theirs = session->start->problem->n_units, ours = session->stages.problem->n_units;
    if (theirs == ours) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: a plan of %d units to start from; this model has %d: give one of the same "
        "model and blocks",
        path, theirs, ours);
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
        .solver = session->solver,
        .now_ns = weft_clock_now_ns,
    };
    const struct weft_plan *starts[] = {session->start};
    if (session->start) {
        options.starts = starts;
        options.n_starts = 1;
    }
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    int32_t n = weft_stages_variants(session->config, variants);
    weft_session_drop_plan(session);
    if (n > 1) {
        options.time_limit_ns /= n;
        WEFT_TRY(plan_variants(session, &options, variants, n, err));
    } else {
        WEFT_TRY(weft_schedule(session->stages.problem, &session->inputs, &options, &session->plan,
                               &session->program, err));
    }
    return check_program(session, err);
}

/* A plan names its period, which must be one of those that the config leaves open. */
static enum weft_status take_period(struct weft_session *session,
                                    const struct weft_period_rule *rule, struct weft_error *err)
{
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    int32_t n = weft_stages_variants(session->config, variants);
    for (int32_t v = 0; v < n; v++) {
        if (!same_period(&variants[v], rule)) continue;
        if (same_period(&session->stages.period->rule, rule)) return WEFT_OK;
        struct weft_plan *plan = session->plan;
        session->plan = NULL;
        enum weft_status status = restage(session, rule, err);
        session->plan = plan;
        return status;
    }
    return WEFT_OK; /* the comparison of problems says what differs */
}

enum weft_status weft_session_take(struct weft_session *session, const char *bytes, size_t length,
                                   const char *source, struct weft_error *err)
{
    weft_session_drop_plan(session);
    WEFT_TRY(weft_plan_parse(bytes, length, source, &session->plan, err));
    WEFT_TRY(take_period(session, &session->plan->problem->period, err));
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
    weft_plan_destroy(session->start);
    weft_stages_finish(&session->stages);
    weft_profile_destroy(session->profile);
    weft_config_destroy(session->config);
    *session = (struct weft_session){0};
}
