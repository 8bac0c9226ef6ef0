/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/study/least.h"
#include "cli/study/sweep.h"
#include "problem/stages.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"

enum { TRIALS = 25, MOST_PASSES = 8 };
/* A limit helps if it shortens the step by more than this share. */
static const double MATTERS = 5e-4;

/* Time and bytes of a drafted plan; step_ns is INT64_MAX if there is none. */
struct draft {
    int64_t step_ns, total_bytes, host_bytes;
};

enum weft_status weft_study_stage(struct weft_study *study, struct weft_error *err)
{
    const struct weft_session *session = &study->session;
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    const int32_t n = weft_variants_list(session->config, variants);
    for (int32_t *v = &study->n_periods; *v < n; ++*v) {
        struct weft_stages *stages = &study->stages[*v];
        WEFT_TRY(weft_stages_create_variant(session->config, session->profile, &variants[*v],
                                            stages, err));
        study->inputs[*v] = weft_lower_inputs_of(session->config, session->profile, stages);
    }
    return WEFT_OK;
}

/* Returns the index of a tier; 0, the device's, if the problem has none of this kind. */
static int32_t find_tier(const struct weft_problem *problem, enum weft_location location)
{
    int32_t tier = problem->n_tiers - 1;
    while (tier > 0 && problem->tiers[tier].kind != location)
        tier--;
    return tier;
}

static void limit_tier(struct weft_study *study, enum weft_location location, int64_t limit_bytes)
{
    for (int32_t v = 0; v < study->n_periods; v++) {
        struct weft_problem *problem = study->stages[v].problem;
        const int32_t tier = find_tier(problem, location);
        if (problem->tiers[tier].kind == location) problem->tiers[tier].limit_bytes = limit_bytes;
    }
}

/* Finds the least bytes of a tier with which a plan of any period fits the limits of the others,
 * and that period; INT64_MAX and 0 if none fits. */
static enum weft_status find_leanest(const struct weft_study *study, enum weft_location location,
                                     int32_t *period, int64_t *least_bytes, struct weft_error *err)
{
    *period = 0;
    *least_bytes = INT64_MAX;
    for (int32_t v = 0; v < study->n_periods; v++) {
        const struct weft_problem *problem = study->stages[v].problem;
        const int32_t tier = find_tier(problem, location);
        int64_t bytes = weft_least_limit(problem, tier, NULL);
        if (bytes < 0) return weft_fail_memory(err, "the least limit");
        if (problem->tiers[tier].kind != location) /* it needs none of it, if it fits the device */
            bytes = bytes <= problem->tiers[0].limit_bytes ? 0 : INT64_MAX;
        if (bytes >= *least_bytes) continue;
        *least_bytes = bytes;
        *period = v;
    }
    return WEFT_OK;
}

/* Drafts a plan of one period within a device limit, with or without pages. */
static enum weft_status draft_period(struct weft_study *study, int32_t period, const char *planner,
                                     bool paged, int64_t limit_bytes, struct draft *out,
                                     struct weft_error *err)
{
    struct weft_work work = {0};
    struct weft_schedule_options options = {
        .planner = planner, .draft = true, .budget = weft_budget_unlimited(&work)};
    struct weft_problem *problem = study->stages[period].problem;
    struct weft_plan *plan = NULL;
    struct weft_error refusal = {0};
    *out = (struct draft){.step_ns = INT64_MAX};
    problem->tiers[0].limit_bytes = limit_bytes;
    weft_work_be_watched(&work, study->cli->watch, 0);
    enum weft_status status = weft_schedule(problem, paged ? &study->inputs[period] : NULL,
                                            &options, &plan, NULL, &refusal);
    if (status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
    const int32_t host = find_tier(problem, WEFT_LOCATION_HOST);
    out->step_ns = plan->prediction.step_ns;
    out->total_bytes = plan->prediction.total_bytes;
    if (host > 0) out->host_bytes = weft_plan_peak(plan, host, NULL);
    weft_plan_destroy(plan);
    return out->host_bytes < 0 ? weft_fail_memory(err, "a sweep") : WEFT_OK;
}

/* Finds the period that is fastest without a limit. */
static enum weft_status find_fastest(struct weft_study *study, int32_t *fastest,
                                     struct weft_error *err)
{
    int64_t least_ns = INT64_MAX;
    *fastest = 0;
    for (int32_t v = 0; v < study->n_periods && study->n_periods > 1; v++) {
        struct draft draft;
        weft_watch_count(study->cli->watch, "period", v, study->n_periods);
        WEFT_TRY(draft_period(study, v, "greedy", false, INT64_MAX, &draft, err));
        if (draft.step_ns >= least_ns) continue;
        least_ns = draft.step_ns;
        *fastest = v;
    }
    return WEFT_OK;
}

/* Trials of limits in one period. */
struct trials {
    struct weft_study *study;
    int32_t period, n;
    int64_t enough_ns; /* a limit passes if its step is no longer */
};

static enum weft_status try_limit(void *context, int64_t limit_bytes, bool *passes,
                                  struct weft_error *err)
{
    struct trials *trials = context;
    struct draft draft;
    weft_watch_count(trials->study->cli->watch, "trial", ++trials->n, TRIALS);
    WEFT_TRY(
        draft_period(trials->study, trials->period, "greedy", false, limit_bytes, &draft, err));
    *passes = draft.step_ns <= trials->enough_ns;
    return WEFT_OK;
}

static enum weft_status find_high(struct weft_study *study, int64_t low, int64_t *high,
                                  struct weft_error *err)
{
    struct trials trials = {.study = study};
    const struct weft_least least = {INT64_MAX, 1, 1000, try_limit, &trials};
    struct draft best;
    WEFT_TRY(find_fastest(study, &trials.period, err));
    weft_watch_begin(study->cli->watch, "sweep"); /* only trials take equal times */
    weft_watch_count(study->cli->watch, "trial", 0, TRIALS);
    WEFT_TRY(draft_period(study, trials.period, "greedy", false, INT64_MAX, &best, err));
    trials.enough_ns = best.step_ns + (int64_t)((double)best.step_ns * MATTERS);
    *high = best.total_bytes;
    WEFT_TRY(weft_least_lower(&least, low, high, err));
    *high += *high / 20;
    return WEFT_OK;
}

/* Limits for one rule. */
struct rule {
    struct weft_session *session;
    const char *planner;
    bool applies;        /* false: no limit makes it applicable */
    int64_t total_bytes; /* of the last plan */
};

/* Plans within a limit, in pages, in any period of the config. */
static enum weft_status try_rule(void *context, int64_t limit_bytes, bool *passes,
                                 struct weft_error *err)
{
    struct rule *rule = context;
    struct weft_session *session = rule->session;
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    struct weft_error refusal = {0};
    session->config->cluster.memory_limit_bytes = limit_bytes;
    (void)weft_variants_list(session->config, variants);
    WEFT_TRY(weft_session_stage_variant(session, &variants[0], err));
    const enum weft_status status = weft_session_plan(session, rule->planner, &refusal);
    *passes = status == WEFT_OK;
    rule->applies = status != WEFT_E_DATA;
    if (status == WEFT_OK) rule->total_bytes = session->plan->prediction.total_bytes;
    if (status == WEFT_OK || status == WEFT_E_DATA || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail(err, status, "planner %s: %s", rule->planner, refusal.text);
}

/* Raises *high to the least limit at which the rule has a plan. The need without a limit is mostly
 * enough. But some rules need less under a limit, and some refuse by a model of their own. */
static enum weft_status raise_limit(struct rule *rule, int64_t *high, struct weft_error *err)
{
    const struct weft_least least = {INT64_MAX, 1, 256, try_rule, rule};
    bool passes;
    WEFT_TRY(try_rule(rule, *high, &passes, err));
    if (!rule->applies || passes) return WEFT_OK;
    WEFT_TRY(try_rule(rule, 0, &passes, err));
    if (!passes) return WEFT_OK;
    int64_t enough = rule->total_bytes > *high ? rule->total_bytes : *high + *high / 32 + 1;
    WEFT_TRY(weft_least_find(&least, *high, &enough, err));
    if (enough > 0) *high = enough;
    return WEFT_OK;
}

/* The same with the rule as the config's planner: its order of micro-steps may depend on that. */
static enum weft_status raise_to_rule(struct weft_session *session, const char *planner,
                                      int64_t *high, struct weft_error *err)
{
    struct rule rule = {.session = session, .planner = planner};
    const char *own = session->config->plan.planner;
    session->config->plan.planner = planner;
    const enum weft_status status = raise_limit(&rule, high, err);
    session->config->plan.planner = own;
    return status;
}

/* Raises *high for all rules; searching planners have a plan from the least limit on. A rule that
 * looks at the limit may lose its plan at a larger one, so passes repeat while *high rises. */
static enum weft_status raise_to_all(struct weft_study *study, int64_t *high,
                                     struct weft_error *err)
{
    struct weft_session *session = &study->session;
    const struct weft_cluster before = session->config->cluster;
    int64_t before_bytes;
    enum weft_status status = WEFT_OK;
    int passes = 0;
    session->draft = true;
    if (study->n_hosts > 0) {
        const struct weft_problem *problem = study->stages[0].problem;
        session->config->cluster.host.memory_limit_bytes =
            problem->tiers[find_tier(problem, WEFT_LOCATION_HOST)].limit_bytes;
    }
    do {
        int64_t begun_ns = weft_clock_now_ns();
        before_bytes = *high;
        for (int32_t i = 0; i < study->n_planners && status == WEFT_OK; i++) {
            if (weft_planner_find(study->planners[i], NULL)->searches) continue;
            weft_watch_part(session->watch, "sweep", "planner", i, study->n_planners, begun_ns);
            status = raise_to_rule(session, study->planners[i], high, err);
        }
    } while (status == WEFT_OK && before_bytes < *high && ++passes < MOST_PASSES);
    weft_watch_part(session->watch, NULL, NULL, 0, 0, 0);
    session->draft = false;
    session->config->cluster = before;
    return status;
}

/* Drafts the fastest plan of any period within both limits. */
static enum weft_status draft_fastest(struct weft_study *study, const char *planner,
                                      int64_t limit_bytes, int64_t host_bytes, struct draft *out,
                                      struct weft_error *err)
{
    *out = (struct draft){.step_ns = INT64_MAX};
    limit_tier(study, WEFT_LOCATION_HOST, host_bytes);
    for (int32_t v = 0; v < study->n_periods; v++) {
        struct draft draft;
        WEFT_TRY(draft_period(study, v, planner, true, limit_bytes, &draft, err));
        if (draft.step_ns < out->step_ns) *out = draft;
    }
    return WEFT_OK;
}

/* Raises *most_bytes to the most host memory that an unlimited draft uses, over the device limits
 * at which it is faster than with the least. More changes none of these drafts. */
static enum weft_status find_most_host(struct weft_study *study, int64_t *most_bytes,
                                       struct weft_error *err)
{
    const int64_t least_bytes = *most_bytes;
    const bool searches = weft_planner_find(study->planners[0], NULL)->searches;
    const char *planner = searches ? "greedy" : study->planners[0];
    for (int32_t i = 0; i < study->n_limits; i++) {
        struct draft least, most;
        weft_watch_count(study->cli->watch, "trial", i, study->n_limits);
        WEFT_TRY(draft_fastest(study, planner, study->limits[i], least_bytes, &least, err));
        WEFT_TRY(draft_fastest(study, planner, study->limits[i], WEFT_PROBLEM_MOST, &most, err));
        const bool helps = most.step_ns < least.step_ns;
        if (helps && most.host_bytes > *most_bytes) *most_bytes = most.host_bytes;
    }
    return WEFT_OK;
}

/* Finds the least host memory with which a plan fits a device limit; 0 if none fits with any. */
static enum weft_status find_least_host(struct weft_study *study, int64_t limit_bytes,
                                        int64_t *least_bytes, struct weft_error *err)
{
    int32_t period;
    limit_tier(study, WEFT_LOCATION_DEVICE, limit_bytes);
    WEFT_TRY(find_leanest(study, WEFT_LOCATION_HOST, &period, least_bytes, err));
    if (*least_bytes == INT64_MAX) *least_bytes = 0;
    return WEFT_OK;
}

/* Fills `n` evenly spaced limits from `low` to `high`. */
static void fill_limits(int64_t low, int64_t high, int32_t n, int64_t *limits)
{
    for (int32_t i = 0; i < n; i++)
        limits[i] =
            n == 1 || i == n - 1 ? high : low + (int64_t)((double)(high - low) * i / (n - 1));
}

enum weft_status weft_study_choose_hosts(struct weft_study *study, struct weft_error *err)
{
    int64_t low, high;
    weft_watch_begin(study->cli->watch, "sweep");
    WEFT_TRY(find_least_host(study, study->limits[study->n_limits - 1], &low, err));
    high = low;
    WEFT_TRY(find_most_host(study, &high, err));
    weft_watch_end(study->cli->watch);
    if (high == low) {
        weft_log(WEFT_LOG_INFO, "sweep: more of the host's memory shortens no step");
        study->n_hosts = 1;
    } else {
        high += high / 20;
    }
    fill_limits(low, high, study->n_hosts, study->hosts);
    return WEFT_OK;
}

enum weft_status weft_study_choose_limits(struct weft_study *study, struct weft_error *err)
{
    int64_t low, high, host = study->hosts[0];
    int32_t leanest;
    const bool given = study->hosts_given;
    weft_watch_begin(study->cli->watch, "sweep");
    if (study->n_hosts > 0)
        limit_tier(study, WEFT_LOCATION_HOST,
                   given ? study->hosts[study->n_hosts - 1] : WEFT_PROBLEM_MOST);
    WEFT_TRY(find_leanest(study, WEFT_LOCATION_DEVICE, &leanest, &low, err));
    WEFT_TRY(
        weft_least_paged_limit(study->stages[leanest].problem, &study->inputs[leanest], &low, err));
    if (study->n_hosts > 0) {
        if (!given) WEFT_TRY(find_least_host(study, INT64_MAX, &host, err));
        limit_tier(study, WEFT_LOCATION_HOST, host);
    }
    WEFT_TRY(find_high(study, low, &high, err));
    weft_watch_end(study->cli->watch);
    if (high <= low) high = low + low / 20 + 1;
    if (study->to_all) WEFT_TRY(raise_to_all(study, &high, err));
    fill_limits(low, high, study->n_limits, study->limits);
    return WEFT_OK;
}

enum weft_status weft_study_find_least(struct weft_study *study, int64_t *least_bytes,
                                       struct weft_error *err)
{
    int32_t period;
    if (study->n_hosts > 0) limit_tier(study, WEFT_LOCATION_HOST, study->hosts[study->n_hosts - 1]);
    return find_leanest(study, WEFT_LOCATION_DEVICE, &period, least_bytes, err);
}
