/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/enumerate.h"

#include <stdlib.h>
#include <string.h>

#include "problem/early.h"

/* The part of the rest of the budget, and steps without a budget. */
static const double PART = 0.5;
enum { USUAL_STEPS = 1 << 18 };
/* Searches of one leaf, each for half of the gap of the one before. */
enum { MOST_HALVES = 4 };

struct enumeration {
    struct weft_branch *branch;
    struct weft_orders *orders;
    struct weft_move *moves; /* [n_blocks], scratch */
    int64_t steps_left;
    int64_t most_ns; /* no more is proven of some leaf */
};

/* The step that no plan is to be below. */
static int64_t target_ns(const struct enumeration *e)
{
    const int64_t step_ns = e->branch->search->step_ns, rival_ns = e->branch->options->rival_ns;
    const int64_t best_ns = rival_ns > 0 && rival_ns < step_ns ? rival_ns : step_ns;
    return best_ns < e->most_ns ? best_ns : e->most_ns;
}

/* Offers the order that was found as a plan. */
static enum weft_status offer_order(const struct enumeration *e, struct weft_error *err)
{
    struct weft_search *search = e->branch->search;
    const struct weft_order_found *order = weft_orders_found(e->orders);
    for (int32_t k = 0; k < order->n_moves; k++)
        e->moves[k] = (struct weft_move){.item = order->moves[k].item,
                                         .slot = order->moves[k].slot,
                                         .launch = order->moves[k].launch};
    memcpy(search->other, order->strategies,
           (size_t)e->branch->table->n_decisions * sizeof *search->other);
    return weft_search_try_moves(search, search->other, e->moves, order->n_moves, err);
}

/* Raises a leaf's bound. *raised: to the target, which searches that fail may have lowered. */
static enum weft_status raise_leaf(struct enumeration *e, int32_t leaf, bool *raised,
                                   struct weft_error *err)
{
    const struct weft_proof *proof = e->branch->proof;
    const int64_t bound_ns = proof->nodes[leaf].bound_ns;
    *raised = false;
    for (int n_halves = 0; n_halves < MOST_HALVES && e->steps_left > 1;) {
        const int64_t below_ns = target_ns(e), most = e->steps_left / 2 + 1;
        int64_t steps = most;
        enum weft_orders_end end;
        if (below_ns <= bound_ns) return WEFT_OK;
        WEFT_TRY(weft_proof_search(e->branch->proof, leaf, e->orders, below_ns, &steps, &end, err));
        e->steps_left -= most - steps;
        *raised = end == WEFT_ORDERS_NONE;
        if (*raised) return WEFT_OK;
        if (end == WEFT_ORDERS_FOUND) WEFT_TRY(offer_order(e, err));
        if (end == WEFT_ORDERS_FOUND && target_ns(e) == below_ns)
            e->most_ns = weft_orders_found(e->orders)->step_ns; /* no plan has that order */
        if (end == WEFT_ORDERS_SPENT) {
            e->most_ns = bound_ns + (below_ns - bound_ns) / 2;
            n_halves++;
        }
    }
    return WEFT_OK;
}

static enum weft_status raise_weakest(struct enumeration *e, struct weft_error *err)
{
    const struct weft_proof *proof = e->branch->proof;
    for (bool raised = true; raised;) {
        const int32_t leaf = weft_proof_least(proof);
        if (proof->nodes[leaf].prices < 0 || proof->nodes[leaf].bound_ns >= target_ns(e)) break;
        if (weft_branch_is_over(e->branch)) break;
        WEFT_TRY(raise_leaf(e, leaf, &raised, err));
    }
    return WEFT_OK;
}

/* Steps that the budget has for searches and for the check of their certificate, at most half of a
 * certificate's. */
static int64_t count_steps(const struct weft_search *search)
{
    const struct weft_problem *problem = search->table->problem;
    const int64_t left = weft_budget_left(search->budget), most = weft_orders_most_steps(problem);
    if (search->whole == INT64_MAX) return USUAL_STEPS < most / 2 ? USUAL_STEPS : most / 2;
    const double steps = PART * (double)left / (2 * (double)weft_orders_step_units(problem));
    return steps < (double)most / 2 ? (int64_t)steps : most / 2;
}

enum weft_status weft_enumerate_leaves(struct weft_branch *branch, struct weft_error *err)
{
    const struct weft_problem *problem = branch->table->problem;
    struct enumeration e = {.branch = branch, .most_ns = INT64_MAX};
    if (branch->search->step_ns < 0 || weft_branch_is_over(branch)) return WEFT_OK;
    if (branch->options->of_early || weft_problem_is_early(problem)) return WEFT_OK;
    if (!weft_orders_can(problem)) return WEFT_OK;
    e.moves = calloc((size_t)branch->table->n_blocks + 1, sizeof *e.moves);
    if (!e.moves) return weft_fail_memory(err, "a search of orders");
    enum weft_status status = weft_orders_create(problem, &e.orders, err);
    if (status == WEFT_OK) {
        const int64_t before_ns = weft_branch_bound_ns(branch);
        e.steps_left = count_steps(branch->search);
        status = raise_weakest(&e, err);
        if (weft_branch_bound_ns(branch) > before_ns) branch->bound_by = "search of orders";
        if (status == WEFT_OK && weft_branch_has_enough(branch)) branch->stop = "gap closed";
    }
    weft_orders_destroy(e.orders);
    free(e.moves);
    return status;
}
