/* SPDX-License-Identifier: Apache-2.0 */
/* State is everything that a run resumes from: fp32 parameters and the optimizer's moments. Moments
 * of whole tensors have pieces of one element, in no unit and no arena. Frozen
 * parameters have no master; in 16 bits they are rounded when written. Callers walk the state by
 * pieces of whole tensors, between a settle and the next step. No gradients are pending then, and
 * the next step works like a first one. The copy functions serve the arena and offloaded locations
 * alike. */
#ifndef WEFT_RUNTIME_EXEC_STATE_H
#define WEFT_RUNTIME_EXEC_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/exec/exec.h"
#include "spec/model.h"

struct weft_state_piece {
    int32_t tensor; /* index in the model */
    enum weft_state state;
    int64_t first, count;     /* elements of the tensor */
    int32_t unit;             /* n_units: none */
    bool offloaded;           /* offloaded: not in the arena */
    enum weft_dtype dtype;    /* of storage: fp32 unless frozen in 16 bits */
    enum weft_dtype computed; /* of compute */
    int64_t at;               /* byte offset in the arena, or in the unit's offloaded state */
};

/* Zero it except for `held`. False walks this rank's own pieces: over all ranks every element comes
 * once. True walks every piece to fill here, with copies that other ranks have too. */
struct weft_state_cursor {
    bool held;
    int32_t unit, state;
    int64_t piece;
};

/* Gives the next piece; false at the end. */
bool weft_exec_state_next(const struct weft_exec *exec, struct weft_state_cursor *cursor,
                          struct weft_state_piece *out);

/* Access to elements, with its own stream. So a thread may read state while a step of another
 * thread reads it. */
struct weft_state_access;
WEFT_MUST_USE enum weft_status weft_exec_state_open(const struct weft_exec *exec,
                                                    struct weft_state_access **out,
                                                    struct weft_error *err);
void weft_exec_state_close(struct weft_state_access *access); /* accepts NULL */
/* Copy elements [from, from + n) of a piece, and wait. Walk an offloaded piece from its first
 * element to its last, with no other piece in between. Its first element opens it, and its last one
 * stores the writes. */
WEFT_MUST_USE enum weft_status weft_exec_state_read(struct weft_state_access *access,
                                                    const struct weft_state_piece *piece,
                                                    int64_t from, int64_t n, float *out,
                                                    struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_exec_state_write(struct weft_state_access *access,
                                                     const struct weft_state_piece *piece,
                                                     int64_t from, int64_t n, const float *values,
                                                     struct weft_error *err);

/* Zeroes all state, with gaps and padding. Then fill every held piece and call
 * weft_exec_state_filled. */
WEFT_MUST_USE enum weft_status weft_exec_state_clear(struct weft_exec *exec,
                                                     struct weft_error *err);

/* Collective. Call it after this rank has filled its pieces. Training may then begin. */
WEFT_MUST_USE enum weft_status weft_exec_state_filled(struct weft_exec *exec,
                                                      struct weft_error *err);

#endif
