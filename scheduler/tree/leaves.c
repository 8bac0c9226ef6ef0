#include "scheduler/tree/leaves.h"

#include "scheduler/tree/grow.h"

/* The part of the rest of the budget, and the factor of steps from round to round. */
static const double PART = 0.25;
enum { FACTOR = 4, ROUNDS = 8 };

/* The untried leaf with the least bound of those at or after the last one, by bound and number. -1:
 * none below the best step. */
static int32_t next_leaf(const struct weft_branch *branch, int32_t last)
{
    const struct weft_proof_node *nodes = branch->proof->nodes;
    int32_t next = -1;
    for (int32_t i = 0; i < branch->proof->n_nodes; i++) {
        if (!branch->splits[i].untried || nodes[i].bound_ns >= branch->search->step_ns) continue;
        const bool is_done =
            last >= 0 && (nodes[i].bound_ns < nodes[last].bound_ns ||
                          (nodes[i].bound_ns == nodes[last].bound_ns && i <= last));
        if (!is_done && (next < 0 || nodes[i].bound_ns < nodes[next].bound_ns)) next = i;
    }
    return next;
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

static enum weft_status search_in_rounds(struct weft_branch *branch, struct weft_error *err)
{
    int64_t steps = branch->leaf_steps;
    for (int round = 0; round < ROUNDS && branch->n_untried > 0; round++) {
        steps *= FACTOR;
        for (int32_t leaf = next_leaf(branch, -1); leaf >= 0; leaf = next_leaf(branch, leaf)) {
            if (weft_branch_is_over(branch)) return WEFT_OK;
            WEFT_TRY(search_leaf(branch, leaf, steps, err));
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
    const struct weft_budget budget = search->budget;
    const int64_t left = weft_budget_left(budget);
    search->budget.until = budget.work->spent + (int64_t)((double)left * PART);
    const enum weft_status status = search_in_rounds(branch, err);
    search->budget = budget;
    if (weft_branch_has_enough(branch))
        branch->stop = "gap closed";
    else
        weft_branch_exhausted(branch);
    return status;
}
