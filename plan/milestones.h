/* Milestones say how far an item's blocks have got by a slot. As blocks move in index order, what
 * is known of an item comes down to two slots for each of its blocks: by which it has moved, and
 * behind which it does. Both do not decrease from block to block. */
#ifndef WEFT_PLAN_MILESTONES_H
#define WEFT_PLAN_MILESTONES_H

#include "plan/problem.h"

/* By `slot` at least `n_blocks` of an item's blocks (1 to all) have moved, or fewer: gathers are
 * launched in it or before, reductions are complete at its end. Slots are those of the item's
 * window, of reductions but the last. Blocks that have moved exist, so the unit has a policy with
 * the item; with any other fewer have moved. */
struct weft_milestone {
    int32_t item, n_blocks, slot;
    bool reached;
};

/* True when the problem has the item, and the milestone is of its blocks and window. */
bool weft_milestone_is_of(const struct weft_milestone *milestone,
                          const struct weft_problem *problem);

/* What was told of all items' blocks, and what follows from it. */
struct weft_milestones {
    const struct weft_problem *problem; /* borrowed */
    int32_t *start;                     /* [n_items + 1]: where an item's blocks are */
    int32_t *n_told;                    /* [n_items] */
    int32_t *told_by, *told_behind;     /* by block; INT32_MAX and -1: nothing */
    int32_t *by, *behind;               /* by block, of items that something was told of */
};

/* A thing that was told, for taking it back. */
struct weft_told {
    int32_t *slot, before; /* where it was noted, and what was there */
    int32_t *n_told;       /* NULL: of no item */
};

/* In the pool, with nothing told. False when memory runs out. */
bool weft_milestones_init(struct weft_milestones *milestones, const struct weft_problem *problem,
                          struct weft_pool *pool);

/* Notes a milestone of the problem. What was told last has to be taken back first. */
struct weft_told weft_milestones_tell(struct weft_milestones *milestones,
                                      const struct weft_milestone *milestone);
void weft_milestones_take_back(const struct weft_told *told);
void weft_milestones_forget(struct weft_milestones *milestones); /* all of them */

/* Makes `by` and `behind` of what was told. */
void weft_milestones_settle(struct weft_milestones *milestones);

/* How many blocks of an item have moved by a slot, at least and at most, as settled. */
int32_t weft_milestones_least(const struct weft_milestones *milestones, int32_t item, int32_t slot);
int32_t weft_milestones_most(const struct weft_milestones *milestones, int32_t item, int32_t slot);

#endif
