/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/planners/knapsack.h"

#include <criterion/criterion.h>

#include "base/rng.h"

enum { GROUPS = 6, OPTIONS = 3 };

struct instance {
    struct weft_knapsack_option options[GROUPS * OPTIONS];
    int64_t capacity[WEFT_KNAPSACK_WEIGHTS];
};

static void fill(struct instance *instance, uint64_t seed)
{
    for (uint64_t i = 0; i < GROUPS * OPTIONS; i++) {
        struct weft_knapsack_option *option = &instance->options[i];
        option->allowed = i % OPTIONS == 0 || weft_rng_below(seed, 1, i, 5) > 0;
        option->cost = (int64_t)weft_rng_below(seed, 2, i, 30);
        option->weight[0] = (int64_t)weft_rng_below(seed, 3, i, 20) - 4;
        option->weight[1] = (int64_t)weft_rng_below(seed, 4, i, 20) - 4;
    }
    instance->capacity[0] = (int64_t)weft_rng_below(seed, 5, 0, 50);
    instance->capacity[1] = seed % 3 ? (int64_t)weft_rng_below(seed, 5, 1, 50) : INT64_MAX;
}

/* The cost of a choice; -1 when it does not fit. */
static int64_t cost_of(const struct instance *instance, const int32_t *choice)
{
    int64_t cost = 0, weight[2] = {0, 0};
    for (int32_t g = 0; g < GROUPS; g++) {
        const struct weft_knapsack_option *option = &instance->options[g * OPTIONS + choice[g]];
        if (!option->allowed) return -1;
        cost += option->cost;
        weight[0] += option->weight[0];
        weight[1] += option->weight[1];
    }
    return weight[0] <= instance->capacity[0] && weight[1] <= instance->capacity[1] ? cost : -1;
}

static int64_t enumerate_knapsack(const struct instance *instance)
{
    int64_t best = -1;
    for (int32_t n = 0; n < 729; n++) {
        int32_t choice[GROUPS], left = n;
        for (int32_t g = 0; g < GROUPS; g++, left /= OPTIONS)
            choice[g] = left % OPTIONS;
        int64_t cost = cost_of(instance, choice);
        if (cost >= 0 && (best < 0 || cost < best)) best = cost;
    }
    return best;
}

Test(knapsack, finds_what_enumeration_finds)
{
    int n_fit = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct instance instance;
        int32_t choice[GROUPS];
        bool exact = false;
        fill(&instance, seed);
        int64_t best = enumerate_knapsack(&instance);
        enum weft_status status = weft_knapsack(instance.options, GROUPS, OPTIONS,
                                                instance.capacity, choice, &exact, NULL, NULL);
        cr_assert_eq(status, best < 0 ? WEFT_E_INFEASIBLE : WEFT_OK, "seed %d", (int)seed);
        cr_assert(exact);
        if (best < 0) continue;
        cr_assert_eq(cost_of(&instance, choice), best, "seed %d", (int)seed);
        n_fit++;
    }
    cr_assert_gt(n_fit, 300);
}

/* 300 alike: of each, cost 2 of weight 0 or cost 1 of weight 3; 100 may be taken. */
Test(knapsack, takes_many_that_are_alike)
{
    static struct weft_knapsack_option options[600];
    static int32_t choice[300];
    const int64_t capacity[2] = {301, INT64_MAX};
    bool exact = false;
    int32_t taken = 0;
    for (int32_t i = 0; i < 600; i++)
        options[i] = (struct weft_knapsack_option){true, i % 2 ? 1 : 2, {i % 2 ? 3 : 0, 0}};
    cr_assert_eq(weft_knapsack(options, 300, 2, capacity, choice, &exact, NULL, NULL), WEFT_OK);
    for (int32_t g = 0; g < 300; g++)
        taken += choice[g];
    cr_assert_eq(taken, 100);
    cr_assert(exact);
}

static int64_t later_ns(void)
{
    static int64_t now_ns;
    return now_ns += 1000;
}

/* The alarm rings in the course of 300 groups. */
Test(knapsack, ends_at_the_alarm)
{
    static struct weft_knapsack_option options[600];
    static int32_t choice[300];
    const int64_t capacity[2] = {INT64_MAX, INT64_MAX};
    struct weft_work work = weft_work_begin(later_ns, 100 * 1000);
    for (int32_t i = 0; i < 600; i++)
        options[i] = (struct weft_knapsack_option){.allowed = true, .cost = i % 2};
    cr_assert_eq(weft_knapsack(options, 20, 2, capacity, choice, NULL, &work, NULL), WEFT_OK);
    cr_assert_not(work.rang);
    cr_assert_eq(weft_knapsack(options, 300, 2, capacity, choice, NULL, &work, NULL),
                 WEFT_E_INFEASIBLE);
    cr_assert(work.rang);
}
