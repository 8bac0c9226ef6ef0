/* A flow keeps something busy with blocks of one size: they go through its seats, which are taken
 * in turn, so as many are queued or under way as it has seats. */
#ifndef WEFT_RUNTIME_MEASURE_FLOW_H
#define WEFT_RUNTIME_MEASURE_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { MEASURE_SEATS = 64 };

struct measure_flow {
    void *context; /* the first argument of each */
    /* Begins block `number`, from 0 on, through a seat. */
    enum weft_status (*submit)(void *context, int64_t number, int32_t seat, int64_t *ticket,
                               struct weft_error *err);
    bool (*is_done)(void *context, int64_t ticket);
    enum weft_status (*wait)(void *context, int64_t ticket, struct weft_error *err);
    int32_t seats;
    int64_t least; /* blocks that it moves whatever the time */
    /* What came of it. */
    int64_t blocks, took_ns;
    int64_t tickets[MEASURE_SEATS];
};

/* Lets all of them go on beside each other for that time, and until each has moved its least; one
 * that is done before another goes on. */
WEFT_MUST_USE enum weft_status weft_measure_flows(struct measure_flow *const *flows, int32_t n,
                                                  int64_t window_ns, struct weft_error *err);

/* What one block took, at least 1. */
int64_t weft_measure_block_ns(const struct measure_flow *flow);

#endif
