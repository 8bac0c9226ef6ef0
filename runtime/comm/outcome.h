/* SPDX-License-Identifier: Apache-2.0 */
/* Outcomes of steps that all ranks must take, or none. For back ends. */
#ifndef WEFT_RUNTIME_COMM_OUTCOME_H
#define WEFT_RUNTIME_COMM_OUTCOME_H

#include "base/hash.h"
#include "runtime/comm/comm.h"

/* Shares the local outcome; every rank must call it. `own` has the text of a failure. All ranks
 * return the first failed rank's failure. */
WEFT_MUST_USE enum weft_status weft_comm_share_outcome(struct weft_comm *comm,
                                                       enum weft_status status,
                                                       const struct weft_error *own,
                                                       struct weft_error *err);

/* Hash of the shape's fields that must be equal on all ranks. */
struct weft_hash weft_comm_hash_shape(const struct weft_arena_shape *shape);

#endif
