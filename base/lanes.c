#include "base/lanes.h"

static bool channels_busy(const struct weft_lanes *lanes)
{
    bool busy = false;
    for (int lane = WEFT_LANE_CHANNEL; lane < WEFT_LANES; lane++)
        busy = busy || weft_lanes_busy(lanes, lane);
    return busy;
}

static int64_t rate_of(const struct weft_lanes *lanes, int lane, bool contend)
{
    if (!contend) return WEFT_RATE_ONE;
    return lane == WEFT_LANE_COMPUTE ? lanes->rates.compute : lanes->rates.channel;
}

static bool contended(const struct weft_lanes *lanes)
{
    return weft_lanes_busy(lanes, WEFT_LANE_COMPUTE) && channels_busy(lanes);
}

int64_t weft_lanes_next(const struct weft_lanes *lanes)
{
    int64_t next_ns = INT64_MAX;
    bool contend = contended(lanes);
    for (int lane = 0; lane < WEFT_LANES; lane++) {
        if (!weft_lanes_busy(lanes, lane)) continue;
        int64_t rate = rate_of(lanes, lane, contend);
        int64_t end_ns = lanes->now_ns + (lanes->left[lane] - 1) / rate + 1;
        if (end_ns < next_ns) next_ns = end_ns;
    }
    return next_ns;
}

void weft_lanes_advance(struct weft_lanes *lanes, int64_t until_ns)
{
    int64_t passed_ns = until_ns - lanes->now_ns;
    bool contend = contended(lanes);
    for (int lane = 0; lane < WEFT_LANES; lane++) {
        int64_t done = passed_ns * rate_of(lanes, lane, contend);
        lanes->left[lane] = lanes->left[lane] > done ? lanes->left[lane] - done : 0;
    }
    lanes->now_ns = until_ns;
}
