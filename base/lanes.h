/* SPDX-License-Identifier: Apache-2.0 */
/* A lane serves one block at a time, in order. Lane 0 computes. The others move data (networks,
 * copies between tiers, disks) or update on the host. Each has two rates: of compute while the lane
 * is busy, and of the lane while compute is. With several busy lanes compute takes the least of
 * their rates. Lanes slow one another only through compute; streams that share a resource are one
 * lane. Time is in whole ns: work ends at the first ns at which none of it is left. Simulator, list
 * scheduler and virtual clock use these functions, so they agree to the ns. */
#ifndef WEFT_BASE_LANES_H
#define WEFT_BASE_LANES_H

#include <stdbool.h>
#include <stdint.h>

/* Rates are parts of WEFT_RATE_ONE; the least one keeps sums of times in 63 bits. */
enum { WEFT_RATE_ONE = 1024, WEFT_RATE_LEAST = 64 };
enum { WEFT_LANE_COMPUTE, WEFT_LANE_FIRST /* the first other lane */, WEFT_MOST_LANES = 16 };

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

/* Both are WEFT_RATE_LEAST to WEFT_RATE_ONE, and hold while compute and the lane are busy. */
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
    struct weft_rates rates; /* unused for compute */
};

struct weft_lanes {
    const struct weft_lane *lanes; /* [n_lanes], borrowed */
    int32_t n_lanes;               /* compute included; at most WEFT_MOST_LANES */
    int64_t now_ns;
    int64_t left[WEFT_MOST_LANES]; /* work left, in 1/WEFT_RATE_ONE ns; 0: idle */
};

static inline bool weft_lanes_busy(const struct weft_lanes *lanes, int lane)
{
    return lanes->left[lane] > 0;
}

/* Begins work of `ns` (0 to 2^53 - 1) on an idle lane. Work of 0 ns ends at once. */
static inline void weft_lanes_start(struct weft_lanes *lanes, int lane, int64_t ns)
{
    lanes->left[lane] = ns * WEFT_RATE_ONE;
}

/* The end of the first work to end; INT64_MAX if all lanes are idle. */
int64_t weft_lanes_next(const struct weft_lanes *lanes);

/* Advances to a time from now to weft_lanes_next. */
void weft_lanes_advance(struct weft_lanes *lanes, int64_t until_ns);

#endif
