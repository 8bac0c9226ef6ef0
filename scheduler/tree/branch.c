/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/branch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "scheduler/relax/ilp_keeper.h"
#include "scheduler/tree/groups.h"

/* Columns of counts up to which the relaxation takes about a second; see weft_ilp_create. */
enum { MOST_COLUMNS = 3000 };
/* Slots up to which the relaxation is that of the problem itself. */
enum { MOST_SLOTS = 600 };
/* Nodes to solve: NODE_WORK divided by the size of one. Iterations of a relaxation: RELAX_WORK for
 * each row and column. */
enum { NODE_WORK = 400000, MOST_NODES = 10000, RELAX_WORK = 60, MOST_MILESTONES = 64 };
/* Nodes of the tree for each solved node: fixing by prices makes nodes too. */
enum { NODES_PER_NODE = 8 };
/* Steps of exact placement: in all, and for one choice of strategies. */
enum { EXACT_STEPS = 1000000, LEAF_STEPS = 50000 };

int32_t weft_branch_effort(const struct weft_search *search)
{
    int64_t effort = search->whole < INT64_MAX ? search->whole / 2500000000 : 1;
    return effort < 1 ? 1 : effort > 16 ? 16 : (int32_t)effort;
}

static enum weft_status set_groups(struct weft_branch *branch, struct weft_error *err)
{
    WEFT_TRY(weft_groups_make(branch->table, branch->keeper, &branch->pool, &branch->groups,
                              &branch->n_groups, err));
    branch->grouped =
        weft_pool_array(&branch->pool, (size_t)branch->table->n_decisions, sizeof *branch->grouped);
    if (!branch->grouped) return weft_fail_memory(err, "a search tree");
    for (int32_t g = 0; g < branch->n_groups; g++)
        for (int32_t k = 0; k < branch->groups[g].n_decisions; k++)
            branch->grouped[branch->groups[g].decisions[k]] = true;
    WEFT_TRY(weft_proof_set_groups(branch->proof, branch->groups, branch->n_groups, err));
    WEFT_TRY(weft_dual_set_groups(branch->dual, branch->groups, branch->n_groups, err));
    if (!branch->ilp) return WEFT_OK;
    return weft_ilp_set_groups(branch->ilp, branch->groups, branch->n_groups, err);
}

enum weft_status weft_branch_create(const struct weft_digest *table,
                                    const struct weft_schedule_options *options,
                                    struct weft_search *search, struct weft_branch **out,
                                    struct weft_error *err)
{
    struct weft_branch *branch = calloc(1, sizeof *branch);
    if (!branch) return weft_fail_memory(err, "a search tree");
    size_t n_decisions = (size_t)table->n_decisions;
    int32_t size = table->n_slots * 4 + table->n_decisions;
    branch->table = table;
    branch->options = options;
    branch->search = search;
    int32_t effort = weft_branch_effort(search);
    branch->nodes_left = effort * (NODE_WORK / size + 1);
    if (branch->nodes_left > MOST_NODES) branch->nodes_left = MOST_NODES;
    /* Strategies are branched on again below each milestone, which pays only on a large budget. */
    int32_t milestones = (effort * effort * effort - 1) * 4;
    branch->milestones_left =
        milestones < effort * MOST_MILESTONES ? milestones : effort * MOST_MILESTONES;
    branch->presses_left = WEFT_BRANCH_PRESSES;
    branch->stop = "";
    branch->exact_left = (int64_t)effort * EXACT_STEPS;
    branch->leaf_steps = (int64_t)effort * LEAF_STEPS;
    branch->exhausted = true;
    branch->bound_by = "nothing";
    branch->share =
        weft_pool_array(&branch->pool, (size_t)table->problem->n_strategies, sizeof *branch->share);
    branch->weight = weft_pool_array(&branch->pool, n_decisions, sizeof *branch->weight);
    size_t most_nodes = NODES_PER_NODE * 2 * ((size_t)branch->nodes_left + n_decisions) + 3;
    branch->splits = weft_pool_array(&branch->pool, most_nodes, sizeof *branch->splits);
    branch->keeper = weft_pool_array(&branch->pool, (size_t)table->problem->n_strategies,
                                     sizeof *branch->keeper);
    enum weft_status status = WEFT_OK;
    size_t n_worth = (size_t)table->n_items + (size_t)table->n_slots;
    branch->worth = weft_pool_array(&branch->pool, n_worth, sizeof *branch->worth);
    for (size_t i = 0; branch->worth && i < n_worth; i++)
        branch->worth[i] = 1;
    if (branch->worth) branch->order_worth = branch->worth + table->n_items;
    if (!branch->share || !branch->worth || !branch->keeper || !branch->weight || !branch->splits)
        status = weft_fail_memory(err, "a search tree");
    if (status == WEFT_OK) status = weft_dual_create(table, &branch->dual, err);
    if (status == WEFT_OK)
        status = weft_proof_create(table->problem, (int32_t)most_nodes, &branch->proof, err);
    if (status == WEFT_OK) branch->dual->work = branch->proof->work = search->budget.work;
    if (status == WEFT_OK) status = weft_exact_create(search, &branch->exact, err);
    branch->is_coarse = options->solver.solve && table->n_slots > MOST_SLOTS;
    if (status == WEFT_OK && options->solver.solve && !branch->is_coarse)
        status = weft_ilp_create(table, MOST_COLUMNS, &branch->ilp, err);
    if (status != WEFT_OK) {
        weft_branch_destroy(branch);
        return status;
    }
    for (int32_t i = 0; i < table->n_items; i++) {
        const struct weft_problem_item *item = &table->problem->items[i];
        branch->weight[item->item.decision] +=
            (double)item->item.n_blocks * (double)item->block_ns + 1;
    }
    for (int32_t u = 0; u < table->n_decisions; u++)
        for (int32_t p = 0; p < weft_digest_count(table, u); p++)
            branch->keeper[weft_digest_at(table, u, p)] = (uint8_t)weft_ilp_keeper(table, u, p);
    status = set_groups(branch, err);
    if (status != WEFT_OK) {
        weft_branch_destroy(branch);
        return status;
    }
    *out = branch;
    return WEFT_OK;
}

void weft_branch_destroy(struct weft_branch *branch)
{
    if (!branch) return;
    weft_ilp_destroy(branch->ilp);
    weft_exact_destroy(branch->exact);
    weft_dual_destroy(branch->dual);
    weft_proof_destroy(branch->proof);
    weft_pool_finish(&branch->pool);
    free(branch);
}

int64_t weft_branch_bound_ns(const struct weft_branch *branch)
{
    return weft_proof_bound_ns(branch->proof);
}

int64_t weft_branch_enough_of(const struct weft_branch *branch, int64_t bound_ns)
{
    return (int64_t)floor((double)bound_ns * (1 + branch->options->gap));
}

int64_t weft_branch_enough_ns(const struct weft_branch *branch)
{
    return weft_branch_enough_of(branch, weft_branch_bound_ns(branch));
}

static bool is_spent(const struct weft_branch *branch)
{
    return weft_search_is_spent(branch->search);
}

bool weft_branch_has_enough(const struct weft_branch *branch)
{
    return branch->search->step_ns >= 0 && branch->search->step_ns <= weft_branch_enough_ns(branch);
}

bool weft_branch_is_over(const struct weft_branch *branch)
{
    const int64_t rival_ns = branch->options->rival_ns;
    return weft_branch_has_enough(branch) || is_spent(branch) ||
           (rival_ns > 0 && weft_branch_bound_ns(branch) >= rival_ns);
}

/* The part of the rest for a solver that may never answer. */
static int64_t solver_part(const struct weft_branch *branch, int64_t left)
{
    return branch->answered ? left : left - left / 4;
}

static void note_failure(struct weft_branch *branch, enum weft_status status, const char *text)
{
    struct weft_work *work = branch->search->budget.work;
    weft_work_look(work);
    branch->too_slow = status == WEFT_E_HANG && is_spent(branch);
    if (work && status != WEFT_E_ENVIRONMENT) work->disturbed = true;
    snprintf(branch->failure, sizeof branch->failure, "%.150s", text);
}

bool weft_branch_solve(struct weft_branch *branch, const struct weft_lp *lp, int64_t iterations,
                       struct weft_pool *pool, struct weft_lp_result *result)
{
    struct weft_error failure = {0};
    const struct weft_solver *solver = &branch->options->solver;
    struct weft_budget budget = branch->search->budget;
    int64_t units = solver_part(branch, weft_budget_left(budget));
    int64_t affordable = units / weft_lp_iteration_units(lp) + 1;
    if (iterations <= 0) iterations = RELAX_WORK * ((int64_t)lp->n_rows + lp->n_columns);
    struct weft_lp_limits limits = {
        .iterations = affordable < iterations ? affordable : iterations,
        .patience_ns = solver_part(branch, weft_work_alarm_left_ns(budget.work)),
    };
    enum weft_status status = solver->solve(solver->context, lp, &limits, pool, result, &failure);
    branch->answered = branch->answered || status == WEFT_OK;
    if (status != WEFT_OK) {
        note_failure(branch, status, failure.text);
        return false;
    }
    if (budget.work) budget.work->disturbed |= result->anew;
    weft_work_spend(budget.work, weft_lp_answer_units(lp, result));
    return result->status == WEFT_LP_OPTIMAL;
}

bool weft_branch_relax(struct weft_branch *branch, const struct weft_box *box, int64_t iterations,
                       struct weft_pool *pool, struct weft_lp_result *result)
{
    weft_ilp_restrict(branch->ilp, box, branch->dual);
    return weft_branch_solve(branch, &branch->ilp->lp, iterations, pool, result);
}
