/* SPDX-License-Identifier: Apache-2.0 */
/* Fixing by prices. The dual function is a sum over decisions of the cheapest choice of each. So a
 * node's prices also give the bound if a decision had one strategy. They give it if an item had
 * launched or completed k blocks by a slot, or fewer. If that bound is high enough, such plans need
 * no more work, and the contrary is a fact for all others. A strategy is excluded, or a milestone
 * holds. In the tree, a fact divides a node into a leaf and the rest. The same prices bound the
 * leaf, and the rest has a smaller box.
 *
 * RESULTS.md: planner-ideas/last-eight. */
#ifndef WEFT_SCHEDULER_TREE_FIXING_H
#define WEFT_SCHEDULER_TREE_FIXING_H

#include "scheduler/search/search.h"
#include "scheduler/tree/proof.h"

/* Divides a leaf that has prices by all facts found at them, at most `most_facts`. It splits off
 * parts with a bound of at least `enough_ns`. *rest is the leaf of the remaining plans, or the leaf
 * itself if there is no fact. Strategies go together with their keeper [n_strategies], a strategy
 * that is nowhere worse. Leaves the dual at the leaf's prices. Finds no further facts when the
 * search's budget is spent. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_fixing_divide(struct weft_proof *proof, struct weft_dual *dual,
                                                  const struct weft_search *search,
                                                  const uint8_t *keeper, int32_t node,
                                                  int64_t enough_ns, int32_t most_facts,
                                                  int32_t *rest, struct weft_error *err);

#endif
