/* Which limit is the least is a choice of one strategy a decision. A tree over those choices, cut
 * where the box of a node (proof/box.h) is empty, answers it exactly; most problems need a node or
 * two.
 */
#ifndef WEFT_SCHEDULER_DIGEST_LEAN_TREE_H
#define WEFT_SCHEDULER_DIGEST_LEAN_TREE_H

#include "proof/box.h"
#include "scheduler/digest/digest.h"

/* The decision to divide a box at, whose strategies differ most where there is least room; -1 when
 * every decision has one strategy left. The box has rows and is not empty. */
int32_t weft_lean_tree_decision(const struct weft_box *box);

/* Looks for strategies with a lower peak than table->leanest, until none is left or its work is
 * done. Lowers leanest and least_bytes, and raises least_proven_bytes to it when nothing is below.
 * WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_lean_tree_search(struct weft_digest *table,
                                                     struct weft_error *err);

#endif
