/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/prices.h"

#include <criterion/criterion.h>

#include "base/rng.h"
#include "plan/placement.h"
#include "program/trace.h"
#include "tests/program/random_model.h"
#include "tests/proof/small_prices.h"

/* The bound of the strategies, where the box is as the facts make it. */
static int64_t bound_in(struct fixture *f, struct weft_box *box, struct weft_facts facts,
                        const uint64_t *strategies)
{
    struct weft_error err = {0};
    weft_box_restrict(box, &facts);
    cr_assert_eq(weft_prices_apply(box, &f->prices, &f->priced, &err), WEFT_OK, "%s", err.text);
    return weft_priced_bound_ns(&f->problem, &f->priced, strategies ? strategies : box->allowed);
}

static int64_t bound(struct fixture *f, uint32_t a, uint32_t b)
{
    struct weft_error err = {0};
    uint64_t allowed[2] = {a, b};
    struct weft_box *box = NULL;
    cr_assert_eq(weft_box_create(&f->problem, &box, &err), WEFT_OK, "%s", err.text);
    int64_t bound_ns = bound_in(f, box, (struct weft_facts){.allowed = allowed}, NULL);
    weft_box_destroy(box);
    return bound_ns;
}

/* Slots compute 0 (a), 0 (b), 0, 1000, 1000, 2000, 2000, 0, 100; updates 200 or, dp, 400; agree 50;
 * every block takes 600. */
Test(prices, without_prices_it_is_compute_alone)
{
    struct fixture f;
    init(&f);
    cr_assert_eq(bound(&f, SDP, SDP), 6100 + 50 + 200 + 200);
    cr_assert_eq(bound(&f, DP, SDP), 6100 + 50 + 400 + 200);
    cr_assert_eq(bound(&f, DP | SDP, DP | SDP), 6550);
}

Test(prices, with_all_channel_time_priced_it_is_the_channel_alone)
{
    struct fixture f;
    init(&f);
    for (int32_t s = 0; s < N_SMALL_SLOTS; s++)
        f.lambda[s] = WEFT_PRICE_ONE;
    cr_assert_eq(bound(&f, SDP, SDP), 50 + 8 * 600);
    cr_assert_eq(bound(&f, DP, SDP), 50 + 6 * 600);
}

/* By hand: the channel is priced in drain (slot 7) alone, where a's reductions must be; b's go
 * before it, and all that could compute there is 0. */
Test(prices, blocks_go_where_the_channel_is_cheap)
{
    struct fixture f;
    init(&f);
    f.lambda[7] = WEFT_PRICE_ONE / 4;
    cr_assert_eq(bound(&f, SDP, SDP), 6550 + 2 * 150);
    f.lambda[6] = WEFT_PRICE_ONE / 8; /* its 2000 are worth less by an eighth, b pays 75 a block */
    cr_assert_eq(bound(&f, SDP, SDP), 6550 + 2 * 150 - 250 + 2 * 75);
    /* A gather that is waited for costs all its time at most. */
    f.lambda[1] = f.lambda[2] = f.lambda[3] = WEFT_PRICE_ONE;
    f.mu[2] = WEFT_PRICE_ONE / 2;
    f.problem.tiers[0].limit_bytes = 1700; /* slot 2 has 700 bytes above the fixed ones */
    cr_assert_eq(bound(&f, SDP, SDP),
                 50 + 200 + (1000 + 2000 + 1750 + 100) + 2 * 150 + 2 * 75 + 4 * 600 - 350);
}

/* In B:b (slot 5) sdp holds base 1000, 200 of b's parameters, 200 of its gradient and 200 of a's
 * parameters: 100 less than the limit, which in B:a sdp for both needs. */
Test(prices, bytes_are_paid_where_they_are_held)
{
    struct fixture f;
    init(&f);
    f.problem.tiers[0].limit_bytes = 1700;
    f.mu[5] = WEFT_PRICE_ONE * 3;
    cr_assert_eq(bound(&f, SDP, SDP), 6550 - 3 * 100);
    /* Rounded up: step times are whole numbers. */
    f.mu[5] = WEFT_PRICE_ONE / 1000;
    cr_assert_eq(bound(&f, SDP, SDP), 6550);
    f.mu[5] = WEFT_PRICE_ONE / 64; /* 100 / 64 less */
    cr_assert_eq(bound(&f, SDP, SDP), 6549);
    f.problem.tiers[0].limit_bytes = 1699;
    cr_assert_eq(bound(&f, SDP, SDP), WEFT_PROBLEM_MOST, "no plan fits");
    cr_assert_eq(bound(&f, SDP | DP, SDP), bound(&f, DP, SDP));
}

/* b's gathered parameters, 200 bytes, are on the host, where nothing else is. In B:b they leave 800
 * of 1000 bytes. */
Test(prices, each_tier_has_prices_of_its_own)
{
    struct fixture f;
    struct weft_problem_decision decisions[2];
    struct weft_problem_strategy strategies[N_SMALL_STRATEGIES];
    struct weft_hold holds[3];
    int64_t mu[2 * N_SMALL_SLOTS] = {0};
    init(&f);
    memcpy(decisions, f.problem.decisions, sizeof decisions);
    memcpy(strategies, decisions[1].strategies, sizeof strategies);
    memcpy(holds, strategies[IS_SDP].holds, sizeof holds);
    holds[0].tier = 1;
    strategies[IS_SDP].holds = holds;
    decisions[1].strategies = strategies;
    f.problem.decisions = decisions;
    f.problem.n_tiers = 2;
    f.problem.tiers[0].limit_bytes = 1700;
    f.problem.tiers[1] = (struct weft_problem_tier){"host", WEFT_LOCATION_HOST, 1000};
    f.prices.mu = mu;
    mu[N_SMALL_SLOTS + 5] = WEFT_PRICE_ONE * 3;
    cr_assert_eq(bound(&f, SDP, SDP), 6550 - 3 * 800);
    mu[N_SMALL_SLOTS + 5] = 0;
    mu[5] = WEFT_PRICE_ONE * 3;
    cr_assert_eq(bound(&f, SDP, SDP), 6550 - 3 * 300);
}

/* Memory across the period's end is paid on both sides: a and b hold 100 each of slot 0's 700
 * bytes since their reductions. */
Test(prices, what_wraps_is_paid_for)
{
    struct fixture f;
    init(&f);
    f.problem.tiers[0].limit_bytes = 1700;
    f.mu[0] = WEFT_PRICE_ONE;
    cr_assert_eq(bound(&f, SDP, SDP), 6550 - 700 + 2 * 100);
}

/* On two lanes, gathers on the first, reductions on the second. */
Test(prices, lanes_share_the_price_of_time)
{
    struct fixture f;
    struct weft_error err = {0};
    struct weft_box *box = NULL;
    int64_t lambda[2 * N_SMALL_SLOTS] = {0};
    const uint64_t allowed[2] = {SDP, SDP};
    const struct weft_milestone blocks = {A_GATHER, 1, 2, false, WEFT_PLACED};
    const struct weft_facts facts = {.allowed = allowed, .milestones = &blocks, .n_milestones = 1};
    init(&f);
    f.problem.n_lanes = 3;
    for (int32_t i = 0; i < N_SMALL_ITEMS; i++)
        f.problem.items[i].lane = f.problem.items[i].item.acquires ? 1 : 2;
    f.prices.lambda = lambda;
    cr_assert_eq(weft_box_create(&f.problem, &box, &err), WEFT_OK, "%s", err.text);
    /* a's gather is waited for in slot 3, where the second lane could move for half of it. */
    lambda[N_SMALL_SLOTS + 3] = WEFT_PRICE_ONE / 2;
    cr_assert_eq(bound_in(&f, box, facts, NULL), 6550 - 500 + 2 * 300);
    lambda[3] = WEFT_PRICE_ONE / 2 + 1;
    weft_box_restrict(box, &facts);
    cr_assert_eq(weft_prices_apply(box, &f.prices, &f.priced, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "lambda of slot 3 is above 1 in sum"), "%s", err.text);
    weft_box_destroy(box);
}

/* Both gathers are on a lane of their own and block slot 3: 1200 ns each. */
static void block_on_two_lanes(struct fixture *f, int64_t lambda[2 * N_SMALL_SLOTS])
{
    init(f);
    f->problem.n_lanes = 3;
    f->problem.items[B_GATHER].item.last = 2;
    f->problem.items[B_GATHER].lane = 2;
    f->prices.lambda = lambda;
}

static enum weft_status apply_blocked(struct fixture *f, int64_t *bound_ns, struct weft_error *err)
{
    const uint64_t allowed[2] = {SDP, SDP};
    const struct weft_milestone blocks[2] = {{A_GATHER, 1, 2, false, WEFT_PLACED},
                                             {B_GATHER, 1, 2, false, WEFT_PLACED}};
    const struct weft_facts facts = {.allowed = allowed, .milestones = blocks, .n_milestones = 2};
    struct weft_box *box = NULL;
    *err = (struct weft_error){0};
    cr_assert_eq(weft_box_create(&f->problem, &box, err), WEFT_OK, "%s", err->text);
    weft_box_restrict(box, &facts);
    enum weft_status status = weft_prices_apply(box, &f->prices, &f->priced, err);
    *bound_ns = weft_priced_bound_ns(&f->problem, &f->priced, box->allowed);
    weft_box_destroy(box);
    return status;
}

Test(prices, lanes_share_a_wait_by_price)
{
    static const struct {
        int64_t lambda, first, second; /* of slot 3 in quarters: on the second lane, and kappas */
        int64_t bound_ns;
    } cases[] = {
        {0, 0, 0, 6550},
        {0, 4, 0, 6550 + 1200},
        {0, 1, 3, 6550 + 300 + 900},
        {1, 3, 0, 6550 - 250 + 300 + 900},
        {2, 1, 1, 6550 - 500 + 600 + 300 + 300},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct fixture f;
        struct weft_error err;
        int64_t lambda[2 * N_SMALL_SLOTS] = {0}, bound_ns;
        struct weft_wait_price waits[2] = {{3, 1, cases[k].first * (WEFT_PRICE_ONE / 4)},
                                           {3, 2, cases[k].second * (WEFT_PRICE_ONE / 4)}};
        block_on_two_lanes(&f, lambda);
        lambda[N_SMALL_SLOTS + 3] = cases[k].lambda * (WEFT_PRICE_ONE / 4);
        f.prices.waits = waits;
        f.prices.n_waits = 2;
        cr_assert_eq(apply_blocked(&f, &bound_ns, &err), WEFT_OK, "%s", err.text);
        cr_assert_eq(bound_ns, cases[k].bound_ns, "case %zu: %lld", k, (long long)bound_ns);
    }
}

/* Blocks of 0 ns pay nothing, and leave the wait to the other lane. */
Test(prices, blocks_of_no_time_share_no_wait)
{
    struct fixture f;
    struct weft_error err;
    int64_t lambda[2 * N_SMALL_SLOTS] = {0}, bound_ns;
    struct weft_wait_price wait = {3, 2, 0};
    block_on_two_lanes(&f, lambda);
    f.problem.items[B_GATHER].block_ns = 0;
    cr_assert_eq(apply_blocked(&f, &bound_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bound_ns, 6550 + 1200);
    f.problem.items[A_GATHER].block_ns = 0;
    cr_assert_eq(apply_blocked(&f, &bound_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bound_ns, 6550);
    f.prices.waits = &wait;
    f.prices.n_waits = 1;
    cr_assert_eq(apply_blocked(&f, &bound_ns, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "kappa of slot 3 is of lane 2, which does not share"), "%s",
                       err.text);
}

Test(prices, waits_that_cannot_be_are_refused)
{
    static const struct {
        struct weft_wait_price waits[2];
        int64_t lambda;
        const char *says;
    } cases[] = {
        {{{3, 1, -1}, {3, 2, 0}}, 0, "kappa of slot 3 is negative"},
        {{{3, 1, 1}, {3, 2, WEFT_PRICE_ONE}}, 0, "kappa of slot 3 is above 1 in sum with lambda"},
        {{{3, 1, 0}, {3, 2, 1}}, WEFT_PRICE_ONE, "kappa of slot 3 is above 1 in sum with lambda"},
        {{{3, 2, 1}, {3, 1, 1}}, 0, "kappa of slot 3 is not in order"},
        {{{3, 1, 1}, {3, 1, 1}}, 0, "kappa of slot 3 is not in order"},
        {{{3, 1, 1}, {4, 1, 1}}, 0, "kappa of slot 4 is of lane 1, which does not share"},
        {{{3, 0, 1}, {3, 1, 1}}, 0, "kappa of slot 3 is of lane 0, which does not share"},
        {{{3, 1, 1}, {N_SMALL_SLOTS, 1, 1}}, 0, "kappa of slot 9 is of no slot"},
        {{{-1, 1, 1}, {3, 1, 1}}, 0, "kappa of slot -1 is of no slot"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct fixture f;
        struct weft_error err;
        int64_t lambda[2 * N_SMALL_SLOTS] = {0}, bound_ns;
        struct weft_wait_price waits[2] = {cases[k].waits[0], cases[k].waits[1]};
        block_on_two_lanes(&f, lambda);
        lambda[3] = cases[k].lambda;
        f.prices.waits = waits;
        f.prices.n_waits = 2;
        cr_assert_eq(apply_blocked(&f, &bound_ns, &err), WEFT_E_DATA, "case %zu", k);
        cr_assert_not_null(strstr(err.text, cases[k].says), "%s", err.text);
    }
}

/* a's reduction of slot 7 takes two blocks of 600, then b's goes on after it: 600 + 600 + 600. */
static void chain_reductions(struct fixture *f, struct weft_chain_price *chain)
{
    init(f);
    f->problem.items[A_REDUCE].item.first = 6;
    f->problem.items[B_REDUCE].after = A_REDUCE;
    *chain = (struct weft_chain_price){B_REDUCE, WEFT_PRICE_ONE};
    f->prices.chains = chain;
    f->prices.n_chains = 1;
}

static enum weft_status apply_plain(struct fixture *f, int64_t *bound_ns, struct weft_error *err)
{
    struct weft_box *box = NULL;
    const uint64_t allowed[2] = {SDP, SDP};
    *err = (struct weft_error){0};
    cr_assert_eq(weft_box_create(&f->problem, &box, err), WEFT_OK, "%s", err->text);
    weft_box_restrict(box, &(struct weft_facts){.allowed = allowed});
    enum weft_status status = weft_prices_apply(box, &f->prices, &f->priced, err);
    *bound_ns = weft_priced_bound_ns(&f->problem, &f->priced, box->allowed);
    weft_box_destroy(box);
    return status;
}

/* Slots 6 and 7 compute 2000 and 0. Their compute pays less by rho, and the chain pays 1800. */
Test(prices, a_chain_pays_for_its_slots)
{
    struct fixture f;
    struct weft_chain_price chain;
    struct weft_error err;
    int64_t bound_ns;
    chain_reductions(&f, &chain);
    cr_assert_eq(apply_plain(&f, &bound_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bound_ns, 6550 - 2000 + 1800, "%lld", (long long)bound_ns);
    chain.rho = WEFT_PRICE_ONE / 4;
    f.lambda[7] = WEFT_PRICE_ONE / 4 * 3;
    cr_assert_eq(apply_plain(&f, &bound_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bound_ns, 6550 - 500 + 450, "all go before: %lld", (long long)bound_ns);
    f.problem.items[A_REDUCE].block_ns = 900; /* the slowest has the second block too */
    cr_assert_eq(apply_plain(&f, &bound_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bound_ns, 6550 - 500 + 600, "%lld", (long long)bound_ns);
}

/* Compute that lanes slow down pays for chains too, at its rate. */
Test(prices, a_chain_takes_its_part_of_slowed_compute)
{
    struct fixture f;
    struct weft_chain_price chain;
    struct weft_error err;
    struct weft_lane lanes[2];
    int64_t bound_ns;
    chain_reductions(&f, &chain);
    memcpy(lanes, f.problem.lanes, sizeof lanes);
    lanes[1].rates = (struct weft_rates){WEFT_RATE_ONE / 2, WEFT_RATE_ONE};
    f.problem.lanes = lanes;
    chain.rho = WEFT_PRICE_ONE / 4;
    f.lambda[6] = WEFT_PRICE_ONE / 2; /* f(2000) is 2000 (1 - 1/4 - 1/2) / (1/2), not 1500 */
    cr_assert_eq(apply_plain(&f, &bound_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bound_ns, 6550 - 1000 + 450, "%lld", (long long)bound_ns);
}

/* The chain ends with a's gather, which may block slot 3. b's update in slot 1 takes 200. */
Test(prices, a_chain_takes_its_part_of_the_wait_that_it_ends_in)
{
    struct fixture f;
    struct weft_chain_price chain = {A_GATHER, WEFT_PRICE_ONE / 4};
    struct weft_error err;
    int64_t lambda[2 * N_SMALL_SLOTS] = {0}, bound_ns;
    block_on_two_lanes(&f, lambda);
    struct weft_wait_price wait = {3, 1, WEFT_PRICE_ONE / 4 * 3 + 1};
    f.prices.chains = &chain;
    f.prices.n_chains = 1;
    f.prices.waits = &wait;
    f.prices.n_waits = 1;
    cr_assert_eq(apply_blocked(&f, &bound_ns, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "kappa of slot 3 is above 1 in sum with lambda and rho"),
                       "%s", err.text);
    wait.kappa--;
    cr_assert_eq(apply_blocked(&f, &bound_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bound_ns, 6550 - 50 + 300 + 900, "%lld", (long long)bound_ns);
    /* A lane that alone may block the slot has the rest. */
    f.prices.n_waits = 0;
    f.problem.items[B_GATHER].block_ns = 0;
    cr_assert_eq(apply_blocked(&f, &bound_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(bound_ns, 6550 - 50 + 300 + 900, "%lld", (long long)bound_ns);
}

Test(prices, chains_that_cannot_be_are_refused)
{
    static const struct {
        struct weft_chain_price chains[2];
        int64_t lambda; /* of slot 6 */
        const char *says;
    } cases[] = {
        {{{B_REDUCE, -1}, {B_ALL_REDUCE, 0}}, 0, "rho of slot 7 is negative"},
        {{{A_REDUCE, 1}, {B_REDUCE, WEFT_PRICE_ONE}}, 0, "rho of slot 7 is above 1 in sum over"},
        {{{A_GATHER, 0}, {B_REDUCE, 1}}, WEFT_PRICE_ONE, "lambda of slot 6 is above 1 in sum"},
        {{{B_REDUCE, 0}, {B_REDUCE, 0}}, 0, "chains do not name items in increasing order"},
        {{{B_REDUCE, 0}, {N_SMALL_ITEMS, 0}}, 0, "chains do not name items"},
        {{{-1, 0}, {B_REDUCE, 0}}, 0, "chains do not name items"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        struct fixture f;
        struct weft_error err;
        struct weft_chain_price chains[2] = {cases[k].chains[0], cases[k].chains[1]};
        int64_t bound_ns;
        chain_reductions(&f, chains);
        chains[0] = cases[k].chains[0];
        f.prices.n_chains = 2;
        f.problem.items[A_REDUCE].item.first = 7;
        f.problem.items[B_REDUCE].after = -1;
        f.lambda[6] = cases[k].lambda;
        cr_assert_eq(apply_plain(&f, &bound_ns, &err), WEFT_E_DATA, "case %zu", k);
        cr_assert_not_null(strstr(err.text, cases[k].says), "case %zu: %s", k, err.text);
    }
}

/* A block of a's gather is 400 bytes. Next to the base of 1000 and, in slot 1, 100 of b, one block
 * fits. Parts of blocks would fit for both. The other block must block compute. */
Test(prices, a_block_is_held_whole)
{
    struct fixture f;
    init(&f);
    f.problem.tiers[0].limit_bytes = 1700;
    f.problem.items[A_GATHER].item.stair_bytes = 400;
    f.lambda[3] = WEFT_PRICE_ONE; /* no compute runs next to late gathers */
    int64_t apart = bound(&f, SDP, SDP);
    f.problem.items[A_GATHER].item.stair_bytes = 300;
    cr_assert_eq(apart - bound(&f, SDP, SDP), 600);
}

/* One whole step of 100 fits into 150 bytes, and above a rest of 50 all counts. */
Test(prices, whole_steps_count)
{
    struct weft_whole_row row = weft_whole_row(3, 100, 150);
    cr_assert_eq(row.row, 3);
    cr_assert_eq(row.rest_bytes, 50);
    cr_assert_eq(row.room_bytes, 50);
    cr_assert_eq(weft_whole_count(&row, 0), 0);
    cr_assert_eq(weft_whole_count(&row, 50), 0);
    cr_assert_eq(weft_whole_count(&row, 99), 49);
    cr_assert_eq(weft_whole_count(&row, 100), 50);
    cr_assert_eq(weft_whole_count(&row, 280), 130);
    cr_assert_eq(weft_whole_count(&row, -1), -1);
    cr_assert_eq(weft_whole_count(&row, -60), -50);
    cr_assert_eq(weft_whole_count(&row, -110), -60);
    row = weft_whole_row(3, 100, 200); /* without a rest, bytes are bytes */
    cr_assert_eq(row.room_bytes, 200);
    cr_assert_eq(weft_whole_count(&row, 123), 123);
    row = weft_whole_row(3, 100, -30); /* the fixed bytes exceed the room by 30 */
    cr_assert_eq(row.rest_bytes, 70);
    cr_assert_eq(row.room_bytes, -30);
}

/* For any set of blocks within the room, the counts are within the row's. */
Test(prices, whole_rows_hold_for_all_that_fits)
{
    for (uint64_t trial = 0; trial < 20000; trial++) {
        int64_t bytes[4], held = 0, counted = 0;
        int64_t step_bytes = 1 + (int64_t)weft_rng_below(1, trial, 0, 60);
        for (uint64_t i = 0; i < 4; i++) {
            bytes[i] = (int64_t)weft_rng_below(1, trial, 1 + i, 90);
            held += bytes[i];
        }
        int64_t room_bytes = held + (int64_t)weft_rng_below(1, trial, 5, 40);
        struct weft_whole_row row = weft_whole_row(0, step_bytes, room_bytes);
        for (int i = 0; i < 4; i++)
            counted += weft_whole_count(&row, bytes[i]);
        cr_assert_leq(counted, row.room_bytes, "trial %d", (int)trial);
    }
}

/* By hand: slot 2 has room for 800 bytes, so for two of the four blocks of 300. In other slots no
 * compute runs next to them: 600 each. Bytes alone prove at most 800. */
Test(prices, blocks_are_held_whole_together)
{
    struct fixture f;
    init(&f);
    f.problem.tiers[0].limit_bytes = 1800;
    f.problem.items[A_GATHER].item.stair_bytes = 300;
    f.problem.items[B_GATHER].item.stair_bytes = 300;
    f.lambda[3] = WEFT_PRICE_ONE;
    f.mu[2] = WEFT_PRICE_ONE * 2;
    cr_assert_eq(bound(&f, SDP, SDP), 6550 - 1000 + 4 * 600 - 2 * 800);
    f.mu[2] = 0;
    f.prices.n_whole = 1;
    price_whole(&f, 0, 2, 300, WEFT_PRICE_ONE * 5);
    cr_assert_eq(bound(&f, SDP, SDP), 6550 - 1000 + 4 * 5 * 100 - 5 * 200);
    price_whole(&f, 0, 2, 300, WEFT_PRICE_ONE * 6);
    cr_assert_eq(bound(&f, SDP, SDP), 6550 - 1000 + 2 * 600);
    cr_assert_eq(bound(&f, DP, SDP), 6550 + 200 - 1000, "a has no gather, its update is longer");
    /* Two rows of one slot add up. */
    f.prices.n_whole = 2;
    price_whole(&f, 0, 2, 300, WEFT_PRICE_ONE * 3);
    price_whole(&f, 1, 2, 400, WEFT_PRICE_ONE); /* 800 without a rest: bytes */
    cr_assert_eq(bound(&f, SDP, SDP), 6550 - 1000 + 4 * 600 - 3 * 200 - 800);
}

/* Slot 5 has 700 bytes for sdp, which needs 200 for a and 400 for b. In steps of 150 these count
 * 50 and 100, and 200 may count. */
Test(prices, policies_count_what_they_hold_together)
{
    struct fixture f;
    init(&f);
    f.problem.tiers[0].limit_bytes = 1700;
    f.prices.n_whole = 1;
    price_whole(&f, 0, 5, 150, WEFT_PRICE_ONE * 3);
    cr_assert_eq(bound(&f, SDP, SDP), 6550 + 3 * (50 + 100 - 200));
    cr_assert_eq(bound(&f, DP, SDP), 6550 + 200 + 3 * (100 - 200));
    /* With sdp for reference a's 200 are taken off the room, and dp counts less than nothing: of
     * 500 a rest of 50, b counts 250, and 300 may. */
    f.reference[0] = IS_SDP;
    cr_assert_eq(bound(&f, SDP, SDP), 6550 + 3 * (250 - 300));
    cr_assert_eq(bound(&f, DP, SDP), 6550 + 200 + 3 * (-150 + 250 - 300));
}

/* How many of the item's blocks a plan has brought to the moment by the slot. */
static int32_t moved_by(const struct weft_plan *plan, const struct weft_plan_times *times,
                        const struct weft_milestone *of)
{
    bool gathers = plan->problem->items[of->item].item.acquires;
    int64_t end_ns = times->slot_start_ns[of->slot + 1];
    int32_t n = 0;
    for (int32_t i = 0; i < plan->n_placements; i++) {
        const struct weft_placement *at = &plan->placements[i];
        bool is[WEFT_MOMENT_COUNT] = {(gathers ? at->launch : at->deadline - 1) <= of->slot,
                                      times->start_ns[i] < end_ns, times->end_ns[i] <= end_ns};
        n += at->item == of->item && is[of->moment];
    }
    return n;
}

static struct weft_plan_times simulate(const struct weft_plan *plan, struct weft_pool *pool)
{
    size_t n_slots = (size_t)plan->problem->n_slots, n = (size_t)plan->n_placements;
    struct weft_plan_times times;
    int64_t *scratch = weft_pool_array(pool, weft_simulate_words(plan->problem), sizeof *scratch);
    times.slot_start_ns = weft_pool_array(pool, n_slots, sizeof *times.slot_start_ns);
    times.start_ns = weft_pool_array(pool, n + 1, sizeof *times.start_ns);
    times.end_ns = weft_pool_array(pool, n + 1, sizeof *times.end_ns);
    cr_assert(scratch && times.slot_start_ns && times.start_ns && times.end_ns);
    weft_simulate_plan_times(plan, scratch, &times);
    return times;
}

/* Milestones that the plan keeps, drawn by the seed; returns how many. */
static int32_t draw_milestones(const struct weft_plan *plan, const struct weft_plan_times *times,
                               uint64_t seed, int32_t most, struct weft_milestone *out)
{
    const struct weft_problem *problem = plan->problem;
    int32_t n = 0;
    for (uint64_t k = 0; k < (uint64_t)most; k++) {
        int32_t item = (int32_t)weft_rng_below(seed, k, 0, (uint64_t)problem->n_items);
        const struct weft_item *of = &problem->items[item].item;
        uint64_t window = (uint64_t)(of->last - of->first + 1);
        struct weft_milestone at = {
            .item = item,
            .slot = of->first + (int32_t)weft_rng_below(seed, k, 1, window),
            .n_blocks = 1 + (int32_t)weft_rng_below(seed, k, 2, (uint64_t)of->n_blocks),
            .moment = (enum weft_moment)weft_rng_below(seed, k, 3, WEFT_MOMENT_COUNT),
        };
        if (!weft_milestone_is_of(&at, problem)) continue;
        at.reached = moved_by(plan, times, &at) >= at.n_blocks;
        out[n++] = at;
    }
    return n;
}

/* Two random groups of units, and counts of them that the plan keeps; returns how many. */
static int32_t draw_counts(const struct weft_plan *plan, uint64_t seed, struct weft_pool *pool,
                           struct weft_group groups[2], struct weft_count out[4])
{
    int32_t n = 0, n_units = plan->problem->n_decisions;
    for (uint64_t g = 0; g < 2; g++) {
        int32_t *units = weft_pool_array(pool, (size_t)n_units, sizeof *units), count = 0;
        cr_assert_not_null(units);
        groups[g] = (struct weft_group){1 + (uint32_t)weft_rng_below(seed, g, 20, 14), 0, units};
        for (int32_t u = 0; u < n_units; u++) {
            if (u > 0 && weft_rng_uniform(seed, g, 21 + (uint64_t)u) < 0.3) continue;
            units[groups[g].n_decisions++] = u;
            count += (int32_t)(groups[g].strategies >> plan->strategies[u] & 1u);
        }
        for (uint64_t k = 0; k < 2; k++) {
            uint64_t asked = weft_rng_below(seed, g, 60 + k, (uint64_t)groups[g].n_decisions);
            out[n++] =
                (struct weft_count){(int32_t)g, 1 + (int32_t)asked, count >= 1 + (int32_t)asked};
        }
    }
    return n;
}

/* Random prices of the problem with one whole row, into arrays of the pool. */
static struct weft_prices draw_random(const struct weft_plan *plan, uint64_t seed,
                                      struct weft_pool *pool)
{
    const struct weft_problem *problem = plan->problem;
    size_t n_slots = (size_t)problem->n_slots, n_moving = (size_t)weft_problem_n_moving(problem);
    struct weft_prices prices = {.n_whole = 1};
    prices.lambda = weft_pool_array(pool, n_moving * n_slots, sizeof *prices.lambda);
    prices.mu = weft_pool_array(pool, n_slots, sizeof *prices.mu);
    prices.whole = weft_pool_array(pool, 1, sizeof *prices.whole);
    prices.pi = weft_pool_array(pool, 2, sizeof *prices.pi);
    uint8_t *reference = weft_pool_array(pool, (size_t)problem->n_decisions, 1);
    cr_assert(prices.lambda && prices.mu && prices.whole && prices.pi && reference);
    for (uint64_t g = 0; g < 2; g++)
        prices.pi[g] = (int64_t)weft_rng_below(seed, g, 7, 4000000) - 2000000;
    for (size_t s = 0; s < n_slots; s++) {
        double room = weft_rng_uniform(seed, s, 0) < 0.5 ? 1 : weft_rng_uniform(seed, s, 1);
        for (size_t c = 0; c < n_moving; c++)
            prices.lambda[c * n_slots + s] =
                (int64_t)(room / (double)n_moving * (double)WEFT_PRICE_ONE);
        if (weft_rng_uniform(seed, s, 2) < 0.2)
            prices.mu[s] =
                (int64_t)weft_rng_below(seed, s, 3, UINT64_C(1) << (20 + 3 * (seed % 8)));
    }
    for (int32_t u = 0; u < problem->n_decisions; u++)
        reference[u] = (uint8_t)plan->strategies[u];
    prices.whole[0] = (struct weft_whole_price){
        .row = (int32_t)weft_rng_below(seed, 0, 4, n_slots),
        .step_bytes = 1 + (int64_t)weft_rng_below(seed, 0, 5, 100000),
        .nu = (int64_t)weft_rng_below(seed, 0, 6, UINT64_C(1) << (20 + 3 * (seed % 8))),
        .reference = reference,
    };
    return prices;
}

/* For any prices, and any milestones and counts that a plan keeps, its step time is at least the
 * bound. The limit equals the plan's need. */
Test(prices, facts_of_a_plan_prove_no_more_than_it_takes, .timeout = 900)
{
    enum { MOST = 48 };
    int n_raised = 0, n_narrow = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        struct weft_plan *plan = random_plan(&random, seed);
        problem->tiers[0].limit_bytes = plan->prediction.peak_bytes;
        for (uint64_t trial = 0; trial < 20; trial++) {
            struct weft_milestone milestones[MOST];
            struct weft_pool pool = {0};
            struct weft_box *box = NULL;
            struct weft_priced priced;
            struct weft_error err = {0};
            int64_t before_ns = 0;
            struct weft_plan_times times = simulate(plan, &pool);
            int32_t n = draw_milestones(plan, &times, 100 * seed + trial, MOST, milestones);
            struct weft_prices prices = draw_random(plan, 100 * seed + trial, &pool);
            struct weft_group groups[2];
            struct weft_count counts[4];
            int32_t n_counts = draw_counts(plan, 100 * seed + trial, &pool, groups, counts);
            size_t n_costs = (size_t)problem->n_strategies;
            priced.cost = weft_pool_array(&pool, n_costs, sizeof *priced.cost);
            uint64_t *allowed =
                weft_pool_array(&pool, (size_t)problem->n_decisions, sizeof *allowed);
            cr_assert(priced.cost && allowed);
            for (int32_t u = 0; u < problem->n_decisions; u++)
                allowed[u] = trial % 2 ? UINT64_C(1) << plan->strategies[u]
                                       : weft_decision_all(&problem->decisions[u]);
            cr_assert_eq(weft_box_create(problem, &box, &err), WEFT_OK);
            cr_assert_eq(weft_box_set_groups(box, groups, 2, &err), WEFT_OK);
            for (int32_t k = 0; k <= n; k += n > 0 ? n : 1) {
                weft_box_restrict(box, &(struct weft_facts){.allowed = allowed,
                                                            .milestones = milestones,
                                                            .n_milestones = k,
                                                            .counts = counts,
                                                            .n_counts = k > 0 ? n_counts : 0});
                cr_assert(!box->empty, "seed %d trial %d", (int)seed, (int)trial);
                cr_assert_eq(weft_prices_apply(box, &prices, &priced, &err), WEFT_OK, "%s",
                             err.text);
                int64_t bound_ns = weft_priced_bound_ns(problem, &priced, box->allowed);
                cr_assert_leq(bound_ns, plan->prediction.step_ns, "seed %d trial %d: %d of %d",
                              (int)seed, (int)trial, k, n);
                n_raised += k > 0 && bound_ns > before_ns;
                n_narrow += k > 0 && bound_ns > plan->prediction.step_ns / 2;
                before_ns = bound_ns;
            }
            weft_box_destroy(box);
            weft_pool_finish(&pool);
        }
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
    cr_assert_gt(n_raised, 100);
    cr_assert_gt(n_narrow, 100);
}

/* Slot 2 has a price of 1 ns a byte. A block of a's gather of 100 bytes is held there when it is
 * launched in slot 1 or 2; blocking would cost 600. */
Test(prices, what_milestones_say_is_held_is_paid_for)
{
    struct fixture f;
    struct weft_box *box = NULL;
    struct weft_error err = {0};
    const struct weft_milestone held = {A_GATHER, 1, 2, true, WEFT_PLACED},
                                blocks = {A_GATHER, 1, 2, false, WEFT_PLACED};
    const uint64_t allowed[2] = {SDP, SDP};
    init(&f);
    f.problem.tiers[0].limit_bytes = 1700;
    f.mu[2] = WEFT_PRICE_ONE;
    cr_assert_eq(weft_box_create(&f.problem, &box, &err), WEFT_OK, "%s", err.text);
    const struct {
        int32_t n;
        const struct weft_milestone *milestone;
        int64_t paid_ns;
    } cases[] = {{0, NULL, 200}, {1, &held, 200}, {1, &blocks, 1200}};
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        const struct weft_facts facts = {
            .allowed = allowed, .milestones = cases[k].milestone, .n_milestones = cases[k].n};
        int64_t ns = bound_in(&f, box, facts, NULL);
        /* b's gather may be launched in slot 3 and holds nothing in slot 2; the rest of slot 2 is
         * 700 of the limit that nobody uses. */
        cr_assert_eq(ns, 6550 - 700 + cases[k].paid_ns, "case %zu: %lld", k, (long long)ns);
    }
    weft_box_destroy(box);
}

Test(prices, counts_are_paid_for)
{
    struct fixture f;
    struct weft_box *box = NULL;
    struct weft_error err = {0};
    const uint64_t allowed[2] = {SDP | DP, SDP | DP};
    const int32_t units[2] = {0, 1};
    const struct weft_group groups[2] = {{DP, 2, units}, {SDP, 2, units}};
    int64_t pi[2];
    init(&f);
    f.prices.pi = pi;
    cr_assert_eq(weft_box_create(&f.problem, &box, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_box_set_groups(box, groups, 2, &err), WEFT_OK);
    static const struct {
        int32_t n;
        struct weft_count count;
        int64_t dp, sdp, bound_ns;
    } cases[] = {
        {0, {0, 0, false}, -200, 200, 6550}, /* nothing is known: prices of counts are 0 */
        {1, {0, 1, true}, 0, 0, 6550},       /* at least one dp, of no price */
        {1, {0, 1, true}, -200, 0, 6750},
        {1, {0, 1, true}, -150, 0, 6700},
        {1, {0, 1, true}, -300, 0, 6550 + 300 - 200}, /* too much: both have it then */
        {1, {0, 1, true}, 200, 0, 6550},              /* no more than both is no news */
        {1, {1, 2, false}, 0, 200, 6750},             /* at most one sdp */
        {1, {1, 2, false}, 0, -200, 6550},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        pi[0] = cases[k].dp;
        pi[1] = cases[k].sdp;
        const struct weft_facts facts = {
            .allowed = allowed, .counts = &cases[k].count, .n_counts = cases[k].n};
        int64_t ns = bound_in(&f, box, facts, NULL);
        cr_assert_eq(ns, cases[k].bound_ns, "case %zu: %lld", k, (long long)ns);
    }
    const struct weft_count both[2] = {{0, 2, true}, {0, 1, false}};
    const struct weft_facts facts = {.allowed = allowed, .counts = both, .n_counts = 2};
    cr_assert_eq(bound_in(&f, box, facts, NULL), WEFT_PROBLEM_MOST, "no plan has both");
    cr_assert(box->empty);
    weft_box_destroy(box);
}

/* In slot 5 sdp holds 200 of a and 400 of b, and dp holds none. One of the two is known to have
 * sdp, and the reference gives it to a. Then 200 is the usual amount for either. Of 700 bytes 500
 * are left, and 300 may count in steps of 150. b's sdp counts the 200 beyond. */
Test(prices, units_of_a_group_may_change_places)
{
    struct fixture f;
    struct weft_box *box = NULL;
    struct weft_error err = {0};
    const uint64_t both[2] = {SDP | DP, SDP | DP};
    const int32_t units[2] = {0, 1};
    const struct weft_group group = {SDP, 2, units};
    const struct weft_count counts[2] = {{0, 1, true}, {0, 2, false}};
    int64_t pi = 0;
    init(&f);
    f.problem.tiers[0].limit_bytes = 1700;
    f.prices.pi = &pi;
    f.reference[0] = IS_SDP;
    f.reference[1] = IS_DP;
    cr_assert_eq(weft_box_create(&f.problem, &box, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_box_set_groups(box, &group, 1, &err), WEFT_OK);
    static const struct {
        int32_t n_counts;
        uint8_t relies;
        uint64_t strategies[2];
        int64_t counts; /* minus the allowed counts */
    } cases[] = {
        {2, 1, {SDP, DP}, 0 - 300},          {2, 1, {DP, SDP}, 100 - 300},
        {2, 0, {DP, SDP}, -150 + 250 - 300}, /* each unit against its own reference */
        {1, 1, {SDP, DP}, 0 - 300},          /* at least one: so too */
        {1, 1, {DP, SDP}, -150 + 250 - 300},
    };
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        int64_t ns[2];
        for (int32_t n_whole = 0; n_whole < 2; n_whole++) {
            f.prices.n_whole = n_whole;
            price_whole(&f, 0, 5, 150, WEFT_PRICE_ONE * 3);
            f.whole[0].relies = &cases[k].relies;
            const struct weft_facts facts = {
                .allowed = both, .counts = counts, .n_counts = cases[k].n_counts};
            ns[n_whole] = bound_in(&f, box, facts, cases[k].strategies);
        }
        cr_assert_eq(ns[1] - ns[0], 3 * cases[k].counts, "case %zu: %lld", k,
                     (long long)(ns[1] - ns[0]));
    }
    weft_box_destroy(box);
}
