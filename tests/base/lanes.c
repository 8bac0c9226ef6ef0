/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lanes.h"

#include <criterion/criterion.h>

#define RATES(compute, own)                                                                        \
    {                                                                                              \
        "", WEFT_LANE_KIND_NETWORK,                                                                \
        {                                                                                          \
            compute, own                                                                           \
        }                                                                                          \
    }

/* Ends of all works under way, in order. */
static void expect_ends(struct weft_lanes *lanes, const int64_t *ends, int n)
{
    for (int i = 0; i < n; i++) {
        int64_t next_ns = weft_lanes_next(lanes);
        cr_assert_eq(next_ns, ends[i], "end %d is at %lld", i, (long long)next_ns);
        weft_lanes_advance(lanes, next_ns);
    }
    cr_assert_eq(weft_lanes_next(lanes), INT64_MAX);
}

Test(lanes, without_contention_lanes_are_alone)
{
    const struct weft_lane rates[3] = {{0}, RATES(1024, 1024), RATES(1024, 1024)};
    struct weft_lanes lanes = {.lanes = rates, .n_lanes = 3, .now_ns = 7};
    weft_lanes_start(&lanes, 0, 100);
    weft_lanes_start(&lanes, 1, 30);
    weft_lanes_start(&lanes, 2, 250);
    const int64_t ends[] = {37, 107, 257};
    expect_ends(&lanes, ends, 3);
}

/* Compute at 3/4, the channel at 1/2: 100 ns on the channel take 200, in which compute does 150 of
 * its 200 ns; the rest is at full speed. */
Test(lanes, both_slow_down_while_both_run)
{
    const struct weft_lane rates[2] = {{0}, RATES(768, 512)};
    struct weft_lanes lanes = {.lanes = rates, .n_lanes = 2};
    weft_lanes_start(&lanes, 0, 200);
    weft_lanes_start(&lanes, 1, 100);
    const int64_t ends[] = {200, 250};
    expect_ends(&lanes, ends, 2);
    cr_assert(!weft_lanes_busy(&lanes, 0));
}

/* Two channels slow compute no more than one, and not each other. */
Test(lanes, two_networks)
{
    const struct weft_lane rates[3] = {{0}, RATES(512, 1024), RATES(512, 1024)};
    struct weft_lanes lanes = {.lanes = rates, .n_lanes = 3};
    weft_lanes_start(&lanes, 0, 100);
    weft_lanes_start(&lanes, 1, 60);
    weft_lanes_start(&lanes, 2, 100);
    const int64_t ends[] = {60, 100, 150};
    expect_ends(&lanes, ends, 3);
    weft_lanes_start(&lanes, 1, 60);
    weft_lanes_start(&lanes, 2, 10);
    const int64_t alone[] = {160, 210};
    expect_ends(&lanes, alone, 2);
}

/* Work ends at a whole ns; its progress until then is kept exactly. */
/* Lane 1 leaves compute 3/4 and lane 2 a half, and both run at their own rates next to it. Lane
 * 2's 100 ns take 200. In them compute does 100 of its 250 ns, and lane 1 its 150 at full speed.
 * Then compute runs alone. Lane 3 is idle and slows no lane. */
Test(lanes, compute_goes_at_the_least_rate_of_busy_lanes)
{
    const struct weft_lane rates[4] = {{0}, RATES(768, 1024), RATES(512, 512), RATES(64, 1024)};
    struct weft_lanes lanes = {.lanes = rates, .n_lanes = 4};
    weft_lanes_start(&lanes, 0, 250);
    weft_lanes_start(&lanes, 1, 150);
    weft_lanes_start(&lanes, 2, 100);
    const int64_t ends[] = {150, 200, 350};
    expect_ends(&lanes, ends, 3);
    weft_lanes_start(&lanes, 0, 75);
    weft_lanes_start(&lanes, 1, 40);
    const int64_t first_alone[] = {390, 435};
    expect_ends(&lanes, first_alone, 2);
}

Test(lanes, ends_are_rounded_up)
{
    const struct weft_lane rates[2] = {{0}, RATES(700, 900)};
    struct weft_lanes lanes = {.lanes = rates, .n_lanes = 2};
    weft_lanes_start(&lanes, 0, 1);
    weft_lanes_start(&lanes, 1, 1);
    cr_assert_eq(weft_lanes_next(&lanes), 2);
    weft_lanes_advance(&lanes, 1);
    cr_assert_eq(lanes.left[0], 324);
    cr_assert_eq(lanes.left[1], 124);
    weft_lanes_advance(&lanes, 2);
    cr_assert_eq(weft_lanes_next(&lanes), INT64_MAX);
}

Test(lanes, the_longest_work)
{
    const int64_t most_ns = (INT64_C(1) << 53) - 1;
    const struct weft_lane rates[2] = {{0}, RATES(WEFT_RATE_LEAST, WEFT_RATE_LEAST)};
    struct weft_lanes lanes = {.lanes = rates, .n_lanes = 2};
    weft_lanes_start(&lanes, 0, most_ns);
    weft_lanes_start(&lanes, 1, most_ns);
    const int64_t ends[] = {most_ns * 16};
    expect_ends(&lanes, ends, 1);
}
