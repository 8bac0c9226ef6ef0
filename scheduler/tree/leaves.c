/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/leaves.h"

#include <stdlib.h>

#include "scheduler/tree/grow.h"

/* The part of the rest of the budget, and the factor of steps from round to round. */
static const double PART = 0.25;
enum { FACTOR = 4, ROUNDS = 8 };

struct leaf {
    int64_t bound_ns;
    int32_t node;
};

static int compare_leaves(const void *left, const void *right)
{
    const struct leaf *a = left, *b = right;
    if (a->bound_ns != b->bound_ns) return a->bound_ns < b->bound_ns ? -1 : 1;
    return a->node < b->node ? -1 : 1;
}

/* Lists the untried leaves with a bound below the best step, the least bound first. */
static int32_t list_leaves(const struct weft_branch *branch, struct leaf *leaves)
{
    const struct weft_proof *proof = branch->proof;
    int32_t n = 0;
    for (int32_t i = 0; i < proof->n_nodes; i++)
        if (branch->splits[i].untried && proof->nodes[i].bound_ns < branch->search->step_ns)
            leaves[n++] = (struct leaf){proof->nodes[i].bound_ns, i};
    qsort(leaves, (size_t)n, sizeof *leaves, compare_leaves);
    weft_work_spend(branch->search->budget.work, proof->n_nodes + 20 * (int64_t)n);
    return n;
}

static enum weft_status search_leaf(struct weft_branch *branch, int32_t leaf, int64_t steps,
                                    struct weft_error *err)
{
    int32_t *strategies = branch->search->other;
    bool complete;
    weft_proof_enter(branch->proof, leaf);
    weft_branch_leaf(branch, strategies);
    WEFT_TRY(weft_exact_try(branch->exact, strategies, steps, &complete, err));
    branch->splits[leaf].untried = !complete;
    branch->n_untried -= complete;
    return WEFT_OK;
}

static enum weft_status search_in_rounds(struct weft_branch *branch, struct leaf *leaves,
                                         struct weft_error *err)
{
    int64_t steps = branch->leaf_steps;
    for (int round = 0; round < ROUNDS; round++) {
        const int32_t n = list_leaves(branch, leaves);
        if (n == 0) return WEFT_OK;
        steps *= FACTOR;
        for (int32_t k = 0; k < n; k++) {
            if (weft_branch_is_over(branch)) return WEFT_OK;
            if (leaves[k].bound_ns >= branch->search->step_ns) break;
            WEFT_TRY(search_leaf(branch, leaves[k].node, steps, err));
        }
    }
    return WEFT_OK;
}

enum weft_status weft_leaves_search(struct weft_branch *branch, struct weft_error *err)
{
    struct weft_search *search = branch->search;
    const int32_t weakest = weft_proof_weakest(branch->proof);
    if (search->whole == INT64_MAX || weft_branch_is_over(branch)) return WEFT_OK;
    if (weakest >= 0 && branch->proof->nodes[weakest].bound_ns < search->step_ns) return WEFT_OK;
    if (branch->n_untried == 0 || !weft_exact_can(branch->exact)) return WEFT_OK;
    struct leaf *leaves = calloc((size_t)branch->n_untried, sizeof *leaves);
    if (!leaves) return weft_fail_memory(err, "leaves");
    const struct weft_budget budget = search->budget;
    const int64_t left = weft_budget_left(budget);
    search->budget.until = budget.work->spent + (int64_t)((double)left * PART);
    const enum weft_status status = search_in_rounds(branch, leaves, err);
    free(leaves);
    search->budget = budget;
    if (weft_branch_has_enough(branch))
        branch->stop = "gap closed";
    else
        weft_branch_exhausted(branch);
    return status;
}
