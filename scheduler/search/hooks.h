/* SPDX-License-Identifier: Apache-2.0 */
/* Local search for a target that runs ahead (plan/events.h). Other searches place blocks on the
 * clock of slots, where a launch waits for compute. This search begins with their plan. It moves
 * launches between hooks, or changes one decision, while the step by events gets shorter, or stays
 * and the peak gets lower. A gather that needs no list ends as its unit's own. */
#ifndef WEFT_SCHEDULER_SEARCH_HOOKS_H
#define WEFT_SCHEDULER_SEARCH_HOOKS_H

#include "scheduler/digest/digest.h"
#include "scheduler/digest/planner.h"

struct weft_hooks;
/* The table is of a problem whose units move in one block each, and outlives the search. */
WEFT_MUST_USE enum weft_status weft_hooks_create(const struct weft_digest *table,
                                                 struct weft_budget budget, struct weft_hooks **out,
                                                 struct weft_error *err);
void weft_hooks_destroy(struct weft_hooks *hooks); /* accepts NULL */

/* Searches from the candidate's placements. Keeps the result if it is the best so far.
 * WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_hooks_start(struct weft_hooks *hooks,
                                                const struct weft_candidate *from,
                                                struct weft_error *err);
/* The same with FSDP2's own launches: forward gathers by their own unit, others one unit ahead. */
WEFT_MUST_USE enum weft_status weft_hooks_start_plain(struct weft_hooks *hooks,
                                                      const int32_t *strategies,
                                                      struct weft_error *err);

/* The step of the best; -1 without one, and the candidate stays. */
int64_t weft_hooks_result(const struct weft_hooks *hooks, struct weft_candidate *out);

#endif
