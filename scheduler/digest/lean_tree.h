/* SPDX-License-Identifier: Apache-2.0 */
/* The least limit depends on one strategy for each decision. A tree over these choices finds it
 * exactly. It cuts nodes with an empty box (proof/box.h), and most problems need a node or two. */
#ifndef WEFT_SCHEDULER_DIGEST_LEAN_TREE_H
#define WEFT_SCHEDULER_DIGEST_LEAN_TREE_H

#include "proof/box.h"
#include "scheduler/digest/digest.h"

/* Returns the decision to branch on, or -1 if each has one strategy left. Its strategies differ
 * most where the least room is. The box has rows and is not empty. */
int32_t weft_lean_tree_decision(const struct weft_box *box);

/* Searches for strategies with a lower peak than table->leanest, within a limit of work. Lowers
 * leanest and least_bytes, and raises least_proven_bytes to it if the search was complete. Returns
 * WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_lean_tree_search(struct weft_digest *table,
                                                     struct weft_error *err);

#endif
