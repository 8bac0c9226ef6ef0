/* SPDX-License-Identifier: Apache-2.0 */
/* Decides strategies and placements together. Patterns, greedy changes, roundings of the relaxation
 * and local search choose strategies. List scheduling places them, guided by the relaxation. Branch
 * and bound proves the distance from the best plan. Simulated time judges every plan, never the
 * relaxation's objective. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/planners/planners.h"
#include "scheduler/planners/table.h"
#include "scheduler/tree/enumerate.h"
#include "scheduler/tree/follow.h"
#include "scheduler/tree/grow.h"
#include "scheduler/tree/guide.h"
#include "scheduler/tree/leaves.h"
#include "scheduler/tree/trim.h"

/* Tries of local search and of trimming: these, divided by the size of one. */
enum {
    SEARCH_WORK = 4000000,
    NODES_A_TURN = 8, /* of the first turn */
    TRIM_WORK = 100000000
};
/* Work that is kept back for trimming and checking the proof: TRIM_BOXES boxes and one for each
 * vector of prices, at most this part of the budget. */
enum { TRIM_BOXES = 250, FINISH_PART = 8 };

/* Parts of the work up to which the root is bounded before other plans are tried, and these. */
static const double ROOT_PART = 2.0 / 3, FIRST_PART = 0.75;

struct run {
    const struct weft_digest *table;
    const struct weft_schedule_options *options;
    struct weft_search *search;
    struct weft_branch *branch;
    struct weft_guide *guide;
    struct weft_follow *follow;
    struct weft_outcome *outcome;
    struct weft_pool pool;
    struct weft_budget budget; /* of the whole plan; the search may have a part of it */
    int64_t box_units;         /* work of one box of the proof; 0: not known */
};

static void set_stop(struct weft_outcome *outcome, const char *what, const char *detail)
{
    snprintf(outcome->solver_stop, sizeof outcome->solver_stop, "%.60s%s%.180s", what,
             *detail ? ": " : "", detail);
}

static void set_failure(struct weft_outcome *outcome, bool too_slow, const char *failure)
{
    set_stop(outcome, too_slow ? "time limit, solver" : "solver failed", failure);
}

/* Claims the bound that a check of the certificate finds. If the tree believed in a higher one,
 * which is a fault of the tree, reports it. */
static enum weft_status claim_bound(struct run *run, struct weft_error *err)
{
    struct weft_outcome *outcome = run->outcome;
    struct weft_error why = {0};
    int64_t proven_ns = 0;
    if (outcome->bound_ns <= 0) return WEFT_OK;
    enum weft_status status =
        weft_certificate_check(&outcome->certificate, run->table->problem, 1, &proven_ns, &why);
    if (status == WEFT_E_SYSTEM) return weft_fail(err, status, "%s", why.text);
    if (status != WEFT_OK) proven_ns = 0;
    if (proven_ns >= outcome->bound_ns) return WEFT_OK;
    outcome->bound_ns = proven_ns;
    set_stop(outcome, "the certificate proves less than the tree", why.text);
    return WEFT_OK;
}

/* Trims the proof. The check afterwards needs a box for each second node, but at most half of the
 * remaining work is kept for it: trimming leaves fewer nodes to check. */
static enum weft_status trim_proof(struct run *run, struct weft_error *err)
{
    struct weft_search *search = run->search;
    struct weft_proof *proof = run->branch->proof;
    const struct weft_digest *table = run->table;
    int64_t size = ((int64_t)table->n_items + 4 * table->n_decisions) * table->n_slots + 1;
    int64_t check = (proof->n_nodes / 2 + 1) * run->box_units;
    int64_t half = weft_budget_left(run->budget) / 2;
    search->budget = run->budget;
    search->budget.until -= check < half ? check : half;
    return weft_trim(proof, search, TRIM_WORK / size + 1, err);
}

/* Gives the plan its bound and certificate, and the reason why planning ended. */
static enum weft_status conclude_plan(struct run *run, struct weft_error *err)
{
    struct weft_outcome *outcome = run->outcome;
    const struct weft_branch *branch = run->branch;
    outcome->cut_short = weft_search_is_spent(run->search) || branch->too_slow;
    WEFT_TRY(trim_proof(run, err));
    outcome->bound_ns = weft_branch_bound_ns(branch);
    outcome->bound_by = branch->bound_by;
    outcome->first_work = run->search->first_work;
    if (!outcome->solver_stop[0]) {
        if (branch->failure[0])
            set_failure(outcome, branch->too_slow, branch->failure);
        else if (run->options->solver.solve)
            set_stop(outcome, branch->stop, "");
        else
            set_stop(outcome, "no solver", branch->stop);
    }
    WEFT_TRY(weft_proof_certificate(branch->proof, outcome->pool, &outcome->certificate, err));
    return claim_bound(run, err);
}

/* Starts from the plan of a rule. */
static enum weft_status start_from_rule(struct run *run, const struct weft_planner *rule,
                                        const struct weft_setting *setting, struct weft_error *err)
{
    struct weft_search *search = run->search;
    const struct weft_problem *problem = run->table->problem;
    struct weft_schedule_options options = *run->options;
    struct weft_outcome outcome = {0};
    struct weft_candidate candidate = {.strategies = search->other, .moves = search->trial_moves};
    struct weft_error refusal = {0};
    struct weft_plan *plan = NULL;
    options.setting = setting;
    options.may_stop = true;
    weft_work_spend(search->budget.work, weft_planner_rule_units(run->table));
    enum weft_status status =
        weft_planner_decide(rule, problem, &options, &candidate, &outcome, &refusal);
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK;
    if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
    status = weft_plan_create(problem, rule->name, candidate.strategies, candidate.moves,
                              candidate.n_moves, &plan, &refusal);
    if (status == WEFT_E_INFEASIBLE) return WEFT_OK; /* rules ignore chains */
    if (status != WEFT_OK) return weft_fail(err, status, "%s", refusal.text);
    if (weft_problem_relaxing_may_slow(problem)) status = weft_search_start(search, plan, err);
    if (status == WEFT_OK) status = weft_plan_relax(plan, problem->tiers[0].limit_bytes, err);
    if (status == WEFT_OK) status = weft_search_start(search, plan, err);
    weft_plan_destroy(plan);
    return status;
}

/* Starts from the plans of all rules, so that no rule is faster than ilp, even on a small budget.
 * The table lists rules with one policy for all units first. */
static enum weft_status start_from_rules(struct run *run, struct weft_error *err)
{
    for (const struct weft_planner *rule = weft_planners(); rule->name; rule++) {
        const struct weft_setting *setting = rule->settings;
        if (!weft_planner_is_rule_for(rule, run->table->problem)) continue;
        do {
            if (weft_search_is_spent(run->search)) return WEFT_OK;
            WEFT_TRY(start_from_rule(run, rule, setting, err));
        } while (setting && (++setting)->name);
    }
    return WEFT_OK;
}

/* Ends the search's budget after this part of it. */
static void set_part(struct run *run, double part)
{
    struct weft_search *search = run->search;
    if (search->whole == INT64_MAX) return;
    search->budget.until =
        search->begun + (int64_t)((double)(search->budget.until - search->begun) * part);
}

/* Measures the work of a box, and keeps the work of finishing back from the search. */
static enum weft_status reserve_work(struct run *run, struct weft_error *err)
{
    struct weft_search *search = run->search;
    struct weft_proof *proof = run->branch->proof;
    if (search->whole == INT64_MAX) return WEFT_OK;
    int64_t from = search->budget.work->spent, bound_ns;
    WEFT_TRY(weft_proof_measure(proof, weft_proof_least(proof), &bound_ns, err));
    run->box_units = search->budget.work->spent - from;
    int64_t takes = run->box_units * (TRIM_BOXES + proof->n_prices);
    int64_t most = search->whole / FINISH_PART;
    search->budget.until = run->budget.until - (takes < most ? takes : most);
    return WEFT_OK;
}

/* True if a draft is as good as its caller wants. */
static bool is_enough(const struct run *run)
{
    const struct weft_search *search = run->search;
    return run->options->draft && search->step_ns >= 0 &&
           search->step_ns <= run->options->enough_ns;
}

static enum weft_status start_from_plans(struct run *run, struct weft_error *err)
{
    const struct weft_schedule_options *options = run->options;
    for (int32_t i = 0; i < options->n_starts; i++)
        WEFT_TRY(weft_search_start(run->search, options->starts[i], err));
    return WEFT_OK;
}

/* Tries patterns, rules and greedy changes up to a part of the work. Greedy changes get what is
 * left of a smaller part, because better plans come from the relaxation. They are left out if
 * greedy's plan is a start. */
static enum weft_status make_first_plans(struct run *run, double part, double greedy_part,
                                         struct weft_error *err)
{
    struct weft_search *search = run->search;
    const struct weft_budget budget = search->budget;
    set_part(run, part);
    weft_search_patterns(search);
    enum weft_status status = start_from_rules(run, err);
    search->budget = budget;
    set_part(run, greedy_part);
    bool made = run->options->after_greedy && !run->options->draft;
    if (status == WEFT_OK && !made) weft_search_greedy(search);
    search->budget = budget;
    return status;
}

/* Bounds the root up to a part of the work, the first time or again. */
static enum weft_status bound_root(struct run *run, double part, struct weft_error *err)
{
    struct weft_search *search = run->search;
    const struct weft_budget budget = search->budget;
    if (run->branch == NULL)
        WEFT_TRY(weft_branch_create(run->table, run->options, search, &run->branch, err));
    set_part(run, part);
    const enum weft_status status = weft_branch_root(run->branch, err);
    search->budget = budget;
    WEFT_TRY(status);
    return reserve_work(run, err);
}

/* Makes first plans and bounds the root. Its relaxation comes first if there is a plan to start
 * from: in a large problem a little work buys a bound, and all of it few patterns. A draft needs no
 * bound, and its first plans may be enough. */
static enum weft_status begin_plan(struct run *run, struct weft_error *err)
{
    struct weft_search *search = run->search;
    const struct weft_budget budget = search->budget;
    set_part(run, 1.0 / 3);
    const enum weft_status status = start_from_plans(run, err);
    search->budget = budget;
    WEFT_TRY(status);
    if (is_enough(run)) return WEFT_OK;
    if (search->step_ns < 0 || run->options->draft) {
        WEFT_TRY(make_first_plans(run, 1.0 / 3, 1.0 / 5, err));
        if (search->step_ns < 0)
            return weft_fail(err, WEFT_E_INFEASIBLE, "planner ilp: not even the leanest plan fits");
        if (is_enough(run) || weft_budget_has_rung(budget)) return WEFT_OK;
        return bound_root(run, 1, err);
    }
    if (weft_budget_has_rung(budget)) return WEFT_OK;
    WEFT_TRY(bound_root(run, ROOT_PART, err));
    if (weft_branch_is_over(run->branch)) return WEFT_OK;
    WEFT_TRY(make_first_plans(run, FIRST_PART, FIRST_PART, err));
    /* The solver goes on from its basis. */
    const bool again = run->options->solver.solve && !run->branch->failure[0] &&
                       !run->branch->is_solved && !weft_branch_is_over(run->branch);
    return again ? bound_root(run, 1, err) : WEFT_OK;
}

/* Alternates local search and guided placements of its strategies until neither helps. */
static void improve_plan(struct run *run)
{
    struct weft_search *search = run->search;
    int64_t tries = SEARCH_WORK / (run->table->n_blocks + run->table->n_slots + 1) + 1, before_ns;
    do {
        before_ns = search->step_ns;
        weft_search_improve(search, tries, weft_branch_enough_ns(run->branch));
        weft_guide_try(run->guide, search->strategies);
    } while (search->step_ns < before_ns && !weft_branch_is_over(run->branch));
}

/* Tries strategies near the bound of a node, and local search after each better plan, until none is
 * better. */
static enum weft_status try_near(struct run *run, int32_t node, int32_t most_in_vain,
                                 struct weft_error *err)
{
    struct weft_search *search = run->search;
    int64_t before_ns;
    do {
        before_ns = search->step_ns;
        WEFT_TRY(weft_guide_try_near(run->guide, node, most_in_vain, err));
        if (search->step_ns < before_ns) improve_plan(run);
    } while (search->step_ns < before_ns && !weft_branch_is_over(run->branch));
    return WEFT_OK;
}

/* Parts of the device's limit that dives keep free: whole blocks need more than the relaxation's
 * parts of them. Only over several lanes is there a second dive. */
static const double DIVE_PARTS[] = {0, 0.01};

static enum weft_status dive_and_follow(struct run *run, struct weft_error *err)
{
    double limit = (double)run->table->problem->tiers[0].limit_bytes;
    for (int k = 0; k < 2; k++) {
        if (k > 0 && !weft_follow_is_of_use(run->follow)) break;
        const int32_t *strategies = weft_guide_dive(run->guide, (int64_t)(DIVE_PARTS[k] * limit));
        if (strategies) WEFT_TRY(weft_follow_try(run->follow, strategies, err));
    }
    return WEFT_OK;
}

/* Improves the first plans, up to two thirds of the work, or half of the rest if that is more. */
static enum weft_status make_better_plans(struct run *run, struct weft_error *err)
{
    struct weft_search *search = run->search;
    struct weft_branch *branch = run->branch;
    const struct weft_budget budget = search->budget;
    WEFT_TRY(weft_guide_create(branch, &run->guide, err));
    WEFT_TRY(weft_follow_create(branch, &run->follow, err));
    set_part(run, 2.0 / 3);
    const int64_t half = budget.until - weft_budget_left(budget) / 2;
    if (search->whole != INT64_MAX && search->budget.until < half) search->budget.until = half;
    weft_guide_try(run->guide, search->strategies);
    enum weft_status status = weft_branch_try_near(branch, err);
    weft_guide_try(run->guide, search->strategies);
    if (status == WEFT_OK) status = dive_and_follow(run, err);
    improve_plan(run);
    if (status == WEFT_OK) status = weft_follow_try(run->follow, search->strategies, err);
    if (status == WEFT_OK) status = try_near(run, 0, NODES_A_TURN, err);
    search->budget = budget;
    return status;
}

/* Grows the tree by some nodes. *more: it stopped for their number alone, and more nodes are left.
 */
static enum weft_status grow_tree(struct run *run, int32_t n_nodes, bool *more,
                                  struct weft_error *err)
{
    struct weft_branch *branch = run->branch;
    int32_t before = branch->nodes_left;
    WEFT_TRY(weft_branch_grow(branch, n_nodes, err));
    bool used_up = before - branch->nodes_left >= n_nodes;
    *more = used_up && branch->nodes_left > 0 && !weft_branch_is_over(branch);
    return WEFT_OK;
}

/* The tree and the plans take turns. Plans are tried near the weakest leaf, and then near the root
 * if none was better. Turns get longer while no plan is better. */
static enum weft_status grow_and_try(struct run *run, struct weft_error *err)
{
    struct weft_search *search = run->search;
    int32_t n_nodes = NODES_A_TURN;
    bool more = true;
    for (;;) {
        WEFT_TRY(grow_tree(run, n_nodes, &more, err));
        WEFT_TRY(reserve_work(run, err));
        int32_t leaf = weft_proof_weakest(run->branch->proof);
        if (!more || leaf < 0 || !run->guide) return WEFT_OK;
        int64_t before_ns = search->step_ns;
        WEFT_TRY(try_near(run, leaf, n_nodes, err));
        if (leaf != 0 && search->step_ns == before_ns) WEFT_TRY(try_near(run, 0, n_nodes, err));
        n_nodes = search->step_ns < before_ns ? NODES_A_TURN : 2 * n_nodes;
    }
}

static enum weft_status decide_plan(struct run *run, struct weft_error *err)
{
    struct weft_search *search = run->search;
    const struct weft_schedule_options *options = run->options;
    WEFT_TRY(begin_plan(run, err));
    if (is_enough(run)) return WEFT_OK;
    if (run->branch == NULL) { /* the alarm rang */
        /* The caller proves the trivial bound, which takes less than a tree. */
        run->outcome->cut_short = true;
        run->outcome->first_work = search->first_work;
        set_stop(run->outcome, "time limit", "");
        return WEFT_OK;
    }
    if (!weft_branch_is_over(run->branch)) WEFT_TRY(make_better_plans(run, err));
    if (options->draft) return WEFT_OK;
    if (!weft_branch_is_over(run->branch)) WEFT_TRY(weft_branch_polish(run->branch, err));
    WEFT_TRY(grow_and_try(run, err));
    WEFT_TRY(weft_leaves_search(run->branch, err));
    WEFT_TRY(weft_enumerate_leaves(run->branch, err));
    return conclude_plan(run, err);
}

/* Clears the figures shown for the period planned before. */
static void show_nothing(struct weft_work *work)
{
    weft_work_show_best(work, 0);
    weft_work_show_bound(work, 0);
}

enum weft_status weft_planner_ilp(const struct weft_problem *problem,
                                  const struct weft_schedule_options *options,
                                  struct weft_candidate *out, struct weft_outcome *outcome,
                                  struct weft_error *err)
{
    struct weft_digest *table = NULL;
    struct run run = {.options = options, .outcome = outcome};
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_digest_create_like(options->table, problem, &table, err));
    run.table = table;
    WEFT_TRY_GOTO(done, weft_search_create(table, &run.search, err));
    weft_search_begin(run.search, options->budget);
    run.budget = run.search->budget;
    run.search->is_shown = !options->draft && !options->hidden;
    if (run.search->is_shown) show_nothing(run.budget.work);
    WEFT_TRY_GOTO(done, decide_plan(&run, err));
    WEFT_TRY_GOTO(done, weft_search_keep_saved(run.search, err));
    weft_search_result(run.search, out);
done:
    if (options->solver.release) options->solver.release(options->solver.context);
    weft_follow_destroy(run.follow);
    weft_guide_destroy(run.guide);
    weft_branch_destroy(run.branch);
    weft_search_destroy(run.search);
    weft_digest_destroy(table);
    weft_pool_finish(&run.pool);
    return status;
}
