/* SPDX-License-Identifier: Apache-2.0 */
/* Placement for a target that has one list of prefetches for all micro-steps (spec/target.h,
 * in_order). */
#ifndef WEFT_SCHEDULER_PLACE_MICRO_STEPS_H
#define WEFT_SCHEDULER_PLACE_MICRO_STEPS_H

#include "plan/plan.h"

/* Launches the gathers of all micro-steps as in one of them: the first, the second or the last,
 * whichever gives the fastest step. Prefetches that do not fit the limit become gathers by their
 * own unit. Updates the prediction. Does nothing for another target or one micro-step.
 * WEFT_E_SYSTEM without memory. */
WEFT_MUST_USE enum weft_status weft_place_micro_steps(struct weft_plan *plan,
                                                      struct weft_error *err);

#endif
