/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/relax/dual.h"

#include <criterion/criterion.h>

#include "tests/problem/small_problem.h"
#include "tests/scheduler/limit.h"

struct dual_fixture {
    struct weft_problem problem;
    struct weft_digest *table;
    struct weft_dual *dual;
    struct weft_box *box;
};

static void init_dual(struct dual_fixture *f, int64_t limit_bytes, uint32_t a, uint32_t b)
{
    uint64_t allowed[2] = {a, b};
    f->problem.tiers[0].limit_bytes = limit_bytes;
    cr_assert_eq(weft_digest_create(&f->problem, &f->table, NULL), WEFT_OK);
    cr_assert_eq(weft_dual_create(with_limit(f->table, limit_bytes), &f->dual, NULL), WEFT_OK);
    cr_assert_eq(weft_box_create(&f->problem, &f->box, NULL), WEFT_OK);
    weft_box_restrict(f->box, &(struct weft_facts){.allowed = allowed});
}

static void finish_dual(struct dual_fixture *f)
{
    weft_box_destroy(f->box);
    weft_dual_destroy(f->dual);
    weft_digest_destroy(f->table);
}

/* Slots compute 200 (U:a), 200, 0, 1000, 1000, 2000, 2000, 0, 100; a block takes 600. Gathers go
 * where they hold least, in the last slots of their windows, reductions in the first. */
Test(dual, without_prices_loads_and_bytes_are_those_of_the_least_held)
{
    static const double load[N_SMALL_SLOTS] = {-200,  -200,        1200, 1200 - 1000, -1000,
                                               -2000, 1200 - 2000, 1200, -100};
    static const double held[N_SMALL_SLOTS] = {1200, 1100, 1200, 1400, 1400,
                                               1600, 1700, 1400, 1200};
    struct dual_fixture f = {.problem = small_problem()};
    init_dual(&f, 2000, SDP, SDP);
    weft_dual_evaluate(f.dual, f.box);
    cr_assert_eq(f.dual->value_ns, 6550);
    for (int s = 0; s < N_SMALL_SLOTS; s++) {
        cr_assert_eq(f.dual->load[s], load[s], "load of slot %d: %g", s, f.dual->load[s]);
        cr_assert_eq(f.dual->excess[s], held[s] - 2000, "excess of slot %d: %g", s,
                     f.dual->excess[s]);
    }
    finish_dual(&f);
}

/* dp updates for 200 longer, so that without prices sdp is chosen; where the channel alone is paid,
 * dp moves less. */
Test(dual, chooses_the_cheapest_policy_of_the_box)
{
    struct dual_fixture f = {.problem = small_problem()};
    init_dual(&f, 2000, DP | SDP, DP | SDP);
    weft_dual_evaluate(f.dual, f.box);
    cr_assert_eq(f.dual->strategies[0], IS_SDP);
    cr_assert_eq(f.dual->value_ns, 6550);
    weft_dual_reset(f.dual, WEFT_LANE_FIRST);
    weft_dual_evaluate(f.dual, f.box);
    cr_assert_eq(f.dual->strategies[0], IS_DP);
    cr_assert_eq(f.dual->strategies[1], IS_DP);
    cr_assert_eq(f.dual->value_ns, 50 + 4 * 600);
    finish_dual(&f);
}

/* In slot 2 there is room for two of four blocks of 300, which count 100 each; elsewhere a block
 * pays 600: the value climbs by the 200 that are counted too much until a block pays that, and
 * falls behind it by the 200 of room. */
Test(dual, prices_of_whole_rows_have_their_slope)
{
    static const uint8_t reference[2] = {IS_DP, IS_DP};
    struct dual_fixture f = {.problem = small_problem()};
    f.problem.items[A_GATHER].item.stair_bytes = 300;
    f.problem.items[B_GATHER].item.stair_bytes = 300;
    init_dual(&f, 1800, SDP, SDP);
    int32_t row = weft_dual_add_row(f.dual, 2, 300, reference, NULL);
    cr_assert_eq(row, 0);
    cr_assert_eq(f.dual->rows[0].room_bytes, 200);
    f.dual->lambda[3] = 1;
    f.dual->nu[row] = 5;
    weft_dual_evaluate(f.dual, f.box);
    cr_assert_eq(f.dual->value_ns, 6550 - 1000 + 4 * 500 - 5 * 200);
    cr_assert_eq(f.dual->over[row], 4 * 100 - 200);
    f.dual->nu[row] = 7;
    weft_dual_evaluate(f.dual, f.box);
    cr_assert_eq(f.dual->value_ns, 6550 - 1000 + 4 * 600 - 7 * 200);
    cr_assert_eq(f.dual->over[row], -200);
    finish_dual(&f);
    f.problem.items[A_GATHER].item.stair_bytes = 100; /* the fixture's array is shared */
    f.problem.items[B_GATHER].item.stair_bytes = 100;
}

Test(dual, rows_are_kept_once_and_come_back_from_integer_prices)
{
    static const uint8_t dp[2] = {IS_DP, IS_DP}, sdp[2] = {IS_SDP, IS_DP};
    struct dual_fixture f = {.problem = small_problem()};
    int64_t lambda[N_SMALL_SLOTS], mu[N_SMALL_SLOTS];
    struct weft_whole_price whole[3];
    struct weft_prices prices = {.lambda = lambda, .mu = mu, .whole = whole};
    init_dual(&f, 1800, SDP, SDP);
    cr_assert_eq(weft_dual_add_row(f.dual, 5, 100, dp, NULL), 0);
    cr_assert_eq(weft_dual_add_row(f.dual, 5, 100, sdp, NULL), 1);
    cr_assert_eq(weft_dual_add_row(f.dual, 5, 150, dp, NULL), 2);
    cr_assert_eq(weft_dual_add_row(f.dual, 5, 100, dp, NULL), 0);
    cr_assert_eq(f.dual->n_rows, 3);
    struct weft_usual usual[2];
    cr_assert_eq(weft_dual_compare(f.dual, 5, sdp, NULL, usual), 800 - 200);
    cr_assert_eq(weft_usual_bytes(&usual[0], IS_DP), 200);
    f.dual->nu[1] = 0.5;
    f.dual->mu[3] = 0.25;
    weft_dual_round(f.dual, &prices);
    cr_assert_eq(prices.n_whole, 1);
    cr_assert_eq(whole[0].row, 5);
    cr_assert_eq(whole[0].step_bytes, 100);
    cr_assert_eq(whole[0].nu, WEFT_PRICE_ONE / 2);
    cr_assert_arr_eq(whole[0].reference, sdp, 2);
    weft_dual_reset(f.dual, WEFT_LANE_COMPUTE);
    cr_assert_eq(f.dual->nu[1], 0);
    weft_dual_take(f.dual, &prices);
    cr_assert_eq(f.dual->nu[1], 0.5);
    cr_assert_eq(f.dual->mu[3], 0.25);
    finish_dual(&f);
}
