#include "library/session.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/units.h"
#include "problem/stages.h"
#include "program/predict.h"
#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "scheduler/tree/proof.h"

enum { PLAN_MOST_BYTES = 1 << 30 };

enum weft_status weft_session_stage_period(struct weft_session *session,
                                           const struct weft_period_rule *rule,
                                           struct weft_error *err)
{
    weft_session_drop_plan(session);
    weft_stages_finish(&session->stages);
    WEFT_TRY(
        weft_stages_create_variant(session->config, session->profile, rule, &session->stages, err));
    session->inputs = weft_lower_inputs_of(session->config, session->profile, &session->stages);
    return WEFT_OK;
}

bool weft_session_must_measure(const struct weft_session *session)
{
    const struct weft_cluster *cluster = &session->config->cluster;
    if (cluster->profile != NULL) return weft_profile_lacks_network(session->config);
    return cluster->device.flops.f32 == 0 && cluster->device.flops.bf16 == 0 &&
           cluster->device.flops.f16 == 0;
}

enum weft_status weft_session_complete(const struct weft_session *session,
                                       struct weft_profile **profile, struct weft_error *err)
{
    struct weft_profile *measured = *profile;
    if (session->config->cluster.profile == NULL) return WEFT_OK;
    *profile = NULL;
    enum weft_status status = weft_profile_with_network(session->config, measured, profile, err);
    weft_profile_destroy(measured);
    return status;
}

static void drop_stages(struct weft_session *session)
{
    weft_session_drop_plan(session);
    weft_stages_finish(&session->stages);
    weft_profile_destroy(session->profile);
    session->profile = NULL;
}

static enum weft_status stage_first_period(struct weft_session *session, struct weft_error *err)
{
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    (void)weft_stages_variants(session->config, variants);
    return weft_session_stage_period(session, &variants[0], err);
}

enum weft_status weft_session_stage(struct weft_session *session, struct weft_profile *profile,
                                    struct weft_error *err)
{
    drop_stages(session);
    /* Resolves a measured profile like its file, so that a plan fits both. */
    enum weft_status status =
        profile ? weft_profile_resolve_measured(session->config, profile, &session->profile, err)
                : weft_profile_resolve(session->config, &session->profile, err);
    weft_profile_destroy(profile);
    return status == WEFT_OK ? stage_first_period(session, err) : status;
}

enum weft_status weft_session_stage_for_memory(struct weft_session *session,
                                               struct weft_text *missing, struct weft_error *err)
{
    drop_stages(session);
    WEFT_TRY(weft_profile_resolve_for_memory(session->config, &session->profile, missing, err));
    return stage_first_period(session, err);
}

static enum weft_status check_program(const struct weft_session *session, struct weft_error *err)
{
    return weft_program_verify(session->program, session->stages.problem->tiers[0].limit_bytes,
                               err);
}

/* A plan with its stages and its program, which move together. */
struct staged {
    struct weft_stages stages;
    struct weft_plan *plan;
    struct weft_program *program;
};

/* Exchanges the session's staged plan with another one. */
static void swap_staged(struct weft_session *session, struct staged *other)
{
    const struct staged own = {session->stages, session->plan, session->program};
    session->stages = other->stages;
    session->plan = other->plan;
    session->program = other->program;
    *other = own;
}

static void drop_staged(struct staged *staged)
{
    weft_program_destroy(staged->program);
    weft_plan_destroy(staged->plan);
    weft_stages_finish(&staged->stages);
}

/* The best plan so far, and the bounds of the other periods. */
struct best {
    struct staged staged;
    struct weft_pool pool; /* of the others' certificates */
    int32_t n_others;
    struct weft_plan_variant others[WEFT_MOST_VARIANTS];
};

/* Stores the bound of the session's period, and drops its plan and stages. */
static enum weft_status put_aside(struct weft_session *session, struct best *best,
                                  struct weft_error *err)
{
    if (session->draft) return WEFT_OK; /* the next period's stages replace them */
    struct weft_plan_variant *other = &best->others[best->n_others];
    struct weft_outcome trivial = {0};
    const struct weft_certificate *certificate = &trivial.certificate;
    if (session->plan != NULL) {
        other->bound_ns = session->plan->bound_ns;
        certificate = &session->plan->certificate;
    } else {
        WEFT_TRY(weft_prove(session->stages.problem, &best->pool, &trivial, err));
        other->bound_ns = trivial.bound_ns;
    }
    WEFT_TRY(weft_certificate_copy(certificate, session->stages.problem, &best->pool,
                                   &other->certificate, err));
    weft_session_drop_plan(session);
    other->problem = session->stages.problem;
    session->stages.problem = NULL;
    best->n_others++;
    return WEFT_OK;
}

/* The faster plan is preferred. Of two equally fast plans, the one without offloaded state is, then
 * the one with whole copies. */
static bool is_preferred(const struct weft_plan *plan, const struct weft_plan *to)
{
    const struct weft_period_rule *rule = &plan->problem->period, *other = &to->problem->period;
    if (plan->prediction.step_ns != to->prediction.step_ns)
        return plan->prediction.step_ns < to->prediction.step_ns;
    if (rule->away != other->away) return !rule->away;
    return rule->whole_copies && !other->whole_copies;
}

/* Keeps the session's plan if it is the fastest so far, and sets the slower one aside. */
static enum weft_status keep_faster(struct weft_session *session, struct best *best,
                                    struct weft_error *err)
{
    const struct weft_plan *kept = best->staged.plan;
    const bool faster =
        session->plan != NULL && (kept == NULL || is_preferred(session->plan, kept));
    if (faster) swap_staged(session, &best->staged);
    return session->stages.problem == NULL ? WEFT_OK : put_aside(session, best, err);
}

/* Moves the bounds of the other periods into the best plan. */
static enum weft_status hand_over(struct best *best, struct weft_plan *plan, struct weft_error *err)
{
    plan->others = weft_pool_array(&plan->pool, (size_t)best->n_others, sizeof *plan->others);
    if (plan->others == NULL) return weft_fail_memory(err, "a plan");
    for (; plan->n_others < best->n_others; plan->n_others++) {
        struct weft_plan_variant *from = &best->others[plan->n_others];
        struct weft_plan_variant *to = &plan->others[plan->n_others];
        WEFT_TRY(weft_certificate_copy(&from->certificate, from->problem, &plan->pool,
                                       &to->certificate, err));
        to->bound_ns = from->bound_ns;
        to->problem = from->problem;
        from->problem = NULL;
    }
    return WEFT_OK;
}

static void drop_others(struct best *best)
{
    for (int32_t i = 0; i < best->n_others; i++)
        weft_problem_destroy(best->others[i].problem);
    weft_pool_finish(&best->pool);
}

/* Plans one period; *refusal tells why it has no plan. */
static enum weft_status plan_variant(struct weft_session *session,
                                     const struct weft_schedule_options *options,
                                     const struct weft_period_rule *rule, struct best *best,
                                     struct weft_error *refusal, struct weft_error *err)
{
    WEFT_TRY(weft_session_stage_period(session, rule, err));
    /* After the alarm the best plan so far is enough. */
    const struct weft_work *work = options->budget.work;
    if (work && work->rang && best->staged.plan) return keep_faster(session, best, err);
    enum weft_status status = weft_schedule(session->stages.problem, &session->inputs, options,
                                            &session->plan, &session->program, refusal);
    /* A plan that does not fit or apply here may do so in another period. */
    if (status != WEFT_OK && status != WEFT_E_INFEASIBLE && status != WEFT_E_DATA)
        return weft_fail(err, status, "%s", refusal->text);
    return keep_faster(session, best, err);
}

/* Finds the period with the least device memory, and leaves the session with its stages. */
static enum weft_status find_leanest(struct weft_session *session,
                                     const struct weft_period_rule *variants, int32_t n,
                                     int32_t *leanest, struct weft_error *err)
{
    int64_t least = INT64_MAX;
    *leanest = 0;
    for (int32_t v = 0; v < n; v++) {
        WEFT_TRY(weft_session_stage_period(session, &variants[v], err));
        int64_t bytes = weft_least_limit(session->stages.problem, 0, NULL);
        if (bytes < 0) return weft_fail_memory(err, "the least limit");
        if (bytes >= least) continue;
        least = bytes;
        *leanest = v;
    }
    return *leanest == n - 1 ? WEFT_OK
                             : weft_session_stage_period(session, &variants[*leanest], err);
}

/* The least device limit of a period if layers may recompute; 0 if none can, or if that cannot be
 * told. Memory needs no times, so unknown ones are 0. */
static int64_t least_recomputed(const struct weft_session *session,
                                const struct weft_period_rule *rule)
{
    struct weft_config config = *session->config;
    struct weft_profile profile = *session->profile;
    struct weft_pool pool = {0};
    struct weft_stages stages = {0};
    struct weft_error ignored = {0};
    int64_t least = 0;
    uint8_t *levels = weft_pool_array(&pool, (size_t)config.model->n_layers, sizeof *levels);
    profile.layers = weft_pool_array(&pool, (size_t)profile.n_layers, sizeof *profile.layers);
    if (levels != NULL && profile.layers != NULL) {
        weft_config_restorable(&config, levels);
        config.recomputes = levels;
        for (int32_t k = 0; k < profile.n_layers; k++) {
            profile.layers[k] = session->profile->layers[k];
            profile.layers[k].recomputes = (1 << WEFT_RECOMPUTE_COUNT) - 1;
        }
        if (weft_stages_create_variant(&config, &profile, rule, &stages, &ignored) == WEFT_OK)
            least = weft_least_limit(stages.problem, 0, NULL);
        weft_stages_finish(&stages);
    }
    weft_pool_finish(&pool);
    return least > 0 && least < INT64_MAX ? least : 0;
}

/* Tells whether recomputation would lower the least limit of a period without it. */
static void add_recomputation(const struct weft_session *session,
                              const struct weft_period_rule *rule, char *out, size_t capacity)
{
    char shown[WEFT_UNITS_TEXT_BYTES];
    const int64_t plain = weft_least_limit(session->stages.problem, 0, NULL);
    const int64_t least = session->config->recomputes == NULL ? least_recomputed(session, rule) : 0;
    out[0] = '\0';
    if (least == 0 || plain <= least) return;
    snprintf(out, capacity,
             " With plan.recompute=auto, layers may recompute what they save for backward: the "
             "least limit is then %s (%lld bytes) without pages.",
             weft_units_show_bytes(least, shown), (long long)least);
}

/* The error if no period has a plan. It is the leanest period's, unless the planner does not apply
 * there. It is the first period's if the planner applies to none. */
static enum weft_status refuse_all(struct weft_session *session,
                                   const struct weft_period_rule *variants,
                                   const struct weft_error *refusals, int32_t n,
                                   struct weft_error *err)
{
    int32_t leanest, told;
    WEFT_TRY(find_leanest(session, variants, n, &leanest, err));
    told = leanest;
    for (int32_t v = 0; v < n && refusals[told].status != WEFT_E_INFEASIBLE; v++)
        if (refusals[v].status == WEFT_E_INFEASIBLE) told = v;
    if (refusals[told].status != WEFT_E_INFEASIBLE) told = 0;
    /* If any period may offload state, the first one may. */
    const bool more = variants[0].away && !variants[told].away;
    char recomputed[256] = "";
    if (refusals[told].status == WEFT_E_INFEASIBLE)
        add_recomputation(session, &variants[leanest], recomputed, sizeof recomputed);
    return weft_fail(err, refusals[told].status, "%s%s%s%s", refusals[told].text,
                     more ? " With state offloaded: " : "", more ? refusals[0].text : "",
                     recomputed);
}

/* Whether the problem copies state or saved activations in several blocks, by itself or under the
 * strategies of a plan of it. */
static bool copies_in_blocks(const struct weft_problem *problem, const struct weft_plan *plan)
{
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_item *item = &problem->items[i].item;
        if (item->n_blocks > 1 && (weft_item_moves_state(item) || weft_item_moves_saved(item)) &&
            (plan == NULL || weft_item_active(item, plan->strategies)))
            return true;
    }
    return false;
}

/* Finds the periods with plans that can fit, by rows, and counts them. *in_blocks: one of them
 * copies in several blocks. */
static enum weft_status find_feasible(struct weft_session *session,
                                      const struct weft_period_rule *variants, int32_t n,
                                      bool *feasible, int32_t *n_feasible, bool *in_blocks,
                                      struct weft_error *err)
{
    *n_feasible = 0;
    *in_blocks = false;
    for (int32_t v = 0; v < n; v++) {
        WEFT_TRY(weft_session_stage_period(session, &variants[v], err));
        const struct weft_problem *problem = session->stages.problem;
        int64_t bytes = weft_least_limit(problem, 0, NULL);
        if (bytes < 0) return weft_fail_memory(err, "the least limit");
        feasible[v] = bytes <= problem->tiers[0].limit_bytes;
        *n_feasible += feasible[v];
        *in_blocks |= feasible[v] && copies_in_blocks(problem, NULL);
    }
    return WEFT_OK;
}

/* Plans the best plan's period with whole copies, if that plan copies in several blocks. Blocks
 * share a lane better, and take longer in sum, so either may be faster. */
static enum weft_status try_whole_copies(struct weft_session *session,
                                         const struct weft_schedule_options *options,
                                         struct best *best, struct weft_error *err)
{
    const struct weft_plan *plan = best->staged.plan;
    struct weft_schedule_options own = *options;
    struct weft_error refusal = {0};
    if (plan == NULL || !copies_in_blocks(plan->problem, plan)) return WEFT_OK;
    struct weft_period_rule rule = plan->problem->period;
    rule.whole_copies = true;
    WEFT_TRY(weft_session_stage_period(session, &rule, err));
    const struct weft_problem *problem = session->stages.problem;
    const int64_t bytes = weft_least_limit(problem, 0, NULL);
    if (bytes < 0) return weft_fail_memory(err, "the least limit");
    if (bytes > problem->tiers[0].limit_bytes) return WEFT_OK;
    own.rival_ns = plan->prediction.step_ns;
    return plan_variant(session, &own, &rule, best, &refusal, err);
}

/* Progress shows one period of several, with its own best and bound. A plan within a larger task
 * does not show this. */
static void watch_period(struct weft_watch *watch, int32_t period, int32_t n, int64_t begun_ns)
{
    if (watch == NULL) return;
    weft_watch_part(watch, "plan", "period", period, n, begun_ns);
    weft_watch_plan(watch, 0, 0, watch->share);
}

/* Whether plans may copy in several blocks or whole. A draft copies in blocks. */
static bool may_copy_whole(const struct weft_session *session)
{
    const struct weft_config *config = session->config;
    return !session->draft && config->plan.offload.block_bytes == 0 &&
           (weft_config_moves_state(config) || weft_config_moves_activations(config));
}

/* Plans every open period and keeps the fastest plan that fits. Periods that can fit share the
 * budget, and a later one gets the rest of an earlier part. Whole copies count as one more. */
static enum weft_status plan_variants(struct weft_session *session,
                                      const struct weft_schedule_options *options,
                                      const struct weft_period_rule *variants, int32_t n,
                                      struct weft_error *err)
{
    struct best best = {0};
    struct weft_error refusals[WEFT_MOST_VARIANTS] = {{0}};
    bool feasible[WEFT_MOST_VARIANTS], in_blocks = false;
    int32_t n_left = 0;
    enum weft_status status =
        find_feasible(session, variants, n, feasible, &n_left, &in_blocks, err);
    const bool tries_whole = may_copy_whole(session) && in_blocks;
    n_left += tries_whole;
    const int64_t left = weft_budget_left(options->budget);
    const int64_t greedy_units = left / WEFT_GREEDY_PART / (n_left > 1 ? n_left : 1) + 1;
    struct weft_watch *watch = session->watch;
    const bool shows_periods = watch != NULL && watch->parts == 0;
    const int64_t begun_ns = shows_periods ? watch->begun_ns : 0;
    for (int32_t v = 0; v < n && status == WEFT_OK; v++) {
        struct weft_schedule_options own = *options;
        if (shows_periods) watch_period(watch, v, n + tries_whole, begun_ns);
        own.budget = weft_budget_part(options->budget, 1.0 / (n_left > 1 ? n_left : 1));
        own.greedy_units = greedy_units; /* independent of earlier periods' use */
        n_left -= feasible[v];
        status = plan_variant(session, &own, &variants[v], &best, &refusals[v], err);
    }
    if (tries_whole && shows_periods) watch_period(watch, n, n + 1, begun_ns);
    if (tries_whole && status == WEFT_OK) status = try_whole_copies(session, options, &best, err);
    if (shows_periods) watch_period(watch, 0, 0, begun_ns);
    const bool found = best.staged.plan != NULL;
    if (found) {
        swap_staged(session, &best.staged);
        drop_staged(&best.staged);
        session->inputs = weft_lower_inputs_of(session->config, session->profile, &session->stages);
        if (status == WEFT_OK) status = hand_over(&best, session->plan, err);
    }
    drop_others(&best);
    if (status != WEFT_OK || found) return status;
    return refuse_all(session, variants, refusals, n, err);
}

/* Plans the only open period. */
static enum weft_status plan_only(struct weft_session *session,
                                  const struct weft_schedule_options *options,
                                  const struct weft_period_rule *rule, struct weft_error *err)
{
    struct weft_error refusal = {0};
    char recomputed[256] = "";
    const enum weft_status status =
        weft_schedule(session->stages.problem, &session->inputs, options, &session->plan,
                      &session->program, &refusal);
    if (status == WEFT_OK) return status;
    if (status == WEFT_E_INFEASIBLE)
        add_recomputation(session, rule, recomputed, sizeof recomputed);
    return weft_fail(err, status, "%s%s", refusal.text, recomputed);
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
    int32_t theirs = session->start->problem->n_decisions,
            ours = session->stages.problem->n_decisions;
    if (theirs == ours) return WEFT_OK;
    return weft_fail(
        err, WEFT_E_DATA,
        "%s: a plan of %d decisions to start from; this model has %d: give one of the same "
        "model, blocks and tiers",
        path, theirs, ours);
}

void weft_session_tell_disturbance(const struct weft_work *work, int64_t time_limit_ns)
{
    char time[WEFT_UNITS_TEXT_BYTES];
    if (work->rang)
        weft_log(WEFT_LOG_WARNING,
                 "the time limit of %s ended the search; with the same work limit another run may "
                 "differ: give more time, or less work",
                 weft_units_show_ns(time_limit_ns, time));
    else if (work->disturbed)
        weft_log(WEFT_LOG_WARNING, "the solver was lost while planning; with the same work limit "
                                   "another run may differ");
}

enum weft_status weft_session_plan(struct weft_session *session, const char *planner,
                                   struct weft_error *err)
{
    const struct weft_plan_options *wanted = &session->config->plan;
    const int64_t time_ns = wanted->time_limit_ns;
    const int64_t units = weft_work_within((int64_t)wanted->work_limit, time_ns);
    struct weft_work work = weft_work_begin(weft_clock_now_ns, time_ns);
    weft_work_be_watched(&work, session->watch, session->draft ? 0 : units);
    struct weft_schedule_options options = {
        .planner = planner ? planner : wanted->planner,
        .policy_limit_bytes = wanted->policy_limit_bytes,
        .seed = (uint64_t)wanted->seed,
        .budget = weft_budget_of(&work, units),
        .gap = wanted->gap,
        .draft = session->draft,
        .solver = session->solver,
    };
    const struct weft_plan *starts[] = {session->start};
    if (session->start) {
        options.starts = starts;
        options.n_starts = 1;
    }
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    int32_t n = weft_stages_variants(session->config, variants);
    weft_session_drop_plan(session);
    weft_watch_begin(session->watch, "plan");
    enum weft_status status = WEFT_OK;
    if (!weft_period_rule_same(&session->stages.period->rule, &variants[0]))
        status = weft_session_stage_period(session, &variants[0], err);
    if (status == WEFT_OK)
        status =
            n > 1 || (may_copy_whole(session) && copies_in_blocks(session->stages.problem, NULL))
                ? plan_variants(session, &options, variants, n, err)
                : plan_only(session, &options, &variants[0], err);
    weft_watch_end(session->watch);
    weft_session_tell_disturbance(&work, time_ns);
    weft_log(WEFT_LOG_DEBUG, "planning took %.3f G units of work", (double)work.spent / 1e9);
    return status == WEFT_OK ? check_program(session, err) : status;
}

/* "24GiB", "150000001B (143 MiB)": as a flag takes it, and readable. */
static const char *show_limit(int64_t bytes, char exact[WEFT_UNITS_TEXT_BYTES],
                              char out[2 * WEFT_UNITS_TEXT_BYTES])
{
    char shown[WEFT_UNITS_TEXT_BYTES];
    weft_units_write_bytes_shortly(bytes, exact);
    if (bytes % 1024 == 0)
        snprintf(out, 2 * WEFT_UNITS_TEXT_BYTES, "%s", exact);
    else
        snprintf(out, 2 * WEFT_UNITS_TEXT_BYTES, "%s (%s)", exact,
                 weft_units_show_bytes(bytes, shown));
    return out;
}

static enum weft_status fail_limit(const struct weft_session *session, const char *source,
                                   int64_t theirs, struct weft_error *err)
{
    char ours[WEFT_UNITS_TEXT_BYTES], exact[WEFT_UNITS_TEXT_BYTES] = "";
    char shown[2 * WEFT_UNITS_TEXT_BYTES], limit[2 * WEFT_UNITS_TEXT_BYTES] = "none";
    const struct weft_config *config = session->config;
    show_limit(config->cluster.memory_limit_bytes, ours, shown);
    if (theirs > 0) show_limit(theirs, exact, limit);
    return weft_fail(err, WEFT_E_DATA,
                     "%s: was made for a memory limit of %s, and %s was given: leave the flag "
                     "out%s%s, or plan again (weft plan %s --memory-limit %s -o %s)",
                     source, limit, shown, theirs > 0 ? " or give --memory-limit " : "", exact,
                     config->source, ours, source);
}

/* A plan's limit counts unless a flag contradicts it. The config's limit is only the default for
 * new plans. */
static enum weft_status take_limit(struct weft_session *session, const char *source, bool *changed,
                                   struct weft_error *err)
{
    struct weft_config *config = session->config;
    int64_t ours = config->cluster.memory_limit_bytes;
    int64_t theirs = session->plan->problem->tiers[0].limit_bytes;
    char exact[WEFT_UNITS_TEXT_BYTES], other[WEFT_UNITS_TEXT_BYTES];
    char limit[2 * WEFT_UNITS_TEXT_BYTES] = "none", said[2 * WEFT_UNITS_TEXT_BYTES] = "none";
    if (theirs == INT64_MAX) theirs = 0;
    *changed = theirs != ours;
    if (theirs == ours) return WEFT_OK;
    if (config->limit_given) return fail_limit(session, source, theirs, err);
    if (theirs > 0) show_limit(theirs, exact, limit);
    if (ours > 0) show_limit(ours, other, said);
    weft_log(WEFT_LOG_INFO, "%s: was made for a memory limit of %s, which counts (%s says %s)",
             source, limit, config->source, said);
    return weft_config_set_memory_limit(config, theirs, err);
}

/* Takes the plan's limit and its period, which the config must leave open. */
static enum weft_status take_terms(struct weft_session *session, const char *source,
                                   struct weft_error *err)
{
    struct weft_plan *plan = session->plan;
    struct weft_period_rule rule = session->stages.period->rule;
    bool changed;
    WEFT_TRY(take_limit(session, source, &changed, err));
    /* If it is not open, comparing the problems gives the error. */
    if (weft_stages_is_open(session->config, &plan->problem->period)) rule = plan->problem->period;
    if (!changed && weft_period_rule_same(&session->stages.period->rule, &rule)) return WEFT_OK;
    session->plan = NULL;
    enum weft_status status = weft_session_stage_period(session, &rule, err);
    session->plan = plan;
    return status;
}

enum weft_status weft_session_take(struct weft_session *session, const char *bytes, size_t length,
                                   const char *source, struct weft_error *err)
{
    weft_session_drop_plan(session);
    WEFT_TRY(weft_plan_parse(bytes, length, source, &session->plan, err));
    WEFT_TRY(take_terms(session, source, err));
    WEFT_TRY(weft_plan_matches(session->plan->problem, session->stages.problem, err));
    WEFT_TRY(weft_plan_check_rows(session->plan, source, err));
    WEFT_TRY(weft_plan_check_prediction(session->plan, err));
    WEFT_TRY(weft_program_lower(session->plan, &session->inputs, &session->program, err));
    WEFT_TRY(weft_program_check_prediction(session->program, session->plan, err));
    return check_program(session, err);
}

enum weft_status weft_session_check_others(const struct weft_session *session,
                                           struct weft_error *err)
{
    for (int32_t i = 0; i < session->plan->n_others; i++) {
        const struct weft_problem *planned = session->plan->others[i].problem;
        struct weft_stages stages = {0};
        if (!weft_stages_is_open(session->config, &planned->period))
            return weft_fail(
                err, WEFT_E_DATA,
                "number %d of the plan's other_periods is none that this config leaves "
                "open: plan again",
                i);
        WEFT_TRY(weft_stages_create_variant(session->config, session->profile, &planned->period,
                                            &stages, err));
        enum weft_status status = weft_plan_matches(planned, stages.problem, err);
        weft_stages_finish(&stages);
        WEFT_TRY(status);
    }
    return WEFT_OK;
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
