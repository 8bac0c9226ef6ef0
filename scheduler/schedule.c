/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/units.h"
#include "problem/target.h"
#include "scheduler/digest/infeasible.h"
#include "scheduler/paged.h"
#include "scheduler/paged_rows.h"
#include "scheduler/planners/planners.h"
#include "scheduler/planners/table.h"
#include "scheduler/tree/proof.h"

/* Takes the bound in pages if it is for the plan's page size, and higher than the other bound. */
static enum weft_status take_paged_bound(struct weft_paged *run, struct weft_error *err)
{
    struct weft_plan *plan = run->plan;
    const struct weft_outcome *outcome =
        run->program ? weft_paged_bound_of(run, run->program->paging->page_bytes) : NULL;
    if (!outcome || outcome->bound_ns <= plan->bound_ns) return WEFT_OK;
    plan->paged_bound_ns = outcome->bound_ns;
    WEFT_TRY(weft_certificate_copy(&outcome->certificate, run->problem, &plan->pool,
                                   &plan->paged_certificate, err));
    plan->paged_certificate.problem = weft_problem_hash(run->problem);
    return WEFT_OK;
}

/* Proves a bound for a plan whose planner had no work left for one. Other periods may have spent
 * it, so ascent gets work of its own. */
static enum weft_status prove_late(struct weft_paged *run, struct weft_error *err)
{
    enum { MOST_UNITS = 50000000 };
    const int64_t given = run->options->ascent_units;
    const int64_t units = given > 0 ? given : weft_budget_left(run->budget) / 4;
    const struct weft_ascent ascent = {.target_ns = run->plan->prediction.step_ns,
                                       .units = units < MOST_UNITS ? units : MOST_UNITS,
                                       .work = run->budget.work};
    if (weft_budget_has_rung(run->budget) || run->planner->decide != weft_planner_ilp)
        return weft_proof_trivial(run->table, weft_budget_has_rung(run->budget), &run->pool,
                                  &run->outcome, err);
    return weft_proof_ascended(run->table, &ascent, &run->pool, &run->outcome, err);
}

static enum weft_status finish_plan(struct weft_paged *run, struct weft_error *err)
{
    const struct weft_outcome *outcome = &run->outcome;
    struct weft_plan *plan = run->plan;
    if (outcome->certificate.n_nodes == 0 && !run->options->draft) WEFT_TRY(prove_late(run, err));
    plan->bound_ns = outcome->bound_ns;
    plan->bound_by = outcome->bound_by;
    plan->first_work = outcome->first_work;
    WEFT_TRY(weft_certificate_copy(&outcome->certificate, run->problem, &plan->pool,
                                   &plan->certificate, err));
    WEFT_TRY(take_paged_bound(run, err));
    plan->solver_stop = weft_pool_string(&plan->pool, outcome->solver_stop);
    if (!plan->solver_stop) return weft_fail_memory(err, "a plan");
    if (!run->program) return WEFT_OK;
    return weft_paging_list(run->program->paging, &plan->pool, &plan->pages, err);
}

static bool make_candidate(const struct weft_digest *table, struct weft_candidate *candidate)
{
    candidate->strategies = calloc((size_t)table->n_decisions + 1, sizeof *candidate->strategies);
    candidate->moves = calloc((size_t)table->n_blocks + 1, sizeof *candidate->moves);
    return candidate->strategies && candidate->moves;
}

/* Prepares a run. Colouring spends the run's work, and an open page size is chosen. */
static enum weft_status prepare_run(struct weft_paged *run, struct weft_error *err)
{
    WEFT_TRY(weft_digest_create(run->problem, &run->table, err));
    if (!make_candidate(run->table, &run->candidate)) return weft_fail_memory(err, "a candidate");
    if (!run->inputs) return WEFT_OK;
    run->counted = *run->inputs;
    run->counted.work = run->budget.work;
    run->page_is_open = run->counted.page_bytes == 0;
    if (run->page_is_open) run->counted.page_bytes = weft_page_of_least(run->table);
    run->inputs = &run->counted;
    return WEFT_OK;
}

static void free_candidate(struct weft_candidate *candidate)
{
    free(candidate->strategies);
    free(candidate->moves);
}

static void finish_run(struct weft_paged *run)
{
    weft_plan_destroy(run->plan);
    weft_plan_destroy(run->over);
    weft_program_destroy(run->program);
    free_candidate(&run->candidate);
    weft_pool_finish(&run->pool);
    weft_digest_destroy(run->table);
}

enum { PROBE_UNITS = 100000000 };

/* A question to a planner that searches, within another limit and with fixed work. So the limit
 * that a refusal or a hint names has a plan. */
struct probe {
    const char *planner;
    int64_t limit_bytes, units;
};

/* Plans in the run's pages. Without a plan *plan is NULL. */
static enum weft_status probe_limit(const struct weft_paged *run, struct probe question,
                                    struct weft_plan **plan, struct weft_program **program,
                                    struct weft_error *err)
{
    struct weft_work work = {0};
    struct weft_problem trial = *run->problem;
    struct weft_error refusal = {0};
    const struct weft_schedule_options options = {
        .planner = run->options->planner, .draft = true, .greedy_units = question.units};
    struct weft_paged probe = {.problem = &trial, .inputs = run->inputs, .options = &options};
    *plan = NULL;
    *program = NULL;
    if (question.limit_bytes < 1) return WEFT_OK;
    trial.tiers[0].limit_bytes = question.limit_bytes;
    probe.planner = weft_planner_find(question.planner, NULL);
    probe.budget = weft_budget_of(&work, question.units);
    enum weft_status status = prepare_run(&probe, &refusal);
    if (status == WEFT_OK && probe.table->least_bytes <= weft_digest_limit_bytes(probe.table))
        status = weft_plan_in_pages(&probe, &refusal);
    if (status == WEFT_OK && probe.plan && weft_paged_total_bytes(&probe) <= question.limit_bytes) {
        *plan = probe.plan;
        *program = probe.program;
        (*plan)->problem = run->problem;
        probe.plan = NULL;
        probe.program = NULL;
    }
    finish_run(&probe);
    weft_work_add_returned(run->budget.work, &work);
    if (status == WEFT_OK || status == WEFT_E_INFEASIBLE) return WEFT_OK;
    return weft_fail(err, status, "%s", refusal.text);
}

/* Lowers *bytes, a limit with a plan, by a few pages as long as there still is one. */
static enum weft_status probe_less(const struct weft_paged *run, int64_t *bytes,
                                   struct weft_error *err)
{
    enum { MOST_PAGES = 4 };
    for (int32_t pages = MOST_PAGES; pages > 0; pages /= 2) {
        struct weft_plan *plan;
        struct weft_program *program;
        int64_t less_bytes = *bytes - pages * run->counted.page_bytes;
        WEFT_TRY(probe_limit(run, (struct probe){"greedy", less_bytes, PROBE_UNITS}, &plan,
                             &program, err));
        if (plan) *bytes = less_bytes;
        weft_plan_destroy(plan);
        weft_program_destroy(program);
    }
    return WEFT_OK;
}

/* The least limit at which the leanest plan fits in pages, or a plan of greedy a few pages below.
 * It is at least the leanest plan's largest row. Rows count a base of any size rounded up, so base
 * + arena may be less. */
static enum weft_status find_least_paged(struct weft_paged *run, int64_t *bytes,
                                         struct weft_error *err)
{
    int64_t least_bytes = run->table->least_bytes;
    run->counted.most_bytes = 0;
    WEFT_TRY(weft_paged_leanest(run, err));
    *bytes = weft_paged_total_bytes(run);
    if (run->inputs) WEFT_TRY(probe_less(run, bytes, err));
    if (*bytes < least_bytes) *bytes = least_bytes;
    return WEFT_OK;
}

/* WEFT_E_DATA, with the rule's reason, if a rule refuses the problem even without a limit of any
 * tier or of policies. No limit would help then. */
static enum weft_status check_rule_applies(struct weft_paged *run, struct weft_error *err)
{
    struct weft_error refusal = {0};
    struct weft_outcome outcome = {.pool = &run->pool};
    if (run->planner->searches || run->planner->solves) return WEFT_OK;
    struct weft_problem ample = *run->problem;
    struct weft_schedule_options options = *run->options;
    for (int32_t tier = 0; tier < ample.n_tiers; tier++)
        ample.tiers[tier].limit_bytes = INT64_MAX;
    options.policy_limit_bytes = 0;
    enum weft_status status =
        weft_planner_decide(run->planner, &ample, &options, &run->candidate, &outcome, &refusal);
    if (status == WEFT_E_INFEASIBLE) status = WEFT_E_DATA;
    return status == WEFT_OK ? WEFT_OK : weft_fail(err, status, "%s", refusal.text);
}

/* Adds a rule's own reason to a refusal that names the limit of the leanest plan: the rule may need
 * more, so its least limit is not known. */
static enum weft_status add_own_reason(struct weft_paged *run, struct weft_error *err)
{
    struct weft_error own = {0};
    struct weft_outcome outcome = {.pool = &run->pool};
    if (err == NULL || run->planner->searches || run->planner->solves) return WEFT_E_INFEASIBLE;
    const struct weft_error leanest = *err;
    const enum weft_status status = weft_planner_decide(run->planner, run->problem, run->options,
                                                        &run->candidate, &outcome, &own);
    if (status != WEFT_E_INFEASIBLE) return WEFT_E_INFEASIBLE;
    *err = (struct weft_error){0};
    return weft_fail_lacking(err, WEFT_E_INFEASIBLE, WEFT_LACK_MEMORY, 0,
                             "%s Planner ilp needs that limit; %s.", leanest.text, own.text);
}

/* Refuses the limit, and names the one at which the leanest plan fits. Reports first if a rule does
 * not apply. A hint names the least rows alone, since probes in pages take long, and of several
 * tiers no limit, since a search of each takes long too. */
static enum weft_status refuse_limit(struct weft_paged *run, const char *refusal,
                                     struct weft_error *err)
{
    const bool probes = run->inputs != NULL && !run->options->hint;
    int64_t bytes = 0;
    if (run->options->is_spare)
        return weft_fail(err, WEFT_E_INFEASIBLE, "%s", *refusal ? refusal : "no plan fits");
    WEFT_TRY(check_rule_applies(run, err));
    if (run->options->hint && weft_problem_moves(run->problem))
        return weft_fail_lacking(err, WEFT_E_INFEASIBLE, WEFT_LACK_MEMORY, 0, "%s",
                                 *refusal ? refusal
                                          : "no plan fits the memory limits of all tiers");
    if (probes) WEFT_TRY(find_least_paged(run, &bytes, err));
    const enum weft_status status =
        weft_fail_infeasible(run->table, run->planner->name, refusal, bytes, err);
    return *refusal == '\0' && status == WEFT_E_INFEASIBLE ? add_own_reason(run, err) : status;
}

/* Probes the limit by greedy if ilp found no plan, and then the least limit, which a refusal would
 * name. So ilp has a plan at every limit that a refusal names, and at each one above it. */
static enum weft_status probe_own_limit(struct weft_paged *run, struct weft_error *err)
{
    struct weft_plan *plan;
    struct weft_program *program;
    int64_t limit_bytes = run->problem->tiers[0].limit_bytes, least_bytes;
    const bool is_spent = run->options->is_spare && weft_work_is_late(run->budget.work);
    if (!run->inputs || run->planner->decide != weft_planner_ilp || is_spent) return WEFT_OK;
    WEFT_TRY(
        probe_limit(run, (struct probe){"greedy", limit_bytes, PROBE_UNITS}, &plan, &program, err));
    if (!plan) {
        WEFT_TRY(weft_least_paged_limit(run->problem, run->inputs, &least_bytes, err));
        if (least_bytes < limit_bytes)
            WEFT_TRY(probe_limit(run, (struct probe){"greedy", least_bytes, PROBE_UNITS}, &plan,
                                 &program, err));
    }
    if (!plan) return WEFT_OK;
    weft_paged_keep(run, plan, program);
    char *stop = run->outcome.solver_stop;
    const size_t length = strlen(stop), room = sizeof run->outcome.solver_stop - length;
    if (length > 0 && !strstr(stop, "pages")) snprintf(stop + length, room, ", before pages");
    return WEFT_OK;
}

/* Pages refuse every plan that was found, yet the rows' bound may be far below other problems'. */
static enum weft_status bound_refused(struct weft_paged *run, struct weft_error *err)
{
    if (run->options->refused_paged == NULL || run->inputs == NULL) return WEFT_OK;
    return weft_paged_bound_refused(
        run, run->page_is_open ? WEFT_PAGE_LEAST_BYTES : run->counted.page_bytes, err);
}

/* Finds how much more memory allows a faster plan. The plan that exceeded the limit in pages names
 * the bytes. The hint is a plan that ilp makes within them. */
static enum weft_status find_more(struct weft_paged *run, int64_t spent_units,
                                  struct weft_error *err)
{
    enum { LEAST_GAIN = 10000, SMALL_PART = 8 }; /* parts of the step, and of the work so far */
    const int64_t step_ns = run->plan->prediction.step_ns;
    struct weft_lower_inputs inputs = run->counted;
    const int64_t part = spent_units / SMALL_PART;
    const int64_t units = part < PROBE_UNITS ? part : PROBE_UNITS;
    struct weft_program *program = NULL;
    struct weft_plan *plan = NULL;
    if (!run->over || !run->inputs || units < 1 || weft_paged_is_late(run) ||
        run->over->prediction.step_ns >= step_ns)
        return WEFT_OK;
    inputs.most_bytes = 0;
    WEFT_TRY(weft_program_lower(run->over, &inputs, &program, err));
    const int64_t bytes = weft_program_outside_bytes(program) + program->arena_bytes;
    weft_program_destroy(program);
    if (bytes <= run->problem->tiers[0].limit_bytes) return WEFT_OK;
    WEFT_TRY(probe_limit(run, (struct probe){"ilp", bytes, units}, &plan, &program, err));
    if (!plan) return WEFT_OK;
    if (plan->prediction.step_ns < step_ns - step_ns / LEAST_GAIN) {
        run->plan->more_bytes = bytes - run->problem->tiers[0].limit_bytes;
        run->plan->more_ns = plan->prediction.step_ns;
    }
    weft_plan_destroy(plan);
    weft_program_destroy(program);
    return WEFT_OK;
}

static enum weft_status schedule_run(struct weft_paged *run, struct weft_error *err)
{
    struct weft_error refusal = {0};
    run->budget = run->options->budget;
    const struct weft_work *work = run->budget.work;
    const int64_t begun = work ? work->spent : 0;
    WEFT_TRY(prepare_run(run, err));
    if (run->table->least_bytes > weft_digest_limit_bytes(run->table))
        return refuse_limit(run, "", err);
    enum weft_status status = weft_plan_in_pages(run, &refusal);
    if (status != WEFT_OK && status != WEFT_E_INFEASIBLE)
        return weft_fail_again(err, &refusal, "%s", refusal.text);
    if (!weft_paged_fits(run) && !run->has_given_up) WEFT_TRY(probe_own_limit(run, err));
    if (!weft_paged_fits(run) && !run->has_given_up) WEFT_TRY(bound_refused(run, err));
    if (!weft_paged_fits(run)) return refuse_limit(run, refusal.text, err);
    WEFT_TRY(find_more(run, work ? work->spent - begun : PROBE_UNITS, err));
    return finish_plan(run, err);
}

enum weft_status weft_least_paged_limit(const struct weft_problem *problem,
                                        const struct weft_lower_inputs *inputs, int64_t *bytes,
                                        struct weft_error *err)
{
    struct weft_schedule_options options = {.planner = "ilp"};
    struct weft_problem least = *problem;
    const bool runs = !weft_problem_target(problem)->is_foreign;
    struct weft_paged run = {
        .problem = &least, .inputs = runs ? inputs : NULL, .options = &options};
    if (problem->n_tiers > 1) {
        /* The leanest strategies depend on how near each tier is to its limit. */
        const int64_t least_bytes = weft_least_limit(problem, 0, NULL);
        if (least_bytes < 0) return weft_fail_memory(err, "the least limit");
        if (least_bytes < INT64_MAX) least.tiers[0].limit_bytes = least_bytes;
    }
    run.planner = weft_planner_find(options.planner, NULL);
    enum weft_status status = prepare_run(&run, err);
    if (status == WEFT_OK) status = find_least_paged(&run, bytes, err);
    finish_run(&run);
    return status;
}

/* Hands over a bound of a problem that pages refuse. */
static enum weft_status tell_bound(const struct weft_paged *run, const struct weft_outcome *outcome,
                                   struct weft_outcome *to, struct weft_error *err)
{
    if (to == NULL || outcome->certificate.n_nodes == 0) return WEFT_OK;
    WEFT_TRY(weft_certificate_copy(&outcome->certificate, run->problem, to->pool, &to->certificate,
                                   err));
    to->certificate.problem = weft_problem_hash(run->problem);
    to->bound_ns = outcome->bound_ns;
    return WEFT_OK;
}

static enum weft_status tell_refused(const struct weft_paged *run, struct weft_error *err)
{
    WEFT_TRY(tell_bound(run, &run->outcome, run->options->refused, err));
    return tell_bound(run, &run->paged_outcome, run->options->refused_paged, err);
}

enum weft_status weft_schedule(const struct weft_problem *problem,
                               const struct weft_lower_inputs *inputs,
                               const struct weft_schedule_options *options, struct weft_plan **plan,
                               struct weft_program **program, struct weft_error *err)
{
    const bool runs = !weft_problem_target(problem)->is_foreign;
    struct weft_paged run = {.problem = problem, .inputs = runs ? inputs : NULL};
    struct weft_schedule_options own = *options;
    if (!own.planner) own.planner = "ilp";
    WEFT_TRY(weft_planner_need(own.planner, err));
    run.planner = weft_planner_find(own.planner, &own.setting);
    if (!weft_planner_knows_updates(run.planner, problem))
        return weft_fail(err, WEFT_E_DATA,
                         "planner %s: its published rule updates no unit in backward: set "
                         "plan.update_in to \"forward\", or take another planner, such as ilp",
                         run.planner->name);
    run.options = &own;
    enum weft_status status = schedule_run(&run, err);
    if (status == WEFT_OK) {
        *plan = run.plan;
        run.plan = NULL;
        if (program) {
            *program = run.program;
            run.program = NULL;
        }
    }
    if (status == WEFT_E_INFEASIBLE) {
        struct weft_error failure = {0};
        const enum weft_status told = tell_refused(&run, &failure);
        if (told != WEFT_OK) status = weft_fail_again(err, &failure, "%s", failure.text);
    }
    finish_run(&run);
    return status;
}
