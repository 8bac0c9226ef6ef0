/* SPDX-License-Identifier: Apache-2.0 */
/* Enumeration closes the gap of small problems. Once the tree ends, the weakest leaf gets a search
 * of orders (proof/orders.h) under all strategies that its prices leave below the best step. A
 * search without a faster order raises the leaf's bound to the best step. An order that is faster
 * is a plan to try. If the steps run out, a search for a shorter step costs less: then all leaves
 * need that bound alone.
 *
 * RESULTS.md: planner-ideas/orders. */
#ifndef WEFT_SCHEDULER_TREE_ENUMERATE_H
#define WEFT_SCHEDULER_TREE_ENUMERATE_H

#include "scheduler/tree/branch.h"

/* Searches until the gap is closed, a leaf's searches fail, or a part of the search's budget is
 * used. Does nothing if the problem is too large, or if its plan is for a host that runs ahead. */
WEFT_MUST_USE enum weft_status weft_enumerate_leaves(struct weft_branch *branch,
                                                     struct weft_error *err);

#endif
