/* For given strategies, the fastest placement there is: a depth-first search over what every idle
 * channel does next, in time, on the lanes of the simulator. States that were met before no later
 * are not searched again, nor any from which the best known cannot be beaten. Exhaustive unless its
 * steps run out, so it is for small problems; on others it betters a plan where it can, and those
 * too deep for a stack are left alone. */
#ifndef WEFT_SCHEDULER_TREE_EXACT_H
#define WEFT_SCHEDULER_TREE_EXACT_H

#include "scheduler/search/search.h"

struct weft_exact;

WEFT_MUST_USE enum weft_status weft_exact_create(struct weft_search *search,
                                                 struct weft_exact **out, struct weft_error *err);
void weft_exact_destroy(struct weft_exact *exact); /* accepts NULL */

/* Tries placements of the strategies that are faster than the search's best, which they replace.
 * *complete is true when none of them is left out. WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_exact_try(struct weft_exact *exact, const int32_t *strategies,
                                              int64_t most_steps, bool *complete,
                                              struct weft_error *err);

/* How many steps the last try took. */
int64_t weft_exact_steps(const struct weft_exact *exact);

#endif
