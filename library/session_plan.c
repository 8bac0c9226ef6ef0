/* SPDX-License-Identifier: Apache-2.0 */
/* Planning of a session: every variant that the config leaves open, and the best plan of all. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "library/found.h"
#include "library/relief.h"
#include "library/session.h"
#include "library/solver/asked.h"
#include "scheduler/digest/digest.h"
#include "scheduler/planners/table.h"
#include "scheduler/schedule.h"
#include "scheduler/tree/proof.h"
#include "spec/config_batch.h"
#include "spec/target.h"

/* Plans one period; *refusal tells why it has no plan. */
static enum weft_status plan_variant(struct weft_session *session,
                                     const struct weft_schedule_options *options,
                                     const struct weft_variant *variant, struct weft_found *best,
                                     struct weft_error *refusal, struct weft_error *err)
{
    WEFT_TRY(weft_session_stage_variant(session, variant, err));
    /* After the alarm the best plan so far is enough. */
    const struct weft_work *work = options->budget.work;
    if (work && work->rang && best->staged.plan) return weft_found_keep_faster(session, best, err);
    struct weft_schedule_options own = *options;
    best->refused = best->refused_paged = (struct weft_outcome){.pool = &best->pool};
    own.refused = &best->refused;
    own.refused_paged = &best->refused_paged;
    own.is_spare = best->staged.plan != NULL;
    own.kept_ns = own.is_spare ? best->staged.plan->prediction.step_ns : 0;
    enum weft_status status = weft_schedule(session->stages.problem, &session->inputs, &own,
                                            &session->plan, &session->program, refusal);
    /* A plan that does not fit or apply here may do so in another period. */
    if (status != WEFT_OK && status != WEFT_E_INFEASIBLE && status != WEFT_E_DATA)
        return weft_fail(err, status, "%s", refusal->text);
    if (session->plan != NULL) weft_found_take_hint(best, session->plan);
    status = weft_found_keep_faster(session, best, err);
    best->refused = best->refused_paged = (struct weft_outcome){0};
    return status;
}

/* Whether this variant has the initial plan, so that it was planned before all others. */
static bool is_start(const struct weft_found *best, const struct weft_variant *variant)
{
    return best->has_start && weft_variant_same(&best->start, variant);
}

/* Plans the initial plan's variant, if the config allows it, with the share of one more variant. */
static enum weft_status plan_start(struct weft_session *session,
                                   const struct weft_schedule_options *options, int32_t n_feasible,
                                   struct weft_found *best, struct weft_error *err)
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
                                         struct weft_found *best, struct weft_error *err)
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
                                    struct agenda *agenda, struct weft_found *best,
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
        if (kept != NULL && !weft_found_fills_batch(kept->planner) &&
            agenda->bounds_ns[v] >= kept->prediction.step_ns) {
            status = weft_session_stage_variant(session, &agenda->variants[v], err);
            if (status == WEFT_OK) status = weft_found_keep_faster(session, best, err);
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
                                  struct agenda *agenda, struct weft_found *best,
                                  struct weft_error *err)
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
                                  struct agenda *agenda, struct weft_found *best,
                                  struct weft_error *err)
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

/* The periods of one order of micro-steps. */
struct by_order {
    int64_t layers;        /* as in struct weft_period_rule */
    const uint8_t *levels; /* of recomputation, as the config has them if it has this order alone */
    struct weft_profile *profile; /* with their times: the session's at its end, or freed there */
    int64_t draft_ns;             /* step of a draft; INT64_MAX: none fits; 0: there is none */
    struct agenda agenda;
    struct weft_found best;
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

/* Leaves the config with one order. */
static void enter_order(struct weft_session *session, const struct by_order *order)
{
    session->profile = order->profile;
    session->config->kept.turns = true;
    session->config->kept.layers = order->layers;
    session->config->recomputes = order->levels;
}

/* Lists the periods of an order. A split without turns is left to the order of micro-step after
 * micro-step. */
static enum weft_status list_order(struct weft_session *session, struct by_order *order,
                                   struct weft_error *err)
{
    const struct weft_config *config = session->config;
    struct agenda *agenda = &order->agenda;
    int32_t n = 0;
    enter_order(session, order);
    *agenda = (struct agenda){0};
    agenda->n = weft_variants_list(config, agenda->variants);
    for (int32_t v = 0; v < agenda->n; v++)
        if (agenda->variants[v].rule.layers == order->layers)
            agenda->variants[n++] = agenda->variants[v];
    agenda->n = n;
    return look_ahead(session, splits_are_open(config), true, agenda, err);
}

/* Lets layers recompute in an order without a plan, as they would if it were the config's. *opened:
 * the config left that open, and times are known. */
static enum weft_status open_order(struct weft_session *session,
                                   const struct weft_schedule_options *options,
                                   const struct by_order *other, struct by_order *order,
                                   bool *opened, struct weft_error *err)
{
    struct weft_error why = {0};
    *opened = false;
    enter_order(session, order);
    if (strcmp(options->planner, "ilp") != 0 || !weft_session_may_recompute(session))
        return WEFT_OK;
    struct weft_profile *former = NULL;
    const enum weft_status status =
        weft_session_renew_levels(session, &order->agenda.variants[0], &former, &why);
    if (status == WEFT_E_DATA) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", why.text);
    *opened = true;
    order->levels = session->config->recomputes;
    order->profile = session->profile;
    if (former != other->profile) weft_profile_destroy(former);
    weft_staged_drop(&order->best.staged);
    weft_found_drop(&order->best);
    order->best = (struct weft_found){0};
    return list_order(session, order, err);
}

/* Whether no plan of the order is faster than the other order's by more than the gap that is
 * asked. After the alarm the other order's plan is enough. */
static bool is_beaten(const struct weft_schedule_options *options, const struct by_order *order,
                      const struct weft_found *by)
{
    const struct weft_plan *plan = by->staged.plan;
    if (plan == NULL || weft_found_fills_batch(plan->planner)) return false;
    if (options->budget.work->rang) return true;
    return (double)order->agenda.least_ns * (1 + options->gap) >= (double)plan->prediction.step_ns;
}

/* Keeps the bounds of all periods of an order, which is not searched. */
static enum weft_status skip_order(struct weft_session *session, struct by_order *order,
                                   const struct weft_found *by, struct weft_error *err)
{
    order->best.ascent = by->ascent;
    for (int32_t v = 0; v < order->agenda.n; v++) {
        WEFT_TRY(weft_session_stage_variant(session, &order->agenda.variants[v], err));
        WEFT_TRY(weft_found_keep_faster(session, &order->best, err));
    }
    return WEFT_OK;
}

/* Moves plan and bounds of one order to the other's. */
static enum weft_status join_orders(struct weft_session *session, struct weft_found *from,
                                    struct weft_found *into, struct weft_error *err)
{
    weft_staged_swap(session, &from->staged);
    weft_staged_drop(&from->staged);
    from->staged = (struct weft_staged){0};
    if (session->plan != NULL) WEFT_TRY(weft_found_keep_faster(session, into, err));
    for (int32_t i = 0; i < from->n_others; i++)
        WEFT_TRY(weft_found_keep_bound(into, &from->others[i], err));
    const bool is_better =
        from->more_ns > 0 && (into->more_ns == 0 || from->more_ns < into->more_ns);
    if (is_better) {
        into->more_bytes = from->more_bytes;
        into->more_ns = from->more_ns;
    }
    return WEFT_OK;
}

/* Plans an order as if it were the config's: layers recompute if nothing fits without that. As
 * there, the attempt without counts in no budget. */
static enum weft_status plan_order(struct weft_session *session,
                                   const struct weft_schedule_options *options,
                                   const struct by_order *other, struct by_order *order,
                                   struct weft_error *err)
{
    bool opened;
    struct weft_work *work = options->budget.work;
    const int64_t begun = work->spent, units = weft_budget_left(options->budget);
    const int64_t done = begun + work->returned;
    struct weft_schedule_options own = *options;
    enter_order(session, order);
    WEFT_TRY(plan_axes(session, options, &order->agenda, &order->best, err));
    if (order->best.staged.plan != NULL) return WEFT_OK;
    WEFT_TRY(open_order(session, options, other, order, &opened, err));
    if (!opened) return WEFT_OK;
    weft_work_return(work, begun);
    if (work->late_at > 0) work->late_at += work->spent + work->returned - done;
    if (units < INT64_MAX) own.budget = weft_budget_of(work, units);
    return plan_axes(session, &own, &order->agenda, &order->best, err);
}

/* Drafts the order with so many units of work, and with as many again if it must recompute. They
 * count in no budget. */
static enum weft_status draft_order(struct weft_session *session,
                                    const struct weft_schedule_options *options,
                                    struct by_order *order, int64_t units, struct weft_error *err)
{
    struct weft_work work = {.now_ns = options->budget.work->now_ns,
                             .alarm_ns = options->budget.work->alarm_ns,
                             .late_at = 2 * units};
    struct weft_schedule_options own = *options;
    struct by_order *copy = malloc(sizeof *copy);
    if (copy == NULL) return weft_fail_memory(err, "variants");
    *copy = *order;
    copy->best = (struct weft_found){0};
    own.draft = true;
    own.hidden = true;
    own.budget = weft_budget_of(&work, units);
    const bool draft = session->draft;
    session->draft = true;
    const enum weft_status status = plan_order(session, &own, order, copy, err);
    session->draft = draft;
    const struct weft_plan *plan = copy->best.staged.plan;
    order->draft_ns = plan ? plan->prediction.step_ns : INT64_MAX;
    weft_session_drop_plan(session);
    weft_staged_drop(&copy->best.staged);
    weft_found_drop(&copy->best);
    weft_stages_finish(&session->stages);
    if (copy->profile != order->profile) weft_profile_destroy(copy->profile);
    enter_order(session, order);
    free(copy);
    weft_work_add_returned(options->budget.work, &work);
    options->budget.work->late_at += work.spent + work.returned;
    options->budget.work->rang |= work.rang;
    options->budget.work->disturbed |= work.disturbed;
    return status;
}

/* Drafts both orders, if both can fit and work limits the planner. An order is not drafted if its
 * bound is no less than the other draft. */
static enum weft_status draft_both(struct weft_session *session,
                                   const struct weft_schedule_options *options,
                                   struct by_order orders[2], struct weft_error *err)
{
    enum { DRAFT_PART = 8, LEAST_UNITS = 20000000 };
    const struct weft_planner *planner = weft_planner_find(options->planner, NULL);
    const int64_t left = weft_budget_left(options->budget), part = left / DRAFT_PART;
    const int least = orders[1].agenda.least_ns < orders[0].agenda.least_ns;
    const bool both = orders[0].agenda.n_feasible > 0 && orders[1].agenda.n_feasible > 0;
    if (!both || left == INT64_MAX || planner == NULL || !planner->searches) return WEFT_OK;
    for (int k = 0; k < 2; k++) {
        struct by_order *order = &orders[k == 0 ? least : 1 - least];
        order->draft_ns = order->agenda.least_ns;
        if (k == 1 && order->agenda.least_ns >= orders[least].draft_ns) continue;
        WEFT_TRY(
            draft_order(session, options, order, part > LEAST_UNITS ? part : LEAST_UNITS, err));
    }
    return WEFT_OK;
}

/* The order that comes first, with all of the work: of the initial plan, if it can fit, since its
 * plan must not be skipped. Otherwise that with the faster draft, or with the least bound. */
static int first_order(const struct weft_session *session, const struct by_order orders[2])
{
    const struct weft_plan *start = session->start;
    const int of_start = start != NULL && start->problem->period.layers > 0;
    if (start != NULL && orders[of_start].agenda.n_feasible > 0) return of_start;
    if (orders[0].draft_ns != orders[1].draft_ns) return orders[1].draft_ns < orders[0].draft_ns;
    return orders[1].agenda.least_ns < orders[0].agenda.least_ns;
}

/* Plans the order after the first one with the rest of the work. It is skipped if it is beaten, or
 * if no work is left and its draft is slower by more than a draft misjudges. Another draft gets as
 * much work again, and so does an order if the first one has no plan. */
static enum weft_status plan_second(struct weft_session *session,
                                    const struct weft_schedule_options *options, int64_t units,
                                    const struct by_order *first, struct by_order *order,
                                    struct weft_error *err)
{
    enum { MISJUDGED_PART = 8 }; /* of a draft's step, that all of the work may gain more */
    struct weft_schedule_options own = *options;
    const struct weft_plan *plan = first->best.staged.plan;
    const bool is_over = weft_budget_is_over(options->budget);
    enter_order(session, order);
    if (is_beaten(options, order, &first->best) ||
        (is_over && plan != NULL &&
         order->draft_ns - order->draft_ns / MISJUDGED_PART >= plan->prediction.step_ns))
        return skip_order(session, order, &first->best, err);
    if ((is_over || plan == NULL) && units < INT64_MAX) {
        struct weft_work *work = options->budget.work;
        const int64_t late_at = work->spent + work->returned + late_units(options->planner, units);
        own.budget = weft_budget_of(work, units);
        if (work->late_at > 0 && late_at > work->late_at) work->late_at = late_at;
    }
    return plan_order(session, &own, first, order, err);
}

/* Plans both orders. The first one gets all of the work, so its plan is as fast as if it were the
 * config's. */
static enum weft_status plan_both(struct weft_session *session,
                                  const struct weft_schedule_options *options,
                                  struct by_order orders[2], struct weft_error *err)
{
    const int64_t units = weft_budget_left(options->budget);
    for (int i = 0; i < 2; i++)
        WEFT_TRY(list_order(session, &orders[i], err));
    for (int i = 0; i < 2; i++) {
        bool opened = orders[i].agenda.n_feasible == 0 && orders[1 - i].agenda.n_feasible > 0;
        if (opened)
            WEFT_TRY(open_order(session, options, &orders[1 - i], &orders[i], &opened, err));
    }
    WEFT_TRY(draft_both(session, options, orders, err));
    const int first = first_order(session, orders);
    WEFT_TRY(plan_order(session, options, &orders[1 - first], &orders[first], err));
    WEFT_TRY(plan_second(session, options, units, &orders[first], &orders[1 - first], err));
    return join_orders(session, &orders[1].best, &orders[0].best, err);
}

/* Plans both orders of micro-steps. *best and the agenda get the results of both. */
static enum weft_status plan_orders(struct weft_session *session,
                                    const struct weft_schedule_options *options,
                                    struct agenda *agenda, struct weft_found *best,
                                    struct weft_error *err)
{
    struct by_order *orders = calloc(2, sizeof *orders);
    if (orders == NULL) return weft_fail_memory(err, "variants");
    const uint8_t *levels = session->config->recomputes;
    orders[0].levels = orders[1].levels = levels;
    orders[0].profile = orders[1].profile = session->profile;
    orders[1].layers = 1;
    const enum weft_status status = plan_both(session, options, orders, err);
    const struct weft_plan *plan = orders[0].best.staged.plan;
    session->config->kept.turns = false;
    session->config->kept.layers = 0;
    const struct by_order *kept = &orders[plan != NULL && plan->problem->period.layers > 0];
    session->config->recomputes = plan != NULL ? kept->levels : levels;
    session->profile = kept->profile;
    if (orders[0].profile != orders[1].profile)
        weft_profile_destroy(orders[kept == orders].profile);
    weft_staged_drop(&orders[1].best.staged);
    weft_found_drop(&orders[1].best);
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
    struct weft_found best = {0};
    enum weft_status status;
    if (has_orders(session->config, agenda)) {
        status = plan_orders(session, options, agenda, &best, err);
    } else {
        status = look_ahead(session, splits_are_open(session->config), false, agenda, err);
        if (status == WEFT_OK) status = plan_axes(session, options, agenda, &best, err);
    }
    const bool found = best.staged.plan != NULL;
    if (found) {
        weft_staged_swap(session, &best.staged);
        weft_staged_drop(&best.staged);
        weft_config_settle(session->config, session->stages.variant.batch.samples);
        session->inputs = weft_lower_inputs_of(session->config, session->profile, &session->stages);
        if (status == WEFT_OK) status = weft_found_hand_over(&best, session->plan, err);
        weft_found_tell_hint(best.more_bytes, best.more_ns, session->plan);
    }
    weft_found_drop(&best);
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
    weft_found_tell_hint(session->plan->more_bytes, session->plan->more_ns, session->plan);
    return WEFT_OK;
}

enum weft_status weft_session_plan_levels(struct weft_session *session, const char *planner,
                                          struct weft_error *err)
{
    const struct weft_plan_options *wanted = &session->config->plan;
    struct weft_asked asked = {.solver = &session->solver};
    const int64_t time_ns = wanted->time_limit_ns;
    const int64_t units = weft_work_within((int64_t)wanted->work_limit, time_ns);
    struct weft_work work = weft_work_begin(weft_clock_now_ns, time_ns);
    weft_work_be_watched(&work, session->watch, session->draft ? 0 : units);
    work.limit = units;
    work.late_at = late_units(planner ? planner : wanted->planner, units);
    struct weft_schedule_options options = {
        .planner = planner ? planner : wanted->planner,
        .policy_limit_bytes = wanted->policy_limit_bytes,
        .seed = (uint64_t)wanted->seed,
        .budget = weft_budget_of(&work, units),
        .gap = wanted->gap,
        .draft = session->draft,
        .hint = session->hint,
        .solver = weft_asked_solver(&asked),
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
    if (status == WEFT_OK) status = weft_session_note_alarm(&work, session->plan, err);
    if (status == WEFT_OK) status = weft_asked_note(&asked, session->plan, err);
    if (status == WEFT_OK) session->plan->n_open = n_open;
    if (status != WEFT_OK || session->program == NULL) return status;
    return weft_program_verify(session->program, session->stages.problem->tiers[0].limit_bytes,
                               err);
}
