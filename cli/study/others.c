/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/others.h"

#include "cli/study/attempt.h"
#include "scheduler/digest/digest.h"
#include "scheduler/tree/proof.h"
#include "spec/config_batch.h"

/* Accepted distance from the bound, and the part of the work that proves it. */
static const double GAP = 1e-4, BOUND_PART = 0.25;

/* The search of the other choice. */
struct search {
    const struct weft_session *session;
    struct weft_config config; /* the session's, with the other choice */
    struct weft_work work;
    int64_t units; /* of each candidate */
};

static int64_t limit_of(const struct search *search)
{
    return search->session->plan->problem->tiers[0].limit_bytes;
}

/* Proves a bound: with `target_ns`, by an ascent towards it. */
static enum weft_status bound_candidate(struct search *search, struct weft_other_candidate *of,
                                        int64_t target_ns, struct weft_error *err)
{
    struct weft_pool pool = {0};
    struct weft_outcome outcome = {.pool = &pool};
    const struct weft_ascent ascent = {.target_ns = target_ns,
                                       .units = (int64_t)((double)search->units * BOUND_PART),
                                       .work = &search->work};
    const enum weft_status status =
        weft_prove(of->stages.problem, target_ns > 0 ? &ascent : NULL, &pool, &outcome, err);
    if (outcome.bound_ns > of->bound_ns) of->bound_ns = outcome.bound_ns;
    weft_pool_finish(&pool);
    return status;
}

/* Stages a candidate of the wanted period. Its stages stay empty if the config has no such
 * variant. */
static enum weft_status stage_candidate(struct search *search,
                                        const struct weft_period_rule *period,
                                        struct weft_other_candidate *out, struct weft_error *err)
{
    struct weft_problem wanted = *search->session->plan->problem;
    struct weft_variant variant;
    wanted.period = *period;
    if (!weft_variants_find(&search->config, &wanted, &variant)) return WEFT_OK;
    WEFT_TRY(weft_stages_create_variant(&search->config, search->session->profile, &variant,
                                        &out->stages, err));
    out->problem = *out->stages.problem;
    out->least_bytes = weft_least_limit(out->stages.problem, 0, NULL);
    if (out->least_bytes < 0) return weft_fail_memory(err, "the least limit");
    return bound_candidate(search, out, 0, err);
}

/* Plans a candidate within the plan's limit, or within its own least limit if that is larger. A
 * plan raises the bound. */
static enum weft_status plan_candidate(struct search *search, struct weft_other_candidate *of,
                                       struct weft_error *err)
{
    const bool fits = of->least_bytes <= limit_of(search);
    if (of->stages.problem == NULL || of->least_bytes == INT64_MAX) return WEFT_OK;
    if (!fits) of->problem.tiers[0].limit_bytes = of->least_bytes;
    const struct weft_schedule_options options = {
        .planner = "ilp",
        .gap = GAP,
        .draft = true,
        .enough_ns = fits ? (int64_t)((double)of->bound_ns * (1 + GAP)) : 0,
        .budget =
            weft_budget_of(&search->work, (int64_t)((double)search->units * (1 - BOUND_PART)))};
    WEFT_TRY(weft_study_attempt(&of->problem, &options, &of->plan, NULL, err));
    if (!fits || of->plan == NULL) return WEFT_OK;
    return bound_candidate(search, of, of->plan->prediction.step_ns, err);
}

/* Takes the figures of a candidate. A plan within the plan's limit comes first, then the faster
 * one. */
static void take_candidate(const struct search *search, const struct weft_other_candidate *of,
                           struct weft_other_choice *found)
{
    const bool fits = of->least_bytes <= limit_of(search);
    if (of->stages.problem == NULL) return;
    if (of->least_bytes < found->least_bytes) found->least_bytes = of->least_bytes;
    if (fits && (found->bound_ns == 0 || of->bound_ns < found->bound_ns))
        found->bound_ns = of->bound_ns;
    const bool is_first = found->plan == NULL || (fits && !found->fits);
    if (of->plan != NULL && fits >= found->fits &&
        (is_first || of->plan->prediction.step_ns < found->plan->prediction.step_ns)) {
        found->plan = of->plan;
        if (found->kind == WEFT_OTHER_UPDATES) found->layers = of->problem.period.update_after;
    }
    found->fits |= fits;
}

/* Opens the other order of micro-steps, and lists its periods of both cadences. */
static int32_t list_orders(struct search *search, struct weft_other_choice *found,
                           struct weft_period_rule out[WEFT_OTHER_CANDIDATES])
{
    const struct weft_period_rule *own = &search->session->plan->problem->period;
    struct weft_config *config = &search->config;
    found->layers = own->layers > 0 ? 0 : 1;
    config->kept.turns = false;
    config->plan.micro_step_order = found->layers > 0 ? WEFT_ORDER_BY_LAYER : WEFT_ORDER_BY_STEP;
    if (found->layers > 0)
        found->refused = config->model->n_layers < 2
                             ? "the model has one layer"
                             : weft_config_refuses_turns(config, own->n_micro);
    for (int i = 0; i < 2; i++) {
        out[i] = *own;
        out[i].layers = found->layers;
        out[i].group = i == 0 ? own->n_micro : 1;
    }
    return 2;
}

/* Opens the other place of updates, and lists its distances for the plan's period. */
static int32_t list_updates(struct search *search, struct weft_other_choice *found,
                            struct weft_period_rule out[WEFT_OTHER_CANDIDATES])
{
    const struct weft_period_rule *own = &search->session->plan->problem->period;
    struct weft_config *config = &search->config;
    struct weft_variant all[WEFT_MOST_VARIANTS];
    const bool backward = own->update_after == 0;
    int32_t n = 0;
    found->layers = backward ? 1 : 0;
    found->price = backward ? weft_update_in_price : NULL;
    if (backward)
        found->refused = config->model->n_layers < 2 ? "the model has one layer"
                                                     : weft_config_refuses_backward(config, NULL);
    config->plan.update_in = backward ? WEFT_UPDATE_IN_BACKWARD : WEFT_UPDATE_IN_FORWARD;
    config->kept.micro_batch = config->train.micro_batch; /* the plan's split alone */
    const int32_t n_all = weft_variants_list(config, all);
    for (int32_t v = 0; v < n_all && n < WEFT_OTHER_CANDIDATES; v++) {
        struct weft_period_rule rule = *own;
        bool known = false;
        rule.update_ahead = all[v].rule.update_ahead;
        rule.update_after = all[v].rule.update_after;
        for (int32_t i = 0; i < n; i++)
            known |= weft_period_rule_same(&out[i], &rule);
        if (!known) out[n++] = rule;
    }
    return n;
}

enum weft_status weft_other_study_make(const struct weft_session *session,
                                       enum weft_other_kind kind, int64_t units,
                                       struct weft_other_study *out, struct weft_error *err)
{
    const struct weft_problem *own = session->plan->problem;
    struct search search = {.session = session, .config = *session->config};
    struct weft_period_rule periods[WEFT_OTHER_CANDIDATES];
    int32_t n = 0;
    *out = (struct weft_other_study){.found = {.kind = kind, .least_bytes = INT64_MAX}};
    out->n = kind == WEFT_OTHER_ORDER ? list_orders(&search, &out->found, periods)
                                      : list_updates(&search, &out->found, periods);
    if (out->found.refused != NULL) return WEFT_OK;
    out->found.own_least_bytes = weft_least_limit(own, 0, NULL);
    if (out->found.own_least_bytes < 0) return weft_fail_memory(err, "the least limit");
    search.units = units / out->n;
    for (int32_t i = 0; i < out->n; i++) {
        struct weft_other_candidate *candidate = &out->candidates[i];
        WEFT_TRY(stage_candidate(&search, &periods[i], candidate, err));
        WEFT_TRY(plan_candidate(&search, candidate, err));
        take_candidate(&search, candidate, &out->found);
        n += candidate->stages.problem != NULL;
    }
    if (n == 0) out->found.refused = "the config has no such period";
    return WEFT_OK;
}

void weft_other_study_finish(struct weft_other_study *study)
{
    for (int32_t i = 0; i < study->n; i++) {
        weft_plan_destroy(study->candidates[i].plan);
        weft_stages_finish(&study->candidates[i].stages);
    }
    *study = (struct weft_other_study){0};
}
