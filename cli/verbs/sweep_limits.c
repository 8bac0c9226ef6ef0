#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/verbs/sweep.h"
#include "problem/stages.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"

enum { BISECTIONS = 24, MOST_PASSES = 8 };
/* A limit helps while it shortens the step by more than this share. */
static const double MATTERS = 5e-4;

/* The greedy plan's step under a limit, without pages; INT64_MAX when there is none. */
static enum weft_status greedy_step(struct weft_session *session, int64_t limit_bytes,
                                    int64_t *step_ns, int64_t *peak_bytes, struct weft_error *err)
{
    struct weft_work work = {0};
    struct weft_schedule_options options = {
        .planner = "greedy", .draft = true, .budget = weft_budget_unlimited(&work)};
    struct weft_plan *plan = NULL;
    struct weft_error refusal = {0};
    session->stages.problem->tiers[0].limit_bytes = limit_bytes;
    weft_work_be_watched(&work, session->watch, 0);
    enum weft_status status =
        weft_schedule(session->stages.problem, NULL, &options, &plan, NULL, &refusal);
    if (status == WEFT_OK) {
        *step_ns = plan->prediction.step_ns;
        *peak_bytes = plan->prediction.total_bytes;
        weft_plan_destroy(plan);
        return WEFT_OK;
    }
    *step_ns = INT64_MAX;
    return status == WEFT_E_INFEASIBLE ? WEFT_OK : weft_fail(err, status, "%s", refusal.text);
}

/* Gives the session the stages of the period that is fastest where memory is no matter. */
static enum weft_status stage_fastest(struct weft_session *session, struct weft_error *err)
{
    struct weft_period_rule variants[WEFT_MOST_VARIANTS];
    int32_t fastest = 0, n = weft_stages_variants(session->config, variants);
    int64_t least_ns = INT64_MAX;
    for (int32_t v = 0; v < n && n > 1; v++) {
        int64_t step_ns, unused;
        weft_watch_count(session->watch, "period", v, n);
        WEFT_TRY(weft_session_stage_period(session, &variants[v], err));
        WEFT_TRY(greedy_step(session, INT64_MAX, &step_ns, &unused, err));
        if (step_ns >= least_ns) continue;
        least_ns = step_ns;
        fastest = v;
    }
    return n > 1 ? weft_session_stage_period(session, &variants[fastest], err) : WEFT_OK;
}

static enum weft_status find_high(struct weft_session *session, int64_t low, int64_t *out,
                                  struct weft_error *err)
{
    int64_t best_ns, step_ns, high, unused;
    weft_watch_begin(session->watch, "sweep"); /* trials take the same time, not what was before */
    weft_watch_count(session->watch, "trial", 0, BISECTIONS + 1);
    WEFT_TRY(greedy_step(session, INT64_MAX, &best_ns, &high, err));
    int64_t enough_ns = best_ns + (int64_t)((double)best_ns * MATTERS);
    for (int i = 0; i < BISECTIONS && low < high - high / 1000; i++) {
        int64_t middle = low + (high - low) / 2;
        weft_watch_count(session->watch, "trial", i + 1, BISECTIONS + 1);
        WEFT_TRY(greedy_step(session, middle, &step_ns, &unused, err));
        if (step_ns <= enough_ns)
            high = middle;
        else
            low = middle;
    }
    *out = high + high / 20;
    return WEFT_OK;
}

/* Whether a planner has a plan within a limit, in pages, in any of the config's periods; its
 * bytes. *applies is false of a rule that has none at any limit. */
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

/* Raises *high to the least limit that a planner has a plan within. What it takes where memory is
 * no matter is mostly enough: rules that look at the limit need less, or refuse by a model of
 * theirs.
 */
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

/* What searches has a plan wherever there is one, from the least limit on. A rule that chooses by
 * the limit may have one within less and none within more: so again, while that raises the end. */
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

enum weft_status weft_sweep_choose_limits(struct weft_session *session,
                                          const struct weft_sweep_planners *all, int32_t n,
                                          int64_t *limits, struct weft_error *err)
{
    int64_t low, high;
    weft_watch_begin(session->watch, "sweep");
    WEFT_TRY(weft_session_stage_leanest(session, err));
    WEFT_TRY(weft_least_paged_limit(session->stages.problem, &session->inputs, &low, err));
    WEFT_TRY(stage_fastest(session, err));
    WEFT_TRY(find_high(session, low, &high, err));
    weft_watch_end(session->watch);
    if (high <= low) high = low + low / 20 + 1;
    if (all != NULL) WEFT_TRY(raise_to_all(session, all, &high, err));
    for (int32_t i = 0; i < n; i++)
        limits[i] =
            n == 1 || i == n - 1 ? high : low + (int64_t)((double)(high - low) * i / (n - 1));
    return WEFT_OK;
}

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum weft_status weft_sweep_read_limits(const char *list, int64_t *limits, int32_t *n,
                                        struct weft_error *err)
{
    char one[64];
    struct weft_error wrong = {0};
    *n = 0;
    for (const char *at = list;; at++) {
        size_t length = strcspn(at, ",");
        if (*n == WEFT_SWEEP_POINTS)
            return weft_fail(err, WEFT_E_USAGE, "--limits: at most %d", WEFT_SWEEP_POINTS);
        if (length >= sizeof one) length = sizeof one - 1;
        memcpy(one, at, length);
        one[length] = '\0';
        if (weft_units_bytes(one, &limits[*n], &wrong) != WEFT_OK)
            return weft_fail(err, WEFT_E_USAGE, "--limits: %s", wrong.text);
        if (limits[(*n)++] <= 0)
            return weft_fail(err, WEFT_E_USAGE, "--limits: \"%s\" is no memory at all", one);
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
