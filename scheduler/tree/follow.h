/* SPDX-License-Identifier: Apache-2.0 */
/* Placements that follow the relaxation over several lanes. List scheduling chooses a block when a
 * lane is free, and does not see that another lane will need the memory or the chain later. A
 * relaxation with fixed strategies, which has counts for each item and keeps the order of chains,
 * sees all lanes at once. Its rounding (weft_ilp_round) is a placement within the limit if the
 * relaxation keeps some bytes free.
 *
 * RESULTS.md: planner-ideas/follow. */
#ifndef WEFT_SCHEDULER_TREE_FOLLOW_H
#define WEFT_SCHEDULER_TREE_FOLLOW_H

#include "scheduler/tree/branch.h"

struct weft_follow;

/* Creates it for the branch's search, and borrows the branch. Without a relaxation or with a single
 * lane for blocks it tries nothing. */
WEFT_MUST_USE enum weft_status weft_follow_create(struct weft_branch *branch,
                                                  struct weft_follow **out, struct weft_error *err);
void weft_follow_destroy(struct weft_follow *follow); /* accepts NULL */

/* True if it would try strategies at all. */
bool weft_follow_is_of_use(const struct weft_follow *follow);

/* Places the strategies by rounding, unless it tried them before. The placement may become the
 * search's best. WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_follow_try(struct weft_follow *follow,
                                               const int32_t *strategies, struct weft_error *err);

#endif
