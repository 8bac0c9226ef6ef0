/* State is all that a run goes on from: parameters (their fp32 values) and the optimizer's moments.
 * Frozen parameters have no master: in 16 bits they are their own values, rounded when written. It
 * is gone through piece by piece of whole tensors, between a settle and the next step: then nothing
 * waits to be applied, and a step that follows is as a first one. Elements are copied out and in,
 * from and to the arena, or wherever the piece is; nobody outside of this folder knows which. */
#ifndef WEFT_RUNTIME_EXEC_STATE_H
#define WEFT_RUNTIME_EXEC_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/exec/exec.h"
#include "spec/model.h"

struct weft_state_piece {
    int32_t tensor; /* of the model */
    enum weft_state state;
    int64_t first, count; /* elements of the tensor */
    int32_t unit;
    bool away;                /* not in the arena */
    enum weft_dtype dtype;    /* that it is kept in; fp32 but for frozen parameters of 16 bits */
    enum weft_dtype computed; /* that layers compute with */
    int64_t at; /* bytes from the arena's beginning, or from that of the unit's state */
};

/* Zeroed but for `held`: false walks what this rank owns, so that over all ranks every element
 * comes once; true walks everything that has to be filled here, copies that other ranks have too
 * included. */
struct weft_state_cursor {
    bool held;
    int32_t unit, state;
    int64_t piece;
};

/* False at the end. */
bool weft_exec_state_next(const struct weft_exec *exec, struct weft_state_cursor *cursor,
                          struct weft_state_piece *out);

/* A way for elements in and out: a stream of its own, so that a thread may read what a step that
 * another one has issued reads too. */
struct weft_state_access;
WEFT_MUST_USE enum weft_status weft_exec_state_open(const struct weft_exec *exec,
                                                    struct weft_state_access **out,
                                                    struct weft_error *err);
void weft_exec_state_close(struct weft_state_access *access); /* accepts NULL */
/* Elements [from, from + n) of a piece; done when they return. A piece that is away is opened by
 * its first element and closed by its last one, which brings there what was written; so it is gone
 * through from the first on, and no other one in between. */
WEFT_MUST_USE enum weft_status weft_exec_state_read(struct weft_state_access *access,
                                                    const struct weft_state_piece *piece,
                                                    int64_t from, int64_t n, float *out,
                                                    struct weft_error *err);
WEFT_MUST_USE enum weft_status weft_exec_state_write(struct weft_state_access *access,
                                                     const struct weft_state_piece *piece,
                                                     int64_t from, int64_t n, const float *values,
                                                     struct weft_error *err);

/* Zeroes all of it, gaps and padding too. To be followed by filling every held piece, and then by
 * weft_exec_state_filled. */
WEFT_MUST_USE enum weft_status weft_exec_state_clear(struct weft_exec *exec,
                                                     struct weft_error *err);

/* Collective: all ranks have filled theirs, and training may begin. */
WEFT_MUST_USE enum weft_status weft_exec_state_filled(struct weft_exec *exec,
                                                      struct weft_error *err);

#endif
