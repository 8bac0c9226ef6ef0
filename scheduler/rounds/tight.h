/* A tight problem is a problem that leaves a layout room: in every slot it holds something more
 * than it does, as far as the leanest plan still fits there. A limit that is lowered alike for all
 * slots cannot go below the fullest slot of the leanest plan; most slots have far more room.
 *
 * RESULTS.md: memory/tight-rows. */
#ifndef WEFT_SCHEDULER_ROUNDS_TIGHT_H
#define WEFT_SCHEDULER_ROUNDS_TIGHT_H

#include "scheduler/digest/digest.h"

struct weft_tight {
    struct weft_problem problem; /* the original's arrays, but for `common` */
    struct weft_hold *common;    /* owned */
};

/* room_bytes[n_slots]: what the leanest strategies, all gathers blocking, leave of the limit; the
 * most of them. */
int64_t weft_tight_room(const struct weft_digest *table, int64_t *room_bytes);

/* The problem with `bytes` more held in every slot, but no more than its room. The original
 * outlives it. Only with bytes = 0 is it the same problem. WEFT_E_SYSTEM. */
WEFT_MUST_USE enum weft_status weft_tight_create(const struct weft_problem *problem,
                                                 const int64_t *room_bytes, int64_t bytes,
                                                 struct weft_tight *out, struct weft_error *err);
void weft_tight_finish(struct weft_tight *tight); /* accepts {0} */

#endif
