/* From a config to what each policy needs: every period that the config leaves open is looked at,
 * and of each row the best is kept. Times that are not known are not needed. */
#ifndef WEFT_LIBRARY_ESTIMATE_H
#define WEFT_LIBRARY_ESTIMATE_H

#include "library/session.h"
#include "scheduler/estimate.h"

/* All state in one tier: the least that a rank's device needs then, INT64_MAX where that tier has
 * no room, of which the ring of a disk is ring_bytes; and what the tier has then. */
struct weft_estimate_home {
    bool given; /* state may be there, and there is another home that it may have */
    int64_t least_bytes, ring_bytes, held_bytes, limit_bytes;
};

struct weft_estimate {
    struct weft_pool pool;
    struct weft_estimate_home homes[WEFT_HOME_COUNT];
    struct weft_need rows[WEFT_ESTIMATE_ROWS]; /* names are the pool's */
    int64_t ranks;
    int64_t limit_bytes; /* of the config; 0 = none */
    int64_t base_bytes;  /* that every need has in it */
    int64_t block_bytes; /* least size of a unit's blocks */
    const char *times;   /* where they come from, "analytic"; "" = not all of them are known */
    const char *missing; /* what the config would have to give then; else "" */
};

/* Estimates an open session's config, without its plan.policies: what each policy needs is the
 * question. `asked` as of weft_estimate_fill. The caller finishes *out, also after a failure. */
WEFT_MUST_USE enum weft_status weft_estimate_create(struct weft_session *session, uint32_t asked,
                                                    struct weft_estimate *out,
                                                    struct weft_error *err);
void weft_estimate_finish(struct weft_estimate *estimate); /* accepts {0} */

#endif
