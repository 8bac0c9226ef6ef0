/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/sample.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

enum { N = 6, DRAWS = 20000 };

static const double given[N] = {0.05, 0.3, 0.1, 0.3, 0.05, 0.2};

/* How often each index comes in DRAWS places, by share. */
static void draw(struct weft_sampling sampling, double shares[N])
{
    memset(shares, 0, N * sizeof *shares);
    for (uint64_t place = 0; place < DRAWS; place++) {
        double p[N];
        memcpy(p, given, sizeof p);
        int32_t index = weft_sample(&sampling, p, N, place);
        cr_assert(index >= 0 && index < N);
        shares[index] += 1.0 / DRAWS;
    }
}

static void expect(struct weft_sampling sampling, const double wanted[N])
{
    double shares[N];
    draw(sampling, shares);
    for (int i = 0; i < N; i++)
        cr_assert_float_eq(shares[i], wanted[i], 0.015, "%d: %g, not %g", i, shares[i], wanted[i]);
}

Test(sample, follows_the_probabilities)
{
    expect((struct weft_sampling){.temperature = 1, .seed = 3}, given);
}

Test(sample, temperature_sharpens_and_flattens)
{
    double cold[N], hot[N], cold_sum = 0, hot_sum = 0;
    for (int i = 0; i < N; i++) {
        cold_sum += cold[i] = pow(given[i], 2);
        hot_sum += hot[i] = pow(given[i], 0.5);
    }
    for (int i = 0; i < N; i++) {
        cold[i] /= cold_sum;
        hot[i] /= hot_sum;
    }
    expect((struct weft_sampling){.temperature = 0.5, .seed = 3}, cold);
    expect((struct weft_sampling){.temperature = 2, .seed = 3}, hot);
    expect((struct weft_sampling){.temperature = 0, .seed = 3}, (double[N]){0, 1});
    expect((struct weft_sampling){.temperature = 1e-3, .top_k = 1}, (double[N]){0, 1});
}

Test(sample, top_k_keeps_the_likeliest_and_of_equals_the_first)
{
    struct weft_sampling sampling = {.temperature = 1, .seed = 9};
    sampling.top_k = 1;
    expect(sampling, (double[N]){0, 1});
    sampling.top_k = 3;
    expect(sampling, (double[N]){0, 0.375, 0, 0.375, 0, 0.25});
    sampling.top_k = 5;
    expect(sampling, (double[N]){0.05 / 0.95, 0.3 / 0.95, 0.1 / 0.95, 0.3 / 0.95, 0, 0.2 / 0.95});
    sampling.top_k = N;
    expect(sampling, given);
}

Test(sample, stays_below_what_may_be_said)
{
    expect((struct weft_sampling){.temperature = 1, .below = 3},
           (double[N]){0.05 / 0.45, 0.3 / 0.45, 0.1 / 0.45});
}

Test(sample, is_a_function_of_seed_and_place)
{
    double p[N], q[N];
    int differ = 0;
    for (uint64_t place = 0; place < 100; place++) {
        struct weft_sampling a = {.temperature = 1, .seed = 1}, b = {.temperature = 1, .seed = 2};
        memcpy(p, given, sizeof p);
        memcpy(q, given, sizeof q);
        int32_t first = weft_sample(&a, p, N, place);
        cr_assert_eq(weft_sample(&a, q, N, place), first);
        memcpy(q, given, sizeof q);
        differ += weft_sample(&b, q, N, place) != first;
    }
    cr_assert_gt(differ, 20);
}

Test(sample, probabilities_of_nothing_give_the_first)
{
    double p[N] = {0};
    struct weft_sampling sampling = {.temperature = 1};
    cr_assert_eq(weft_sample(&sampling, p, N, 0), 0);
}
