#include "scheduler/bound.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tiny.h"

/* min x + 2 y, x + y >= 3, x <= 2: the optimum is 4 at (2, 1), with multiplier 2 on the row. */
static double cost[] = {1, 2}, lower[] = {0, 0}, upper[] = {2, 10};
static double row_lower[] = {3}, row_upper[] = {INFINITY}, value[] = {1, 1};
static bool integer[] = {false, false};
static int32_t priority[] = {0, 0}, column[] = {0, 1};
static int64_t row_start[] = {0, 2};
static const struct weft_mip example = {.n_columns = 2,
                                        .cost = cost,
                                        .lower = lower,
                                        .upper = upper,
                                        .integer = integer,
                                        .priority = priority,
                                        .n_rows = 1,
                                        .row_lower = row_lower,
                                        .row_upper = row_upper,
                                        .n_entries = 2,
                                        .row_start = row_start,
                                        .column = column,
                                        .value = value};

static long double bound_of(double multiplier)
{
    long double bound = 0;
    cr_assert_eq(weft_bound(&example, &multiplier, &bound, NULL), WEFT_OK);
    return bound;
}

Test(bound, is_tight_at_the_right_multipliers_and_safe_at_all_others)
{
    cr_assert_leq(bound_of(2), 4.0L);
    cr_assert_gt(bound_of(2), 4.0L - 1e-12L);
    cr_assert_leq(bound_of(1), 4.0L);
    cr_assert_gt(bound_of(1), 3.0L - 1e-12L);
    for (double y = -50; y < 50; y += 0.37)
        cr_assert_leq(bound_of(y), 4.0L, "%g", y);
}

Test(bound, multipliers_of_the_wrong_sign_or_none_count_as_nothing)
{
    /* The row has no upper bound, so nothing below zero may be used. */
    cr_assert_eq(bound_of(-3), bound_of(0));
    cr_assert_eq(bound_of(NAN), bound_of(0));
    cr_assert_eq(bound_of(INFINITY), bound_of(0));
    cr_assert_leq(bound_of(0), 0.0L);
    /* And the other way round. */
    row_lower[0] = -INFINITY;
    row_upper[0] = 3;
    cr_assert_eq(bound_of(2), bound_of(0));
    cr_assert_neq(bound_of(-2), bound_of(0));
}

Test(bound, takes_off_what_rounding_may_have_added)
{
    /* A sum of many terms that cancel: exactly 0, whatever the order of adding. */
    enum { N = 3000 };
    static double big_cost[N], zeros[N], ones[N], entries[N];
    static bool no[N];
    static int32_t none[N], numbers[N];
    int64_t starts[] = {0, N};
    double row = 0, open = INFINITY;
    for (int i = 0; i < N; i++) {
        big_cost[i] = (i % 2 ? -1 : 1) * (1e16 + i / 2);
        ones[i] = zeros[i] = 1;
        numbers[i] = i;
    }
    struct weft_mip mip = example;
    mip.n_columns = N;
    mip.cost = big_cost;
    mip.lower = ones;
    mip.upper = zeros;
    mip.integer = no;
    mip.priority = none;
    mip.n_entries = 0;
    starts[1] = 0;
    mip.row_start = starts;
    mip.column = numbers;
    mip.value = entries;
    mip.row_lower = &row;
    mip.row_upper = &open;
    double multiplier = 0;
    long double bound = 0;
    cr_assert_eq(weft_bound(&mip, &multiplier, &bound, NULL), WEFT_OK);
    cr_assert_leq(bound, 0.0L);
    cr_assert_lt(bound, 0.0L, "no sum of rounded terms may claim to be exact");
}

Test(bound, needs_finite_boxes)
{
    double open[] = {INFINITY, 10}, multiplier = 5;
    struct weft_mip mip = example;
    mip.upper = open;
    long double bound = 0;
    cr_assert_eq(weft_bound(&mip, &multiplier, &bound, NULL), WEFT_OK);
    cr_assert_eq(bound, -INFINITY);
}

Test(bound, trivial_is_compute_or_channel)
{
    struct tiny_shape shape = {.n_units = 3, .most_blocks = 2, .policies = 1 << 2, .load = 0.01};
    struct weft_problem *problem = tiny_problem(&shape, 1);
    const char *by = NULL;
    int64_t compute_ns = problem->agree_ns + 3 * 40, channel_ns = problem->agree_ns;
    for (int32_t s = 0; s < problem->n_slots; s++)
        compute_ns += problem->slot_ns[s];
    cr_assert_eq(weft_bound_trivial(problem, &by), compute_ns);
    cr_assert_str_eq(by, "compute");
    for (int32_t i = 0; i < problem->n_items; i++) {
        problem->items[i].block_ns = 100000;
        if (problem->items[i].item.policies & 1 << WEFT_POLICY_SDP)
            channel_ns += 100000 * problem->items[i].item.n_blocks;
    }
    /* fsdp's second gather is not among them: no unit may be fsdp. */
    for (int32_t i = 0; i < problem->n_items; i++)
        cr_assert(problem->items[i].item.policies != 1 << WEFT_POLICY_SDP);
    cr_assert_eq(weft_bound_trivial(problem, &by), channel_ns);
    cr_assert_str_eq(by, "channel");
    weft_problem_destroy(problem);
}
