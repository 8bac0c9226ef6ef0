/* Placements after the relaxation. A rule of list scheduling sees one moment; the relaxation with
 * the strategies fixed sees the whole step: which gathers are worth the memory that they hold where
 * it is short, and where compute should wait for reductions because what they free is worth more
 * later. It moves parts of blocks, so it is no plan; as a guide of when to launch what, it lets
 * list scheduling make one that comes near it.
 *
 * RESULTS.md: planner-ideas/guide. */
#ifndef WEFT_SCHEDULER_TREE_GUIDE_H
#define WEFT_SCHEDULER_TREE_GUIDE_H

#include "scheduler/tree/branch.h"

struct weft_guide;

/* A guide by the branch's relaxation, for its search; both are borrowed. Without a relaxation, and
 * where every plan fits, there is nothing to try. */
WEFT_MUST_USE enum weft_status weft_guide_create(struct weft_branch *branch,
                                                 struct weft_guide **out, struct weft_error *err);
void weft_guide_destroy(struct weft_guide *guide); /* accepts NULL */

/* Solves the relaxation with these strategies, unless it was solved before, and tries placements
 * after it when its value is below the search's best, which they may become. True when it was
 * solved. */
bool weft_guide_try(struct weft_guide *guide, const int32_t *strategies);

/* Decides the strategies as the relaxation does, those of which it is surest first, and solves it
 * again for the rest, until all are decided; then tries placements after that. */
void weft_guide_dive(struct weft_guide *guide);

/* weft_guide_try of strategies near the bound of a node of the proof (scheduler/search/near.h),
 * until a plan is found that is better than the search's best, or `most_in_vain` have brought
 * nothing. Strategies that were tried before are passed over, so that another call goes on.
 * WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_guide_try_near(struct weft_guide *guide, int32_t node,
                                                   int32_t most_in_vain, struct weft_error *err);

#endif
