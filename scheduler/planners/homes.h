/* Rules that keep the state of units away from the device, in a home of their choice: it streams
 * through the device's memory for its update, or the host updates it where it is. */
#ifndef WEFT_SCHEDULER_PLANNERS_HOMES_H
#define WEFT_SCHEDULER_PLANNERS_HOMES_H

#include "scheduler/planners/rule.h"

/* Gives a unit the strategy of its policy whose state has that home and is updated on the device;
 * false when it has none. */
bool weft_homes_move(struct weft_draft *draft, int32_t unit, enum weft_home home);

/* The same for all that have state. WEFT_E_INFEASIBLE when no unit's state may be there. */
WEFT_MUST_USE enum weft_status weft_homes_move_all(struct weft_draft *draft, enum weft_home home,
                                                   struct weft_error *err);

/* Gives all that may have it the strategy of their policy whose state is in the host's memory and
 * is updated there. WEFT_E_INFEASIBLE when no unit's may. */
WEFT_MUST_USE enum weft_status weft_homes_update_all(struct weft_draft *draft,
                                                     struct weft_error *err);

/* Places what moves state: it is read when the update before its own begins, and what that update
 * wrote is gone when its own ends. So two units' state is on the device beside what is updated. */
void weft_homes_stream(struct weft_draft *draft);

/* Places updates on the host, and the copies of their parameters up, as early as they may be. What
 * is used first stands last: its use waits for all that the host updates. Gathers are known
 * (weft_draft_take). */
void weft_homes_update(struct weft_draft *draft);

#endif
