/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/joint.h"

#include <string.h>

#include "scheduler/search/near.h"
#include "scheduler/tree/grow.h"

/* Choices of strategies at most, and parts of the rest of the budget. A draft proves nothing, so
 * its plan gets more. */
enum { MOST_CHOICES = 4000, PROOF_PART = 16, DRAFT_PART = 8 };

struct joint {
    struct weft_branch *branch;
    struct weft_error *err;
    enum weft_status status;
};

static enum weft_near_answer try_choice(void *context, const int32_t *strategies)
{
    struct joint *joint = context;
    struct weft_branch *branch = joint->branch;
    int32_t *copy = branch->search->other;
    bool complete;
    memcpy(copy, strategies, (size_t)branch->table->n_decisions * sizeof *copy);
    joint->status = weft_exact_try(branch->exact, copy, branch->leaf_steps, &complete, joint->err);
    return joint->status == WEFT_OK ? WEFT_NEAR_TRIED : WEFT_NEAR_STOP;
}

enum weft_status weft_joint_search(struct weft_branch *branch, struct weft_error *err)
{
    struct weft_search *search = branch->search;
    struct weft_proof *proof = branch->proof;
    const struct weft_budget budget = search->budget;
    struct joint joint = {.branch = branch, .err = err};
    bool complete = false;
    WEFT_TRY(weft_branch_polish(branch, &complete, err));
    if (!complete || weft_branch_is_over(branch)) return WEFT_OK;
    weft_proof_enter(proof, 0);
    if (proof->box->empty) return WEFT_OK;
    weft_dual_take(branch->dual, &proof->prices[proof->nodes[0].prices]);
    weft_dual_evaluate(branch->dual, proof->box);
    const int64_t part = branch->options->draft ? DRAFT_PART : PROOF_PART;
    if (search->whole != INT64_MAX)
        search->budget.until -= weft_budget_left(budget) / part * (part - 1);
    const enum weft_status status =
        weft_near_each(search, branch->dual, proof->box->allowed, weft_branch_enough_ns(branch),
                       MOST_CHOICES, try_choice, &joint, err);
    search->budget = budget;
    return status != WEFT_OK ? status : joint.status;
}
