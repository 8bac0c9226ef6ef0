/* SPDX-License-Identifier: Apache-2.0 */
#include "report/study/stairs.h"

#include "base/rng.h"
#include "tests/report/study/small_sweep.h"

static void expect_stairs(const struct weft_sweep *sweep, int32_t first, int32_t end, int32_t n,
                          const struct weft_sweep_corner *corners)
{
    struct weft_pool pool = {0};
    struct weft_sweep_stairs stairs;
    cr_assert(weft_sweep_climb(sweep, first, end, &pool, &stairs));
    cr_assert_eq(stairs.n, n, "%d", stairs.n);
    for (int32_t i = 0; i < n; i++) {
        cr_assert_eq(stairs.corners[i].bytes, corners[i].bytes, "corner %d", i);
        cr_assert_eq(stairs.corners[i].ns, corners[i].ns, "corner %d", i);
    }
    weft_pool_finish(&pool);
}

Test(sweep_stairs, a_plan_holds_until_a_faster_one)
{
    struct small_sweep small;
    make_small_sweep(&small);
    expect_stairs(&small.sweep, 0, 1, 3,
                  (struct weft_sweep_corner[]){{1024, 300000}, {2048, 220000}, {3072, 200000}});
    expect_stairs(&small.sweep, 1, 2, 2,
                  (struct weft_sweep_corner[]){{2048, 900000}, {3072, 400000}});
    /* A slower plan within more memory changes nothing. */
    small.best[1].step_ns = 310000;
    small.slow[1].step_ns = 250000;
    expect_stairs(&small.sweep, 0, 1, 2,
                  (struct weft_sweep_corner[]){{1024, 300000}, {3072, 200000}});
    expect_stairs(&small.sweep, 0, 2, 3,
                  (struct weft_sweep_corner[]){{1024, 300000}, {2048, 250000}, {3072, 200000}});
    for (int i = 0; i < 3; i++)
        small.best[i].fits = false;
    expect_stairs(&small.sweep, 0, 1, 0, NULL);
}

/* There each limit of the policies has its own step, slower ones too. */
Test(sweep_stairs, of_a_split_go_up_and_down)
{
    struct small_sweep small;
    make_small_sweep(&small);
    small.sweep.split = true;
    for (int i = 0; i < 3; i++)
        small.best[i].policy_limit_bytes = 100 * (i + 1);
    small.best[1].step_ns = 310000;
    expect_stairs(&small.sweep, 0, 1, 3,
                  (struct weft_sweep_corner[]){{100, 300000}, {200, 310000}, {300, 200000}});
}

Test(sweep_stairs, labels_are_apart_in_order_and_within)
{
    for (uint64_t i = 0; i < 500; i++) {
        double places[40];
        const int32_t n = 1 + (int32_t)weft_rng_below(27, 1, i, 40);
        const double gap = 10, low = 50, high = low + gap * (n - 1) + (double)(i % 7) * 100;
        double at = low;
        for (int32_t k = 0; k < n; k++) {
            at +=
                (high - at) * (i % 3 == 0 ? 0 : weft_rng_uniform(27, 2, i * 64 + (uint64_t)k) / 4);
            places[k] = at;
        }
        weft_sweep_spread(places, n, gap, low, high);
        for (int32_t k = 0; k < n; k++) {
            cr_assert(places[k] > low - 1e-6 && places[k] < high + 1e-6, "%f", places[k]);
            if (k > 0) cr_assert_geq(places[k] - places[k - 1], gap - 1e-6);
        }
    }
    double places[] = {100, 200, 200, 200, 300};
    const double expected[] = {100, 190, 200, 210, 300};
    weft_sweep_spread(places, 5, 10, 0, 400);
    for (int k = 0; k < 5; k++)
        cr_assert_float_eq(places[k], expected[k], 0.1, "%d: %f", k, places[k]);
}
