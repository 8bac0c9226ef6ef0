/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lanes.h"

const char *weft_lane_kind_name(enum weft_lane_kind kind)
{
    static const char *const names[WEFT_LANE_KIND_COUNT] = {
#define WEFT_LANE_KIND_ENTRY(name, text) [WEFT_LANE_KIND_##name] = text,
        WEFT_LANE_KIND_MAP(WEFT_LANE_KIND_ENTRY)
#undef WEFT_LANE_KIND_ENTRY
    };
    return names[kind];
}

/* The rate of compute, given the busy lanes. */
static int64_t compute_rate(const struct weft_lanes *lanes)
{
    int64_t rate = WEFT_RATE_ONE;
    for (int32_t lane = WEFT_LANE_FIRST; lane < lanes->n_lanes; lane++) {
        int64_t beside = lanes->lanes[lane].rates.compute;
        if (beside < rate && weft_lanes_busy(lanes, lane)) rate = beside;
    }
    return rate;
}

static int64_t rate_of(const struct weft_lanes *lanes, int32_t lane)
{
    if (lane == WEFT_LANE_COMPUTE) return compute_rate(lanes);
    return weft_lanes_busy(lanes, WEFT_LANE_COMPUTE) ? lanes->lanes[lane].rates.own : WEFT_RATE_ONE;
}

int64_t weft_lanes_next(const struct weft_lanes *lanes)
{
    int64_t next_ns = INT64_MAX;
    for (int32_t lane = 0; lane < lanes->n_lanes; lane++) {
        if (!weft_lanes_busy(lanes, lane)) continue;
        int64_t end_ns = lanes->now_ns + (lanes->left[lane] - 1) / rate_of(lanes, lane) + 1;
        if (end_ns < next_ns) next_ns = end_ns;
    }
    return next_ns;
}

void weft_lanes_advance(struct weft_lanes *lanes, int64_t until_ns)
{
    int64_t passed_ns = until_ns - lanes->now_ns, done[WEFT_MOST_LANES];
    /* Read all rates first: they depend on the busy lanes. */
    for (int32_t lane = 0; lane < lanes->n_lanes; lane++)
        done[lane] = passed_ns * rate_of(lanes, lane);
    for (int32_t lane = 0; lane < lanes->n_lanes; lane++)
        lanes->left[lane] = lanes->left[lane] > done[lane] ? lanes->left[lane] - done[lane] : 0;
    lanes->now_ns = until_ns;
}
