/* SPDX-License-Identifier: Apache-2.0 */
/* Planners on a target that runs ahead (plan/events.h). A planner that decides on the clock of
 * slots gets the problem of the target's blocking twin. A search then goes on by events. ilp proves
 * its bound in the problem's early form (problem/early.h). */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem/early.h"
#include "problem/target.h"
#include "scheduler/planners/planners.h"
#include "scheduler/search/hooks.h"

/* Parts of the budget: of plans by slots, and of what is left the search by events. The proof has
 * the rest. */
static const double SLOTS_PART = 0.4, HOOKS_PART = 0.3;

struct events {
    weft_decide_fn *decide;
    const struct weft_problem *problem;
    const struct weft_schedule_options *options;
    struct weft_candidate *out;
    struct weft_outcome *outcome;
    struct weft_hooks *hooks;
    struct weft_digest *table;
    bool proves;
};

/* Plans on the clock of slots, without a proof. */
static enum weft_status plan_by_slots(struct events *e, struct weft_error *err)
{
    struct weft_problem twin = *e->problem;
    struct weft_schedule_options own = *e->options;
    struct weft_outcome unproven = {.pool = e->outcome->pool};
    twin.target = weft_problem_target(e->problem)->blocking;
    if (e->proves) {
        own.draft = true;
        own.budget = weft_budget_part(own.budget, SLOTS_PART);
    }
    const enum weft_status status = e->decide(&twin, &own, e->out, &unproven, err);
    e->outcome->first_work = unproven.first_work;
    e->outcome->cut_short = unproven.cut_short;
    memcpy(e->outcome->solver_stop, unproven.solver_stop, sizeof unproven.solver_stop);
    return status;
}

/* FSDP2's default: all units are sharded, with its own launches. No plan is slower if it fits. */
static enum weft_status start_from_default(struct events *e, struct weft_error *err)
{
    const struct weft_problem *problem = e->problem;
    int32_t *strategies = calloc((size_t)problem->n_decisions + 1, sizeof *strategies);
    if (!strategies) return weft_fail_memory(err, "FSDP2's default");
    for (int32_t d = 0; d < problem->n_decisions; d++) {
        const struct weft_problem_decision *decision = &problem->decisions[d];
        const int32_t k = weft_decision_of_policy(decision, WEFT_POLICY_FSDP);
        strategies[d] = k < 0 || decision->is_of_layer ? e->out->strategies[d] : k;
    }
    const enum weft_status status = weft_hooks_start_plain(e->hooks, strategies, err);
    free(strategies);
    return status;
}

static enum weft_status search_by_events(struct events *e, struct weft_error *err)
{
    const struct weft_budget budget =
        e->proves ? weft_budget_part(e->options->budget, HOOKS_PART) : e->options->budget;
    WEFT_TRY(weft_digest_create_like(e->options->table, e->problem, &e->table, err));
    WEFT_TRY(weft_hooks_create(e->table, budget, &e->hooks, err));
    WEFT_TRY(weft_hooks_start(e->hooks, e->out, err));
    WEFT_TRY(start_from_default(e, err));
    return weft_hooks_start_plain(e->hooks, e->out->strategies, err);
}

/* The reason why the search of the early form ended is none why this one did. */
static void tell_stop(struct events *e, int64_t step_ns)
{
    struct weft_outcome *outcome = e->outcome;
    const double most_ns = (double)outcome->bound_ns * (1 + e->options->gap);
    const bool closed = strcmp(outcome->solver_stop, "gap closed") == 0;
    if (outcome->bound_ns > 0 && (double)step_ns <= most_ns)
        snprintf(outcome->solver_stop, sizeof outcome->solver_stop, "gap closed");
    else if (closed)
        snprintf(outcome->solver_stop, sizeof outcome->solver_stop,
                 "the early form of the problem is solved");
}

/* Proves a bound, and searches from the strategies of the early form's best plan too. */
static enum weft_status prove_by_early(struct events *e, struct weft_error *err)
{
    struct weft_problem *early = NULL;
    struct weft_schedule_options own = *e->options;
    struct weft_candidate found = {0};
    int64_t step_ns = weft_hooks_result(e->hooks, e->out);
    WEFT_TRY(weft_problem_early(e->problem, &early, err));
    found.strategies = calloc((size_t)early->n_decisions + 1, sizeof *found.strategies);
    found.moves = calloc((size_t)e->table->n_blocks + 1, sizeof *found.moves);
    enum weft_status status =
        found.strategies && found.moves ? WEFT_OK : weft_fail_memory(err, "a problem's early form");
    own.n_starts = 0;
    own.table = NULL;
    own.hidden = true;
    own.of_early = true;
    own.after_greedy = false;
    if (step_ns >= 0 && (own.rival_ns == 0 || step_ns < own.rival_ns)) own.rival_ns = step_ns;
    if (status == WEFT_OK) status = e->decide(early, &own, &found, e->outcome, err);
    if (e->outcome->certificate.n_nodes > 0)
        e->outcome->certificate.problem = weft_problem_hash(e->problem);
    if (status == WEFT_OK) status = weft_hooks_start_plain(e->hooks, found.strategies, err);
    if (status == WEFT_OK) {
        step_ns = weft_hooks_result(e->hooks, e->out);
        tell_stop(e, step_ns);
        if (!e->options->hidden) {
            weft_work_show_best(e->options->budget.work, step_ns);
            weft_work_show_bound(e->options->budget.work, e->outcome->bound_ns);
        }
    }
    free(found.strategies);
    free(found.moves);
    weft_problem_destroy(early);
    return status;
}

enum weft_status weft_events_decide(weft_decide_fn *decide, bool searches,
                                    const struct weft_problem *problem,
                                    const struct weft_schedule_options *options,
                                    struct weft_candidate *out, struct weft_outcome *outcome,
                                    struct weft_error *err)
{
    struct events e = {.decide = decide,
                       .problem = problem,
                       .options = options,
                       .out = out,
                       .outcome = outcome,
                       .proves = decide == weft_planner_ilp && !options->draft};
    WEFT_TRY(plan_by_slots(&e, err));
    if (!searches) return WEFT_OK;
    enum weft_status status = search_by_events(&e, err);
    if (status == WEFT_OK && e.proves && !weft_budget_has_rung(options->budget))
        status = prove_by_early(&e, err);
    if (status == WEFT_OK) weft_hooks_result(e.hooks, out);
    weft_hooks_destroy(e.hooks);
    weft_digest_destroy(e.table);
    return status;
}
