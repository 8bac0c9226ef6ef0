/* SPDX-License-Identifier: Apache-2.0 */
/* Division of a node by strong branching (Applegate, Bixby, Chvatal and Cook, Finding cuts in the
 * TSP, 1995). The node's relaxation suggests some ways. Each is tried by the relaxations of its two
 * children, and the way that raises both most is taken. Alike decisions leave a relaxation
 * undecided about many of them at once, so most ways raise nothing. A tree that takes such a way
 * must take the others below both children.
 *
 * RESULTS.md: planner-ideas/last-eight. */
#ifndef WEFT_SCHEDULER_TREE_DIVIDE_H
#define WEFT_SCHEDULER_TREE_DIVIDE_H

#include "scheduler/tree/branch.h"

/* Stores in the node's split the ways that the branch's shares, milestone and count suggest. The
 * node must be entered. */
void weft_divide_suggest(struct weft_branch *branch, int32_t node);

/* Divides a node; false when there is nothing to divide it by, or no room. Leaves another box
 * entered. */
bool weft_divide(struct weft_branch *branch, int32_t node);

/* Number of the decision's strategies in the entered box that are their own keepers. */
int weft_divide_strategies_left(const struct weft_branch *branch, int32_t decision);

#endif
