/* Rivals are what rules and greedy decide within the same rows, in order of step time. Rows know
 * nothing of addresses: a plan that is slower by its rows may be the fastest that has a layout, so
 * what others would do is packed too, the fastest first, as long as it is faster than what fits. */
#ifndef WEFT_SCHEDULER_ROUNDS_RIVALS_H
#define WEFT_SCHEDULER_ROUNDS_RIVALS_H

#include "scheduler/rounds/packed.h"

struct weft_rival {
    const struct weft_planner *planner;
    const struct weft_setting *setting;
    struct weft_candidate candidate; /* the pool's */
    int64_t step_ns;                 /* as it would be after packing */
    int32_t number;                  /* in the order of the planners' table */
};

struct weft_rivals {
    struct weft_pool pool;
    struct weft_rival *rivals; /* the fastest first, none twice */
    int32_t n;
};

/* What greedy, in an eighth of the budget that is left, and every rule in every setting decide
 * within the limit in `rows`, which are the run's problem or tighter; those that fit. When the
 * budget is used up only rules as published, which are quick. The caller finishes it, also after a
 * failure. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_rivals_create(const struct weft_packed *run,
                                                  const struct weft_problem *rows,
                                                  struct weft_rivals *out, struct weft_error *err);
void weft_rivals_finish(struct weft_rivals *rivals); /* accepts {0} */

#endif
