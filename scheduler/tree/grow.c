/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/grow.h"

#include <math.h>
#include <string.h>

#include "scheduler/relax/coarse.h"
#include "scheduler/search/near.h"
#include "scheduler/tree/divide.h"
#include "scheduler/tree/fixing.h"

/* Steps of ascent, and choices near the root's prices: these divided by the cost of one. */
enum { ASCENT_WORK = 20000000, NEAR_WORK = 50000, MOST_NEAR = 5000 };
/* Rounds of fixing and relaxing again, while one closes FIXING_GAIN of the open gap. */
enum { FIXING_ROUNDS = 3 };
static const double FIXING_GAIN = 0.1;
/* A milestone of the channel's order is taken if its value exceeds this multiple of the value of
 * one of memory. */
static const double ORDER_FIRST = 20;
/* Rounds of whole rows: at the root, and at other nodes. */
enum { ROOT_ROUNDS = 6, NODE_ROUNDS = 1 };
/* Coarse problems, each with shorter runs than the one before. */
enum { COARSE_ROUNDS = 3 };

static enum weft_status offer_bound(struct weft_branch *branch, int32_t node, const char *by,
                                    struct weft_error *err)
{
    int64_t before = weft_branch_bound_ns(branch);
    WEFT_TRY(weft_proof_offer(branch->proof, node, branch->dual, err));
    if (weft_branch_bound_ns(branch) > before) branch->bound_by = by;
    return WEFT_OK;
}

/* Ascent aims at the best step time known. */
static double target_ns(const struct weft_branch *branch)
{
    return (double)branch->search->step_ns;
}

/* The bound at which a node needs no more work. The gap is closed if all nodes have it. A node that
 * has it must reach the best step time, to show that no plan is better. */
static int64_t goal_of(const struct weft_branch *branch, int32_t node)
{
    int64_t step_ns = branch->search->step_ns;
    int64_t goal = (int64_t)ceil((double)step_ns / (1 + branch->options->gap));
    while (weft_branch_enough_of(branch, goal) < step_ns)
        goal++;
    return branch->proof->nodes[node].bound_ns < goal ? goal : step_ns;
}

/* Finds the milestone of memory or of the channel's order, by the value of each at the point. */
static void find_milestones(struct weft_branch *branch, const double *x)
{
    struct weft_doubt order = {0};
    double value =
        weft_ilp_milestone(branch->ilp, branch->dual, branch->worth, x, &branch->milestone);
    (void)weft_ilp_order(branch->ilp, branch->dual, branch->proof->box, WEFT_ILP_DEARER_TIME,
                         branch->order_worth, x, 1, &order);
    if (value == 0 && order.value == 0) branch->milestone.n_blocks = 0;
    if (order.value > ORDER_FIRST * value) branch->milestone = order.milestone;
    if (!weft_milestone_is_of(&branch->milestone, branch->table->problem))
        branch->milestone.n_blocks = 0; /* a solver's answer is not trusted */
}

/* Solves the relaxation within the proof's box; *solved is false without an answer. If `n_added` is
 * not NULL, adds the whole rows that the answer exceeds. */
static enum weft_status relax_node(struct weft_branch *branch, bool *solved, int32_t *n_added,
                                   struct weft_error *err)
{
    struct weft_lp_result result = {0};
    struct weft_pool pool = {0};
    struct weft_ilp *ilp = branch->ilp;
    enum weft_status status = WEFT_OK;
    *solved = false;
    if (weft_branch_relax(branch, branch->proof->box, 0, &pool, &result)) {
        status = weft_ilp_prices(ilp, result.duals, branch->dual, err);
        for (int32_t k = 0; k < branch->table->problem->n_strategies; k++)
            branch->share[k] = ilp->z[k] < 0 ? 0 : result.x[ilp->z[k]];
        *solved = status == WEFT_OK;
        if (*solved) find_milestones(branch, result.x);
        if (!*solved || !weft_ilp_count(ilp, branch->dual, result.x, &branch->count))
            branch->count.n_decisions = 0;
        if (*solved && n_added)
            status = weft_ilp_add_whole(ilp, branch->dual, result.x, n_added, err);
    }
    weft_pool_finish(&pool);
    return status;
}

static void take_shares(struct weft_branch *branch)
{
    for (int32_t k = 0; k < branch->table->problem->n_strategies; k++)
        branch->share[k] = branch->dual->share[k];
}

static int32_t ascent_steps(const struct weft_branch *branch, int32_t least, int32_t most)
{
    int64_t cost = (int64_t)branch->table->n_items * branch->table->n_slots / 4 + 1;
    int64_t steps = ASCENT_WORK / cost;
    return steps < least ? least : steps > most ? most : (int32_t)steps;
}

/* Solves the relaxation. Repeats it with the whole rows that its solution exceeds, while that
 * raises the bound by a part of the gap. */
static enum weft_status relax_in_rounds(struct weft_branch *branch, int32_t node, bool *solved,
                                        struct weft_error *err)
{
    const struct weft_proof_node *at = &branch->proof->nodes[node];
    int32_t rounds = node == 0 ? ROOT_ROUNDS : NODE_ROUNDS, n_added = 1;
    bool again = true;
    for (int32_t round = 0; round <= rounds && n_added > 0; round++) {
        int64_t before_ns = at->bound_ns;
        n_added = 0;
        WEFT_TRY(relax_node(branch, &again, round < rounds ? &n_added : NULL, err));
        if (!again) break;
        *solved = true;
        WEFT_TRY(offer_bound(branch, node, "relaxation, weak duality", err));
        int64_t gap_ns = branch->search->step_ns - at->bound_ns;
        if (weft_search_is_spent(branch->search) || gap_ns <= 0) break;
        if (round > 0 && at->bound_ns - before_ns < gap_ns / 50) break;
    }
    return WEFT_OK;
}

/* Solves a coarse relaxation, and offers its prices and shares. */
static enum weft_status relax_coarsely(struct weft_branch *branch, struct weft_coarse *coarse,
                                       bool *solved, struct weft_error *err)
{
    struct weft_lp_result result = {0};
    struct weft_pool pool = {0};
    enum weft_status status = WEFT_OK;
    *solved = weft_branch_solve(branch, &coarse->ilp->lp, 0, &pool, &result);
    if (*solved) status = weft_coarse_spread(coarse, &result, branch->dual, branch->share, err);
    if (*solved && status == WEFT_OK)
        status = offer_bound(branch, 0, "coarse relaxation, weak duality", err);
    weft_pool_finish(&pool);
    return status;
}

/* Bounds the root by coarse relaxations, while a finer one raises the bound by a part of the gap.
 */
static enum weft_status bound_coarsely(struct weft_branch *branch, bool *solved,
                                       struct weft_error *err)
{
    const struct weft_proof_node *root = &branch->proof->nodes[0];
    struct weft_coarse *coarse = NULL, *before = NULL;
    enum weft_status status = WEFT_OK;
    for (int32_t round = 0; round < COARSE_ROUNDS && status == WEFT_OK; round++) {
        int64_t before_ns = root->bound_ns;
        bool again = false;
        status = weft_coarse_create(branch->table, before, &coarse, err);
        if (status == WEFT_OK) status = relax_coarsely(branch, coarse, &again, err);
        weft_coarse_destroy(before);
        before = coarse;
        coarse = NULL;
        *solved |= again;
        int64_t gap_ns = branch->search->step_ns - root->bound_ns;
        if (!again || weft_search_is_spent(branch->search) || gap_ns <= 0) break;
        if (round > 0 && root->bound_ns - before_ns < gap_ns / 10) break;
    }
    weft_coarse_destroy(before);
    return status;
}

/* Bounds a node by the relaxation's prices. Ascent improves them at the root. Without a solution it
 * improves the node's present prices, at first its parent's. */
static enum weft_status bound_node(struct weft_branch *branch, int32_t node, int64_t goal_ns,
                                   struct weft_error *err)
{
    const struct weft_proof *proof = branch->proof;
    const struct weft_box *box = proof->box;
    bool solved = false;
    branch->milestone.n_blocks = branch->count.n_decisions = 0;
    weft_proof_enter(branch->proof, node);
    if (box->empty) return offer_bound(branch, node, "whole blocks", err);
    const bool asks = !branch->failure[0] && !weft_search_is_spent(branch->search);
    if (branch->ilp && asks) WEFT_TRY(relax_in_rounds(branch, node, &solved, err));
    if (branch->is_coarse && node == 0 && asks) WEFT_TRY(bound_coarsely(branch, &solved, err));
    branch->is_solved |= solved;
    if (solved) weft_divide_suggest(branch, node);
    /* Ascent is the only bound of a root that is not solved, and takes little. */
    const bool spent = node == 0 && !solved ? weft_budget_has_rung(branch->search->budget)
                                            : weft_search_is_spent(branch->search);
    if (spent || proof->nodes[node].bound_ns >= goal_ns) return WEFT_OK;
    if (solved && node > 0) return WEFT_OK; /* the tree gains more for the same cost */
    weft_dual_take(branch->dual, &proof->prices[proof->nodes[node].prices]);
    int32_t steps = solved ? ascent_steps(branch, 20, 200) : ascent_steps(branch, 100, 4000);
    weft_dual_ascend(branch->dual, box, target_ns(branch), (double)goal_ns, steps);
    if (!solved) {
        take_shares(branch);
        weft_divide_suggest(branch, node);
    }
    return offer_bound(branch, node, "dual ascent, weak duality", err);
}

/* Fixes by a leaf's prices, sets *node to the rest and bounds it anew, while a round gains
 * enough. */
static enum weft_status fix_and_bound(struct weft_branch *branch, int32_t *node, int64_t goal_ns,
                                      struct weft_error *err)
{
    const struct weft_proof *proof = branch->proof;
    for (int round = 0; round < FIXING_ROUNDS && !weft_search_is_spent(branch->search); round++) {
        int64_t before_ns = proof->nodes[*node].bound_ns, open_ns = goal_ns - before_ns;
        int32_t room = (proof->most_nodes - proof->n_nodes) / 2 - branch->nodes_left - 1, rest;
        if (open_ns <= 0) return WEFT_OK;
        WEFT_TRY(weft_fixing_divide(branch->proof, branch->dual, branch->search, branch->keeper,
                                    *node, goal_ns, room, &rest, err));
        if (rest == *node) return WEFT_OK;
        *node = rest;
        if (proof->nodes[rest].bound_ns >= goal_ns) return WEFT_OK;
        WEFT_TRY(bound_node(branch, rest, goal_ns, err));
        branch->nodes_left--;
        if ((double)(proof->nodes[rest].bound_ns - before_ns) < FIXING_GAIN * (double)open_ns)
            return WEFT_OK;
    }
    return WEFT_OK;
}

static void show_bound(const struct weft_branch *branch)
{
    const struct weft_search *search = branch->search;
    if (search->is_shown) weft_work_show_bound(search->budget.work, weft_branch_bound_ns(branch));
}

enum weft_status weft_branch_root(struct weft_branch *branch, struct weft_error *err)
{
    WEFT_TRY(weft_proof_offer_trivial(branch->proof, branch->dual, &branch->bound_by, err));
    show_bound(branch);
    if (weft_budget_has_rung(branch->search->budget) || weft_branch_has_enough(branch) ||
        (weft_branch_is_over(branch) && !weft_search_is_spent(branch->search)))
        return WEFT_OK;
    WEFT_TRY(bound_node(branch, 0, goal_of(branch, 0), err));
    show_bound(branch);
    weft_search_round(branch->search, branch->share);
    return WEFT_OK;
}

enum weft_status weft_branch_try_near(struct weft_branch *branch, struct weft_error *err)
{
    const struct weft_proof *proof = branch->proof;
    int32_t size = branch->table->n_slots + branch->table->n_blocks + 1;
    int32_t tries = weft_branch_effort(branch->search) * NEAR_WORK / size + 1;
    if (tries > MOST_NEAR) tries = MOST_NEAR;
    weft_proof_enter(branch->proof, 0);
    if (proof->box->empty) return WEFT_OK;
    weft_dual_take(branch->dual, &proof->prices[proof->nodes[0].prices]);
    weft_dual_evaluate(branch->dual, proof->box);
    return weft_near_try(branch->search, branch->dual, proof->box->allowed,
                         weft_branch_enough_ns(branch), tries, err);
}

/* Tries placements within the steps that are left. *complete: all were tried. */
static enum weft_status place_exactly(struct weft_branch *branch, const int32_t *strategies,
                                      bool *complete, struct weft_error *err)
{
    int64_t steps =
        branch->exact_left < branch->leaf_steps ? branch->exact_left : branch->leaf_steps;
    *complete = false;
    if (steps <= 0) return WEFT_OK;
    WEFT_TRY(weft_exact_try(branch->exact, strategies, steps, complete, err));
    branch->exact_left -= weft_exact_steps(branch->exact);
    return WEFT_OK;
}

enum weft_status weft_branch_polish(struct weft_branch *branch, struct weft_error *err)
{
    int32_t *strategies = branch->search->other;
    bool complete;
    memcpy(strategies, branch->search->strategies,
           (size_t)branch->table->n_decisions * sizeof *strategies);
    return place_exactly(branch, strategies, &complete, err);
}

void weft_branch_leaf(const struct weft_branch *branch, int32_t *strategies)
{
    const uint64_t *allowed = branch->proof->box->allowed;
    for (int32_t u = 0; u < branch->table->n_decisions; u++)
        for (int32_t p = 0; p < weft_digest_count(branch->table, u); p++)
            if (allowed[u] >> p & 1u && branch->keeper[weft_digest_at(branch->table, u, p)] == p)
                strategies[u] = p;
}

/* Closes a leaf, a box with one choice of strategies, by trying every placement of it. */
static enum weft_status close_leaf(struct weft_branch *branch, int32_t node, struct weft_error *err)
{
    int32_t *strategies = branch->search->other;
    bool complete;
    weft_branch_leaf(branch, strategies);
    weft_search_try(branch->search, strategies);
    branch->proof->nodes[node].closed = true;
    WEFT_TRY(place_exactly(branch, strategies, &complete, err));
    branch->splits[node].untried = !complete;
    branch->n_untried += !complete;
    return WEFT_OK;
}

/* True if each decision has one strategy left that is its own keeper. */
static bool is_leaf(const struct weft_branch *branch)
{
    for (int32_t u = 0; u < branch->table->n_decisions; u++)
        if (weft_divide_strategies_left(branch, u) > 1) return false;
    return true;
}

/* Halves the worth of an item's or slot's milestones if one of them divided the node and failed to
 * raise both bounds. */
static void learn_worth(struct weft_branch *branch, int32_t node)
{
    const struct weft_proof_node *at = &branch->proof->nodes[node];
    const struct weft_proof_node *children = &branch->proof->nodes[at->children];
    if (children->kind != WEFT_NODE_MILESTONE) return;
    const struct weft_milestone *milestone = &children->milestone;
    if (children[0].bound_ns > at->bound_ns && children[1].bound_ns > at->bound_ns) return;
    if (milestone->moment == WEFT_PLACED)
        branch->worth[milestone->item] /= 2;
    else if (milestone->moment == WEFT_ENDED) /* a beginning is the first half of a division */
        branch->order_worth[milestone->slot] /= 2;
}

static enum weft_status bound_child(struct weft_branch *branch, int32_t child, int64_t goal_ns,
                                    struct weft_error *err)
{
    const struct weft_proof_node *at = &branch->proof->nodes[child];
    bool better;
    if (at->bound_ns < goal_ns) WEFT_TRY(weft_proof_reprice(branch->proof, child, err));
    if (at->bound_ns < goal_ns)
        WEFT_TRY(weft_proof_offer_known(branch->proof, child, &better, err));
    if (at->bound_ns >= goal_ns) return WEFT_OK;
    WEFT_TRY(bound_node(branch, child, goal_ns, err));
    branch->nodes_left--;
    WEFT_TRY(fix_and_bound(branch, &child, goal_ns, err));
    if (branch->proof->nodes[child].bound_ns < goal_ns)
        weft_search_round(branch->search, branch->share);
    return WEFT_OK;
}

static enum weft_status grow_at(struct weft_branch *branch, int32_t node, struct weft_error *err)
{
    int64_t goal_ns = goal_of(branch, node);
    weft_proof_enter(branch->proof, node);
    if (!branch->splits[node].chosen && !branch->proof->box->empty) {
        branch->nodes_left--;
        return bound_node(branch, node, goal_ns, err);
    }
    if (!weft_divide(branch, node)) {
        weft_proof_enter(branch->proof, node);
        if (is_leaf(branch)) return close_leaf(branch, node, err);
        branch->proof->nodes[node].closed = true;
        branch->exhausted = false;
        return WEFT_OK;
    }
    int32_t first = branch->proof->nodes[node].children;
    for (int32_t child = first; child < first + 2; child++)
        WEFT_TRY(bound_child(branch, child, goal_ns, err));
    learn_worth(branch, node);
    return WEFT_OK;
}

void weft_branch_exhausted(struct weft_branch *branch)
{
    const bool all = branch->exhausted && branch->n_untried == 0;
    branch->stop = all && weft_proof_weakest(branch->proof) < 0 ? "exhausted: the best there is"
                                                                : "strategies exhausted";
}

enum weft_status weft_branch_grow(struct weft_branch *branch, int32_t n_nodes,
                                  struct weft_error *err)
{
    int32_t root = 0, least_left = branch->nodes_left > n_nodes ? branch->nodes_left - n_nodes : 0;
    bool is_new = branch->proof->nodes[root].children == 0; /* it has not grown before */
    if (is_new && !weft_branch_is_over(branch))
        WEFT_TRY(fix_and_bound(branch, &root, goal_of(branch, 0), err));
    for (;;) {
        int32_t node = weft_proof_weakest(branch->proof);
        if (weft_branch_has_enough(branch)) {
            branch->stop = "gap closed";
        } else if (weft_search_is_spent(branch->search)) {
            branch->stop =
                weft_budget_has_rung(branch->search->budget) ? "time limit" : "work limit";
        } else if (node < 0 || branch->proof->nodes[node].bound_ns >= branch->search->step_ns) {
            weft_branch_exhausted(branch);
        } else if (branch->nodes_left <= least_left) {
            branch->stop = "node limit";
        } else {
            bool better;
            WEFT_TRY(weft_proof_offer_known(branch->proof, node, &better, err));
            if (!better) WEFT_TRY(grow_at(branch, node, err));
            show_bound(branch);
            continue;
        }
        return WEFT_OK;
    }
}
