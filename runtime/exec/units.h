/* SPDX-License-Identifier: Apache-2.0 */
/* A unit on this rank while a program runs: the inputs of work on it, and this rank's part of it.
 * Private to this folder. */
#ifndef WEFT_RUNTIME_EXEC_UNITS_H
#define WEFT_RUNTIME_EXEC_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/arena/arena.h"
#include "runtime/nn/units.h"
#include "spec/model.h"

struct exec_unit {
    int32_t index;
    /* Addresses of the first period. Offloaded master and moments have them in that period's update
     * only. */
    struct weft_nn_unit nn;
    bool trainable;
    bool offloaded; /* its location is not the device */
    enum weft_location location;
    bool fetches;                  /* its shard is on the host: nn has it in its update only */
    bool on_host;                  /* updated on the host: its state is never in the arena */
    bool states[WEFT_STATE_COUNT]; /* present, in any location; parameters only with a master */
    bool whole;   /* dp, central: gradient and state of all elements; with dp it updates all */
    bool central; /* rank `owner` alone has the state, and updates */
    int32_t owner;
    bool in_node;  /* hsdp, nodes: the ranks of a node share parameters, and nodes have copies */
    bool hybrid;   /* hsdp: of the state too */
    bool resident; /* dp, zero1, central: parameters stay in the full buffer, not in a shard */
    /* Sizes of the memory at the addresses of nn, as ranges from 0. */
    struct weft_range parameter_bytes, state_bytes, norms_bytes, pending_bytes;
    struct weft_range *gaps; /* bytes of the full gradient that belong to no tensor */
    int32_t n_gaps;
};

struct weft_exec;
/* Whether some unit's state has that location. */
bool weft_exec_has_location(const struct weft_exec *exec, enum weft_location location);
/* Whether some unit's shard is on the host. */
bool weft_exec_fetches(const struct weft_exec *exec);

/* Elements [from, from + n) of a unit's state. */
struct exec_elements {
    int32_t unit;
    enum weft_state state;
    int64_t from, n;
};

struct weft_exec;
/* Fills pieces, pointers and gaps of every unit. */
WEFT_MUST_USE enum weft_status weft_exec_units_fill(struct weft_exec *exec, struct weft_error *err);

/* Address of a state in the arena; NULL if the unit has none. */
unsigned char *weft_exec_state_at(const struct weft_nn_unit *unit, enum weft_state state);

#endif
