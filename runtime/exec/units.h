/* A unit as this rank holds it while a program runs: what work on it needs, and what kind of holder
 * this rank is. Shared by the files of this folder alone. */
#ifndef WEFT_RUNTIME_EXEC_UNITS_H
#define WEFT_RUNTIME_EXEC_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/arena/arena.h"
#include "runtime/nn/units.h"
#include "spec/model.h"

struct exec_unit {
    int32_t index;
    /* If the unit is away, master and moments are there in a first period's update, and nobody's
     * else. */
    struct weft_nn_unit nn;
    bool trainable;
    bool away; /* its home is not the device */
    enum weft_home home;
    bool there; /* it is updated on the host: nothing of its state is ever in the arena */
    bool states[WEFT_STATE_COUNT]; /* that it has, wherever; its parameters only with a master */
    bool whole;    /* dp: gradient and state of all elements are here, and all are updated */
    bool resident; /* dp, zero1: parameters stay in the full buffer; else in this rank's shard */
    /* Everything that each address of nn begins: bytes from 0 on. */
    struct weft_range parameter_bytes, state_bytes, norms_bytes;
    struct weft_range *gaps; /* bytes of the full gradient between tensors, and padding */
    int32_t n_gaps;
};

struct weft_exec;
/* Whether any unit's state is there. */
bool weft_exec_has_home(const struct weft_exec *exec, enum weft_home home);

#endif
