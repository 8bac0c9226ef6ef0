/* SPDX-License-Identifier: Apache-2.0 */
/* Rules that offload the state of units to a location of their choice. State streams through the
 * device's memory for its update, or the host updates it in place. */
#ifndef WEFT_SCHEDULER_PLANNERS_LOCATIONS_H
#define WEFT_SCHEDULER_PLANNERS_LOCATIONS_H

#include "scheduler/planners/rule.h"

/* Gives a unit the strategy of its policy with state in that location and updates on the device.
 * False if there is none. */
bool weft_locations_move(struct weft_draft *draft, int32_t unit, enum weft_location location);

/* The same for all units with state. WEFT_E_INFEASIBLE if no unit's state may be there. */
WEFT_MUST_USE enum weft_status weft_locations_move_all(struct weft_draft *draft,
                                                       enum weft_location location,
                                                       struct weft_error *err);

/* Gives a unit the strategy of its policy with state and updates in the host's memory. False if
 * there is none. */
bool weft_locations_update_one(struct weft_draft *draft, int32_t unit);

/* The same for all units that have one. WEFT_E_INFEASIBLE if no unit has one. */
WEFT_MUST_USE enum weft_status weft_locations_update_all(struct weft_draft *draft,
                                                         struct weft_error *err);

/* Places the items that move state. State is read from the beginning of the update before its own,
 * and is written by the end of the update after it. So the device holds the state of two units next
 * to the updated one. */
void weft_locations_stream(struct weft_draft *draft);

/* Places updates on the host, and copies of their parameters up, as early as they may be.
 * Parameters used first come last, so that their use waits for all updates on the host. Needs the
 * list of gathers (weft_draft_take). */
void weft_locations_update(struct weft_draft *draft);

#endif
