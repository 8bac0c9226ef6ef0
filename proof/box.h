/* A box is what is left of a problem when every decision is told which strategies it may still
 * have: the plans that keep to them. Memory says more about these plans than a sum of bytes:
 * strategies that cannot fit even where all else is at its least are ruled out, and a block is held
 * whole or not at all, so an item has at most
 *
 *     k_s = floor((limit - the least that all others and the item's own decision hold in s) /
 * stair)
 *
 * blocks in slot s, all of the tier that holds its blocks. A decision's blocks move in index order,
 * so block j of a gather is launched in a slot from which on every k_s is at least j, and block j
 * from the end of a reduction is complete before the first slot whose k_s is below j. A smaller box
 * never has a wider window.
 *
 * A box may also be told how far items have got: milestones. Of blocks that are known to be held in
 * a slot the others' room is less. And it may be told how many decisions of a group have some
 * strategies; where all that still may have to, or none may any more, it is known of each.
 *
 * RESULTS.md: planner-ideas/milestones-and-counts. */
#ifndef WEFT_PROOF_BOX_H
#define WEFT_PROOF_BOX_H

#include "problem/problem.h"
#include "proof/milestones.h"

/* Decisions of which it may be known how many have one of these strategies. */
struct weft_group {
    uint64_t strategies;
    int32_t n_decisions;
    const int32_t *decisions; /* increasing */
};

/* At least `n_decisions` of a group (1 to all) have one of its strategies, or fewer. */
struct weft_count {
    int32_t group, n_decisions;
    bool reached;
};

/* What is known of the plans of a box. Arrays are borrowed for the call. */
struct weft_facts {
    const uint64_t *allowed; /* [n_decisions]: each at least one strategy that the problem allows */
    int32_t n_milestones, n_counts;
    const struct weft_milestone *milestones;
    const struct weft_count *counts;
};

/* Blocks of an item that move in the same window [first, last]; none of the three decreases from
 * block to block. Gathers are held from `hold` on at the latest, wherever they move; where it is
 * behind the item's window they may block, and with first > last they can only block. Reductions
 * are held through `hold` at least. Of a gather the last blocks come first, of a reduction the
 * first. */
struct weft_span {
    int32_t n_blocks, first, last, hold;
};

struct weft_box {
    struct weft_pool pool;
    const struct weft_problem *problem; /* borrowed */
    bool empty;                         /* no plan in it fits: a decision has no strategy left */
    uint64_t *allowed;                  /* [n_decisions]: strategies that are left and may fit */
    int32_t *span_start;                /* [n_items + 1]: where there is room for its spans */
    int32_t *n_spans;                   /* [n_items]: 0 when no strategy left has the item */
    struct weft_span *spans;
    int32_t *held; /* [n_slots], scratch: blocks of an item */
    /* Rows are those of all tiers, weft_problem_n_rows. NULL where the problem is too large for
     * rows of every strategy; spans are whole windows then. */
    int64_t *lean;   /* [n_strategies][n_rows]: weft_problem_add_lean */
    int64_t *least;  /* [n_decisions][n_rows]: over the strategies that are left */
    int64_t *common; /* [n_rows] */
    int64_t *room;   /* [n_rows]: of the tier's limit, with every decision at its least */
    int64_t *own;    /* [n_rows], scratch */
    int32_t n_groups;
    const struct weft_group *groups;   /* borrowed */
    int32_t *least_count, *most_count; /* [n_groups]: decisions that have one of the strategies */
    struct weft_milestones moved;
};

/* With all strategies that the problem allows. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_box_create(const struct weft_problem *problem,
                                               struct weft_box **out, struct weft_error *err);
void weft_box_destroy(struct weft_box *box); /* accepts NULL */

/* Groups that facts may name. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_box_set_groups(struct weft_box *box,
                                                   const struct weft_group *groups,
                                                   int32_t n_groups, struct weft_error *err);

/* Spans that all items of a box of the problem can have. */
size_t weft_box_most_spans(const struct weft_problem *problem);

/* Makes it the box of the plans of which all facts are true. */
void weft_box_restrict(struct weft_box *box, const struct weft_facts *facts);

/* The same step by step, for a walk over many boxes: tells it a milestone or a count, takes the
 * last of them back, and makes it the box of what it was told, with strategies within `allowed`. */
struct weft_told weft_box_tell(struct weft_box *box, const struct weft_milestone *milestone);
struct weft_told weft_box_tell_count(struct weft_box *box, const struct weft_count *count);
void weft_box_take_back(const struct weft_told *told);
void weft_box_make(struct weft_box *box, const uint64_t *allowed);

/* How many decisions of the group have one of its strategies; -1 when the box does not know. */
int32_t weft_box_count(const struct weft_box *box, int32_t group);

/* Adds `bytes` to every slot of the hold, around the period's end when it wraps, in the rows of its
 * tier; rows [n_tiers][n_slots]. */
void weft_hold_add(const struct weft_hold *hold, int32_t n_slots, int64_t *rows);

/* What a decision holds in every row under a strategy, whatever its blocks do; `lean` adds the
 * least that they must: what releases in the first slot of its window, what acquires and cannot
 * block in the last. Rows are [n_strategies][n_rows], of zeros before. */
void weft_problem_fixed_rows(const struct weft_problem *problem, int64_t *rows);
void weft_problem_add_lean(const struct weft_problem *problem, int64_t *rows);

#endif
