/* The normal form of placements, shared by those who make plans and those who read them. One
 * channel runs blocks in order, so no block starts before one ahead of it was launched and a block
 * is complete when one behind it is; in normal form launches and deadlines say so themselves. */
#ifndef WEFT_PLAN_PLACEMENT_H
#define WEFT_PLAN_PLACEMENT_H

#include "plan/plan.h"

/* Moves gathers' launches up to the largest launch ahead and reductions' deadlines down to the
 * least deadline behind. Placements hold valid items. */
void weft_placements_normalise(const struct weft_problem *problem,
                               struct weft_placement *placements, int32_t n_placements);

/* The first placement that can never be in time, because something not launched before its
 * deadline stands ahead of it in the channel; -1 when all can. */
int32_t weft_placements_stuck(const struct weft_placement *placements, int32_t n_placements);

/* WEFT_OK when the placements of a plan, whose items and slots are in range and of which there are
 * as many as its policies need, are those of its items, in their windows, in index order and in
 * normal form, and none is stuck; else WEFT_E_DATA with `where` and the placement. */
WEFT_MUST_USE enum weft_status weft_placements_check(const struct weft_plan *plan,
                                                     const char *where, struct weft_error *err);

#endif
