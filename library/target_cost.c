/* SPDX-License-Identifier: Apache-2.0 */
#include "library/target_cost.h"

#include "base/clock.h"
#include "problem/parts.h"
#include "scheduler/schedule.h"
#include "scheduler/tree/proof.h"
#include "spec/target.h"

enum { COST_PART = 4 }; /* of the config's work */

/* Plans one period. Its bound is the least so far, and its step too if it has a plan. */
static enum weft_status plan_period(const struct weft_problem *problem,
                                    const struct weft_schedule_options *options,
                                    struct weft_plan *to, struct weft_error *err)
{
    struct weft_error refusal = {0};
    struct weft_plan *plan = NULL;
    struct weft_pool pool = {0};
    struct weft_outcome trivial = {0};
    enum weft_status status = weft_schedule(problem, NULL, options, &plan, NULL, &refusal);
    int64_t bound_ns = 0;
    if (status == WEFT_OK) {
        const int64_t step_ns = plan->prediction.step_ns;
        bound_ns = plan->bound_ns;
        if (to->free_step_ns == 0 || step_ns < to->free_step_ns) to->free_step_ns = step_ns;
    } else if (status == WEFT_E_INFEASIBLE) {
        status = weft_prove(problem, NULL, &pool, &trivial, &refusal);
        bound_ns = trivial.bound_ns;
    }
    if (to->free_bound_ns == 0 || bound_ns < to->free_bound_ns) to->free_bound_ns = bound_ns;
    weft_plan_destroy(plan);
    weft_pool_finish(&pool);
    return status == WEFT_OK ? WEFT_OK : weft_fail(err, status, "%s", refusal.text);
}

/* Weft's executor trains a whole layer or none of it, so such a model has no plan of Weft's own. */
static bool has_frozen_parts(const struct weft_problem *problem)
{
    for (int32_t d = 0; d < problem->n_decisions; d++)
        if (problem->decisions[d].frozen_elements > 0) return true;
    return false;
}

enum weft_status weft_session_add_cost(struct weft_session *session, struct weft_error *err)
{
    struct weft_config config = *session->config;
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    const int64_t time_ns = config.plan.time_limit_ns;
    const int64_t units = weft_work_within((int64_t)config.plan.work_limit, time_ns) / COST_PART;
    struct weft_work work = weft_work_begin(weft_clock_now_ns, time_ns);
    struct weft_schedule_options options = {
        .planner = "ilp", .gap = config.plan.gap, .solver = session->solver};
    if (!weft_config_target(&config)->is_foreign || has_frozen_parts(session->plan->problem))
        return WEFT_OK;
    config.plan.target = WEFT_FOR_WEFT;
    /* Blocks of the usual size, and whole units as the target has them. */
    const int32_t n = weft_variants_list(&config, variants), n_all = 2 * n;
    for (int32_t v = 0; v < n_all; v++) {
        struct weft_stages stages = {0};
        struct weft_variant variant = variants[v / 2];
        if (v % 2 == 1) variant.scale = WEFT_BLOCKS_WHOLE;
        options.budget = weft_budget_part(weft_budget_of(&work, units), 1.0 / (n_all - v));
        WEFT_TRY(weft_stages_create_variant(&config, session->profile, &variant, &stages, err));
        const enum weft_status status = plan_period(stages.problem, &options, session->plan, err);
        weft_stages_finish(&stages);
        WEFT_TRY(status);
    }
    struct weft_plan *plan = session->plan;
    plan->free_never_fits = plan->free_bound_ns >= WEFT_PROBLEM_MOST;
    if (plan->free_never_fits) plan->free_bound_ns = 0;
    return WEFT_OK;
}
