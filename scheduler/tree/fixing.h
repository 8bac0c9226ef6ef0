/* Fixing by prices. The dual function is a sum over decisions of the cheapest way of each, so at a
 * node's prices it is known at once what the bound would be if a decision had one strategy, or if
 * an item had launched or completed k blocks by a slot, or fewer. Where that is as much as anybody
 * asks for, such plans need no more work, and in all others the contrary is a fact: the strategy is
 * taken away, the milestone is kept. In the tree such a fact divides a node into a leaf, which the
 * same prices bound, and the rest, whose box is smaller.
 *
 * RESULTS.md: planner-ideas/last-eight. */
#ifndef WEFT_SCHEDULER_TREE_FIXING_H
#define WEFT_SCHEDULER_TREE_FIXING_H

#include "scheduler/search/search.h"
#include "scheduler/tree/proof.h"

/* Divides a leaf that has prices by all facts found at them, at most `most_facts`: parts whose
 * bound is at least `enough_ns` are split off, and *rest is the leaf of what remains; the leaf
 * itself when there is no fact. Strategies go together with their keeper [n_strategies], the one
 * that they are nowhere better than. Leaves the dual at the leaf's prices. No further facts when
 * the search is late. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_fixing_divide(struct weft_proof *proof, struct weft_dual *dual,
                                                  const struct weft_search *search,
                                                  const uint8_t *keeper, int32_t node,
                                                  int64_t enough_ns, int32_t most_facts,
                                                  int32_t *rest, struct weft_error *err);

#endif
