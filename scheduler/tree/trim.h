/* SPDX-License-Identifier: Apache-2.0 */
/* Trimming makes a finished tree smaller, so that its certificate is short and cheap to check. A
 * tree grows for a bound that it may not reach everywhere. Some divided nodes were not the weakest,
 * and many plans put aside would do no harm. The proven bound is the least of all leaves, and a
 * smaller tree may prove it. Trimming makes a node a leaf again if its own prices reach that bound.
 * It keeps a split that put a leaf aside only if the rest needs it.
 *
 * RESULTS.md: certificate/trimmed. */
#ifndef WEFT_SCHEDULER_TREE_TRIM_H
#define WEFT_SCHEDULER_TREE_TRIM_H

#include "scheduler/search/search.h"
#include "scheduler/tree/proof.h"

/* Trims the proof. It then proves its old bound, or more if a leaf had not been bounded in its own
 * box. All of its nodes have that bound, so it must not grow any more. Computes at most
 * `most_boxes` boxes. Once the budget is used up, it computes at most an eighth of the boxes in a
 * check of the tree. The tree is complete at any end. Prices must have been offered to the root.
 * WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_trim(struct weft_proof *proof, const struct weft_search *search,
                                         int64_t most_boxes, struct weft_error *err);

#endif
