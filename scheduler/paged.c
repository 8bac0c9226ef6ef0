/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/paged.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "problem/target.h"
#include "program/predict.h"
#include "scheduler/paged_first.h"
#include "scheduler/paged_rows.h"
#include "scheduler/paged_rule.h"
#include "scheduler/paged_uniform.h"
#include "scheduler/planners/fixed.h"
#include "scheduler/planners/planners.h"
#include "scheduler/planners/table.h"
#include "scheduler/search/search.h"

/* Rounding differs from plan to plan, so lower rows may be too high again, by less. */
enum { MOST_AGAIN = 4 };

/* Parts of the remaining budget: for the first plan, which proves the bound, and for a plan in
 * lower rows, which proves nothing. */
static const double first_part = 0.6, part_again = 0.5;

/* Part of a small limit for rules that are tried before greedy. */
static const double part_of_rules = 0.5;

int64_t weft_page_of_least(const struct weft_digest *table)
{
    enum { PAGES = 65536 }; /* so that the rounding does not matter */
    int64_t arena_bytes = table->least_bytes, page_bytes = WEFT_PAGE_LEAST_BYTES;
    for (int32_t i = 0; i < table->problem->n_common; i++)
        if (weft_category_is_outside(table->problem->common[i].category) &&
            table->problem->common[i].tier == 0)
            arena_bytes -= table->problem->common[i].bytes;
    while (page_bytes < WEFT_PAGE_LARGE_BYTES && 2 * page_bytes <= arena_bytes / PAGES)
        page_bytes *= 2;
    return page_bytes;
}

/* Rule of work: the run's budget limits searches. Published rules and uniform plans follow while
 * the gap is open, even after the budget. They end once the work is late (base/work.h), after about
 * as much work again. Then only work that a first plan needs is begun. Probes of a refusal are made
 * if no other variant has a plan. */

/* True if the budget is over, or what is left of a small limit is worth no plan. */
static bool is_spent(const struct weft_paged *run)
{
    return weft_budget_is_over(run->budget) ||
           (run->is_small && weft_budget_left(run->budget) < weft_paged_plan_units(run));
}

/* True if the budget is over and a plan fits, so that no other plan is begun. */
static bool is_enough(const struct weft_paged *run)
{
    return run->has_other && is_spent(run);
}

/* Plans in lower rows, without a proof. */
static enum weft_status plan_lower(struct weft_paged *run, int64_t rows_bytes,
                                   const struct weft_plan *start, struct weft_error *err)
{
    const struct weft_paged_question question = {
        .rows_bytes = rows_bytes, .part = part_again, .draft = true, .start = start};
    struct weft_outcome outcome;
    run->n_again++;
    return weft_paged_ask(run, &question, &outcome, err);
}

static enum weft_status refuse_pages(const struct weft_paged *run, int64_t over_bytes,
                                     struct weft_error *err)
{
    return weft_fail(err, WEFT_E_INFEASIBLE,
                     "planner %s: its live bytes fit into the limit of %lld bytes, but its pages "
                     "take %lld bytes more",
                     run->planner->name, (long long)run->problem->tiers[0].limit_bytes,
                     (long long)over_bytes);
}

/* After the alarm, replaces a plan that exceeds the limit by the leanest one, if that fits. */
static enum weft_status replace_by_leanest(struct weft_paged *run, struct weft_error *err)
{
    if (!weft_budget_has_rung(run->budget) || !run->planner->searches) return WEFT_OK;
    struct weft_paged_aside over = weft_paged_put_aside(run);
    enum weft_status status = weft_paged_leanest(run, err);
    if (status == WEFT_OK && weft_paged_fits(run)) {
        run->leanest_ns = run->plan->prediction.step_ns;
        weft_paged_drop_aside(over);
    } else {
        weft_paged_keep(run, over.plan, over.program);
    }
    return status;
}

/* Plans in rows lower by the excess, until the plan's pages are within the limit. Stops at a plan
 * that is not below run->below_ns. WEFT_E_INFEASIBLE if the last pages exceed the limit. */
static enum weft_status plan_again(struct weft_paged *run, struct weft_error *err)
{
    int64_t limit_bytes = run->problem->tiers[0].limit_bytes, rows_bytes = limit_bytes;
    int64_t over_bytes = weft_paged_total_bytes(run) - limit_bytes;
    for (int i = 0; i < MOST_AGAIN && over_bytes > 0; i++) {
        rows_bytes -= over_bytes;
        if (rows_bytes < 1 || rows_bytes < run->table->least_proven_bytes) break;
        if (is_enough(run) || (run->options->is_spare && weft_paged_is_late(run))) break;
        WEFT_TRY(replace_by_leanest(run, err));
        if (weft_paged_fits(run)) return WEFT_OK;
        run->lower_bytes = limit_bytes - rows_bytes;
        struct weft_paged_aside over = weft_paged_put_aside(run);
        enum weft_status status = plan_lower(run, rows_bytes, over.plan, err);
        weft_paged_drop_aside(over);
        WEFT_TRY(status);
        if (!run->plan) return WEFT_OK; /* it is not below run->below_ns */
        over_bytes = weft_paged_total_bytes(run) - limit_bytes;
    }
    return over_bytes > 0 ? refuse_pages(run, over_bytes, err) : WEFT_OK;
}

/* Makes a plan of the problem the candidate. False if its moves are not the problem's. */
static bool take_candidate(struct weft_paged *run, const struct weft_plan *plan)
{
    struct weft_candidate *to = &run->candidate;
    if (!weft_search_moves_of(run->problem, plan, to->moves)) return false;
    memcpy(to->strategies, plan->strategies,
           (size_t)run->table->n_decisions * sizeof *to->strategies);
    to->n_moves = plan->n_placements;
    return true;
}

/* Gives pages to the caller's faster plans, so that the result is no slower than one that fits. The
 * run may have no plan. */
static enum weft_status page_starts(struct weft_paged *run, struct weft_error *err)
{
    if (!run->inputs) return WEFT_OK;
    for (int32_t i = 0; i < run->options->n_starts; i++) {
        const struct weft_plan *start = run->options->starts[i];
        if (run->plan && start->prediction.step_ns >= run->plan->prediction.step_ns) continue;
        if (!take_candidate(run, start)) continue;
        struct weft_error refusal = {0};
        struct weft_paged_aside aside = weft_paged_put_aside(run);
        enum weft_status status = weft_paged_candidate(run, 0, true, err);
        if (status == WEFT_OK && !weft_paged_fits(run)) status = weft_paged_least_pages(run, err);
        if (status == WEFT_OK && weft_plan_check_rows(run->plan, "start", &refusal) != WEFT_OK)
            weft_paged_keep(run, NULL, NULL); /* another tier's limit */
        weft_paged_keep_faster(run, aside);
        WEFT_TRY(status);
    }
    return WEFT_OK;
}

/* Tries rows between the highest that fit and the lowest that did not. They may fit too, because
 * rounding differs from plan to plan. */
static enum weft_status plan_between(struct weft_paged *run, struct weft_error *err)
{
    enum { MOST_BETWEEN = 3, FINEST_PART = 512 };
    int64_t low_bytes = run->lower_bytes, high_bytes = 0;
    for (int i = 0; i < MOST_BETWEEN && weft_paged_is_open(run); i++) {
        struct weft_error refusal = {0};
        int64_t less_bytes = high_bytes + (low_bytes - high_bytes) / 2;
        if (low_bytes - high_bytes < run->problem->tiers[0].limit_bytes / FINEST_PART ||
            weft_budget_is_over(run->budget))
            break;
        struct weft_paged_aside aside = weft_paged_put_aside(run);
        enum weft_status status =
            plan_lower(run, run->problem->tiers[0].limit_bytes - less_bytes, aside.plan, &refusal);
        if (weft_paged_fits(run)) {
            low_bytes = less_bytes;
        } else {
            high_bytes = less_bytes;
        }
        weft_paged_keep_faster(run, aside);
        if (status != WEFT_OK && status != WEFT_E_INFEASIBLE)
            return weft_fail_again(err, &refusal, "%s", refusal.text);
    }
    return WEFT_OK;
}

/* Takes the leanest plan, unless rows between its own and the limit's give a faster one in
 * pages. */
static enum weft_status retreat_to_leanest(struct weft_paged *run, struct weft_error *err)
{
    WEFT_TRY(weft_paged_leanest(run, err));
    if (!weft_paged_fits(run)) return WEFT_OK;
    run->leanest_ns = run->plan->prediction.step_ns;
    run->lower_bytes = run->problem->tiers[0].limit_bytes - run->table->least_bytes;
    return plan_between(run, err);
}

/* A rule's decision for the run's limit alone, or for lower rows if its pages exceed the limit. */
static enum weft_status plan_for_limit(struct weft_paged *run, struct weft_error *err)
{
    struct weft_outcome outcome;
    const struct weft_paged_question question = {
        .rows_bytes = run->problem->tiers[0].limit_bytes, .part = first_part, .draft = true};
    weft_work_spend(run->budget.work, weft_planner_rule_units(run->table));
    WEFT_TRY(weft_paged_ask(run, &question, &outcome, err));
    return run->plan && !weft_paged_fits(run) ? plan_again(run, err) : WEFT_OK;
}

/* Plans by a rule's series. A little one is not counted, so that it leaves the work to searches. A
 * larger one is made if it takes a small part of the budget. two-stage solves a knapsack for each
 * limit, so its series is never little. */
static enum weft_status plan_for_series(struct weft_paged *run, struct weft_error *err)
{
    enum { USUAL_LIMITS = 100, LITTLE_UNITS = 20000000, SMALL_PART = 256 };
    struct weft_work *work = run->budget.work;
    const int64_t units = USUAL_LIMITS * weft_planner_rule_units(run->table);
    const int64_t spent = work ? work->spent : 0;
    const bool is_little = units <= LITTLE_UNITS && run->planner->decide != weft_planner_two_stage;
    if (!is_little && weft_budget_left(run->budget) / SMALL_PART < units)
        return plan_for_limit(run, err);
    const enum weft_status status = weft_paged_series(run, !is_little, err);
    if (is_little) weft_work_return(work, spent);
    return status;
}

/* Plans by a rule as if the caller had asked for it. A plan that is no faster than the present one
 * gets no pages, which saves time. `takes_equal`: one that is as fast replaces it. */
static enum weft_status plan_by_rule(struct weft_paged *run, const struct weft_planner *rule,
                                     const struct weft_setting *setting, bool takes_equal,
                                     struct weft_error *err)
{
    const struct weft_planner *asked = run->planner;
    const struct weft_schedule_options *options = run->options;
    struct weft_schedule_options own = *options;
    struct weft_error refusal = {0};
    struct weft_paged_aside aside = weft_paged_put_aside(run);
    own.setting = setting;
    own.may_stop = true;
    run->options = &own;
    run->planner = rule;
    run->below_ns = aside.plan->prediction.step_ns + takes_equal;
    enum weft_status status = plan_for_series(run, &refusal);
    run->options = options;
    run->planner = asked;
    run->below_ns = 0;
    run->takes_equal = takes_equal;
    weft_paged_keep_faster(run, aside);
    run->takes_equal = false;
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail_again(err, &refusal, "%s", refusal.text);
}

/* Tries each setting of a foreign target's own rule, even if the budget is over: no plan may be
 * slower. ilp may not have started from the rule, and gathering alike in all micro-steps may slow
 * ilp's plan after the search. If the host runs ahead, the published rule is the plan if it is as
 * fast: a user then needs no list. */
static enum weft_status plan_by_target_rule(struct weft_paged *run, struct weft_error *err)
{
    const struct weft_planner *rule = weft_planner_find("fsdp2", NULL);
    if (weft_problem_target(run->problem)->runs_ahead)
        WEFT_TRY(plan_by_rule(run, rule, rule->settings, true, err));
    for (const struct weft_setting *setting = rule->settings; setting->name; setting++) {
        if (!weft_paged_is_open(run) || weft_paged_is_late(run)) break;
        WEFT_TRY(plan_by_rule(run, rule, setting, false, err));
    }
    return WEFT_OK;
}

/* Rules may be faster in pages while ilp's gap is open. Each is tried as published even if the
 * budget is over, because that takes little. So is each setting of a rule that recomputes: with
 * many choices the search ends far from the best. Other settings and lower rows are tried until
 * then. Uniform plans follow, since rules know no layers. */
static enum weft_status plan_by_rules(struct weft_paged *run, struct weft_error *err)
{
    if (weft_problem_target(run->problem)->is_foreign) return plan_by_target_rule(run, err);
    const int32_t n_again = run->n_again;
    const int64_t lower_bytes = run->lower_bytes;
    if (!run->inputs) return WEFT_OK;
    run->has_other = true;
    if (run->is_small)
        WEFT_TRY(weft_paged_first(run, weft_budget_unlimited(run->budget.work), err));
    for (const struct weft_planner *rule = weft_planners(); rule->name; rule++) {
        const struct weft_setting *setting = rule->settings;
        if (!weft_planner_is_rule_for(rule, run->problem)) continue;
        do {
            if (!weft_paged_is_open(run) || weft_paged_is_late(run)) break;
            WEFT_TRY(plan_by_rule(run, rule, setting, false, err));
        } while ((rule->recomputes || !weft_budget_is_over(run->budget)) && setting &&
                 (++setting)->name);
    }
    WEFT_TRY(weft_paged_uniform(run, err));
    run->n_again = n_again;
    run->lower_bytes = lower_bytes;
    return WEFT_OK;
}

/* Plans in pages of the least size as a whole, from the plan that exceeded the limit in the run's
 * pages. These take less, and the same plan or rows a little lower may fit. Keeps the plan if it
 * fits and is faster. */
static enum weft_status plan_in_least_pages(struct weft_paged *run, struct weft_error *err)
{
    const int64_t own_bytes = run->counted.page_bytes, lower_bytes = run->lower_bytes;
    const bool has_other = run->has_other;
    struct weft_error refusal = {0};
    const bool is_slower =
        run->plan && run->over && run->over->prediction.step_ns >= run->plan->prediction.step_ns;
    if (!run->over || is_slower || !run->page_is_open || own_bytes == WEFT_PAGE_LEAST_BYTES ||
        weft_budget_has_rung(run->budget) || !take_candidate(run, run->over))
        return WEFT_OK;
    struct weft_paged_aside aside = weft_paged_put_aside(run);
    run->counted.page_bytes = WEFT_PAGE_LEAST_BYTES;
    run->below_ns = aside.plan ? aside.plan->prediction.step_ns : 0;
    run->has_other |= aside.plan != NULL;
    enum weft_status status =
        weft_paged_candidate(run, run->problem->tiers[0].limit_bytes, false, &refusal);
    if (status == WEFT_OK && run->plan && !weft_paged_fits(run)) status = plan_again(run, &refusal);
    if (status == WEFT_OK) status = weft_paged_drop_scattered(run, &refusal);
    run->counted.page_bytes = own_bytes;
    run->below_ns = 0;
    run->has_other = has_other;
    run->lower_bytes = lower_bytes;
    weft_paged_keep_faster(run, aside);
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail_again(err, &refusal, "%s", refusal.text);
}

static void tell_again(struct weft_paged *run)
{
    size_t length = strlen(run->outcome.solver_stop);
    size_t room = sizeof run->outcome.solver_stop - length;
    if (length > 0 && strncmp(run->outcome.solver_stop, "pages: ", 7) != 0)
        snprintf(run->outcome.solver_stop + length, room, ", before pages");
    char bytes[WEFT_UNITS_TEXT_BYTES];
    weft_log(
        run->options->draft ? WEFT_LOG_DEBUG : WEFT_LOG_INFO,
        "planner %s: pages ended above the limit; planned again %d time%s, in rows lower by %s",
        run->planner->name, (int)run->n_again, run->n_again == 1 ? "" : "s",
        weft_units_show_bytes(run->lower_bytes, bytes));
}

/* Copies the run's plan, which exceeds the limit, to tell about it in the end. */
static enum weft_status remember_over(struct weft_paged *run, struct weft_error *err)
{
    const struct weft_plan *plan = run->plan;
    struct weft_candidate *scratch = &run->candidate;
    if (run->over || !weft_search_moves_of(run->problem, plan, scratch->moves)) return WEFT_OK;
    WEFT_TRY(weft_plan_create(run->problem, plan->planner, plan->strategies, scratch->moves,
                              plan->n_placements, &run->over, err));
    return weft_plan_predict(run->over, err);
}

/* Plans by the run's planner, from `start` (NULL: none) and the caller's plans. Plans in lower rows
 * if its pages exceed the limit. */
static enum weft_status plan_by_planner(struct weft_paged *run, const struct weft_plan *start,
                                        struct weft_error *err)
{
    struct weft_error refusal = {0};
    /* Planners that search may choose a leaner plan. A rule has only one. */
    const bool may_retreat = run->planner->searches;
    const struct weft_paged_question question = {
        .rows_bytes = run->problem->tiers[0].limit_bytes, .part = first_part, .start = start};
    WEFT_TRY(weft_paged_ask(run, &question, &run->outcome, err));
    run->is_over = !weft_paged_fits(run);
    if (!run->is_over) return WEFT_OK;
    if (run->planner->decide == weft_planner_ilp && !run->options->draft)
        WEFT_TRY(remember_over(run, err));
    enum weft_status status = plan_again(run, &refusal);
    if (status == WEFT_E_INFEASIBLE && may_retreat && !is_enough(run))
        return retreat_to_leanest(run, err);
    if (status != WEFT_OK) return weft_fail_again(err, &refusal, "%s", refusal.text);
    return may_retreat ? plan_between(run, err) : WEFT_OK;
}

static struct weft_budget greedy_budget(const struct weft_paged *run)
{
    int64_t left = weft_budget_left(run->budget), units = run->options->greedy_units;
    if (left == INT64_MAX) return run->budget;
    return weft_budget_of(run->budget.work, units > 0 ? units : left / WEFT_GREEDY_PART + 1);
}

/* Plans by greedy as if the caller had asked for it. Keeps a faster plan that the run has. Leaves
 * none if neither fits. */
static enum weft_status begin_by_greedy(struct weft_paged *run, struct weft_error *err)
{
    const struct weft_planner *asked = run->planner;
    const struct weft_budget budget = run->budget;
    const int64_t begun = budget.work ? budget.work->spent : 0;
    struct weft_error refusal = {0};
    struct weft_paged_aside first = weft_paged_put_aside(run);
    run->planner = weft_planner_find("greedy", NULL);
    run->budget = greedy_budget(run);
    enum weft_status status = plan_by_planner(run, NULL, &refusal);
    run->planner = asked;
    run->budget = budget;
    run->n_again = 0;
    run->is_over = false;
    run->outcome = (struct weft_outcome){.pool = &run->pool};
    weft_paged_keep_faster(run, first);
    run->has_other = run->plan != NULL;
    if (run->has_other && budget.work) run->first_work = budget.work->spent - begun;
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail_again(err, &refusal, "%s", refusal.text);
}

/* Plans by the run's planner, and in rows of pages if its pages exceed the limit. Keeps the fastest
 * of these plans and greedy's. */
static enum weft_status plan_beside_greedy(struct weft_paged *run, struct weft_error *err)
{
    struct weft_error refusal = {0};
    struct weft_paged_aside greedy = weft_paged_put_aside(run);
    enum weft_status status = plan_by_planner(run, greedy.plan, &refusal);
    const bool fits = status == WEFT_OK && weft_paged_fits(run);
    if (!fits || (greedy.plan && run->plan->prediction.step_ns > greedy.plan->prediction.step_ns)) {
        weft_paged_keep(run, greedy.plan, greedy.program);
    } else {
        weft_paged_drop_aside(greedy);
    }
    if (status != WEFT_OK && status != WEFT_E_INFEASIBLE)
        return weft_fail_again(err, &refusal, "%s", refusal.text);
    if (run->is_over) WEFT_TRY(plan_in_least_pages(run, err));
    if (run->is_over) WEFT_TRY(weft_paged_plan_rows(run, err));
    if (run->plan) return WEFT_OK;
    return status == WEFT_OK ? weft_fail(err, WEFT_E_INFEASIBLE, "%s", "")
                             : weft_fail_again(err, &refusal, "%s", refusal.text);
}

/* Does the rest after greedy's plan. If the budget is over by then, the planner itself is not
 * asked. */
static enum weft_status plan_after_greedy(struct weft_paged *run, struct weft_error *err)
{
    struct weft_outcome *outcome = &run->outcome;
    if (is_enough(run)) {
        snprintf(outcome->solver_stop, sizeof outcome->solver_stop, "%s",
                 weft_budget_has_rung(run->budget) ? "time limit" : "work limit");
    } else {
        WEFT_TRY(plan_beside_greedy(run, err));
        if (run->is_over) WEFT_TRY(weft_paged_bound(run, err));
        if (run->n_again > 0) tell_again(run);
    }
    WEFT_TRY(plan_by_rules(run, err));
    if (run->is_over) WEFT_TRY(weft_paged_spend(run, err));
    if (run->is_over) WEFT_TRY(weft_paged_spend_least(run, err));
    if (run->first_work > 0) outcome->first_work = run->first_work;
    if (run->plan->prediction.step_ns == run->leanest_ns)
        snprintf(outcome->solver_stop, sizeof outcome->solver_stop, "%s",
                 weft_budget_has_rung(run->budget)
                     ? "time limit: the plan of the leanest strategies"
                     : "pages: only a plan of the leanest strategies is within the limit");
    return page_starts(run, err);
}

/* Plans by rules with a part of the work. Gives up if another period has a plan, no rule is faster,
 * and no work is left to search. */
static enum weft_status begin_by_rules(struct weft_paged *run, struct weft_error *err)
{
    WEFT_TRY(weft_paged_first(run, weft_budget_part(run->budget, part_of_rules), err));
    run->has_other = run->plan != NULL;
    run->has_given_up = !run->has_other && run->options->kept_ns > 0 && is_spent(run);
    return WEFT_OK;
}

/* Greedy's plan comes first, then ilp's from it, then rules'. Under a small limit rules come before
 * them too. */
static enum weft_status plan_by_ilp(struct weft_paged *run, struct weft_error *err)
{
    const struct weft_schedule_options *options = run->options;
    struct weft_schedule_options own = *options;
    run->is_small = weft_paged_is_small(run);
    if (run->is_small) WEFT_TRY(begin_by_rules(run, err));
    if (!is_enough(run) && !run->has_given_up) WEFT_TRY(begin_by_greedy(run, err));
    own.after_greedy = run->plan != NULL;
    run->options = &own;
    struct weft_error refusal = {0};
    enum weft_status status =
        run->has_given_up
            ? weft_fail(&refusal, WEFT_E_INFEASIBLE, "planner ilp: no work is left for this period")
            : plan_after_greedy(run, &refusal);
    enum weft_status started = WEFT_OK;
    if (status == WEFT_E_INFEASIBLE && !run->plan) {
        started = page_starts(run, err);
        if (run->plan) status = WEFT_OK;
    }
    run->options = options;
    WEFT_TRY(started);
    return status == WEFT_OK ? WEFT_OK : weft_fail_again(err, &refusal, "%s", refusal.text);
}

/* A rule's plan is the fastest of its series. Without one, plans for the limit alone, which tells
 * the reason of a refusal. A hint has no series, which counts little of its work. */
static enum weft_status plan_by_series(struct weft_paged *run, struct weft_error *err)
{
    run->outcome = (struct weft_outcome){.pool = &run->pool};
    if (!run->options->hint) WEFT_TRY(weft_paged_series(run, false, err));
    if (run->plan) return WEFT_OK;
    WEFT_TRY(plan_by_planner(run, NULL, err));
    if (run->n_again > 0) tell_again(run);
    return WEFT_OK;
}

/* The alarm may ring after the planner has given its own reason. */
static void tell_alarm(struct weft_paged *run)
{
    struct weft_outcome *outcome = &run->outcome;
    char reason[sizeof outcome->solver_stop];
    if (!weft_budget_has_rung(run->budget) || !run->planner->searches ||
        strstr(outcome->solver_stop, "time limit"))
        return;
    snprintf(reason, sizeof reason, "time limit%s%.150s", outcome->solver_stop[0] ? ", " : "",
             outcome->solver_stop);
    memcpy(outcome->solver_stop, reason, sizeof reason);
}

/* A limit of its own for the choice of policies asks for that one division of memory, and the
 * series would find a better one. */
static bool uses_series(const struct weft_paged *run)
{
    const bool divides =
        run->planner->decide == weft_planner_two_stage && run->options->policy_limit_bytes > 0;
    return weft_paged_has_series(run->planner) && !divides;
}

enum weft_status weft_plan_in_pages(struct weft_paged *run, struct weft_error *err)
{
    run->counted.most_bytes = run->problem->tiers[0].limit_bytes;
    if (run->planner->decide == weft_planner_ilp && !run->options->draft) {
        WEFT_TRY(plan_by_ilp(run, err));
    } else if (uses_series(run)) {
        WEFT_TRY(plan_by_series(run, err));
    } else {
        if (run->planner->decide == weft_planner_greedy) run->budget = greedy_budget(run);
        WEFT_TRY(plan_by_planner(run, NULL, err));
        if (run->n_again > 0) tell_again(run);
    }
    tell_alarm(run);
    return WEFT_OK;
}

enum weft_status weft_paged_leanest(struct weft_paged *run, struct weft_error *err)
{
    struct weft_candidate *out = &run->candidate;
    memcpy(out->strategies, run->table->leanest,
           (size_t)run->table->n_decisions * sizeof *out->strategies);
    weft_fixed_place(run->problem, WEFT_GATHER_BLOCKING, out);
    weft_paged_keep(run, NULL, NULL);
    return weft_paged_candidate(run, 0, true, err);
}
