/* SPDX-License-Identifier: Apache-2.0 */
/* Planning of a session: every variant that the config leaves open, and the best plan of all. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "library/relief.h"
#include "library/session.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "scheduler/tree/proof.h"
#include "spec/config_batch.h"
#include "spec/target.h"

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
    bool has_start; /* the initial plan's variant has a plan, and is not planned again */
    struct weft_variant start;
    int32_t n_others;
    struct weft_plan_variant others[WEFT_MOST_PLANNED];
    struct weft_ascent ascent;   /* for a period that is not searched: towards the best step */
    struct weft_outcome refused; /* of the present period, if pages refuse it */
    struct weft_outcome refused_paged; /* likewise, of plans in pages */
    struct weft_pool pool;             /* owns its certificate */
    int64_t more_bytes, more_ns; /* the best step of a period with more memory; 0: not known */
};

/* Moves the bounds of one period among the others. A period that is planned twice is there once,
 * with the larger ones. */
static enum weft_status keep_bound(struct best *best, struct weft_plan_variant *bound,
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
static enum weft_status add_pages(const struct weft_session *session, const struct best *best,
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
static enum weft_status put_aside(struct weft_session *session, struct best *best,
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
    if (status == WEFT_OK) status = keep_bound(best, &bound, err);
    weft_plan_variant_finish(&bound);
    return status;
}

/* Whether the planner takes the largest micro-batch that fits, not the fastest. */
static bool fills_batch(const char *name)
{
    const struct weft_planner *planner = weft_planner_find(name, NULL);
    return planner != NULL && planner->fills_batch;
}

/* The faster plan is preferred. Of two equally fast plans, the one without offloaded state is, then
 * the one with whole copies. */
static bool is_preferred(const struct weft_plan *plan, const struct weft_plan *to)
{
    const struct weft_period_rule *rule = &plan->problem->period, *other = &to->problem->period;
    if (fills_batch(plan->planner) && plan->problem->micro_batch != to->problem->micro_batch)
        return plan->problem->micro_batch > to->problem->micro_batch;
    if (plan->prediction.step_ns != to->prediction.step_ns)
        return plan->prediction.step_ns < to->prediction.step_ns;
    if (rule->offloaded != other->offloaded) return !rule->offloaded;
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
    if (best->staged.plan) best->ascent.target_ns = best->staged.plan->prediction.step_ns;
    return session->stages.problem == NULL ? WEFT_OK : put_aside(session, best, err);
}

/* Moves the bounds of the other periods into the best plan. */
static enum weft_status hand_over(struct best *best, struct weft_plan *plan, struct weft_error *err)
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

static void drop_others(struct best *best)
{
    for (int32_t i = 0; i < best->n_others; i++)
        weft_plan_variant_finish(&best->others[i]);
    weft_pool_finish(&best->pool);
}

/* Remembers the best step that a period has with more memory. */
static void take_hint(struct best *best, const struct weft_plan *plan)
{
    const bool is_better = best->more_ns == 0 || plan->more_ns < best->more_ns ||
                           (plan->more_ns == best->more_ns && plan->more_bytes < best->more_bytes);
    if (plan->more_ns == 0 || !is_better) return;
    best->more_bytes = plan->more_bytes;
    best->more_ns = plan->more_ns;
}

/* Tells how much more memory allows a faster plan than the present one. */
static void tell_hint(int64_t more_bytes, int64_t more_ns, const struct weft_plan *plan)
{
    char more[WEFT_UNITS_TEXT_BYTES], step[WEFT_UNITS_TEXT_BYTES];
    if (more_ns == 0 || more_ns >= plan->prediction.step_ns) return;
    const int64_t limit_bytes = plan->problem->tiers[0].limit_bytes + more_bytes;
    weft_log(WEFT_LOG_INFO,
             "planner %s: %s more memory (--memory-limit %lldB) would allow a step of %s",
             plan->planner, weft_units_show_bytes(more_bytes, more), (long long)limit_bytes,
             weft_units_show_ns(more_ns, step));
}

/* Plans one period; *refusal tells why it has no plan. */
static enum weft_status plan_variant(struct weft_session *session,
                                     const struct weft_schedule_options *options,
                                     const struct weft_variant *variant, struct best *best,
                                     struct weft_error *refusal, struct weft_error *err)
{
    WEFT_TRY(weft_session_stage_variant(session, variant, err));
    /* After the alarm the best plan so far is enough. */
    const struct weft_work *work = options->budget.work;
    if (work && work->rang && best->staged.plan) return keep_faster(session, best, err);
    struct weft_schedule_options own = *options;
    best->refused = best->refused_paged = (struct weft_outcome){.pool = &best->pool};
    own.refused = &best->refused;
    own.refused_paged = &best->refused_paged;
    own.is_spare = best->staged.plan != NULL;
    enum weft_status status = weft_schedule(session->stages.problem, &session->inputs, &own,
                                            &session->plan, &session->program, refusal);
    /* A plan that does not fit or apply here may do so in another period. */
    if (status != WEFT_OK && status != WEFT_E_INFEASIBLE && status != WEFT_E_DATA)
        return weft_fail(err, status, "%s", refusal->text);
    if (session->plan != NULL) take_hint(best, session->plan);
    status = keep_faster(session, best, err);
    best->refused = best->refused_paged = (struct weft_outcome){0};
    return status;
}

/* Whether this variant has the initial plan, so that it was planned before all others. */
static bool is_start(const struct best *best, const struct weft_variant *variant)
{
    return best->has_start && weft_variant_same(&best->start, variant);
}

/* Plans the initial plan's variant, if the config allows it, with the share of one more variant. */
static enum weft_status plan_start(struct weft_session *session,
                                   const struct weft_schedule_options *options, int32_t n_feasible,
                                   struct best *best, struct weft_error *err)
{
    struct weft_schedule_options own = *options;
    struct weft_error refusal = {0};
    if (session->start == NULL ||
        !weft_variants_find(session->config, session->start->problem, &best->start))
        return WEFT_OK;
    own.budget = weft_budget_part(options->budget, 1.0 / (n_feasible + 1));
    WEFT_TRY(plan_variant(session, &own, &best->start, best, &refusal, err));
    best->has_start = best->staged.plan != NULL;
    return WEFT_OK;
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

/* Whether plans may copy in several blocks or whole. A draft copies in blocks. */
static bool may_copy_whole(const struct weft_session *session)
{
    const struct weft_config *config = session->config;
    return !session->draft && config->plan.offload.block_bytes == 0 &&
           (weft_config_moves_state(config) || weft_config_moves_layers(config));
}

/* Plans the best plan's variant with whole copies, if that plan copies in several blocks. Blocks
 * share a lane better, and take longer in sum, so either may be faster. */
static enum weft_status try_whole_copies(struct weft_session *session,
                                         const struct weft_schedule_options *options,
                                         struct best *best, struct weft_error *err)
{
    const struct weft_plan *plan = best->staged.plan;
    struct weft_schedule_options own = *options;
    struct weft_error refusal = {0};
    if (plan == NULL || !copies_in_blocks(plan->problem, plan)) return WEFT_OK;
    struct weft_variant variant = best->staged.stages.variant;
    variant.rule.whole_copies = true;
    if (is_start(best, &variant)) return WEFT_OK;
    WEFT_TRY(weft_session_stage_variant(session, &variant, err));
    const struct weft_problem *problem = session->stages.problem;
    const int64_t bytes = weft_least_limit(problem, 0, NULL);
    if (bytes < 0) return weft_fail_memory(err, "the least limit");
    if (bytes > problem->tiers[0].limit_bytes) return WEFT_OK;
    own.ascent_units = best->ascent.units;
    own.rival_ns = plan->prediction.step_ns;
    return plan_variant(session, &own, &variant, best, &refusal, err);
}

/* Variants in the order of planning. */
struct agenda {
    int32_t n, n_feasible;
    bool in_blocks;   /* one that can fit copies in several blocks */
    int64_t least_ns; /* proven of those that can fit, if looked for; INT64_MAX: none can */
    struct weft_variant variants[WEFT_MOST_VARIANTS];
    bool feasible[WEFT_MOST_VARIANTS];
    int64_t bounds_ns[WEFT_MOST_VARIANTS]; /* proven without a search; 0: not computed */
    struct weft_error refusals[WEFT_MOST_VARIANTS];
};

/* Puts variant `v` in its place among those before it, by bounds. */
static void sort_in(struct agenda *agenda, int32_t v)
{
    const struct weft_variant variant = agenda->variants[v];
    const int64_t bound_ns = agenda->bounds_ns[v];
    const bool feasible = agenda->feasible[v];
    for (; v > 0 && agenda->bounds_ns[v - 1] > bound_ns; v--) {
        agenda->variants[v] = agenda->variants[v - 1];
        agenda->bounds_ns[v] = agenda->bounds_ns[v - 1];
        agenda->feasible[v] = agenda->feasible[v - 1];
    }
    agenda->variants[v] = variant;
    agenda->bounds_ns[v] = bound_ns;
    agenda->feasible[v] = feasible;
}

/* Finds the variants with plans that can fit, by rows. `sorts`: those with the least bounds come
 * first, so that many of the rest need no search. `proves`: finds the least bound of them. */
static enum weft_status look_ahead(struct weft_session *session, bool sorts, bool proves,
                                   struct agenda *agenda, struct weft_error *err)
{
    agenda->least_ns = INT64_MAX;
    for (int32_t v = 0; v < agenda->n; v++) {
        WEFT_TRY(weft_session_stage_variant(session, &agenda->variants[v], err));
        const struct weft_problem *problem = session->stages.problem;
        int64_t bytes = weft_least_limit(problem, 0, NULL);
        if (bytes < 0) return weft_fail_memory(err, "the least limit");
        agenda->feasible[v] = bytes <= problem->tiers[0].limit_bytes;
        agenda->n_feasible += agenda->feasible[v];
        agenda->in_blocks |= agenda->feasible[v] && copies_in_blocks(problem, NULL);
        if (!sorts && !proves) continue;
        struct weft_pool pool = {0};
        struct weft_outcome trivial = {0};
        const enum weft_status status = weft_prove(problem, NULL, &pool, &trivial, err);
        weft_pool_finish(&pool);
        WEFT_TRY(status);
        if (agenda->feasible[v] && trivial.bound_ns < agenda->least_ns)
            agenda->least_ns = trivial.bound_ns;
        if (!sorts) continue;
        agenda->bounds_ns[v] = trivial.bound_ns;
        sort_in(agenda, v);
    }
    return WEFT_OK;
}

/* Progress shows one period of several, with its own best and bound. A plan within a larger task
 * does not show this. */
static void watch_period(struct weft_watch *watch, int32_t period, int32_t n, int64_t begun_ns)
{
    if (watch == NULL) return;
    weft_watch_part(watch, "plan", "period", period, n, begun_ns);
    weft_watch_plan(watch, 0, 0, watch->share);
}

/* Plans the variants in order and keeps the fastest plan that fits. Those that can fit share the
 * budget, and a later one gets the rest of an earlier part. A variant is not searched if its bound
 * is no less than the best step. */
static enum weft_status plan_agenda(struct weft_session *session,
                                    const struct weft_schedule_options *options,
                                    struct agenda *agenda, struct best *best,
                                    struct weft_error *err)
{
    enum { MOST_ASCENT = 50000000 };
    int32_t n_left = agenda->n_feasible;
    const int64_t left = weft_budget_left(options->budget);
    const int64_t greedy_units = left / WEFT_GREEDY_PART / (n_left > 1 ? n_left : 1) + 1;
    best->ascent.work = options->budget.work;
    best->ascent.units = 2 * greedy_units < MOST_ASCENT ? 2 * greedy_units : MOST_ASCENT;
    struct weft_watch *watch = session->watch;
    const bool shows_periods = watch != NULL && watch->parts == 0;
    const int64_t begun_ns = shows_periods ? watch->begun_ns : 0;
    enum weft_status status = WEFT_OK;
    for (int32_t v = 0; v < agenda->n && status == WEFT_OK; v++) {
        struct weft_schedule_options own = *options;
        const struct weft_plan *kept = best->staged.plan;
        if (shows_periods) watch_period(watch, v, agenda->n, begun_ns);
        const double share = 1.0 / (n_left > 1 ? n_left : 1);
        own.budget = weft_budget_part(options->budget, share);
        own.ascent_units = best->ascent.units;
        own.greedy_units = greedy_units; /* independent of earlier variants' use */
        n_left -= agenda->feasible[v];
        if (is_start(best, &agenda->variants[v])) continue;
        const int64_t late_at = weft_work_part_late(options->budget.work, share);
        if (kept != NULL && !fills_batch(kept->planner) &&
            agenda->bounds_ns[v] >= kept->prediction.step_ns) {
            status = weft_session_stage_variant(session, &agenda->variants[v], err);
            if (status == WEFT_OK) status = keep_faster(session, best, err);
        } else {
            status =
                plan_variant(session, &own, &agenda->variants[v], best, &agenda->refusals[v], err);
        }
        options->budget.work->late_at = late_at;
    }
    if (shows_periods) watch_period(watch, 0, 0, begun_ns);
    return status;
}

/* Shares of the remaining budget for the first axes; the last one gets the rest. Other ends of
 * backward than FSDP2's own are seldom faster. */
static const double SPLIT_SHARE = 0.6, SCALE_SHARE = 0.5, ENDS_SHARE = 0.9;

static bool is_literal(const char *name)
{
    const struct weft_planner *planner = weft_planner_find(name, NULL);
    return planner != NULL && planner->literal;
}

/* Leaves out the ends of backward that a published rule does not choose. */
static void leave_ends(struct agenda *agenda)
{
    int32_t n = 0;
    for (int32_t v = 0; v < agenda->n; v++)
        if (!agenda->variants[v].rule.late && agenda->variants[v].rule.more_inputs == 0)
            agenda->variants[n++] = agenda->variants[v];
    agenda->n = n;
}

/* Plans further variants next to the best plan so far. */
static enum weft_status plan_more(struct weft_session *session,
                                  const struct weft_schedule_options *options,
                                  struct agenda *agenda, struct best *best, struct weft_error *err)
{
    if (is_literal(options->planner)) leave_ends(agenda);
    WEFT_TRY(look_ahead(session, true, false, agenda, err));
    return plan_agenda(session, options, agenda, best, err);
}

static bool splits_are_open(const struct weft_config *config)
{
    int64_t splits[WEFT_MOST_SPLITS];
    return weft_config_splits(config, splits) > 1;
}

/* Plans the variants, which were looked at, one axis after another: first the listed ones, then
 * other sizes of blocks of the fastest, then those that share its split, cadence and blocks. */
static enum weft_status plan_axes(struct weft_session *session,
                                  const struct weft_schedule_options *options,
                                  struct agenda *agenda, struct best *best, struct weft_error *err)
{
    const struct weft_config *config = session->config;
    const bool splits_open = splits_are_open(config);
    const bool has_ends = weft_config_target(config)->finalizes;
    const bool scales_open = config->plan.block_scale == WEFT_BLOCKS_AUTO && !has_ends;
    struct weft_schedule_options part = *options;
    struct agenda *more = calloc(1, sizeof *more);
    if (more == NULL) return weft_fail_memory(err, "variants");
    /* Whole copies count as one more variant of the budget. */
    const bool tries_whole = may_copy_whole(session) && agenda->in_blocks;
    agenda->n_feasible += tries_whole;
    if (splits_open || scales_open) part.budget = weft_budget_part(options->budget, SPLIT_SHARE);
    if (has_ends && !splits_open) part.budget = weft_budget_part(options->budget, ENDS_SHARE);
    enum weft_status status = plan_start(session, &part, agenda->n_feasible, best, err);
    if (status == WEFT_OK) status = plan_agenda(session, &part, agenda, best, err);
    if (status == WEFT_OK && best->staged.plan != NULL) {
        more->n = weft_variants_list_scales(config, &best->staged.stages.variant, more->variants);
        part.budget =
            splits_open ? weft_budget_part(options->budget, SCALE_SHARE) : options->budget;
        status = plan_more(session, &part, more, best, err);
    }
    if (status == WEFT_OK && best->staged.plan != NULL) {
        *more = (struct agenda){0};
        more->n = weft_variants_list_more(config, &best->staged.stages.variant, more->variants);
        status = plan_more(session, options, more, best, err);
    }
    free(more);
    if (status == WEFT_OK && tries_whole) status = try_whole_copies(session, options, best, err);
    return status;
}

/* The periods of one order of micro-steps. */
struct by_order {
    int64_t layers; /* as in struct weft_period_rule */
    struct agenda agenda;
    struct best best;
};

/* Whether the planner may choose the order, and the list has periods of both. With a fixed order, a
 * split of one micro-step has no turns, and shares the list with all others. */
static bool has_orders(const struct weft_config *config, const struct agenda *agenda)
{
    bool has[2] = {false, false};
    for (int32_t v = 0; v < agenda->n; v++)
        has[agenda->variants[v].rule.layers > 0] = true;
    return weft_config_opens_turns(config) && has[0] && has[1];
}

/* Leaves the config with one order, and lists its periods. A split without turns is left to the
 * order of micro-step after micro-step. */
static enum weft_status list_order(struct weft_session *session, struct by_order *order,
                                   struct weft_error *err)
{
    struct weft_config *config = session->config;
    struct agenda *agenda = &order->agenda;
    int32_t n = 0;
    config->kept.turns = true;
    config->kept.layers = order->layers;
    agenda->n = weft_variants_list(config, agenda->variants);
    for (int32_t v = 0; v < agenda->n; v++)
        if (agenda->variants[v].rule.layers == order->layers)
            agenda->variants[n++] = agenda->variants[v];
    agenda->n = n;
    return look_ahead(session, splits_are_open(config), true, agenda, err);
}

/* Whether no plan of the order is faster than the other order's by more than the gap that is
 * asked. After the alarm the other order's plan is enough. */
static bool is_beaten(const struct weft_schedule_options *options, const struct by_order *order,
                      const struct best *by)
{
    const struct weft_plan *plan = by->staged.plan;
    if (plan == NULL || fills_batch(plan->planner)) return false;
    if (options->budget.work->rang) return true;
    return (double)order->agenda.least_ns * (1 + options->gap) >= (double)plan->prediction.step_ns;
}

/* Keeps the bounds of all periods of an order, which is not searched. */
static enum weft_status skip_order(struct weft_session *session, struct by_order *order,
                                   const struct best *by, struct weft_error *err)
{
    order->best.ascent = by->ascent;
    for (int32_t v = 0; v < order->agenda.n; v++) {
        WEFT_TRY(weft_session_stage_variant(session, &order->agenda.variants[v], err));
        WEFT_TRY(keep_faster(session, &order->best, err));
    }
    return WEFT_OK;
}

/* Moves plan and bounds of one order to the other's. */
static enum weft_status join_orders(struct weft_session *session, struct best *from,
                                    struct best *into, struct weft_error *err)
{
    swap_staged(session, &from->staged);
    drop_staged(&from->staged);
    from->staged = (struct staged){0};
    if (session->plan != NULL) WEFT_TRY(keep_faster(session, into, err));
    for (int32_t i = 0; i < from->n_others; i++)
        WEFT_TRY(keep_bound(into, &from->others[i], err));
    const bool is_better =
        from->more_ns > 0 && (into->more_ns == 0 || from->more_ns < into->more_ns);
    if (is_better) {
        into->more_bytes = from->more_bytes;
        into->more_ns = from->more_ns;
    }
    return WEFT_OK;
}

/* The order that comes first: of the initial plan, if it can fit, since its plan must not be
 * skipped. Otherwise that with the least bound. */
static int first_order(const struct weft_session *session, const struct by_order orders[2])
{
    const struct weft_plan *start = session->start;
    const int of_start = start != NULL && start->problem->period.layers > 0;
    if (start != NULL && orders[of_start].agenda.n_feasible > 0) return of_start;
    return orders[1].agenda.least_ns < orders[0].agenda.least_ns;
}

/* Plans each order as if it were the config's. If both can fit, each has half of the work, so the
 * result is no slower than each order alone with half of the work. The second order is skipped if
 * the first one beats it. */
static enum weft_status plan_both(struct weft_session *session,
                                  const struct weft_schedule_options *options,
                                  struct by_order orders[2], struct weft_error *err)
{
    for (int i = 0; i < 2; i++)
        WEFT_TRY(list_order(session, &orders[i], err));
    const int first = first_order(session, orders);
    const bool shares = orders[0].agenda.n_feasible > 0 && orders[1].agenda.n_feasible > 0;
    const int64_t left = weft_budget_left(options->budget);
    struct weft_schedule_options own = *options;
    for (int k = 0; k < 2; k++) {
        struct by_order *order = &orders[k == 0 ? first : 1 - first];
        const struct best *other = &orders[k == 0 ? 1 - first : first].best;
        session->config->kept.layers = order->layers;
        if (shares && left < INT64_MAX)
            own.budget = weft_budget_of(options->budget.work, left > 1 ? left / 2 : 1);
        WEFT_TRY(is_beaten(options, order, other)
                     ? skip_order(session, order, other, err)
                     : plan_axes(session, &own, &order->agenda, &order->best, err));
    }
    return join_orders(session, &orders[1].best, &orders[0].best, err);
}

/* Plans both orders of micro-steps. *best and the agenda get the results of both. */
static enum weft_status plan_orders(struct weft_session *session,
                                    const struct weft_schedule_options *options,
                                    struct agenda *agenda, struct best *best,
                                    struct weft_error *err)
{
    struct by_order *orders = calloc(2, sizeof *orders);
    if (orders == NULL) return weft_fail_memory(err, "variants");
    orders[1].layers = 1;
    const enum weft_status status = plan_both(session, options, orders, err);
    session->config->kept.turns = false;
    session->config->kept.layers = 0;
    drop_staged(&orders[1].best.staged);
    drop_others(&orders[1].best);
    *best = orders[0].best;
    agenda->n = 0;
    for (int i = 0; i < 2; i++)
        for (int32_t v = 0; v < orders[i].agenda.n; v++) {
            agenda->variants[agenda->n] = orders[i].agenda.variants[v];
            agenda->refusals[agenda->n++] = orders[i].agenda.refusals[v];
        }
    free(orders);
    return status;
}

/* Plans every variant that the config leaves open, or the best along each axis. */
static enum weft_status plan_variants(struct weft_session *session,
                                      const struct weft_schedule_options *options,
                                      struct agenda *agenda, struct weft_error *err)
{
    struct best best = {0};
    enum weft_status status;
    if (has_orders(session->config, agenda)) {
        status = plan_orders(session, options, agenda, &best, err);
    } else {
        status = look_ahead(session, splits_are_open(session->config), false, agenda, err);
        if (status == WEFT_OK) status = plan_axes(session, options, agenda, &best, err);
    }
    const bool found = best.staged.plan != NULL;
    if (found) {
        swap_staged(session, &best.staged);
        drop_staged(&best.staged);
        weft_config_settle(session->config, session->stages.variant.batch.samples);
        session->inputs = weft_lower_inputs_of(session->config, session->profile, &session->stages);
        if (status == WEFT_OK) status = hand_over(&best, session->plan, err);
        tell_hint(best.more_bytes, best.more_ns, session->plan);
    }
    drop_others(&best);
    if (status != WEFT_OK || found) return status;
    return weft_session_refuse_all(session, options->planner, agenda->variants, agenda->refusals,
                                   agenda->n, err);
}

/* Plans the only open period. */
static enum weft_status plan_only(struct weft_session *session,
                                  const struct weft_schedule_options *options,
                                  const struct weft_variant *variant, struct weft_error *err)
{
    struct weft_error refusal = {0};
    const enum weft_status status =
        weft_schedule(session->stages.problem, &session->inputs, options, &session->plan,
                      &session->program, &refusal);
    if (status != WEFT_OK) return weft_session_refuse(session, variant, &refusal, err);
    tell_hint(session->plan->more_bytes, session->plan->more_ns, session->plan);
    return WEFT_OK;
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

/* A variant's plan may be the best one, and complete, though the alarm cut the search of others. */
static enum weft_status note_alarm(const struct weft_work *work, struct weft_plan *plan,
                                   struct weft_error *err)
{
    static const char word[] = "time limit";
    struct weft_text text;
    if (!work->rang || plan == NULL || plan->solver_stop == NULL) return WEFT_OK;
    if (strstr(plan->solver_stop, word) != NULL) return WEFT_OK;
    weft_text_init(&text);
    weft_text_addf(&text, "%s%s%s", word, plan->solver_stop[0] != '\0' ? ", " : "",
                   plan->solver_stop);
    const char *stop =
        weft_text_ok(&text) ? weft_pool_string(&plan->pool, weft_text_chars(&text)) : NULL;
    weft_text_finish(&text);
    if (stop == NULL) return weft_fail_memory(err, "a plan");
    plan->solver_stop = stop;
    return WEFT_OK;
}

/* A solver that remembers the name in its answers, over all variants. */
struct asked {
    const struct weft_solver *solver;
    char name[WEFT_LP_NAME_BYTES];
};

static enum weft_status ask_solver(void *context, const struct weft_lp *lp,
                                   const struct weft_lp_limits *limits, struct weft_pool *pool,
                                   struct weft_lp_result *result, struct weft_error *err)
{
    struct asked *asked = context;
    WEFT_TRY(asked->solver->solve(asked->solver->context, lp, limits, pool, result, err));
    if (result->by) snprintf(asked->name, sizeof asked->name, "%s", result->by);
    return WEFT_OK;
}

static void release_solver(void *context)
{
    const struct asked *asked = context;
    if (asked->solver->release) asked->solver->release(asked->solver->context);
}

static struct weft_solver solver_of_asked(struct asked *asked)
{
    return (struct weft_solver){.solve = asked->solver->solve ? ask_solver : NULL,
                                .release = release_solver,
                                .context = asked};
}

/* Another solver may find another of several optimal points, so the plan names the solver. */
static enum weft_status note_solver(const struct asked *asked, struct weft_plan *plan,
                                    struct weft_error *err)
{
    if (asked->name[0] == '\0') return WEFT_OK;
    plan->solver_name = weft_pool_string(&plan->pool, asked->name);
    return plan->solver_name ? WEFT_OK : weft_fail_memory(err, "a plan");
}

/* Units after which ilp begins no plan that only may be faster: those of its budget, and as many
 * again. A rule that the user asks for is always completed, so there are none. */
static int64_t late_units(const char *name, int64_t units)
{
    enum { LEAST_UNITS = 100000000 };
    const struct weft_planner *planner = weft_planner_find(name, NULL);
    const int64_t more = units > LEAST_UNITS ? units : LEAST_UNITS;
    if (planner == NULL || !planner->searches || units <= 0 || units > INT64_MAX - more) return 0;
    return units + more;
}

enum weft_status weft_session_plan_levels(struct weft_session *session, const char *planner,
                                          struct weft_error *err)
{
    const struct weft_plan_options *wanted = &session->config->plan;
    struct asked asked = {.solver = &session->solver};
    const int64_t time_ns = wanted->time_limit_ns;
    const int64_t units = weft_work_within((int64_t)wanted->work_limit, time_ns);
    struct weft_work work = weft_work_begin(weft_clock_now_ns, time_ns);
    weft_work_be_watched(&work, session->watch, session->draft ? 0 : units);
    work.late_at = late_units(planner ? planner : wanted->planner, units);
    struct weft_schedule_options options = {
        .planner = planner ? planner : wanted->planner,
        .policy_limit_bytes = wanted->policy_limit_bytes,
        .seed = (uint64_t)wanted->seed,
        .budget = weft_budget_of(&work, units),
        .gap = wanted->gap,
        .draft = session->draft,
        .hint = session->hint,
        .solver = solver_of_asked(&asked),
    };
    const struct weft_plan *starts[] = {session->start};
    if (session->start) {
        options.starts = starts;
        options.n_starts = 1;
    }
    struct agenda agenda = {0};
    const int32_t n_open = weft_variants_count(session->config);
    agenda.n = weft_variants_list(session->config, agenda.variants);
    weft_session_drop_plan(session);
    weft_watch_begin(session->watch, "plan");
    enum weft_status status = WEFT_OK;
    if (!weft_variant_same(&session->stages.variant, &agenda.variants[0]))
        status = weft_session_stage_variant(session, &agenda.variants[0], err);
    const bool several = agenda.n > 1 ||
                         session->config->plan.block_scale == (int)WEFT_BLOCKS_AUTO ||
                         weft_config_target(session->config)->finalizes ||
                         (status == WEFT_OK && may_copy_whole(session) &&
                          copies_in_blocks(session->stages.problem, NULL));
    if (status == WEFT_OK)
        status = several ? plan_variants(session, &options, &agenda, err)
                         : plan_only(session, &options, &agenda.variants[0], err);
    weft_watch_end(session->watch);
    weft_session_tell_disturbance(&work, time_ns);
    weft_log(WEFT_LOG_DEBUG, "planning took %.3f G units of work, and %.3f G that no budget counts",
             (double)work.spent / 1e9, (double)work.returned / 1e9);
    if (status == WEFT_OK) status = note_alarm(&work, session->plan, err);
    if (status == WEFT_OK) status = note_solver(&asked, session->plan, err);
    if (status == WEFT_OK) session->plan->n_open = n_open;
    if (status != WEFT_OK || session->program == NULL) return status;
    return weft_program_verify(session->program, session->stages.problem->tiers[0].limit_bytes,
                               err);
}
