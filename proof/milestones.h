/* Milestones say how far an item's blocks have got by a slot: whether they are placed, whether
 * their way over the lane has begun, whether it has ended. As blocks go in index order, what is
 * known of an item comes down to two slots a block for each of these: by which it has come to it,
 * and behind which it does. These do not decrease from block to block, and follow from each other:
 *
 *     what has ended has begun; the next block begins behind the end of this one
 *     a gather that has begun was launched; a reduction that is complete has ended
 *
 * A lane moves one block at a time, without preemption. A block that has begun by a slot and has
 * not ended by it is under way at its end, alone; others of the lane have ended or begin later.
 *
 * RESULTS.md: planner-ideas/milestones-and-counts. */
#ifndef WEFT_PROOF_MILESTONES_H
#define WEFT_PROOF_MILESTONES_H

#include "problem/problem.h"

enum weft_moment {
    WEFT_PLACED, /* gathers are launched in the slot or before, reductions are complete at its end
                  */
    WEFT_BEGUN,  /* before the slot's end, which is the next one's start, on the lane */
    WEFT_ENDED,  /* at the slot's end at the latest */
    WEFT_MOMENT_COUNT
};

/* By `slot` at least `n_blocks` of an item's blocks (1 to all) have come to the moment, or fewer.
 * Slots are those of the item's window, of reductions but the last. Such blocks exist, so the
 * decision has a strategy with the item; with any other fewer have. Blocks that take no time are
 * only placed.
 */
struct weft_milestone {
    int32_t item, n_blocks, slot;
    bool reached;
    enum weft_moment moment;
};

/* True when the problem has the item, and the milestone is of its blocks and window. */
bool weft_milestone_is_of(const struct weft_milestone *milestone,
                          const struct weft_problem *problem);

/* What was told of all items' blocks, and what follows from it. */
struct weft_milestones {
    const struct weft_problem *problem; /* borrowed */
    int32_t *start;                     /* [n_items + 1]: where an item's blocks are */
    int32_t *n_told;                    /* [n_items] */
    /* By moment and block; INT32_MAX and -1: nothing. As told, and as it follows, of items that
     * something was told of. */
    int32_t *told_by[WEFT_MOMENT_COUNT], *told_behind[WEFT_MOMENT_COUNT];
    int32_t *by[WEFT_MOMENT_COUNT], *behind[WEFT_MOMENT_COUNT];
    /* The block that is under way at the end of each slot of a lane, -1: of none it is known. */
    int32_t *under_way; /* [n_moving][n_slots] */
    bool any_under_way;
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

/* Makes the rest of what was told. False when two blocks are under way on one lane. */
bool weft_milestones_settle(struct weft_milestones *milestones);

/* How many blocks of an item are placed by a slot, at least and at most, as settled. */
int32_t weft_milestones_least(const struct weft_milestones *milestones, int32_t item, int32_t slot);
int32_t weft_milestones_most(const struct weft_milestones *milestones, int32_t item, int32_t slot);

/* True when some block of the item is known to have come to a moment by a slot. */
bool weft_milestones_exist(const struct weft_milestones *milestones, int32_t item);

/* By which slot a block of the item has come to the moment (INT32_MAX: none), and behind which it
 * does (-1), as settled. */
static inline int32_t weft_milestones_by(const struct weft_milestones *milestones,
                                         enum weft_moment moment, int32_t item, int32_t block)
{
    if (milestones->n_told[item] == 0) return INT32_MAX;
    return milestones->by[moment][milestones->start[item] + block];
}

static inline int32_t weft_milestones_behind(const struct weft_milestones *milestones,
                                             enum weft_moment moment, int32_t item, int32_t block)
{
    if (milestones->n_told[item] == 0) return -1;
    return milestones->behind[moment][milestones->start[item] + block];
}

/* Narrows the window [*first, *last] of a block by the blocks of others that are under way. */
void weft_milestones_narrow(const struct weft_milestones *milestones, int32_t item, int32_t block,
                            int32_t *first, int32_t *last);

#endif
