/* SPDX-License-Identifier: Apache-2.0 */
/* Pressure divides a node if channels have time to spare and no way raises its bound. Plans lose
 * time in whole blocks there, a little at each. That costs nothing and has no price until the spare
 * time is used up. So the relaxation is solved once more with less channel time: a part of the
 * slots' compute time is taken away. The part brings its value just to the goal, the best step
 * time. Then any lost time costs. The solution interrupts blocks only if that helps, and each
 * child's value shows how much nearer it is to having no solution.
 *
 * RESULTS.md: planner-ideas/pressure. */
#ifndef WEFT_SCHEDULER_TREE_PRESS_H
#define WEFT_SCHEDULER_TREE_PRESS_H

#include "scheduler/tree/branch.h"

enum { WEFT_PRESS_MOST = 12 };

struct weft_press {
    double pressure; /* the part of the slots' time that is taken */
    double value_ns; /* of the node's relaxation under it */
    double spare_ns; /* worth of the time taken, at its prices */
    int32_t n_doubts;
    struct weft_doubt doubts[WEFT_PRESS_MOST]; /* of its solution */
};

/* Finds the pressure of a node at which its relaxation's value is `goal_ns`. False if there is
 * none, or no answer. Enters the node's box, and leaves the dual at other prices. */
bool weft_press_find(struct weft_branch *branch, int32_t node, int64_t goal_ns,
                     struct weft_press *out);

#endif
