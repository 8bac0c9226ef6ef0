/* SPDX-License-Identifier: Apache-2.0 */
/* One choice for all equal decisions, as in systems that configure a model's equal layers alike.
 * The best such plan shows the worth of choices by layer. */
#ifndef WEFT_SCHEDULER_SEARCH_ALIKE_H
#define WEFT_SCHEDULER_SEARCH_ALIKE_H

#include "scheduler/search/search.h"

/* Tries strategies in which all decisions of a class have one kind. `class_of` [n_decisions] is the
 * first decision of a class, and all of a class have equal strategies. If the combinations of kinds
 * are at most WEFT_ALIKE_MOST, it places each that fits by the first rule. Then it tries all, the
 * fastest first, while the budget lasts. If they are more, it begins with the leanest kind of each
 * class and changes one class at a time, as long as that helps. It expects a new search, which then
 * has alike plans alone. WEFT_E_SYSTEM. */
enum { WEFT_ALIKE_MOST = 4096 };
WEFT_MUST_USE enum weft_status weft_search_alike(struct weft_search *search,
                                                 const int32_t *class_of, struct weft_error *err);

#endif
