/* A box is what is left of a problem when every unit is told which policies it may still have: the
 * plans that keep to them. Memory says more about these plans than a sum of bytes: policies that
 * cannot fit even where all else is at its least are ruled out, and a block is held whole or not at
 * all, so an item has at most
 *
 *     k_s = floor((limit - the least that all others and the item's own unit hold in s) / stair)
 *
 * blocks in slot s. A unit's blocks move in index order, so block j of a gather is launched in a
 * slot from which on every k_s is at least j, and block j from the end of a reduction is complete
 * before the first slot whose k_s is below j. A smaller box never has a wider window. */
#ifndef WEFT_PLAN_BOX_H
#define WEFT_PLAN_BOX_H

#include "plan/problem.h"

/* Blocks of an item that have the same window [first, last]. A gather's windows have the same last;
 * with first > last it can only block. A reduction's have the same first. */
struct weft_span {
    int32_t n_blocks, first, last;
};

struct weft_box {
    struct weft_pool pool;
    const struct weft_problem *problem; /* borrowed */
    bool empty;                         /* no plan in it fits */
    uint32_t *allowed;                  /* [n_units]: policies that are left and may fit */
    int32_t *span_start;                /* [n_items + 1]: where there is room for its spans */
    int32_t *n_spans;                   /* [n_items]: 0 when no policy left has the item */
    struct weft_span *spans;            /* of an item from the narrowest window to the widest */
    /* NULL where the problem is too large for rows of every policy; spans are whole windows then.
     */
    int64_t *lean;   /* [n_units][WEFT_POLICY_COUNT][n_slots]: weft_problem_lean_rows */
    int64_t *least;  /* [n_units][n_slots]: over the policies that are left */
    int64_t *common; /* [n_slots] */
    int64_t *room;   /* [n_slots]: of the limit, with every unit at its least */
    int64_t *own;    /* [n_slots], scratch */
};

/* With all policies that the problem allows. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_box_create(const struct weft_problem *problem,
                                               struct weft_box **out, struct weft_error *err);
void weft_box_destroy(struct weft_box *box); /* accepts NULL */

/* Spans that all items of a box of the problem can have. */
size_t weft_box_most_spans(const struct weft_problem *problem);

/* Makes it the box of these policies [n_units], each at least one that the problem allows. */
void weft_box_restrict(struct weft_box *box, const uint32_t *allowed);

/* Adds `bytes` to every slot of the hold, around the period's end when it wraps. */
void weft_hold_add(const struct weft_hold *hold, int32_t n_slots, int64_t *rows);

/* What a unit holds in every slot under a policy, whatever its blocks do, into rows[n_slots];
 * `lean` adds the least that they must: reductions in the first slot of their window, nothing for
 * gathers, which may block. Rows are [n_units][WEFT_POLICY_COUNT][n_slots], of zeros before. */
void weft_problem_fixed_rows(const struct weft_problem *problem, int64_t *rows);
void weft_problem_add_lean(const struct weft_problem *problem, int64_t *rows);

#endif
