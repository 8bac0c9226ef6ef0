/* Branch and bound on counts, on the decisions' strategies and on milestones, best bound first.
 * Nodes are bounded by prices: from the multipliers of the relaxation within the node's box when
 * there is a solver, improved by dual ascent, or by that alone. What they round to becomes
 * incumbents of the search; the tree is the proof. What ends it is the search's budget.
 *
 * RESULTS.md: planner-gap/gap. */
#ifndef WEFT_SCHEDULER_TREE_GROW_H
#define WEFT_SCHEDULER_TREE_GROW_H

#include <stdint.h>

#include "base/status.h"
#include "scheduler/tree/branch.h"

/* Bounds the root: trivial prices, strategies that cannot fit put aside, the relaxation, ascent. */
WEFT_MUST_USE enum weft_status weft_branch_root(struct weft_branch *branch, struct weft_error *err);

/* Tries choices of strategies in order of what they cost at least at the root's prices. */
WEFT_MUST_USE enum weft_status weft_branch_try_near(struct weft_branch *branch,
                                                    struct weft_error *err);

/* Grows the tree until the gap is closed, or nothing is left to branch on, or a limit is met, which
 * `n_nodes` that are solved are one of; says which in `stop`. */
WEFT_MUST_USE enum weft_status weft_branch_grow(struct weft_branch *branch, int32_t n_nodes,
                                                struct weft_error *err);

/* Searches the best plan's strategies for a faster placement. */
WEFT_MUST_USE enum weft_status weft_branch_polish(struct weft_branch *branch,
                                                  struct weft_error *err);

#endif
