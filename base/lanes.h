/* Lanes are streams of work that slow one another: lane 0 computes, the others are channels. While
 * lane 0 and some channel both have work under way, lane 0 progresses at the compute rate and every
 * busy channel at the channel rate; otherwise all run at full speed. Time is in whole ns: a work is
 * over at the first ns at which nothing of it is left. Whoever says how long something takes under
 * contention (simulator, list scheduler, virtual clock) says it by these functions, so that all
 * agree to the ns. */
#ifndef WEFT_BASE_LANES_H
#define WEFT_BASE_LANES_H

#include <stdbool.h>
#include <stdint.h>

/* Rates are ns of work in so many ns; the least keeps sums of times in 63 bits. */
enum { WEFT_RATE_ONE = 1024, WEFT_RATE_LEAST = 64 };
enum { WEFT_LANE_COMPUTE, WEFT_LANE_CHANNEL, WEFT_LANES = 3 };

struct weft_rates {
    int32_t compute, channel; /* WEFT_RATE_LEAST to WEFT_RATE_ONE */
};

struct weft_lanes {
    struct weft_rates rates;
    int64_t now_ns;
    int64_t left[WEFT_LANES]; /* of the work under way, in 1/WEFT_RATE_ONE ns; 0 = idle */
};

static inline bool weft_lanes_busy(const struct weft_lanes *lanes, int lane)
{
    return lanes->left[lane] > 0;
}

/* Begins work of `ns` (0 to 2^53 - 1) on an idle lane. Work of 0 ns is over at once. */
static inline void weft_lanes_start(struct weft_lanes *lanes, int lane, int64_t ns)
{
    lanes->left[lane] = ns * WEFT_RATE_ONE;
}

/* When the first of the works under way is over; INT64_MAX when every lane is idle. */
int64_t weft_lanes_next(const struct weft_lanes *lanes);

/* Goes on to a time that is not before now and not behind weft_lanes_next. */
void weft_lanes_advance(struct weft_lanes *lanes, int64_t until_ns);

#endif
