/* Rounds of planning until a layout fits: the planner within the limit, and where the layout of its
 * plan ends above it, again with tighter rows; ilp by other planners' rules too, whose plans may
 * pack better. Where the first layout fits and the clock cut ilp short, it goes on from there.
 *
 * RESULTS.md: planner-gap/random-layouts. */
#ifndef WEFT_SCHEDULER_ROUNDS_ROUNDS_H
#define WEFT_SCHEDULER_ROUNDS_ROUNDS_H

#include "scheduler/rounds/packed.h"

/* True for planners that choose, and so may choose what packs; rules have nothing leaner to fall
 * back on. */
bool weft_may_retreat(const struct weft_planner *planner);

/* run->plan and run->outcome; WEFT_E_INFEASIBLE when no plan of the planner has rows or a layout
 * within the limit. */
WEFT_MUST_USE enum weft_status weft_plan_in_rounds(struct weft_packed *run, struct weft_error *err);

#endif
