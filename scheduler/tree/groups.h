/* Decisions that are alike are not told apart by a branch on one of them: what one may not have
 * another takes. How many of them have a strategy is what matters, and what a tree branches on
 * first.
 *
 * RESULTS.md: planner-ideas/milestones-and-counts. */
#ifndef WEFT_SCHEDULER_TREE_GROUPS_H
#define WEFT_SCHEDULER_TREE_GROUPS_H

#include "scheduler/digest/digest.h"

/* The strategies of a decision that go with one that is kept: it is nowhere worse than they are
 * (`keeper` of the decision, see below). */
uint64_t weft_kept_by(const uint8_t *keeper, uint64_t strategies, int32_t strategy);

/* A group for every class of two or more alike decisions and each of their strategies that is its
 * own keeper, with those that it is kept for (`keeper` [n_strategies]: the strategy that is nowhere
 * worse; scheduler/relax/ilp.h). Alike are decisions with the same strategies, whose updates take
 * as long, which hold the same bytes, and whose blocks are equal, wherever in the period. Arrays
 * belong to the pool. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_groups_make(const struct weft_digest *table,
                                                const uint8_t *keeper, struct weft_pool *pool,
                                                struct weft_group **out, int32_t *n_out,
                                                struct weft_error *err);

#endif
