/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of alike decisions. A branch on one of them gains little: if it is denied a strategy, an
 * identical decision takes it. So a tree branches on counts first: how many of them have a
 * strategy.
 *
 * RESULTS.md: planner-ideas/milestones-and-counts. */
#ifndef WEFT_SCHEDULER_TREE_GROUPS_H
#define WEFT_SCHEDULER_TREE_GROUPS_H

#include "scheduler/digest/digest.h"

/* Returns the strategies with `strategy` as their keeper: it is nowhere worse than they are
 * (`keeper` of the decision, see below). */
uint64_t weft_kept_by(const uint8_t *keeper, uint64_t strategies, int32_t strategy);

/* Sets class_of [n_decisions] to the first decision that is alike, as below. NULL for `keeper`:
 * only strategies and blocks are compared. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_classes_make(const struct weft_digest *table,
                                                 const uint8_t *keeper, int32_t *class_of,
                                                 struct weft_error *err);

/* Makes a group for each class of two or more alike decisions and each strategy that is its own
 * keeper. The group includes all strategies with that keeper (`keeper` [n_strategies]: the strategy
 * that is nowhere worse; scheduler/relax/ilp.h). A group of all strategies is left out. Alike
 * decisions have equal strategies, update times, bytes and blocks, anywhere in the period. Arrays
 * belong to the pool. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_groups_make(const struct weft_digest *table,
                                                const uint8_t *keeper, struct weft_pool *pool,
                                                struct weft_group **out, int32_t *n_out,
                                                struct weft_error *err);

#endif
