/* SPDX-License-Identifier: Apache-2.0 */
/* A flow keeps a device busy with blocks of one size. Blocks use its seats in turn, so at most
 * `seats` blocks are pending. */
#ifndef WEFT_RUNTIME_MEASURE_FLOW_H
#define WEFT_RUNTIME_MEASURE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { MEASURE_SEATS = 64 };

struct measure_flow {
    void *context; /* first argument of each function */
    /* Starts block `number`, from 0, through a seat. */
    enum weft_status (*submit)(void *context, int64_t number, int32_t seat, int64_t *ticket,
                               struct weft_error *err);
    bool (*is_done)(void *context, int64_t ticket);
    enum weft_status (*wait)(void *context, int64_t ticket, struct weft_error *err);
    int32_t seats;
    int64_t least; /* blocks that it moves even after the window */
    /* Results. */
    int64_t blocks, took_ns;
    int64_t tickets[MEASURE_SEATS];
};

/* Runs all flows together for `window_ns`, and until each has moved its least. A flow that has
 * moved its least continues until then. */
WEFT_MUST_USE enum weft_status weft_measure_flows(struct measure_flow *const *flows, int32_t n,
                                                  int64_t window_ns, struct weft_error *err);

/* Time of one block, at least 1 ns. */
int64_t weft_measure_block_ns(const struct measure_flow *flow);

#endif
