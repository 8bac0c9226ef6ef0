/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/study/other_order.h"

#include "cli/study/attempt.h"
#include "scheduler/digest/digest.h"
#include "scheduler/tree/proof.h"
#include "spec/config_batch.h"

/* Accepted distance from the bound, and the part of the work that proves it. */
static const double GAP = 1e-4, BOUND_PART = 0.25;

/* The search of the other order. */
struct search {
    const struct weft_session *session;
    struct weft_config config; /* the session's, in the other order */
    struct weft_work work;
    int64_t units; /* of each cadence */
};

static int64_t limit_of(const struct search *search)
{
    return search->session->plan->problem->tiers[0].limit_bytes;
}

/* Proves a bound: with `target_ns`, by an ascent towards it. */
static enum weft_status bound_candidate(struct search *search, struct weft_order_candidate *of,
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

/* Stages the candidate with rounds of `group` micro-steps. Its stages stay empty if the config has
 * no variant with these rounds. */
static enum weft_status stage_candidate(struct search *search, int32_t layers, int32_t group,
                                        struct weft_order_candidate *out, struct weft_error *err)
{
    struct weft_problem wanted = *search->session->plan->problem;
    struct weft_variant variant;
    wanted.period.layers = layers;
    wanted.period.group = group;
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
static enum weft_status plan_candidate(struct search *search, struct weft_order_candidate *of,
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
static void take_candidate(const struct search *search, const struct weft_order_candidate *of,
                           struct weft_other_order *found)
{
    const bool fits = of->least_bytes <= limit_of(search);
    if (of->stages.problem == NULL) return;
    if (of->least_bytes < found->least_bytes) found->least_bytes = of->least_bytes;
    if (fits && (found->bound_ns == 0 || of->bound_ns < found->bound_ns))
        found->bound_ns = of->bound_ns;
    const bool is_first = found->plan == NULL || (fits && !found->fits);
    if (of->plan != NULL && fits >= found->fits &&
        (is_first || of->plan->prediction.step_ns < found->plan->prediction.step_ns))
        found->plan = of->plan;
    found->fits |= fits;
}

/* Why the config has no such order; NULL: it has. */
static const char *refusal_of(const struct weft_config *config, int32_t layers, int32_t n_micro)
{
    if (layers > 0 && config->model->n_layers < 2) return "the model has one layer";
    return layers > 0 ? weft_config_refuses_turns(config, n_micro) : NULL;
}

enum weft_status weft_order_study_make(const struct weft_session *session, int64_t units,
                                       struct weft_order_study *out, struct weft_error *err)
{
    const struct weft_problem *own = session->plan->problem;
    const int32_t layers = own->period.layers > 0 ? 0 : 1, n_micro = own->period.n_micro;
    struct search search = {.session = session, .config = *session->config};
    int32_t n = 0;
    search.units = units / WEFT_ORDER_CADENCES;
    search.config.kept.turns = false;
    search.config.plan.micro_step_order = layers > 0 ? WEFT_ORDER_BY_LAYER : WEFT_ORDER_BY_STEP;
    *out = (struct weft_order_study){.found = {.layers = layers, .least_bytes = INT64_MAX}};
    out->found.refused = refusal_of(&search.config, layers, n_micro);
    if (out->found.refused != NULL) return WEFT_OK;
    out->found.own_least_bytes = weft_least_limit(own, 0, NULL);
    if (out->found.own_least_bytes < 0) return weft_fail_memory(err, "the least limit");
    for (int32_t i = 0; i < WEFT_ORDER_CADENCES; i++) {
        struct weft_order_candidate *candidate = &out->candidates[i];
        WEFT_TRY(stage_candidate(&search, layers, i == 0 ? n_micro : 1, candidate, err));
        WEFT_TRY(plan_candidate(&search, candidate, err));
        take_candidate(&search, candidate, &out->found);
        n += candidate->stages.problem != NULL;
    }
    if (n == 0) out->found.refused = "the config has no such period";
    return WEFT_OK;
}

void weft_order_study_finish(struct weft_order_study *study)
{
    for (int32_t i = 0; i < WEFT_ORDER_CADENCES; i++) {
        weft_plan_destroy(study->candidates[i].plan);
        weft_stages_finish(&study->candidates[i].stages);
    }
    *study = (struct weft_order_study){0};
}
