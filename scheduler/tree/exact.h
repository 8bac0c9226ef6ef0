/* SPDX-License-Identifier: Apache-2.0 */
/* Exact placement: the fastest placement of given strategies. A depth-first search chooses the next
 * block of each idle lane, in time, on the lanes of the simulator. It drops a state that was met at
 * the same time or earlier, and one that cannot beat the best known step. It is exhaustive unless
 * its steps run out, so it suits small problems. A guide orders the choices: the search's best plan
 * if it has the strategies, otherwise a placement by list scheduling. Rounds first try plans that
 * differ from the guide in few choices. It does not try problems too deep for a stack.
 *
 * RESULTS.md: planner-ideas/exact. */
#ifndef WEFT_SCHEDULER_TREE_EXACT_H
#define WEFT_SCHEDULER_TREE_EXACT_H

#include "scheduler/search/search.h"

struct weft_exact;

WEFT_MUST_USE enum weft_status weft_exact_create(struct weft_search *search,
                                                 struct weft_exact **out, struct weft_error *err);
void weft_exact_destroy(struct weft_exact *exact); /* accepts NULL */

/* False if the problem is too deep for a stack. */
bool weft_exact_can(const struct weft_exact *exact);

/* Tries placements of the strategies. A faster one replaces the search's best. *complete: all were
 * tried. WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_exact_try(struct weft_exact *exact, const int32_t *strategies,
                                              int64_t most_steps, bool *complete,
                                              struct weft_error *err);

/* Steps of the last try. */
int64_t weft_exact_steps(const struct weft_exact *exact);

#endif
