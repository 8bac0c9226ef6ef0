/* SPDX-License-Identifier: Apache-2.0 */
#include "library/found.h"

#include "base/log.h"
#include "base/units.h"
#include "scheduler/planners/table.h"

void weft_staged_swap(struct weft_session *session, struct weft_staged *other)
{
    const struct weft_staged own = {session->stages, session->plan, session->program};
    session->stages = other->stages;
    session->plan = other->plan;
    session->program = other->program;
    *other = own;
}

void weft_staged_drop(struct weft_staged *staged)
{
    weft_program_destroy(staged->program);
    weft_plan_destroy(staged->plan);
    weft_stages_finish(&staged->stages);
}

enum weft_status weft_found_keep_bound(struct weft_found *best, struct weft_plan_variant *bound,
                                       struct weft_error *err)
{
    int32_t at = 0;
    while (at < best->n_others && !weft_plan_same_variant(best->others[at].problem, bound->problem))
        at++;
    if (at == WEFT_MOST_PLANNED)
        return weft_fail(err, WEFT_E_INTERNAL, "a plan of more than %d periods", WEFT_MOST_PLANNED);
    struct weft_plan_variant *kept = &best->others[at];
    if (at == best->n_others) {
        *kept = *bound;
        *bound = (struct weft_plan_variant){0};
        best->n_others++;
    } else {
        weft_plan_variant_merge(kept, bound);
    }
    return WEFT_OK;
}

/* Records the bound in pages of the session's plan, or of a period that pages refuse. */
static enum weft_status add_pages(const struct weft_session *session, const struct weft_found *best,
                                  struct weft_plan_variant *bound, struct weft_error *err)
{
    const struct weft_problem *problem = session->stages.problem;
    const struct weft_plan *plan = session->plan;
    const struct weft_outcome *refused = &best->refused_paged;
    const int64_t asked_bytes = session->inputs.page_bytes;
    if (plan == NULL)
        return weft_plan_variant_add_pages(bound, problem, refused->bound_ns,
                                           asked_bytes > 0 ? asked_bytes : WEFT_PAGE_LEAST_BYTES,
                                           &refused->certificate, err);
    return weft_plan_variant_add_pages(bound, problem, plan->paged_bound_ns, plan->pages.page_bytes,
                                       &plan->paged_certificate, err);
}

/* Stores the bounds of the session's period, and drops its plan and stages. A period that pages
 * refuse keeps the bounds that its search proved. */
static enum weft_status put_aside(struct weft_session *session, struct weft_found *best,
                                  struct weft_error *err)
{
    if (session->draft) return WEFT_OK; /* the next period's stages replace them */
    struct weft_plan_variant bound = {0};
    const struct weft_problem *problem = session->stages.problem;
    const struct weft_plan *plan = session->plan;
    struct weft_pool pool = {0};
    struct weft_outcome proven = best->refused;
    const bool searched = proven.certificate.n_nodes > 0;
    enum weft_status status = WEFT_OK;
    const bool has_rung = best->ascent.work != NULL && best->ascent.work->rang;
    if (plan == NULL && !searched)
        status = weft_prove(problem, has_rung ? NULL : &best->ascent, &pool, &proven, err);
    if (status == WEFT_OK)
        status =
            weft_plan_variant_create(problem, plan ? plan->bound_ns : proven.bound_ns,
                                     plan ? &plan->certificate : &proven.certificate, &bound, err);
    if (status == WEFT_OK) status = add_pages(session, best, &bound, err);
    weft_pool_finish(&pool);
    weft_session_drop_plan(session);
    if (status == WEFT_OK) status = weft_found_keep_bound(best, &bound, err);
    weft_plan_variant_finish(&bound);
    return status;
}

bool weft_found_fills_batch(const char *name)
{
    const struct weft_planner *planner = weft_planner_find(name, NULL);
    return planner != NULL && planner->fills_batch;
}

/* The faster plan is preferred. Of two equally fast plans, the one without offloaded state is, then
 * the one with whole copies. */
static bool is_preferred(const struct weft_plan *plan, const struct weft_plan *to)
{
    const struct weft_period_rule *rule = &plan->problem->period, *other = &to->problem->period;
    if (weft_found_fills_batch(plan->planner) &&
        plan->problem->micro_batch != to->problem->micro_batch)
        return plan->problem->micro_batch > to->problem->micro_batch;
    if (plan->prediction.step_ns != to->prediction.step_ns)
        return plan->prediction.step_ns < to->prediction.step_ns;
    if (rule->offloaded != other->offloaded) return !rule->offloaded;
    return rule->whole_copies && !other->whole_copies;
}

enum weft_status weft_found_keep_faster(struct weft_session *session, struct weft_found *best,
                                        struct weft_error *err)
{
    const struct weft_plan *kept = best->staged.plan;
    const bool faster =
        session->plan != NULL && (kept == NULL || is_preferred(session->plan, kept));
    if (faster) weft_staged_swap(session, &best->staged);
    if (best->staged.plan) best->ascent.target_ns = best->staged.plan->prediction.step_ns;
    return session->stages.problem == NULL ? WEFT_OK : put_aside(session, best, err);
}

enum weft_status weft_found_hand_over(struct weft_found *best, struct weft_plan *plan,
                                      struct weft_error *err)
{
    plan->others = weft_pool_array(&plan->pool, (size_t)best->n_others, sizeof *plan->others);
    if (plan->others == NULL) return weft_fail_memory(err, "a plan");
    for (int32_t i = 0; i < best->n_others; i++) {
        if (weft_plan_same_variant(plan->problem, best->others[i].problem)) continue;
        plan->others[plan->n_others++] = best->others[i];
        best->others[i] = (struct weft_plan_variant){0};
    }
    return WEFT_OK;
}

void weft_found_drop(struct weft_found *best)
{
    for (int32_t i = 0; i < best->n_others; i++)
        weft_plan_variant_finish(&best->others[i]);
    weft_pool_finish(&best->pool);
}

void weft_found_take_hint(struct weft_found *best, const struct weft_plan *plan)
{
    const bool is_better = best->more_ns == 0 || plan->more_ns < best->more_ns ||
                           (plan->more_ns == best->more_ns && plan->more_bytes < best->more_bytes);
    if (plan->more_ns == 0 || !is_better) return;
    best->more_bytes = plan->more_bytes;
    best->more_ns = plan->more_ns;
}

void weft_found_tell_hint(int64_t more_bytes, int64_t more_ns, const struct weft_plan *plan)
{
    char more[WEFT_UNITS_TEXT_BYTES], step[WEFT_UNITS_TEXT_BYTES];
    if (more_ns == 0 || more_ns >= plan->prediction.step_ns) return;
    const int64_t limit_bytes = plan->problem->tiers[0].limit_bytes + more_bytes;
    weft_log(WEFT_LOG_INFO,
             "planner %s: %s more memory (--memory-limit %lldB) would allow a step of %s",
             plan->planner, weft_units_show_bytes(more_bytes, more), (long long)limit_bytes,
             weft_units_show_ns(more_ns, step));
}
