/* SPDX-License-Identifier: Apache-2.0 */
/* A box is a set of plans: for each decision the strategies that it may still have. Memory says
 * more about these plans than a sum of bytes. A strategy is ruled out if it does not fit when all
 * other decisions hold their least. A block is held whole or not at all, so in slot s an item has
 * at most
 *
 *     k_s = floor((limit - least bytes of all decisions in s, the item's own included) / stair)
 *
 * blocks, all in the tier that holds its blocks. A decision's blocks move in index order. So block
 * j of a gather is launched in a slot from which on every k_s is at least j. Block j from the end
 * of a reduction is complete before the first slot with k_s below j. A smaller box never has a
 * wider window.
 *
 * A box may also know the progress of items (milestones): blocks known to be held in a slot leave
 * less room for others. And it may know how many decisions of a group have some strategies. Once
 * the others cannot reach or exceed that number, each decision's side is known.
 *
 * RESULTS.md: planner-ideas/milestones-and-counts. */
#ifndef WEFT_PROOF_BOX_H
#define WEFT_PROOF_BOX_H

#include "problem/problem.h"
#include "proof/milestones.h"

/* A set of strategies, and the decisions with it for which a box may know a count. */
struct weft_group {
    uint64_t strategies;
    int32_t n_decisions;
    const int32_t *decisions; /* increasing */
};

/* At least `n_decisions` of a group (1 to all) have one of its strategies; fewer, if `reached` is
 * false. */
struct weft_count {
    int32_t group, n_decisions;
    bool reached;
};

/* Facts about the plans of a box. Arrays are borrowed for the call. */
struct weft_facts {
    const uint64_t *allowed; /* [n_decisions]: each at least one of the problem's strategies */
    int32_t n_milestones, n_counts;
    const struct weft_milestone *milestones;
    const struct weft_count *counts;
};

/* Blocks of an item that move in the same window [first, last]. None of first, last and hold
 * decreases from block to block. A gather's blocks are held from `hold` at the latest, wherever
 * they move. If `hold` is after the item's window, they may block; if also first > last, they must.
 * A reduction's blocks are held through `hold` at least. A gather's spans list the last blocks
 * first, a reduction's the first. */
struct weft_span {
    int32_t n_blocks, first, last, hold;
};

struct weft_box {
    struct weft_pool pool;
    const struct weft_problem *problem; /* borrowed */
    bool empty;                         /* no plan fits: a decision has no strategy left */
    uint64_t *allowed;                  /* [n_decisions]: remaining strategies that may fit */
    int32_t *span_start;                /* [n_items + 1]: index of the item's first span */
    int32_t *n_spans;                   /* [n_items]: 0 if no remaining strategy has the item */
    struct weft_span *spans;
    int32_t *held; /* [n_slots], scratch: blocks of an item */
    /* Rows of all tiers, weft_problem_n_rows. NULL if the problem is too large for rows of every
     * strategy; spans are then whole windows. */
    int64_t *lean;   /* [n_strategies][n_rows]: weft_problem_add_lean */
    int64_t *least;  /* [n_decisions][n_rows]: least over the remaining strategies */
    int64_t *common; /* [n_rows] */
    int64_t *room;   /* [n_rows]: room below the limit, with every decision at its least */
    int64_t *own;    /* [n_rows], scratch */
    int32_t n_groups;
    const struct weft_group *groups; /* borrowed */
    int32_t *least_count,
        *most_count; /* [n_groups]: bounds on the decisions with one of the strategies */
    struct weft_milestones moved;
};

/* Makes a box with all strategies of the problem. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_box_create(const struct weft_problem *problem,
                                               struct weft_box **out, struct weft_error *err);
/* The same without rows, as of a problem that is too large for them: it takes less time, and rules
 * out less. */
WEFT_MUST_USE enum weft_status weft_box_create_plain(const struct weft_problem *problem,
                                                     struct weft_box **out, struct weft_error *err);
void weft_box_destroy(struct weft_box *box); /* accepts NULL */

/* Sets the groups that facts may name. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_box_set_groups(struct weft_box *box,
                                                   const struct weft_group *groups,
                                                   int32_t n_groups, struct weft_error *err);

/* The most spans of all items, in any box of the problem. */
size_t weft_box_most_spans(const struct weft_problem *problem);

/* Makes it the box of all plans for which every fact is true. */
void weft_box_restrict(struct weft_box *box, const struct weft_facts *facts);

/* The same step by step, for walks over many boxes. _tell adds a milestone or a count, _take_back
 * removes the last one, and _make applies them with strategies within `allowed`. */
struct weft_told weft_box_tell(struct weft_box *box, const struct weft_milestone *milestone);
struct weft_told weft_box_tell_count(struct weft_box *box, const struct weft_count *count);
void weft_box_take_back(const struct weft_told *told);
void weft_box_make(struct weft_box *box, const uint64_t *allowed);

/* The number of the group's decisions with one of its strategies; -1 if the box does not know it.
 */
int32_t weft_box_count(const struct weft_box *box, int32_t group);

/* Adds the hold's bytes to every slot of it, around the period's end if it wraps, in its tier's
 * rows; rows [n_tiers][n_slots]. */
void weft_hold_add(const struct weft_hold *hold, int32_t n_slots, int64_t *rows);

/* Fills rows [n_strategies][n_rows], zero before, with a decision's holds under each strategy.
 * weft_problem_add_lean adds the blocks that are always held: of a releasing item in the first slot
 * of its window, of an acquiring one that cannot block in the last. */
void weft_problem_fixed_rows(const struct weft_problem *problem, int64_t *rows);
void weft_problem_add_lean(const struct weft_problem *problem, int64_t *rows);

#endif
