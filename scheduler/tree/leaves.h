/* SPDX-License-Identifier: Apache-2.0 */
/* A second search of leaves. The tree ends a leaf after a few steps of exact placement. If the tree
 * is exhausted and the gap is open, leaves with a bound below the best step are searched again: the
 * least bound first, in rounds of more steps. */
#ifndef WEFT_SCHEDULER_TREE_LEAVES_H
#define WEFT_SCHEDULER_TREE_LEAVES_H

#include "scheduler/tree/branch.h"

/* Searches until the gap is closed, every placement was tried, or a part of the search's budget is
 * used. Does nothing if the tree was cut. Sets `stop`. */
WEFT_MUST_USE enum weft_status weft_leaves_search(struct weft_branch *branch,
                                                  struct weft_error *err);

#endif
