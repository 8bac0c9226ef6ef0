/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/proof.h"
#include "problem/early.h"
#include "scheduler/digest/lean_tree.h"

#include <stdlib.h>
#include <string.h>

/* The most nodes of a tree that proves that nothing fits. */
enum { MOST_EMPTY_NODES = 1023 };

static enum weft_status create_proof(const struct weft_problem *problem, int32_t most_nodes,
                                     bool quick, struct weft_proof **out, struct weft_error *err)
{
    struct weft_proof *proof = calloc(1, sizeof *proof);
    if (!proof) return weft_fail_memory(err, "a proof");
    proof->problem = problem;
    proof->most_nodes = most_nodes > 1 ? most_nodes : 1;
    proof->most_prices = proof->most_nodes + 1;
    proof->nodes = weft_pool_array(&proof->pool, (size_t)proof->most_nodes, sizeof *proof->nodes);
    proof->prices =
        weft_pool_array(&proof->pool, (size_t)proof->most_prices, sizeof *proof->prices);
    proof->priced =
        weft_pool_array(&proof->pool, (size_t)proof->most_prices, sizeof *proof->priced);
    proof->common =
        weft_pool_array(&proof->pool, (size_t)proof->most_prices, sizeof *proof->common);
    proof->made_for =
        weft_pool_array(&proof->pool, (size_t)proof->most_prices, sizeof *proof->made_for);
    proof->allowed =
        weft_pool_array(&proof->pool, (size_t)problem->n_decisions, sizeof *proof->allowed);
    proof->milestones =
        weft_pool_array(&proof->pool, (size_t)proof->most_nodes, sizeof *proof->milestones);
    proof->counts = weft_pool_array(&proof->pool, (size_t)proof->most_nodes, sizeof *proof->counts);
    if (!proof->nodes || !proof->prices || !proof->priced || !proof->common || !proof->made_for ||
        !proof->allowed || !proof->milestones || !proof->counts) {
        weft_proof_destroy(proof);
        return weft_fail_memory(err, "a proof");
    }
    enum weft_status status = quick ? weft_box_create_plain(problem, &proof->box, err)
                                    : weft_box_create(problem, &proof->box, err);
    if (status == WEFT_OK && most_nodes > 1) status = weft_box_create(problem, &proof->all, err);
    if (status != WEFT_OK) {
        weft_proof_destroy(proof);
        return status;
    }
    proof->nodes[0] = (struct weft_proof_node){.parent = -1, .prices = -1};
    proof->n_nodes = 1;
    *out = proof;
    return WEFT_OK;
}

enum weft_status weft_proof_create(const struct weft_problem *problem, int32_t most_nodes,
                                   struct weft_proof **out, struct weft_error *err)
{
    return create_proof(problem, most_nodes, false, out, err);
}

enum weft_status weft_proof_set_groups(struct weft_proof *proof, const struct weft_group *groups,
                                       int32_t n_groups, struct weft_error *err)
{
    proof->groups = groups;
    proof->n_groups = n_groups;
    WEFT_TRY(weft_box_set_groups(proof->box, groups, n_groups, err));
    return proof->all ? weft_box_set_groups(proof->all, groups, n_groups, err) : WEFT_OK;
}

void weft_proof_destroy(struct weft_proof *proof)
{
    if (!proof) return;
    weft_box_destroy(proof->box);
    weft_box_destroy(proof->all);
    weft_pool_finish(&proof->pool);
    free(proof);
}

/* Spends the work of restricting a box; the next function spends the work of applying prices in
 * one. */
static void spend_box(const struct weft_proof *proof)
{
    const struct weft_problem *problem = proof->problem;
    weft_work_spend(proof->work, 6 * (int64_t)problem->n_decisions * problem->n_slots +
                                     250 * (int64_t)problem->n_items);
}

static void spend_prices(const struct weft_proof *proof, int32_t n_whole)
{
    const struct weft_problem *problem = proof->problem;
    weft_work_spend(proof->work, (150 + 2 * (int64_t)problem->n_slots) * problem->n_items +
                                     40 * (int64_t)problem->n_decisions * n_whole);
}

/* Adds the fact that distinguishes a child's plans from its parent's. */
static void add_fact(struct weft_proof *proof, const struct weft_proof_node *child)
{
    if (child->kind == WEFT_NODE_STRATEGIES) proof->allowed[child->decision] &= child->strategies;
    if (child->kind == WEFT_NODE_MILESTONE)
        proof->milestones[proof->n_milestones++] = child->milestone;
    if (child->kind == WEFT_NODE_COUNT) proof->counts[proof->n_counts++] = child->count;
}

/* Collects the facts of a node's branches. */
static void find_allowed(struct weft_proof *proof, int32_t node)
{
    for (int32_t u = 0; u < proof->problem->n_decisions; u++)
        proof->allowed[u] = weft_decision_all(&proof->problem->decisions[u]);
    proof->n_milestones = proof->n_counts = 0;
    for (int32_t at = node; proof->nodes[at].parent >= 0; at = proof->nodes[at].parent) {
        const struct weft_proof_node *first =
            &proof->nodes[proof->nodes[proof->nodes[at].parent].children];
        if (proof->nodes[at].whole) continue;
        if (first->kind == WEFT_NODE_STRATEGIES && first != &proof->nodes[at])
            proof->allowed[first->decision] &= ~first->strategies; /* all others than the first's */
        else
            add_fact(proof, &proof->nodes[at]);
    }
}

static void restrict_box(struct weft_proof *proof)
{
    spend_box(proof);
    weft_box_restrict(proof->box, &(struct weft_facts){.allowed = proof->allowed,
                                                       .milestones = proof->milestones,
                                                       .n_milestones = proof->n_milestones,
                                                       .counts = proof->counts,
                                                       .n_counts = proof->n_counts});
}

void weft_proof_enter(struct weft_proof *proof, int32_t node)
{
    find_allowed(proof, node);
    restrict_box(proof);
}

void weft_proof_enter_below(struct weft_proof *proof, int32_t node,
                            const struct weft_proof_node *path, int32_t n_path)
{
    find_allowed(proof, node);
    for (int32_t k = 0; k < n_path; k++)
        add_fact(proof, &path[k]);
    restrict_box(proof);
}

static enum weft_status make_prices(struct weft_proof *proof, const struct weft_dual *dual,
                                    struct weft_prices *prices, struct weft_priced *priced,
                                    struct weft_priced *common, struct weft_error *err)
{
    size_t n_lambda = (size_t)dual->n_moving * (size_t)dual->n_slots;
    size_t n_costs = (size_t)proof->problem->n_strategies;
    prices->lambda = weft_pool_array(&proof->pool, n_lambda, sizeof *prices->lambda);
    prices->waits = weft_pool_array(&proof->pool, (size_t)dual->waits.n, sizeof *prices->waits);
    prices->chains =
        weft_pool_array(&proof->pool, (size_t)weft_dual_count_chains(dual), sizeof *prices->chains);
    prices->mu = weft_pool_array(&proof->pool, (size_t)dual->n_memory, sizeof *prices->mu);
    priced->cost = weft_pool_array(&proof->pool, 2 * n_costs, sizeof *priced->cost);
    prices->whole = weft_pool_array(&proof->pool, (size_t)dual->n_rows, sizeof *prices->whole);
    prices->pi = weft_pool_array(&proof->pool, (size_t)proof->n_groups, sizeof *prices->pi);
    if (!prices->lambda || !prices->waits || !prices->chains || !prices->mu || !prices->pi ||
        !prices->whole || !priced->cost)
        return weft_fail_memory(err, "prices");
    common->cost = priced->cost + n_costs;
    weft_dual_round(dual, prices);
    spend_prices(proof, 2 * prices->n_whole);
    WEFT_TRY(weft_prices_apply(proof->all ? proof->all : proof->box, prices, common, err));
    return weft_prices_apply(proof->box, prices, priced, err);
}

/* Returns the index for new prices of a node, or most_prices without room. They replace the node's
 * own prices only if all room is taken and no other leaf has them. Until then other nodes may find
 * them useful. */
static int32_t free_prices(struct weft_proof *proof, int32_t node)
{
    int32_t own = proof->nodes[node].prices;
    if (own < 0 || proof->n_prices < proof->most_prices) return proof->n_prices;
    for (int32_t i = 0; i < proof->n_nodes; i++)
        if (i != node && proof->nodes[i].children == 0 && proof->nodes[i].prices == own)
            return proof->n_prices;
    return own;
}

enum weft_status weft_proof_offer(struct weft_proof *proof, int32_t node,
                                  const struct weft_dual *dual, struct weft_error *err)
{
    struct weft_prices prices;
    struct weft_priced priced, common;
    weft_proof_enter(proof, node);
    WEFT_TRY(make_prices(proof, dual, &prices, &priced, &common, err));
    int64_t bound_ns = weft_priced_bound_ns(proof->problem, &priced, proof->box->allowed);
    struct weft_proof_node *leaf = &proof->nodes[node];
    if (leaf->prices >= 0 && bound_ns <= leaf->bound_ns) return WEFT_OK;
    int32_t at = free_prices(proof, node);
    if (at == proof->most_prices) return WEFT_OK;
    proof->prices[at] = prices;
    proof->priced[at] = priced;
    proof->common[at] = common;
    proof->made_for[at] = node;
    if (at == proof->n_prices) proof->n_prices++;
    leaf->prices = at;
    leaf->bound_ns = bound_ns;
    return WEFT_OK;
}

/* Finds the prices with the best bound for the entered leaf, by their costs in the root's box.
 * Looks at prices that the leaf was not offered. -1: none proves more than its bound. */
static int32_t best_known(const struct weft_proof *proof, const struct weft_proof_node *leaf)
{
    int64_t most_ns = leaf->bound_ns;
    int32_t best = -1;
    weft_work_spend(proof->work,
                    6 * (int64_t)(proof->n_prices - leaf->n_known) * proof->problem->n_decisions);
    for (int32_t k = leaf->n_known; k < proof->n_prices; k++) {
        if (k == leaf->prices) continue;
        int64_t ns = weft_priced_bound_ns(proof->problem, &proof->common[k], proof->box->allowed);
        if (ns <= most_ns) continue;
        most_ns = ns;
        best = k;
    }
    return best;
}

/* Computes the bound of the prices in the box entered last. */
static enum weft_status bound_by(struct weft_proof *proof, int32_t prices, int64_t *bound_ns,
                                 struct weft_error *err)
{
    size_t n_costs = (size_t)proof->problem->n_strategies;
    struct weft_priced priced = {.cost = calloc(n_costs, sizeof *priced.cost)};
    if (!priced.cost) return weft_fail_memory(err, "prices");
    spend_prices(proof, proof->prices[prices].n_whole);
    enum weft_status status = weft_prices_apply(proof->box, &proof->prices[prices], &priced, err);
    if (status == WEFT_OK)
        *bound_ns = weft_priced_bound_ns(proof->problem, &priced, proof->box->allowed);
    free(priced.cost);
    return status;
}

/* True if some whole row of the prices relies on the group's count. */
static bool rely_on(const struct weft_prices *prices, int32_t g)
{
    for (int32_t k = 0; k < prices->n_whole; k++)
        if (prices->whole[k].relies != NULL && prices->whole[k].relies[g]) return true;
    return false;
}

/* True if the group has no price, or the entered box limits its count on the price's side. */
static bool is_priced(const struct weft_proof *proof, const struct weft_prices *prices, int32_t g)
{
    if (prices->pi[g] > 0) return proof->box->most_count[g] < proof->box->groups[g].n_decisions;
    return prices->pi[g] == 0 || proof->box->least_count[g] > 0;
}

/* True if the entered box knows every count that the prices rely on. Then they mean the same in
 * every smaller box. */
static bool is_meant(const struct weft_proof *proof, const struct weft_prices *prices)
{
    for (int32_t g = 0; g < proof->n_groups; g++) {
        if (!is_priced(proof, prices, g)) return false;
        if (rely_on(prices, g) && weft_box_count(proof->box, g) < 0) return false;
    }
    return true;
}

enum weft_status weft_proof_offer_known(struct weft_proof *proof, int32_t node, bool *better,
                                        struct weft_error *err)
{
    struct weft_proof_node *leaf = &proof->nodes[node];
    *better = false;
    weft_proof_enter(proof, node);
    int32_t known = best_known(proof, leaf);
    leaf->n_known = proof->n_prices;
    if (known < 0 || !is_meant(proof, &proof->prices[known])) return WEFT_OK;
    int64_t bound_ns = 0;
    WEFT_TRY(bound_by(proof, known, &bound_ns, err));
    if (bound_ns <= leaf->bound_ns) return WEFT_OK;
    leaf->bound_ns = bound_ns;
    leaf->prices = known;
    *better = true;
    return WEFT_OK;
}

enum weft_status weft_proof_measure(struct weft_proof *proof, int32_t node, int64_t *bound_ns,
                                    struct weft_error *err)
{
    weft_proof_enter(proof, node);
    return bound_by(proof, proof->nodes[node].prices, bound_ns, err);
}

/* True if a leaf's search proves the bound. It does in the leaf's own box, which grows with each
 * split above that is put aside. */
static bool has_searched(const struct weft_proof *proof, int32_t node, int64_t bound_ns)
{
    if (proof->nodes[node].searched_ns < bound_ns) return false;
    for (int32_t at = node; at >= 0; at = proof->nodes[at].parent)
        if (proof->nodes[at].whole) return false;
    return true;
}

enum weft_status weft_proof_reaches(struct weft_proof *proof, int32_t node, int64_t bound_ns,
                                    bool *yes, struct weft_error *err)
{
    int64_t ns = 0;
    *yes = has_searched(proof, node, bound_ns);
    if (*yes) return WEFT_OK;
    WEFT_TRY(weft_proof_measure(proof, node, &ns, err));
    *yes = ns >= bound_ns && is_meant(proof, &proof->prices[proof->nodes[node].prices]);
    return WEFT_OK;
}

enum weft_status weft_proof_search(struct weft_proof *proof, int32_t node,
                                   struct weft_orders *orders, int64_t below_ns, int64_t *steps,
                                   enum weft_orders_end *end, struct weft_error *err)
{
    struct weft_proof_node *leaf = &proof->nodes[node];
    const int64_t before = *steps;
    const size_t n_costs = (size_t)proof->problem->n_strategies;
    struct weft_priced priced = {.cost = calloc(n_costs, sizeof *priced.cost)};
    if (!priced.cost) return weft_fail_memory(err, "prices");
    weft_proof_enter(proof, node);
    spend_prices(proof, proof->prices[leaf->prices].n_whole);
    enum weft_status status =
        weft_prices_apply(proof->box, &proof->prices[leaf->prices], &priced, err);
    if (status == WEFT_OK) *end = weft_orders_try_box(orders, proof->box, &priced, below_ns, steps);
    free(priced.cost);
    weft_work_spend(proof->work, 2 * (before - *steps) * weft_orders_step_units(proof->problem));
    if (status != WEFT_OK || *end != WEFT_ORDERS_NONE || below_ns <= leaf->bound_ns) return status;
    leaf->priced_ns = leaf->searched_ns > 0 ? leaf->priced_ns : leaf->bound_ns;
    leaf->searched_ns = leaf->bound_ns = below_ns;
    leaf->steps = before - *steps + 1;
    return WEFT_OK;
}

enum weft_status weft_proof_reprice(struct weft_proof *proof, int32_t node, struct weft_error *err)
{
    struct weft_proof_node *leaf = &proof->nodes[node];
    int64_t bound_ns = 0;
    WEFT_TRY(weft_proof_measure(proof, node, &bound_ns, err));
    if (bound_ns > leaf->bound_ns) leaf->bound_ns = bound_ns;
    return WEFT_OK;
}

enum weft_status weft_proof_offer_trivial(struct weft_proof *proof, struct weft_dual *dual,
                                          const char **by, struct weft_error *err)
{
    weft_dual_reset(dual, WEFT_LANE_COMPUTE);
    WEFT_TRY(weft_proof_offer(proof, 0, dual, err));
    int64_t compute_ns = proof->nodes[0].bound_ns;
    for (int32_t lane = WEFT_LANE_FIRST; lane < proof->problem->n_lanes; lane++) {
        weft_dual_reset(dual, lane);
        WEFT_TRY(weft_proof_offer(proof, 0, dual, err));
    }
    *by = proof->nodes[0].bound_ns > compute_ns ? "channel" : "compute";
    return WEFT_OK;
}

/* Bound by a node's prices of plans with the strategies `allowed`, a part of its own. */
static int64_t bound_part(const struct weft_proof *proof, int32_t node, const uint64_t *allowed)
{
    int32_t prices = proof->nodes[node].prices, at = node;
    while (at >= 0 && at != proof->made_for[prices])
        at = proof->nodes[at].parent;
    const struct weft_priced *priced = at < 0 ? &proof->common[prices] : &proof->priced[prices];
    int64_t ns = weft_priced_bound_ns(proof->problem, priced, allowed);
    return ns > proof->nodes[node].bound_ns ? ns : proof->nodes[node].bound_ns;
}

/* Adds a child with its parent's prices. */
static void add_child(struct weft_proof *proof, int32_t parent, struct weft_proof_node child)
{
    child.parent = parent;
    child.prices = proof->nodes[parent].prices;
    child.n_known = proof->nodes[parent].n_known;
    proof->nodes[proof->n_nodes++] = child;
}

bool weft_proof_branch(struct weft_proof *proof, int32_t node, int32_t decision,
                       uint64_t strategies)
{
    if (proof->n_nodes + 2 > proof->most_nodes || proof->nodes[node].children != 0) return false;
    find_allowed(proof, node);
    uint64_t now = proof->allowed[decision], parts[2] = {now & strategies, now & ~strategies};
    if (parts[0] == 0 || parts[1] == 0) return false;
    proof->nodes[node].children = proof->n_nodes;
    for (int i = 0; i < 2; i++) {
        proof->allowed[decision] = parts[i];
        int64_t bound_ns = bound_part(proof, node, proof->allowed);
        add_child(proof, node,
                  (struct weft_proof_node){.kind = WEFT_NODE_STRATEGIES,
                                           .decision = decision,
                                           .strategies = parts[i],
                                           .bound_ns = bound_ns});
    }
    return true;
}

/* Divides a leaf. The first child reaches the milestone or count, the second does not. */
static bool divide_leaf(struct weft_proof *proof, int32_t node, struct weft_proof_node child)
{
    if (proof->n_nodes + 2 > proof->most_nodes || proof->nodes[node].children != 0) return false;
    proof->nodes[node].children = proof->n_nodes;
    child.bound_ns = proof->nodes[node].bound_ns;
    for (int i = 0; i < 2; i++) {
        child.milestone.reached = child.count.reached = i == 0;
        add_child(proof, node, child);
    }
    return true;
}

bool weft_proof_branch_at(struct weft_proof *proof, int32_t node,
                          const struct weft_milestone *milestone)
{
    return divide_leaf(
        proof, node,
        (struct weft_proof_node){.kind = WEFT_NODE_MILESTONE, .milestone = *milestone});
}

bool weft_proof_branch_count(struct weft_proof *proof, int32_t node, const struct weft_count *count)
{
    return divide_leaf(proof, node,
                       (struct weft_proof_node){.kind = WEFT_NODE_COUNT, .count = *count});
}

int32_t weft_proof_weakest(const struct weft_proof *proof)
{
    int32_t weakest = -1;
    for (int32_t i = 0; i < proof->n_nodes; i++) {
        const struct weft_proof_node *node = &proof->nodes[i];
        if (node->children != 0 || node->closed) continue;
        if (weakest < 0 || node->bound_ns < proof->nodes[weakest].bound_ns) weakest = i;
    }
    return weakest;
}

int32_t weft_proof_least(const struct weft_proof *proof)
{
    int32_t least = -1;
    for (int32_t i = 0; i < proof->n_nodes; i++)
        if (proof->nodes[i].children == 0 &&
            (least < 0 || proof->nodes[i].bound_ns < proof->nodes[least].bound_ns))
            least = i;
    return least;
}

int64_t weft_proof_bound_ns(const struct weft_proof *proof)
{
    return proof->nodes[weft_proof_least(proof)].bound_ns;
}

/* Returns the number of a leaf's prices in the certificate. Adds them there when they are first
 * met. */
static int32_t number_prices(const struct weft_proof *proof, int32_t prices, int32_t *numbers,
                             struct weft_certificate *out)
{
    if (numbers[prices] == 0) {
        for (int32_t g = 0; g < proof->n_groups; g++)
            if (rely_on(&proof->prices[prices], g)) out->n_groups = proof->n_groups;
        out->prices[out->n_prices] = proof->prices[prices];
        numbers[prices] = ++out->n_prices;
    }
    return numbers[prices] - 1;
}

/* Describes how a node is divided, by its first child's kind and facts. */
static struct weft_certificate_node split_of(const struct weft_proof_node *first)
{
    return (struct weft_certificate_node){.kind = first->kind,
                                          .decision = first->decision,
                                          .strategies = first->strategies,
                                          .milestone = first->milestone,
                                          .count = first->count};
}

/* A leaf of the certificate, with its search if its prices prove less. */
static struct weft_certificate_node leaf_of(const struct weft_proof *proof, int32_t node,
                                            int32_t prices)
{
    const struct weft_proof_node *leaf = &proof->nodes[node];
    const int64_t bound_ns = weft_proof_bound_ns(proof);
    struct weft_certificate_node out = {.kind = WEFT_NODE_LEAF, .prices = prices};
    if (leaf->searched_ns == 0 || leaf->priced_ns >= bound_ns ||
        !has_searched(proof, node, bound_ns))
        return out;
    out.searched_ns = leaf->searched_ns;
    out.steps = leaf->steps;
    return out;
}

/* Writes the tree in preorder. The stack has room for at least as many nodes as the proof has. */
static void write_tree(const struct weft_proof *proof, int32_t *stack, int32_t *numbers,
                       struct weft_certificate *out)
{
    int32_t depth = 0;
    if (proof->nodes[0].prices >= 0) stack[depth++] = 0;
    while (depth > 0) {
        const int32_t at = stack[--depth];
        const struct weft_proof_node *node = &proof->nodes[at];
        const struct weft_proof_node *children = &proof->nodes[node->children];
        if (node->children == 0) {
            const int32_t prices = number_prices(proof, node->prices, numbers, out);
            out->nodes[out->n_nodes++] = leaf_of(proof, at, prices);
            continue;
        }
        bool divided = !children[0].whole && !children[1].whole;
        if (divided) out->nodes[out->n_nodes++] = split_of(children);
        if (divided && children->kind == WEFT_NODE_COUNT) out->n_groups = proof->n_groups;
        if (!children[0].whole) stack[depth++] = node->children + 1;
        if (!children[1].whole) stack[depth++] = node->children;
    }
}

enum weft_status weft_proof_certificate(const struct weft_proof *proof, struct weft_pool *pool,
                                        struct weft_certificate *out, struct weft_error *err)
{
    struct weft_pool scratch = {0};
    size_t n_nodes = (size_t)proof->n_nodes, n_prices = (size_t)proof->n_prices;
    struct weft_certificate made = {.groups = proof->groups,
                                    .problem = weft_problem_hash(proof->problem)};
    struct weft_certificate copied;
    int32_t *stack = weft_pool_array(&scratch, n_nodes, sizeof *stack);
    int32_t *numbers = weft_pool_array(&scratch, n_prices, sizeof *numbers);
    made.nodes = weft_pool_array(&scratch, n_nodes, sizeof *made.nodes);
    made.prices = weft_pool_array(&scratch, n_prices, sizeof *made.prices);
    enum weft_status status = WEFT_OK;
    if (!stack || !numbers || !made.nodes || !made.prices)
        status = weft_fail_memory(err, "a certificate");
    if (status == WEFT_OK) write_tree(proof, stack, numbers, &made);
    if (status == WEFT_OK)
        status = weft_certificate_copy(&made, proof->problem, pool, &copied, err);
    if (status == WEFT_OK) *out = copied;
    weft_pool_finish(&scratch);
    return status;
}

/* Divides decisions until every leaf's box is empty. A plan may be too large in one slot under some
 * strategies and in another under others; the root's box does not show that. */
static enum weft_status prove_nothing_fits(struct weft_proof *proof, struct weft_dual *dual,
                                           struct weft_error *err)
{
    for (;;) {
        int32_t node = weft_proof_weakest(proof);
        if (node < 0 || proof->nodes[node].bound_ns >= WEFT_PROBLEM_MOST) return WEFT_OK;
        weft_proof_enter(proof, node);
        if (proof->box->empty) {
            weft_dual_reset(dual, WEFT_LANE_COMPUTE);
            WEFT_TRY(weft_proof_offer(proof, node, dual, err));
            continue;
        }
        int32_t decision = proof->box->lean ? weft_lean_tree_decision(proof->box) : -1;
        if (decision < 0) return WEFT_OK;
        uint64_t left = proof->box->allowed[decision];
        if (!weft_proof_branch(proof, node, decision, left & (0u - left))) return WEFT_OK;
    }
}

/* Raises the root's bound by ascent towards a plan's step. */
static enum weft_status raise_root(struct weft_proof *proof, struct weft_dual *dual,
                                   const struct weft_ascent *ascent, const char **by,
                                   struct weft_error *err)
{
    enum { MOST_STEPS = 1000 };
    const struct weft_problem *problem = proof->problem;
    const int64_t before_ns = weft_proof_bound_ns(proof);
    const int64_t step_units = (int64_t)problem->n_items * problem->n_slots / 4 + 1;
    const int64_t steps = ascent->units / step_units;
    if (steps < 1 || before_ns >= ascent->target_ns) return WEFT_OK;
    dual->work = ascent->work;
    weft_proof_enter(proof, 0);
    weft_dual_take(dual, &proof->prices[proof->nodes[0].prices]);
    weft_dual_ascend(dual, proof->box, (double)ascent->target_ns, (double)ascent->target_ns,
                     (int32_t)(steps < MOST_STEPS ? steps : MOST_STEPS));
    WEFT_TRY(weft_proof_offer(proof, 0, dual, err));
    if (weft_proof_bound_ns(proof) > before_ns) *by = "dual ascent, weak duality";
    return WEFT_OK;
}

/* Proves a bound without a plan or a search; `ascent` may be NULL. */
static enum weft_status prove_alone(const struct weft_digest *table, bool quick,
                                    const struct weft_ascent *ascent, struct weft_pool *pool,
                                    struct weft_outcome *outcome, struct weft_error *err)
{
    const struct weft_problem *problem = table->problem;
    struct weft_dual *dual = NULL;
    struct weft_proof *proof = NULL;
    enum weft_status status;
    WEFT_TRY_GOTO(done, weft_dual_create(table, &dual, err));
    bool fits = weft_digest_limit_bytes(table) >= table->least_bytes;
    WEFT_TRY_GOTO(done,
                  create_proof(problem, fits ? 1 : MOST_EMPTY_NODES, fits && quick, &proof, err));
    WEFT_TRY_GOTO(done, weft_proof_offer_trivial(proof, dual, &outcome->bound_by, err));
    if (!fits) WEFT_TRY_GOTO(done, prove_nothing_fits(proof, dual, err));
    if (fits && ascent)
        WEFT_TRY_GOTO(done, raise_root(proof, dual, ascent, &outcome->bound_by, err));
    outcome->bound_ns = weft_proof_bound_ns(proof);
    status = weft_proof_certificate(proof, pool, &outcome->certificate, err);
done:
    weft_proof_destroy(proof);
    weft_dual_destroy(dual);
    return status;
}

/* Proves in the early form of a problem that has one. The certificate is of the problem. */
static enum weft_status prove_in_form(const struct weft_digest *table, bool quick,
                                      const struct weft_ascent *ascent, struct weft_pool *pool,
                                      struct weft_outcome *outcome, struct weft_error *err)
{
    struct weft_problem *early = NULL;
    struct weft_digest *of_early = NULL;
    if (!weft_problem_is_early(table->problem))
        return prove_alone(table, quick, ascent, pool, outcome, err);
    WEFT_TRY(weft_problem_early(table->problem, &early, err));
    enum weft_status status = weft_digest_create(early, &of_early, err);
    if (status == WEFT_OK) status = prove_alone(of_early, quick, ascent, pool, outcome, err);
    outcome->certificate.problem = weft_problem_hash(table->problem);
    weft_digest_destroy(of_early);
    weft_problem_destroy(early);
    return status;
}

enum weft_status weft_proof_trivial(const struct weft_digest *table, bool quick,
                                    struct weft_pool *pool, struct weft_outcome *outcome,
                                    struct weft_error *err)
{
    return prove_in_form(table, quick, NULL, pool, outcome, err);
}

enum weft_status weft_proof_ascended(const struct weft_digest *table,
                                     const struct weft_ascent *ascent, struct weft_pool *pool,
                                     struct weft_outcome *outcome, struct weft_error *err)
{
    return prove_in_form(table, false, ascent, pool, outcome, err);
}

enum weft_status weft_prove(const struct weft_problem *problem, const struct weft_ascent *ascent,
                            struct weft_pool *pool, struct weft_outcome *outcome,
                            struct weft_error *err)
{
    struct weft_digest *table = NULL;
    WEFT_TRY(weft_digest_create(problem, &table, err));
    enum weft_status status = prove_in_form(table, false, ascent, pool, outcome, err);
    weft_digest_destroy(table);
    return status;
}
