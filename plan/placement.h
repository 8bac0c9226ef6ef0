/* A placement says of one block when it is launched and when it is due. A lane runs its blocks in
 * order, so no block starts before one ahead of it was launched and a block is complete when one
 * behind it is; in normal form gathers' launches and reductions' deadlines say so themselves. What
 * stands ahead of a blocking gather is complete before the slot computes, not before it starts, and
 * so is due a slot later than the gather. */
#ifndef WEFT_PLAN_PLACEMENT_H
#define WEFT_PLAN_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "problem/problem.h"

/* The placement of one block. A plan's array is in the order of every lane; how lanes are mixed in
 * it means nothing. */
struct weft_placement {
    int32_t item;     /* in the problem */
    int32_t block;    /* in the decision; in index order within an item */
    int32_t launch;   /* slot at whose start it is launched */
    int32_t deadline; /* slot before whose start it must be complete; where that is its launch, the
                         block is a blocking gather: complete before the slot computes */
    int32_t after;    /* placement that it comes after (plan/chain.h), which stands before it in the
                         array; -1: none */
};

/* True for a gather that the slot of its deadline launches itself and waits for. */
static inline bool weft_placement_blocks(const struct weft_placement *at)
{
    return at->launch == at->deadline;
}

/* Moves launches of what acquires up to the largest launch ahead on its lane or before it in its
 * chain, whatever they in turn stand behind, and deadlines of what releases down to the least
 * deadline behind it or after it. Placements hold valid items; `scratch` is [n_placements]. True
 * when it changed something. */
bool weft_placements_normalise(const struct weft_problem *problem,
                               struct weft_placement *placements, int32_t n_placements,
                               int32_t *scratch);

/* The first placement that can never be in time, because something launched behind its deadline
 * (for a reduction: or at it) stands ahead of it on its lane, or before it in its chain; -1 when
 * all can. `scratch` is [n_placements]. */
int32_t weft_placements_stuck(const struct weft_problem *problem,
                              const struct weft_placement *placements, int32_t n_placements,
                              int32_t *scratch);

/* WEFT_OK when placements, whose items and slots are in range and of which there are as many as the
 * strategies need, are those of the items, in their windows, in index order and in normal form, and
 * none is stuck; else WEFT_E_DATA with `where` and the placement. */
WEFT_MUST_USE enum weft_status weft_placements_check(const struct weft_problem *problem,
                                                     const int32_t *strategies,
                                                     const struct weft_placement *placements,
                                                     int32_t n_placements, const char *where,
                                                     struct weft_error *err);

#endif
