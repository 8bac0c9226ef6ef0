/* SPDX-License-Identifier: Apache-2.0 */
/* Repairs of a list schedule. A rule decides from the slots so far. Looking back, the cause of a
 * wait can often be postponed: gathers in a slot that a reduction must leave, or a block ahead of
 * a needed one on the lane. Repairs place, find the longest waits, postpone their causes and place
 * again, as long as that helps.
 *
 * RESULTS.md: planner-ideas/repairs. */
#ifndef WEFT_SCHEDULER_PLACE_REPAIR_H
#define WEFT_SCHEDULER_PLACE_REPAIR_H

#include "scheduler/place/list.h"

struct weft_repair;
WEFT_MUST_USE enum weft_status weft_repair_create(const struct weft_digest *table,
                                                  struct weft_repair **out, struct weft_error *err);
void weft_repair_destroy(struct weft_repair *repair); /* accepts NULL */

/* Like weft_list_place for strategies that fit. Returns the best of at most 1 + most_tries
 * placements, in ns, or -1 if the first fails. */
int64_t weft_repair_place(struct weft_repair *repair, struct weft_list *list,
                          const int32_t *strategies, struct weft_list_rule rule, int32_t most_tries,
                          struct weft_move *moves, int32_t *n_moves);

/* The rule of the last best placement. `repair` owns its arrays, which are valid until the next
 * placement. */
struct weft_list_rule weft_repair_rule(const struct weft_repair *repair);

#endif
