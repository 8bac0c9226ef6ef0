/* A lane serves one thing at a time, in order. Lane 0 computes; the others move data (networks,
 * copies between tiers, disks) or update on the host, and each has two rates: how fast compute goes
 * while the lane is busy, and how fast the lane goes while compute is. While compute and several
 * lanes are busy, compute goes at the least of their rates; lanes slow one another only through
 * compute, and what two lanes cannot share is one lane. Time is in whole ns: a work is over at the
 * first ns at which nothing of it is left. Whatever says how long something takes under contention
 * (simulator, list scheduler, virtual clock) says it by these functions, so that all agree to the
 * ns. */
#ifndef WEFT_BASE_LANES_H
#define WEFT_BASE_LANES_H

#include <stdbool.h>
#include <stdint.h>

/* Rates are ns of work in so many ns; the least keeps sums of times in 63 bits. */
enum { WEFT_RATE_ONE = 1024, WEFT_RATE_LEAST = 64 };
enum { WEFT_LANE_COMPUTE, WEFT_LANE_FIRST /* of the others */, WEFT_MOST_LANES = 16 };

/* X(enumerator, name) */
#define WEFT_LANE_KIND_MAP(X)                                                                      \
    X(COMPUTE, "compute")                                                                          \
    X(NETWORK, "network")                                                                          \
    X(ACROSS, "across") /* network between nodes */                                                \
    X(DOWN, "down")     /* copies from the device to the host */                                   \
    X(UP, "up")         /* and back */                                                             \
    X(HOST, "host")     /* updates on the host */                                                  \
    X(READ, "read")     /* of a disk */                                                            \
    X(WRITE, "write")

enum weft_lane_kind {
#define WEFT_LANE_KIND_ENUMERATOR(name, text) WEFT_LANE_KIND_##name,
    WEFT_LANE_KIND_MAP(WEFT_LANE_KIND_ENUMERATOR)
#undef WEFT_LANE_KIND_ENUMERATOR
        WEFT_LANE_KIND_COUNT
};
const char *weft_lane_kind_name(enum weft_lane_kind kind);

/* Both WEFT_RATE_LEAST to WEFT_RATE_ONE, while compute and the lane are busy. */
struct weft_rates {
    int32_t compute, own;
};

static inline bool weft_rates_contend(struct weft_rates rates)
{
    return rates.compute < WEFT_RATE_ONE || rates.own < WEFT_RATE_ONE;
}

struct weft_lane {
    const char *name;
    enum weft_lane_kind kind;
    struct weft_rates rates; /* not looked at of compute */
};

struct weft_lanes {
    const struct weft_lane *lanes; /* [n_lanes], borrowed */
    int32_t n_lanes;               /* compute included; at most WEFT_MOST_LANES */
    int64_t now_ns;
    int64_t left[WEFT_MOST_LANES]; /* of the work under way, in 1/WEFT_RATE_ONE ns; 0 = idle */
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
