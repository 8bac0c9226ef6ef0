/* SPDX-License-Identifier: Apache-2.0 */
/* Placements guided by the relaxation. A rule of list scheduling sees one moment; the relaxation
 * with fixed strategies sees the whole step. It shows the gathers that are worth their memory when
 * memory is short. It also shows when compute should wait for reductions because their memory is
 * worth more later. It moves parts of blocks, so it is no plan. List scheduling with its launches
 * makes a plan that comes near it.
 *
 * RESULTS.md: planner-ideas/guide. */
#ifndef WEFT_SCHEDULER_TREE_GUIDE_H
#define WEFT_SCHEDULER_TREE_GUIDE_H

#include "scheduler/tree/branch.h"

struct weft_guide;

/* Creates a guide for the branch's search. It borrows the branch. Without a relaxation, or if every
 * plan fits, the guide tries nothing. */
WEFT_MUST_USE enum weft_status weft_guide_create(struct weft_branch *branch,
                                                 struct weft_guide **out, struct weft_error *err);
void weft_guide_destroy(struct weft_guide *guide); /* accepts NULL */

/* Solves the relaxation with these strategies, unless they were tried before or do not fit. If its
 * value is below the search's best, tries placements guided by it; one may become the best. True if
 * the strategies were new and fit. */
bool weft_guide_try(struct weft_guide *guide, const int32_t *strategies);

/* Decides strategies as the relaxation does within limits that keep bytes free, the surest first.
 * Solves it again for the rest until all are decided, and decides otherwise where it has no
 * solution below the search's best. Then tries placements guided by it. Returns the strategies,
 * valid until the next call; NULL if it found none. */
const int32_t *weft_guide_dive(struct weft_guide *guide, int64_t free_bytes);

/* Calls weft_guide_try for strategies near the bound of a node of the proof
 * (scheduler/search/near.h). Ends at a plan that is better than the search's best, or after
 * `most_in_vain` tries without one. Skips strategies that were tried before, so another call
 * continues. WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_guide_try_near(struct weft_guide *guide, int32_t node,
                                                   int32_t most_in_vain, struct weft_error *err);

#endif
