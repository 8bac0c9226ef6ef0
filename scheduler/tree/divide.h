/* How a node of the tree is divided. Its relaxation suggests some ways; each is tried by the
 * relaxations of the two children that it would make, and what raises both most is taken (strong
 * branching: Applegate, Bixby, Chvatal and Cook, Finding cuts in the TSP, 1995). Decisions are
 * alike and relaxations undecided about many of them at once, so most ways raise nothing, and a
 * tree that goes them has to go the others below each.
 *
 * RESULTS.md: planner-ideas/last-eight. */
#ifndef WEFT_SCHEDULER_TREE_DIVIDE_H
#define WEFT_SCHEDULER_TREE_DIVIDE_H

#include "scheduler/tree/branch.h"

/* Keeps what the present shares, milestone and count of the entered node suggest. */
void weft_divide_suggest(struct weft_branch *branch, int32_t node);

/* Divides a node; false when there is nothing to divide it by, or no room. Leaves another box
 * entered. */
bool weft_divide(struct weft_branch *branch, int32_t node);

/* The decision's strategies in the entered box, but for those that are nowhere better. */
int weft_divide_strategies_left(const struct weft_branch *branch, int32_t decision);

#endif
