/* SPDX-License-Identifier: Apache-2.0 */
/* A milestone states the progress of an item's blocks by a slot: placed, begun on the lane, or
 * ended. Blocks go in index order. So the facts about an item are two slots for each block and
 * moment: a slot by which the block has reached it, and one after which it reaches it. These slots
 * do not decrease from block to block, and imply each other:
 *
 *     an ended block has begun; the next block begins after its end
 *     a begun gather was launched; a complete reduction has ended
 *
 * A lane moves one block at a time, without preemption. A block that has begun by a slot and not
 * ended by it is under way alone at its end. Other blocks of the lane have ended or begin later.
 *
 * RESULTS.md: planner-ideas/milestones-and-counts. */
#ifndef WEFT_PROOF_MILESTONES_H
#define WEFT_PROOF_MILESTONES_H

#include "problem/problem.h"

enum weft_moment {
    WEFT_PLACED, /* gathers: launched by the slot's start; reductions: complete by its end */
    WEFT_BEGUN,  /* on the lane, before the slot's end, which is the next slot's start */
    WEFT_ENDED,  /* by the slot's end */
    WEFT_MOMENT_COUNT
};

/* By `slot` at least `n_blocks` of an item's blocks (1 to all) have reached the moment; fewer, if
 * `reached` is false. The slot is in the item's window, and for reductions not its last. Reached
 * blocks exist, so the decision has a strategy with the item; under any other strategy it is not
 * reached. Blocks without time are only placed. */
struct weft_milestone {
    int32_t item, n_blocks, slot;
    bool reached;
    enum weft_moment moment;
};

/* True if the problem has the item, and the milestone is within its blocks and window. */
bool weft_milestone_is_of(const struct weft_milestone *milestone,
                          const struct weft_problem *problem);

/* The facts told about all items' blocks, and their consequences. */
struct weft_milestones {
    const struct weft_problem *problem; /* borrowed */
    int32_t *start;                     /* [n_items + 1]: index of the item's first block */
    int32_t *n_told;                    /* [n_items]: number of facts told */
    /* By moment and block; INT32_MAX and -1: nothing known. told_ has the facts, the others the
     * consequences, for items with facts. */
    int32_t *told_by[WEFT_MOMENT_COUNT], *told_behind[WEFT_MOMENT_COUNT];
    int32_t *by[WEFT_MOMENT_COUNT], *behind[WEFT_MOMENT_COUNT];
    /* The block under way at the end of each slot of a lane; -1: not known. */
    int32_t *under_way; /* [n_moving][n_slots] */
    bool any_under_way;
};

/* A fact that was told, for removing it. */
struct weft_told {
    int32_t *slot, before; /* its place, and the value before */
    int32_t *n_told;       /* NULL: of no item */
};

/* Allocates milestones in the pool, without facts. False without memory. */
bool weft_milestones_init(struct weft_milestones *milestones, const struct weft_problem *problem,
                          struct weft_pool *pool);

/* Tells a milestone of the problem. Facts are removed in reverse order. */
struct weft_told weft_milestones_tell(struct weft_milestones *milestones,
                                      const struct weft_milestone *milestone);
void weft_milestones_take_back(const struct weft_told *told);
void weft_milestones_forget(struct weft_milestones *milestones); /* removes all facts */

/* Computes the consequences of the facts. False if two blocks are under way on one lane. */
bool weft_milestones_settle(struct weft_milestones *milestones);

/* The least and the most blocks of an item that are placed by a slot, after weft_milestones_settle.
 */
int32_t weft_milestones_least(const struct weft_milestones *milestones, int32_t item, int32_t slot);
int32_t weft_milestones_most(const struct weft_milestones *milestones, int32_t item, int32_t slot);

/* True if a block of the item is known to have reached a moment. */
bool weft_milestones_exist(const struct weft_milestones *milestones, int32_t item);

/* The slot by which a block has reached the moment (INT32_MAX: none), and the slot after which it
 * does (-1), after weft_milestones_settle. */
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

/* Narrows the window [*first, *last] of a block by the other blocks under way. */
void weft_milestones_narrow(const struct weft_milestones *milestones, int32_t item, int32_t block,
                            int32_t *first, int32_t *last);

#endif
