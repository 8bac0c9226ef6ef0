/* SPDX-License-Identifier: Apache-2.0 */
/* plan.recompute "if-needed": layers recompute if nothing fits without. */
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "library/session.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "spec/config_recompute.h"

bool weft_session_may_recompute(const struct weft_session *session)
{
    return session->config->recomputes == NULL && weft_config_recomputes_if_needed(session->config);
}

/* Stages with a profile that is resolved anew, as one of figures lacks times of levels that were
 * not asked for. */
static enum weft_status stage_resolved(struct weft_session *session,
                                       const struct weft_variant *variant,
                                       struct weft_profile **former, struct weft_error *err)
{
    struct weft_profile *before = session->profile, *renewed = NULL;
    WEFT_TRY(weft_profile_resolve(session->config, &renewed, err));
    session->profile = renewed;
    const enum weft_status status = weft_session_stage_variant(session, variant, err);
    if (status == WEFT_OK) {
        *former = before;
    } else {
        session->profile = before;
        weft_profile_destroy(renewed);
    }
    return status;
}

enum weft_status weft_session_open_levels(struct weft_session *session,
                                          const struct weft_variant *variant,
                                          struct weft_error *err)
{
    struct weft_profile *former = NULL;
    const enum weft_status status = weft_session_renew_levels(session, variant, &former, err);
    weft_profile_destroy(former);
    return status;
}

enum weft_status weft_session_renew_levels(struct weft_session *session,
                                           const struct weft_variant *variant,
                                           struct weft_profile **former, struct weft_error *err)
{
    struct weft_config *config = session->config;
    const size_t n_layers = (size_t)config->model->n_layers;
    uint8_t *levels = weft_pool_array(&config->pool, n_layers, sizeof *levels);
    struct weft_error why = {0};
    if (levels == NULL) return weft_fail_memory(err, "levels of recomputation");
    weft_config_restorable(config, levels);
    config->recomputes = levels;
    enum weft_status status = weft_session_stage_variant(session, variant, &why);
    if (status == WEFT_E_DATA) status = stage_resolved(session, variant, former, &why);
    if (status == WEFT_OK) return WEFT_OK;
    config->recomputes = NULL;
    if (status != WEFT_E_DATA) return weft_fail(err, status, "%s", why.text);
    WEFT_TRY(weft_session_stage_variant(session, variant, err));
    return weft_fail_lacking(
        err, WEFT_E_DATA, WEFT_LACK_TIMES, 0,
        "layers do not recompute, as the profile has no times of that: measure them "
        "with `weft profile %s -o profile.json`, then give --profile profile.json",
        config->source);
}

enum weft_status weft_session_find_least(struct weft_session *session, int64_t *bytes,
                                         struct weft_error *err)
{
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    const int32_t n = weft_variants_list(session->config, variants);
    int64_t least = INT64_MAX;
    for (int32_t v = 0; v < n; v++) {
        WEFT_TRY(weft_session_stage_variant(session, &variants[v], err));
        const int64_t needs = weft_least_limit(session->stages.problem, 0, NULL);
        if (needs < 0) return weft_fail_memory(err, "the least limit");
        if (needs < least) least = needs;
    }
    *bytes = least;
    return WEFT_OK;
}

/* Time that a layer's strategy adds to a step, compared with saved activations on the device. */
static int64_t restoring_ns(const struct weft_problem_decision *layer,
                            const struct weft_problem_strategy *chosen)
{
    const int32_t plain = weft_decision_of_level(layer, WEFT_RECOMPUTE_NONE);
    int64_t ns = 0;
    for (int32_t i = 0; i < chosen->n_times; i++)
        ns += chosen->times[i].ns;
    for (int32_t i = 0; plain >= 0 && i < layer->strategies[plain].n_times; i++)
        ns -= layer->strategies[plain].times[i].ns;
    return ns;
}

/* One line: the number of layers that recompute, and its cost. */
static void tell_cost(const struct weft_session *session)
{
    const struct weft_problem *problem = session->plan->problem;
    const int64_t step_ns = session->plan->prediction.step_ns;
    char limit[WEFT_UNITS_TEXT_BYTES], cost[WEFT_UNITS_TEXT_BYTES], step[WEFT_UNITS_TEXT_BYTES];
    int64_t ns = 0;
    int32_t n = 0;
    for (int32_t d = weft_problem_n_units(problem); d < problem->n_decisions; d++) {
        const struct weft_problem_strategy *chosen = weft_plan_chosen(session->plan, d);
        if (chosen->recompute == WEFT_RECOMPUTE_NONE) continue;
        ns += restoring_ns(&problem->decisions[d], chosen);
        n++;
    }
    weft_log(WEFT_LOG_INFO,
             "nothing fits %s without recomputation: %d layer%s, which takes %s of a step of %s, "
             "%.1f %% (plan.recompute=none forbids it)",
             weft_units_show_bytes(problem->tiers[0].limit_bytes, limit), n,
             n == 1 ? " recomputes" : "s recompute", weft_units_show_ns(ns, cost),
             weft_units_show_ns(step_ns, step),
             step_ns > 0 ? 100.0 * (double)ns / (double)step_ns : 0);
}

/* Fills the error of a limit that nothing fits: the refusal, and why layers did not recompute. */
static enum weft_status refuse_limit(const struct weft_error *refusal, const char *why,
                                     struct weft_error *err)
{
    return weft_fail_again(err, refusal, "%s%s%s", refusal->text, *why != '\0' ? " Also: " : "",
                           why);
}

enum weft_status weft_session_plan(struct weft_session *session, const char *planner,
                                   struct weft_error *err)
{
    const char *name = planner != NULL ? planner : session->config->plan.planner;
    struct weft_error refusal = {0}, unknown = {0};
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    const uint8_t *levels = session->config->recomputes;
    const enum weft_status status = weft_session_plan_levels(session, planner, &refusal);
    if (status == WEFT_OK) {
        if (session->config->recomputes != levels) tell_cost(session); /* in its order alone */
        return WEFT_OK;
    }
    if (status != WEFT_E_INFEASIBLE || strcmp(name, "ilp") != 0 ||
        !weft_session_may_recompute(session)) {
        *err = refusal;
        return status;
    }
    (void)weft_variants_list(session->config, variants);
    const enum weft_status opened = weft_session_open_levels(session, &variants[0], &unknown);
    if (opened == WEFT_E_DATA) return refuse_limit(&refusal, unknown.text, err);
    if (opened != WEFT_OK) return weft_fail(err, opened, "%s", unknown.text);
    WEFT_TRY(weft_session_plan_levels(session, planner, err));
    tell_cost(session);
    return WEFT_OK;
}
