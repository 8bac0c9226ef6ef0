#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/verbs/sweep.h"
#include "problem/stages.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"

enum { BISECTIONS = 24, MOST_PASSES = 8 };
/* A limit helps if it shortens the step by more than this share. */
static const double MATTERS = 5e-4;

/* Time and bytes of a drafted plan; step_ns is INT64_MAX if there is none. */
struct draft {
    int64_t step_ns, total_bytes, host_bytes;
};

/* Returns the index of the host's tier; 0: none. */
static int32_t find_host(const struct weft_problem *problem)
{
    for (int32_t t = 1; t < problem->n_tiers; t++)
        if (problem->tiers[t].kind == WEFT_HOME_HOST) return t;
    return 0;
}

/* Drafts a plan within a device limit, which it sets in the problem. Without inputs the plan has no
 * pages. */
static enum weft_status draft_within(struct weft_problem *problem,
                                     const struct weft_lower_inputs *inputs, const char *planner,
                                     struct weft_watch *watch, int64_t limit_bytes,
                                     struct draft *out, struct weft_error *err)
{
    struct weft_work work = {0};
    struct weft_schedule_options options = {
        .planner = planner, .draft = true, .budget = weft_budget_unlimited(&work)};
    struct weft_plan *plan = NULL;
    struct weft_error refusal = {0};
    *out = (struct draft){.step_ns = INT64_MAX};
    problem->tiers[0].limit_bytes = limit_bytes;
    weft_work_be_watched(&work, watch, 0);
    enum weft_status status = weft_schedule(problem, inputs, &options, &plan, NULL, &refusal);
    if (status == WEFT_E_INFEASIBLE || status == WEFT_E_DATA) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
    const int32_t host = find_host(problem);
    out->step_ns = plan->prediction.step_ns;
    out->total_bytes = plan->prediction.total_bytes;
    if (host > 0) out->host_bytes = weft_plan_peak(plan, host, NULL);
    weft_plan_destroy(plan);
    return out->host_bytes < 0 ? weft_fail_memory(err, "a sweep") : WEFT_OK;
}

static enum weft_status greedy_within(struct weft_session *session, int64_t limit_bytes,
                                      struct draft *out, struct weft_error *err)
{
    return draft_within(session->stages.problem, NULL, "greedy", session->watch, limit_bytes, out,
                        err);
}

/* Stages the period that is fastest without a limit. */
static enum weft_status stage_fastest(struct weft_session *session, struct weft_error *err)
{
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    int32_t fastest = 0, n = weft_stages_variants(session->config, variants);
    int64_t least_ns = INT64_MAX;
    for (int32_t v = 0; v < n && n > 1; v++) {
        struct draft draft;
        weft_watch_count(session->watch, "period", v, n);
        WEFT_TRY(weft_session_stage_period(session, &variants[v], err));
        WEFT_TRY(greedy_within(session, INT64_MAX, &draft, err));
        if (draft.step_ns >= least_ns) continue;
        least_ns = draft.step_ns;
        fastest = v;
    }
    return n > 1 ? weft_session_stage_period(session, &variants[fastest], err) : WEFT_OK;
}

static enum weft_status find_high(struct weft_session *session, int64_t low, int64_t *out,
                                  struct weft_error *err)
{
    struct draft best, draft;
    weft_watch_begin(session->watch, "sweep"); /* only trials take equal times */
    weft_watch_count(session->watch, "trial", 0, BISECTIONS + 1);
    WEFT_TRY(greedy_within(session, INT64_MAX, &best, err));
    int64_t enough_ns = best.step_ns + (int64_t)((double)best.step_ns * MATTERS);
    int64_t high = best.total_bytes;
    for (int i = 0; i < BISECTIONS && low < high - high / 1000; i++) {
        int64_t middle = low + (high - low) / 2;
        weft_watch_count(session->watch, "trial", i + 1, BISECTIONS + 1);
        WEFT_TRY(greedy_within(session, middle, &draft, err));
        if (draft.step_ns <= enough_ns)
            high = middle;
        else
            low = middle;
    }
    *out = high + high / 20;
    return WEFT_OK;
}

/* Plans within a limit, in pages, in any period of the config. *bytes is the need, -1 without a
 * plan. *applies is false for a rule that no limit makes applicable. */
static enum weft_status plan_within(struct weft_session *session, const char *planner,
                                    int64_t limit_bytes, bool *applies, int64_t *bytes,
                                    struct weft_error *err)
{
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    struct weft_error refusal = {0};
    *bytes = -1;
    session->config->cluster.memory_limit_bytes = limit_bytes;
    (void)weft_stages_variants(session->config, variants);
    WEFT_TRY(weft_session_stage_period(session, &variants[0], err));
    enum weft_status status = weft_session_plan(session, planner, &refusal);
    *applies = status != WEFT_E_DATA;
    if (status == WEFT_OK) *bytes = session->plan->prediction.total_bytes;
    if (status == WEFT_OK || status == WEFT_E_DATA || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail(err, status, "planner %s: %s", planner, refusal.text);
}

/* Raises *high to the least limit at which the planner has a plan. The need without a limit is
 * mostly enough. But some rules need less under a limit, and some refuse by a model of their
 * own. */
static enum weft_status raise_to(struct weft_session *session, const char *planner, int64_t *high,
                                 struct weft_error *err)
{
    bool applies;
    int64_t bytes, low = *high, enough;
    WEFT_TRY(plan_within(session, planner, low, &applies, &bytes, err));
    if (!applies || bytes >= 0) return WEFT_OK;
    WEFT_TRY(plan_within(session, planner, 0, &applies, &enough, err));
    if (enough < 0) return WEFT_OK;
    if (enough <= low) enough = low + low / 32 + 1;
    for (bytes = -1; bytes < 0 && enough < INT64_MAX / 2;) {
        WEFT_TRY(plan_within(session, planner, enough, &applies, &bytes, err));
        if (bytes < 0) low = enough;
        if (bytes < 0) enough *= 2;
    }
    while (enough - low > enough / 256) {
        int64_t middle = low + (enough - low) / 2;
        WEFT_TRY(plan_within(session, planner, middle, &applies, &bytes, err));
        if (bytes >= 0)
            enough = middle;
        else
            low = middle;
    }
    *high = enough;
    return WEFT_OK;
}

/* Raises *high for all rules; searching planners have a plan from the least limit on. A rule that
 * looks at the limit may lose its plan at a larger one, so passes repeat while *high rises. */
static enum weft_status raise_to_all(struct weft_session *session,
                                     const struct weft_sweep_planners *all, int64_t *high,
                                     struct weft_error *err)
{
    int64_t limit_bytes = session->config->cluster.memory_limit_bytes, before_bytes;
    enum weft_status status = WEFT_OK;
    int passes = 0;
    session->draft = true;
    do {
        int64_t begun_ns = weft_clock_now_ns();
        before_bytes = *high;
        for (int32_t i = 0; i < all->n && status == WEFT_OK; i++) {
            if (!weft_planner_is_rule(weft_planner_find(all->names[i], NULL))) continue;
            weft_watch_part(session->watch, "sweep", "planner", i, all->n, begun_ns);
            status = raise_to(session, all->names[i], high, err);
        }
    } while (status == WEFT_OK && before_bytes < *high && ++passes < MOST_PASSES);
    weft_watch_part(session->watch, NULL, NULL, 0, 0, 0);
    session->draft = false;
    session->config->cluster.memory_limit_bytes = limit_bytes;
    return status;
}

/* Problems of all periods that the config leaves open, and the planner of their drafts. */
struct periods {
    const char *planner;
    struct weft_watch *watch;
    int32_t n;
    struct weft_stages stages[WEFT_MOST_VARIANTS];
    struct weft_lower_inputs inputs[WEFT_MOST_VARIANTS];
};

static void finish_periods(struct periods *periods)
{
    for (int32_t v = 0; v < periods->n; v++)
        weft_stages_finish(&periods->stages[v]);
}

/* The caller finishes *out, also after a failure. */
static enum weft_status create_periods(const struct weft_session *session, struct periods *out,
                                       struct weft_error *err)
{
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    const int32_t n = weft_stages_variants(session->config, variants);
    for (; out->n < n; out->n++) {
        struct weft_stages *stages = &out->stages[out->n];
        WEFT_TRY(weft_stages_create_variant(session->config, session->profile, &variants[out->n],
                                            stages, err));
        out->inputs[out->n] = weft_lower_inputs_of(session->config, session->profile, stages);
    }
    return WEFT_OK;
}

/* Drafts the fastest plan of any period within both limits. */
static enum weft_status fastest_within(struct periods *periods, int64_t limit_bytes,
                                       int64_t host_bytes, struct draft *out,
                                       struct weft_error *err)
{
    *out = (struct draft){.step_ns = INT64_MAX};
    for (int32_t v = 0; v < periods->n; v++) {
        struct weft_problem *problem = periods->stages[v].problem;
        const int32_t host = find_host(problem);
        struct draft draft;
        if (host > 0) problem->tiers[host].limit_bytes = host_bytes;
        WEFT_TRY(draft_within(problem, &periods->inputs[v], periods->planner, periods->watch,
                              limit_bytes, &draft, err));
        if (draft.step_ns < out->step_ns) *out = draft;
    }
    return WEFT_OK;
}

/* Finds the most host memory that an unlimited draft uses, over the device limits at which it is
 * faster than with the least. More changes none of these drafts. */
static enum weft_status find_most_host(struct periods *periods, const int64_t *limits, int32_t n,
                                       int64_t least_bytes, int64_t *out, struct weft_error *err)
{
    int64_t most_bytes = least_bytes;
    for (int32_t i = 0; i < n; i++) {
        struct draft least, most;
        weft_watch_count(periods->watch, "trial", i, n);
        WEFT_TRY(fastest_within(periods, limits[i], least_bytes, &least, err));
        WEFT_TRY(fastest_within(periods, limits[i], WEFT_PROBLEM_MOST, &most, err));
        const bool helps = most.step_ns < least.step_ns;
        if (helps && most.host_bytes > most_bytes) most_bytes = most.host_bytes;
    }
    *out = most_bytes;
    return WEFT_OK;
}

/* Finds the least host memory with which a plan of any period fits a device limit; 0 if none fits
 * with any. */
static enum weft_status find_least_host(struct periods *periods, int64_t limit_bytes, int64_t *out,
                                        struct weft_error *err)
{
    int64_t least_bytes = INT64_MAX;
    for (int32_t v = 0; v < periods->n; v++) {
        struct weft_problem *problem = periods->stages[v].problem;
        const int32_t host = find_host(problem);
        problem->tiers[0].limit_bytes = limit_bytes;
        int64_t bytes = weft_least_limit(problem, host, NULL);
        if (bytes < 0) return weft_fail_memory(err, "the least limit");
        if (host == 0) bytes = bytes <= limit_bytes ? 0 : INT64_MAX;
        if (bytes < least_bytes) least_bytes = bytes;
    }
    *out = least_bytes < INT64_MAX ? least_bytes : 0;
    return WEFT_OK;
}

/* Fills `n` evenly spaced limits from `low` to `high`. */
static void fill_limits(int64_t low, int64_t high, int32_t n, int64_t *limits)
{
    for (int32_t i = 0; i < n; i++)
        limits[i] =
            n == 1 || i == n - 1 ? high : low + (int64_t)((double)(high - low) * i / (n - 1));
}

enum weft_status weft_sweep_choose_hosts(const struct weft_session *session, const char *planner,
                                         const int64_t *limits, int32_t n,
                                         struct weft_sweep_hosts *hosts, struct weft_error *err)
{
    static struct periods periods;
    int64_t low = 0, high = 0;
    const bool searches = !weft_planner_is_rule(weft_planner_find(planner, NULL));
    periods = (struct periods){.planner = searches ? "greedy" : planner, .watch = session->watch};
    weft_watch_begin(session->watch, "sweep");
    enum weft_status status = create_periods(session, &periods, err);
    if (status == WEFT_OK) status = find_least_host(&periods, limits[n - 1], &low, err);
    if (status == WEFT_OK) status = find_most_host(&periods, limits, n, low, &high, err);
    weft_watch_end(session->watch);
    finish_periods(&periods);
    WEFT_TRY(status);
    if (high <= low) {
        weft_log(WEFT_LOG_INFO, "sweep: more of the host's memory shortens no step");
        hosts->n = 1;
    } else {
        high += high / 20;
    }
    fill_limits(low, high, hosts->n, hosts->limits);
    return WEFT_OK;
}

/* Sets the host's limit in the session's config and stages its first period. */
static enum weft_status limit_host(struct weft_session *session, int64_t limit_bytes,
                                   struct weft_error *err)
{
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    session->config->cluster.host.memory_limit_bytes = limit_bytes;
    (void)weft_stages_variants(session->config, variants);
    return weft_session_stage_period(session, &variants[0], err);
}

/* Finds the host memory for the largest device limit: the first given limit, or the least with
 * which a plan fits any device memory. */
static enum weft_status find_first_host(const struct weft_session *session,
                                        const struct weft_sweep_hosts *hosts, int64_t *out,
                                        struct weft_error *err)
{
    static struct periods periods;
    *out = hosts->limits[0];
    if (hosts->given) return WEFT_OK;
    periods = (struct periods){.watch = session->watch};
    enum weft_status status = create_periods(session, &periods, err);
    if (status == WEFT_OK) status = find_least_host(&periods, INT64_MAX, out, err);
    finish_periods(&periods);
    return status;
}

enum weft_status weft_sweep_choose_limits(struct weft_session *session,
                                          const struct weft_sweep_planners *all,
                                          const struct weft_sweep_hosts *hosts, int32_t n,
                                          int64_t *limits, struct weft_error *err)
{
    int64_t low, high, host;
    weft_watch_begin(session->watch, "sweep");
    if (hosts->n > 0)
        WEFT_TRY(limit_host(session, hosts->given ? hosts->limits[hosts->n - 1] : WEFT_PROBLEM_MOST,
                            err));
    WEFT_TRY(weft_session_stage_leanest(session, err));
    WEFT_TRY(weft_least_paged_limit(session->stages.problem, &session->inputs, &low, err));
    if (hosts->n > 0) {
        WEFT_TRY(find_first_host(session, hosts, &host, err));
        WEFT_TRY(limit_host(session, host, err));
    }
    WEFT_TRY(stage_fastest(session, err));
    WEFT_TRY(find_high(session, low, &high, err));
    weft_watch_end(session->watch);
    if (high <= low) high = low + low / 20 + 1;
    if (all != NULL) WEFT_TRY(raise_to_all(session, all, &high, err));
    fill_limits(low, high, n, limits);
    return WEFT_OK;
}

enum weft_status weft_sweep_find_least(struct weft_session *session, const int64_t *host_bytes,
                                       int64_t *least_bytes, struct weft_error *err)
{
    if (host_bytes) WEFT_TRY(limit_host(session, *host_bytes, err));
    WEFT_TRY(weft_session_stage_leanest(session, err));
    const int64_t bytes = weft_least_limit(session->stages.problem, 0, NULL);
    if (bytes < 0) return weft_fail_memory(err, "the least limit");
    *least_bytes = bytes < INT64_MAX ? bytes : 0;
    return WEFT_OK;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum weft_status weft_sweep_read_limits(const char *flag, const char *list, int64_t least_bytes,
                                        int32_t most, int64_t *limits, int32_t *n,
                                        struct weft_error *err)
{
    char one[64];
    struct weft_error wrong = {0};
    *n = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (*n == most) return weft_fail(err, WEFT_E_USAGE, "%s: at most %d", flag, most);
        if (length >= sizeof one) length = sizeof one - 1;
        memcpy(one, at, length);
        one[length] = '\0';
        if (weft_units_bytes(one, &limits[*n], &wrong) != WEFT_OK)
            return weft_fail(err, WEFT_E_USAGE, "%s: %s", flag, wrong.text);
        if (limits[(*n)++] < least_bytes)
            return weft_fail(err, WEFT_E_USAGE, "%s: \"%s\" is no memory at all", flag, one);
        at += length;
        if (*at != ',') break;
    }
    qsort(limits, (size_t)*n, sizeof *limits, by_size);
    int32_t kept = 0;
    for (int32_t i = 0; i < *n; i++)
        if (i == 0 || limits[i] != limits[i - 1]) limits[kept++] = limits[i];
    *n = kept;
    return WEFT_OK;
}
