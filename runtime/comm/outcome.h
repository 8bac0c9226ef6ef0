/* What ranks tell each other around something that all of them must do, or none. For back ends. */
#ifndef WEFT_RUNTIME_COMM_OUTCOME_H
#define WEFT_RUNTIME_COMM_OUTCOME_H

#include "base/hash.h"
#include "runtime/comm/comm.h"

/* Collective: tells all ranks how it went here, `own` with its text where that is no success. The
 * first rank's failure is everybody's. */
WEFT_MUST_USE enum weft_status weft_comm_share_outcome(struct weft_comm *comm,
                                                       enum weft_status status,
                                                       const struct weft_error *own,
                                                       struct weft_error *err);

/* Names what must be the same on all ranks, so that offsets are. */
struct weft_hash weft_comm_hash_shape(const struct weft_arena_shape *shape);

#endif
