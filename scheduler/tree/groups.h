/* Units that are alike are not told apart by a branch on one of them: what one may not have another
 * takes. How many of them have a policy is what matters, and what a tree branches on first. */
#ifndef WEFT_SCHEDULER_TREE_GROUPS_H
#define WEFT_SCHEDULER_TREE_GROUPS_H

#include "scheduler/digest/digest.h"

/* Of a unit's policies those that go with one that is kept: for which it is nowhere worse (`keeper`
 * [WEFT_POLICY_COUNT] of the unit, see below). */
uint32_t weft_kept_by(const uint8_t *keeper, uint32_t policies, int policy);

/* A group for every class of two or more alike units and each of their policies that is its own
 * keeper, with those that it is kept for (`keeper` [n_units * WEFT_POLICY_COUNT]: the policy that
 * is nowhere worse; scheduler/relax/ilp.h). Alike are units with the same policies, whose updates
 * take as long, which hold the same bytes, and whose blocks are equal, wherever in the period.
 * Arrays belong to the pool. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_groups_make(const struct weft_digest *table,
                                                const uint8_t *keeper, struct weft_pool *pool,
                                                struct weft_group **out, int32_t *n_out,
                                                struct weft_error *err);

#endif
