/* SPDX-License-Identifier: Apache-2.0 */
/* A placement gives the launch slot and the deadline of one block. A lane runs its blocks in order:
 * no block starts before the launch of the previous one, and a complete block implies that the
 * previous one is complete. In normal form, launches of gathers and deadlines of reductions state
 * this themselves. A blocking gather is complete before its slot computes, not before its slot
 * starts. So blocks ahead of it are due a slot later than the gather. */
#ifndef WEFT_PLAN_PLACEMENT_H
#define WEFT_PLAN_PLACEMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "problem/problem.h"

/* The placement of one block. A plan's array has the order of every lane; the interleaving of lanes
 * means nothing. */
struct weft_placement {
    int32_t item;     /* index in the problem */
    int32_t block;    /* index in the item; ascending within it */
    int32_t launch;   /* the slot that launches it, at its start */
    int32_t deadline; /* the slot before which it must be complete; equal to `launch`, the block is
                         a blocking gather: complete before the slot computes */
    int32_t after; /* its predecessor in its chain (plan/chain.h), earlier in the array; -1: none */
};

/* True for a gather that its own deadline's slot launches and waits for. */
static inline bool weft_placement_blocks(const struct weft_placement *at)
{
    return at->launch == at->deadline;
}

/* Sorts placements for a target that launches in order (spec/target.h). A gather is launched in the
 * next slot that may do so. Each reduction is launched when its window begins, and due when it
 * ends. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_placements_sort(const struct weft_problem *problem,
                                                    struct weft_placement *placements,
                                                    int32_t n_placements, struct weft_error *err);

/* Brings placements of valid items into normal form; `scratch` is [n_placements]. Moves launches of
 * acquiring items up to the largest launch ahead on the lane or in the chain. Moves deadlines of
 * releasing items down to the least deadline after them on the lane or in the chain. Returns true
 * if it changed something. */
bool weft_placements_normalise(const struct weft_problem *problem,
                               struct weft_placement *placements, int32_t n_placements,
                               int32_t *scratch);

/* The first placement that can never be in time; -1 if there is none. A block ahead of it on its
 * lane or in its chain is launched after its deadline, or at the deadline of a releasing item.
 * `scratch` is [n_placements]. */
int32_t weft_placements_stuck(const struct weft_problem *problem,
                              const struct weft_placement *placements, int32_t n_placements,
                              int32_t *scratch);

/* WEFT_OK when the placements match the items: within their windows, in index order, in normal
 * form, and none stuck. Items and slots are in range, and the number of placements is that of the
 * strategies. Otherwise WEFT_E_DATA names `where` and the placement. */
WEFT_MUST_USE enum weft_status weft_placements_check(const struct weft_problem *problem,
                                                     const int32_t *strategies,
                                                     const struct weft_placement *placements,
                                                     int32_t n_placements, const char *where,
                                                     struct weft_error *err);

#endif
