#include "plan/certificate.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"
#include "small_problem.h"

/* Prices of the small problem, and a certificate of one leaf with them. */
struct fixture {
    struct weft_problem problem;
    int64_t lambda[N_SMALL_SLOTS], mu[N_SMALL_SLOTS];
    uint8_t reference[2];
    struct weft_whole_price whole[2];
    struct weft_prices prices;
    weft_int128 cost[2 * WEFT_POLICY_COUNT];
    struct weft_priced priced;
    struct weft_certificate_node nodes[8];
    struct weft_certificate certificate;
};

static void init(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->problem = small_problem();
    f->prices = (struct weft_prices){.lambda = f->lambda, .mu = f->mu, .whole = f->whole};
    f->priced.cost = f->cost;
    f->reference[0] = f->reference[1] = WEFT_POLICY_DP; /* which holds nothing here */
    f->whole[0].reference = f->whole[1].reference = f->reference;
    f->nodes[0] = (struct weft_certificate_node){.unit = -1};
    f->certificate = (struct weft_certificate){.n_prices = 1,
                                               .prices = &f->prices,
                                               .n_nodes = 1,
                                               .nodes = f->nodes,
                                               .problem = weft_problem_hash(&f->problem)};
}

static int64_t bound(struct fixture *f, uint32_t a, uint32_t b)
{
    struct weft_error err = {0};
    uint32_t allowed[2] = {a, b};
    struct weft_box *box = NULL;
    cr_assert_eq(weft_box_create(&f->problem, &box, &err), WEFT_OK, "%s", err.text);
    weft_box_restrict(box, allowed);
    cr_assert_eq(weft_prices_apply(box, &f->prices, &f->priced, &err), WEFT_OK, "%s", err.text);
    int64_t bound_ns = weft_priced_bound_ns(&f->problem, &f->priced, box->allowed);
    weft_box_destroy(box);
    return bound_ns;
}

enum { DP = 1 << WEFT_POLICY_DP, SDP = 1 << WEFT_POLICY_SDP };

/* Slots compute 0 (a), 0 (b), 0, 1000, 1000, 2000, 2000, 0, 100; updates 200 or, dp, 400; agree 50;
 * every block takes 600. */
Test(certificate, without_prices_it_is_compute_alone)
{
    struct fixture f;
    init(&f);
    cr_assert_eq(bound(&f, SDP, SDP), 6100 + 50 + 200 + 200);
    cr_assert_eq(bound(&f, DP, SDP), 6100 + 50 + 400 + 200);
    cr_assert_eq(bound(&f, DP | SDP, DP | SDP), 6550);
}

Test(certificate, with_all_channel_time_priced_it_is_the_channel_alone)
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
Test(certificate, blocks_go_where_the_channel_is_cheap)
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
    f.problem.memory_limit_bytes = 1700; /* in slot 2 700 more than what is held whatever moves */
    cr_assert_eq(bound(&f, SDP, SDP),
                 50 + 200 + (1000 + 2000 + 1750 + 100) + 2 * 150 + 2 * 75 + 4 * 600 - 350);
}

/* In B:b (slot 5) sdp holds base 1000, 200 of b's parameters, 200 of its gradient and 200 of a's
 * parameters: 100 less than the limit, which in B:a sdp for both needs. */
Test(certificate, bytes_are_paid_where_they_are_held)
{
    struct fixture f;
    init(&f);
    f.problem.memory_limit_bytes = 1700;
    f.mu[5] = WEFT_PRICE_ONE * 3;
    cr_assert_eq(bound(&f, SDP, SDP), 6550 - 3 * 100);
    /* Rounded up: step times are whole numbers. */
    f.mu[5] = WEFT_PRICE_ONE / 1000;
    cr_assert_eq(bound(&f, SDP, SDP), 6550);
    f.mu[5] = WEFT_PRICE_ONE / 64; /* 100 / 64 less */
    cr_assert_eq(bound(&f, SDP, SDP), 6549);
    f.problem.memory_limit_bytes = 1699;
    cr_assert_eq(bound(&f, SDP, SDP), WEFT_PROBLEM_MOST, "no plan fits");
    cr_assert_eq(bound(&f, SDP | DP, SDP), bound(&f, DP, SDP));
}

/* A block of a's gather is 400 bytes: beside the 1000 of base and, in slot 1, 100 of b there is
 * room for one, where parts of blocks would find room for both. The other must block. */
Test(certificate, a_block_is_held_whole)
{
    struct fixture f;
    init(&f);
    f.problem.memory_limit_bytes = 1700;
    f.problem.items[A_GATHER].item.stair_bytes = 400;
    f.lambda[3] = WEFT_PRICE_ONE; /* nothing computes beside what is gathered late */
    int64_t apart = bound(&f, SDP, SDP);
    f.problem.items[A_GATHER].item.stair_bytes = 300;
    cr_assert_eq(apart - bound(&f, SDP, SDP), 600);
}

static void price_whole(struct fixture *f, int32_t row, int32_t slot, int64_t step_bytes,
                        int64_t nu)
{
    f->whole[row] = (struct weft_whole_price){slot, step_bytes, nu, f->reference};
}

/* Of 150 bytes in steps of 100 one whole step is of use, and above a rest of 50 all counts. */
Test(certificate, whole_steps_count)
{
    struct weft_whole_row row = weft_whole_row(3, 100, 150);
    cr_assert_eq(row.slot, 3);
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
    row = weft_whole_row(3, 100, -30); /* what must be held is 30 too much */
    cr_assert_eq(row.rest_bytes, 70);
    cr_assert_eq(row.room_bytes, -30);
}

/* Whatever is held within the room: its counts are within the row's. */
Test(certificate, whole_rows_hold_for_all_that_fits)
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

/* By hand: in slot 2 there is room for 800 bytes, so for two of the four blocks of 300, and where
 * else they may go nothing computes beside them: 600 each. Bytes alone prove no more than 800. */
Test(certificate, blocks_are_held_whole_together)
{
    struct fixture f;
    init(&f);
    f.problem.memory_limit_bytes = 1800;
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

/* In slot 5 there are 700 bytes for what sdp holds, 200 of a and 400 of b: in steps of 150 these
 * count 50 and 100, and 200 may. */
Test(certificate, policies_count_what_they_hold_together)
{
    struct fixture f;
    init(&f);
    f.problem.memory_limit_bytes = 1700;
    f.prices.n_whole = 1;
    price_whole(&f, 0, 5, 150, WEFT_PRICE_ONE * 3);
    cr_assert_eq(bound(&f, SDP, SDP), 6550 + 3 * (50 + 100 - 200));
    cr_assert_eq(bound(&f, DP, SDP), 6550 + 200 + 3 * (100 - 200));
    /* With sdp for reference a's 200 are taken off the room, and dp counts less than nothing: of
     * 500 a rest of 50, b counts 250, and 300 may. */
    f.reference[0] = WEFT_POLICY_SDP;
    cr_assert_eq(bound(&f, SDP, SDP), 6550 + 3 * (250 - 300));
    cr_assert_eq(bound(&f, DP, SDP), 6550 + 200 + 3 * (-150 + 250 - 300));
}

static enum weft_status check(struct fixture *f, int64_t bound_ns, struct weft_error *err)
{
    *err = (struct weft_error){0};
    return weft_certificate_check(&f->certificate, &f->problem, bound_ns, NULL, err);
}

Test(certificate, a_tree_proves_the_least_of_its_leaves)
{
    struct fixture f;
    struct weft_error err;
    int64_t proven_ns = 0;
    init(&f);
    f.nodes[0] = (struct weft_certificate_node){.unit = 0, .policies = DP};
    f.nodes[1] = (struct weft_certificate_node){.unit = -1};
    f.nodes[2] = (struct weft_certificate_node){.unit = 1, .policies = SDP};
    f.nodes[3] = f.nodes[4] = f.nodes[1];
    f.certificate.n_nodes = 5;
    cr_assert_eq(weft_certificate_check(&f.certificate, &f.problem, 6550, &proven_ns, &err),
                 WEFT_OK);
    cr_assert_eq(proven_ns, 6550);
    cr_assert_eq(check(&f, 6551, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "proves 6550 ns (leaf 3)"), "%s", err.text);
    f.certificate.n_nodes = 4;
    cr_assert_eq(check(&f, 6550, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "a leaf is missing"), "%s", err.text);
    f.certificate.n_nodes = 6;
    f.nodes[5] = f.nodes[1];
    cr_assert_eq(check(&f, 6550, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "behind its last leaf"), "%s", err.text);
    f.certificate.n_nodes = 5;
    f.nodes[2].unit = 0;
    cr_assert_eq(check(&f, 6550, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "does not divide"), "%s", err.text);
}

Test(certificate, what_is_wrong_is_refused)
{
    struct fixture f;
    struct weft_error err;
    init(&f);
    cr_assert_eq(check(&f, 6550, &err), WEFT_OK, "%s", err.text);
    f.lambda[3] = WEFT_PRICE_ONE + 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "lambda of slot 3 is above 1"), "%s", err.text);
    f.lambda[3] = -1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    f.lambda[3] = 0;
    f.mu[8] = -1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    f.mu[8] = WEFT_PRICE_MOST_SUM;
    cr_assert_eq(check(&f, 0, &err), WEFT_OK, "%s", err.text);
    f.mu[7] = 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "above 2^60"), "%s", err.text);
    init(&f);
    f.prices.n_whole = 1;
    price_whole(&f, 0, 2, 100, 1);
    cr_assert_eq(check(&f, 0, &err), WEFT_OK, "%s", err.text);
    f.whole[0].slot = N_SMALL_SLOTS;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "no slot"), "%s", err.text);
    price_whole(&f, 0, 2, 0, 1);
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "step of slot 2"), "%s", err.text);
    price_whole(&f, 0, 2, 1, 1);
    f.reference[1] = WEFT_POLICY_FSDP;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "that unit 1 may not have"), "%s", err.text);
    f.reference[1] = WEFT_POLICY_DP;
    price_whole(&f, 0, 2, 1, -1);
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    f.whole[0].nu = WEFT_PRICE_MOST_SUM;
    f.mu[0] = 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "nu of slot 2 is too much"), "%s", err.text);
    init(&f);
    f.nodes[0].prices = 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    f.nodes[0].prices = 0;
    f.problem.slot_ns[3] += 1;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "was changed"), "%s", err.text);
    f.problem.slot_ns[3] -= 1;
    f.certificate.n_nodes = 0;
    cr_assert_eq(check(&f, 1, &err), WEFT_E_DATA);
    cr_assert_eq(check(&f, 0, &err), WEFT_OK);
}
