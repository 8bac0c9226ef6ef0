/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies near a bound. Prices give each choice of strategies a cost, a lower bound of its step
 * time (proof/prices.h). The search tries choices in order of that cost, and ends at the best known
 * step time.
 *
 * RESULTS.md: planner-ideas/guide-steps. */
#ifndef WEFT_SCHEDULER_SEARCH_NEAR_H
#define WEFT_SCHEDULER_SEARCH_NEAR_H

#include "scheduler/relax/dual.h"
#include "scheduler/search/search.h"

/* Called for each choice that fits. Its answer says whether the call counts as a try. */
enum weft_near_answer { WEFT_NEAR_SKIPPED, WEFT_NEAR_TRIED, WEFT_NEAR_STOP };
typedef enum weft_near_answer weft_near_fn(void *context, const int32_t *strategies);

/* Tries at most `most_tries` choices of allowed strategies that fit, in order of their cost at the
 * dual's point. The point must be evaluated in the box of `allowed`. Stops at a step time of
 * enough_ns. WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_near_try(struct weft_search *search,
                                             const struct weft_dual *dual, const uint64_t *allowed,
                                             int64_t enough_ns, int32_t most_tries,
                                             struct weft_error *err);

/* Calls `try` for the same choices, in the same order. */
WEFT_MUST_USE enum weft_status weft_near_each(struct weft_search *search,
                                              const struct weft_dual *dual, const uint64_t *allowed,
                                              int64_t enough_ns, int32_t most_tries,
                                              weft_near_fn *try, void *context,
                                              struct weft_error *err);

#endif
