/* Pressure: where no way to divide a node raises its bound, because channels have time to spare.
 * What plans lose there in whole blocks, here a little and there a little, costs nothing until the
 * spare time is used up, and has no price. So the relaxation is asked once more, with a part of the
 * time that slots compute taken from the channels: as much as brings its value just to what plans
 * have to beat. Now whatever is lost is missing, its solution interrupts blocks only where that is
 * of use, and each child's value tells how much nearer it is to having none.
 *
 * RESULTS.md: planner-ideas/pressure. */
#ifndef WEFT_SCHEDULER_TREE_PRESS_H
#define WEFT_SCHEDULER_TREE_PRESS_H

#include "scheduler/tree/branch.h"

enum { WEFT_PRESS_MOST = 12 };

struct weft_press {
    double pressure; /* the part of slots' time that is taken */
    double value_ns; /* of the node's relaxation under it */
    double spare_ns; /* what all that is taken is worth there */
    int32_t n_doubts;
    struct weft_doubt doubts[WEFT_PRESS_MOST]; /* of its solution */
};

/* Finds the pressure of a node, at which its relaxation is worth `goal_ns`. False when there is
 * none, or no answer. Enters the node's box, and leaves the dual at other prices. */
bool weft_press_find(struct weft_branch *branch, int32_t node, int64_t goal_ns,
                     struct weft_press *out);

#endif
