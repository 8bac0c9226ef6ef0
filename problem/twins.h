/* SPDX-License-Identifier: Apache-2.0 */
/* A target that launches in order has one list of prefetches for all micro-steps (spec/target.h,
 * in_order). So gathers of a unit for one layer and direction are twins: one decision for all
 * micro-steps. The launch in the first micro-step gives the launches in all others. */
#ifndef WEFT_PROBLEM_TWINS_H
#define WEFT_PROBLEM_TWINS_H

#include "problem/problem.h"

struct weft_twins {
    int32_t n_layers;
    int32_t *slots;  /* by micro-step, direction (forward, backward) and layer */
    int32_t *leader; /* [n_items]: the twin in the first micro-step; the item itself without one */
    int32_t *next;   /* [n_items]: the leader's next twin; -1: none */
};

/* True if the problem has twins: the target launches in order, and there are several micro-steps.
 */
bool weft_problem_has_twins(const struct weft_problem *problem);

/* Finds all twins of a problem that has some; arrays in the pool. WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_twins_find(const struct weft_problem *problem,
                                               struct weft_pool *pool, struct weft_twins *out,
                                               struct weft_error *err);

/* The launch of a gather, if its leader launches at the slot. The list of the root, launched in
 * `fill` in the first micro-step, is launched with the first forward in others. A gather blocks if
 * its leader does, or if the slot is outside its window. */
int32_t weft_twins_launch(const struct weft_problem *problem, const struct weft_twins *twins,
                          int32_t item, int32_t leader_launch);

#endif
