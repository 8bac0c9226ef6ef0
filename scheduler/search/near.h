/* Strategies near a bound: at prices, every choice of strategies has a cost that its step time
 * cannot be below (proof/prices.h). In order of that cost they are worth a try, and those whose
 * cost is the best known step time or more are not.
 *
 * RESULTS.md: planner-ideas/guide-steps. */
#ifndef WEFT_SCHEDULER_SEARCH_NEAR_H
#define WEFT_SCHEDULER_SEARCH_NEAR_H

#include "scheduler/relax/dual.h"
#include "scheduler/search/search.h"

/* What is done with a choice that fits, and what that counts as. */
enum weft_near_answer { WEFT_NEAR_SKIPPED, WEFT_NEAR_TRIED, WEFT_NEAR_STOP };
typedef enum weft_near_answer weft_near_fn(void *context, const int32_t *strategies);

/* Tries at most `most_tries` choices of the strategies allowed that fit, the least cost at the
 * dual's point first, which must be evaluated in their box; stops at a step time of enough_ns.
 * WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_near_try(struct weft_search *search,
                                             const struct weft_dual *dual, const uint64_t *allowed,
                                             int64_t enough_ns, int32_t most_tries,
                                             struct weft_error *err);

/* The same with what `try` does. */
WEFT_MUST_USE enum weft_status weft_near_each(struct weft_search *search,
                                              const struct weft_dual *dual, const uint64_t *allowed,
                                              int64_t enough_ns, int32_t most_tries,
                                              weft_near_fn *try, void *context,
                                              struct weft_error *err);

#endif
