/* SPDX-License-Identifier: Apache-2.0 */
/* Branch and bound on counts, on the decisions' strategies and on milestones, best bound first.
 * Prices bound a node. With a solver they are the multipliers of the relaxation within the node's
 * box, and ascent improves them at the root. Without one they come from dual ascent alone. Rounded
 * solutions become incumbents of the search; the tree is the proof. The search's budget ends it.
 *
 * RESULTS.md: planner-gap/gap. */
#ifndef WEFT_SCHEDULER_TREE_GROW_H
#define WEFT_SCHEDULER_TREE_GROW_H

#include <stdint.h>

#include "base/status.h"
#include "scheduler/tree/branch.h"

/* Bounds the root by trivial prices, then the relaxation and ascent, without strategies that cannot
 * fit. */
WEFT_MUST_USE enum weft_status weft_branch_root(struct weft_branch *branch, struct weft_error *err);

/* Tries choices of strategies, by their least cost at the root's prices, the cheapest first. */
WEFT_MUST_USE enum weft_status weft_branch_try_near(struct weft_branch *branch,
                                                    struct weft_error *err);

/* Grows the tree until the gap is closed, nothing is left to branch on, or a limit is met.
 * `n_nodes` limits the nodes that this call solves. `stop` names the reason. */
WEFT_MUST_USE enum weft_status weft_branch_grow(struct weft_branch *branch, int32_t n_nodes,
                                                struct weft_error *err);

/* Sets `stop` of a tree without a node to divide: whether all placements of its leaves were tried.
 */
void weft_branch_exhausted(struct weft_branch *branch);

/* The strategies of the entered leaf. */
void weft_branch_leaf(const struct weft_branch *branch, int32_t *strategies);

/* Searches the best plan's strategies for a faster placement. */
WEFT_MUST_USE enum weft_status weft_branch_polish(struct weft_branch *branch,
                                                  struct weft_error *err);

#endif
