/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/orders.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/proof/small_prices.h"

/* By hand. With sdp a's gathers end at 1,400 ns, b's at 2,600; compute ends at 7,600, a's
 * reductions at 8,800, and norm and agreement take 150. With dp a's reductions take from 6,800 to
 * 8,000. */
enum { SDP_NS = 8950, A_SDP_NS = 8750, BEST_NS = 8150, STEPS = 10000 };

static enum weft_orders_end try_small(const struct weft_problem *problem, int32_t a, int32_t b,
                                      int64_t below_ns, int64_t *step_ns)
{
    const int32_t strategies[] = {a, b};
    struct weft_orders *orders = NULL;
    int64_t steps = STEPS;
    cr_assert(weft_orders_can(problem));
    cr_assert_eq(weft_orders_create(problem, &orders, NULL), WEFT_OK);
    const enum weft_orders_end end = weft_orders_try(orders, strategies, below_ns, &steps);
    *step_ns = end == WEFT_ORDERS_FOUND ? weft_orders_found(orders)->step_ns : -1;
    weft_orders_destroy(orders);
    return end;
}

Test(orders, no_order_takes_less_than_the_best_and_one_takes_as_long)
{
    static const struct {
        int32_t a, b, step_ns;
    } cases[] = {{IS_SDP, IS_SDP, SDP_NS},
                 {IS_SDP, IS_DP, A_SDP_NS},
                 {IS_DP, IS_SDP, BEST_NS},
                 {IS_DP, IS_DP, BEST_NS}};
    const struct weft_problem problem = small_problem();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int64_t step_ns;
        cr_assert_eq(try_small(&problem, cases[k].a, cases[k].b, cases[k].step_ns, &step_ns),
                     WEFT_ORDERS_NONE, "%zu: %lld", k, (long long)step_ns);
        cr_assert_eq(try_small(&problem, cases[k].a, cases[k].b, cases[k].step_ns + 1, &step_ns),
                     WEFT_ORDERS_FOUND, "%zu", k);
        cr_assert_eq(step_ns, cases[k].step_ns, "%zu: %lld", k, (long long)step_ns);
    }
}

/* B:a has the fullest row, 1,700 bytes. If a's blocks hold 1,000 bytes each, the first one moves in
 * `fill`, after U:b, and the other one blocks F:a. */
Test(orders, rows_bind_orders)
{
    struct weft_problem problem = small_problem();
    int64_t step_ns;
    problem.tiers[0].limit_bytes = 1699;
    cr_assert_eq(try_small(&problem, IS_SDP, IS_SDP, WEFT_PROBLEM_MOST, &step_ns), WEFT_ORDERS_NONE,
                 "it does not fit");
    problem.tiers[0].limit_bytes = 1700;
    cr_assert_eq(try_small(&problem, IS_SDP, IS_SDP, WEFT_PROBLEM_MOST, &step_ns),
                 WEFT_ORDERS_FOUND);
    problem.items[A_GATHER].item.stair_bytes = 1000;
    problem.tiers[0].limit_bytes = 2099;
    cr_assert_eq(try_small(&problem, IS_SDP, IS_SDP, SDP_NS + 200, &step_ns), WEFT_ORDERS_NONE);
    cr_assert_eq(try_small(&problem, IS_SDP, IS_SDP, SDP_NS + 201, &step_ns), WEFT_ORDERS_FOUND);
    cr_assert_eq(step_ns, SDP_NS + 200);
}

Test(orders, steps_end_a_search)
{
    const struct weft_problem problem = small_problem();
    const int32_t strategies[] = {IS_SDP, IS_SDP};
    struct weft_orders *orders = NULL;
    cr_assert_eq(weft_orders_create(&problem, &orders, NULL), WEFT_OK);
    int64_t most = STEPS;
    cr_assert_eq(weft_orders_try(orders, strategies, SDP_NS, &most), WEFT_ORDERS_NONE);
    const int64_t needed = STEPS - most;
    cr_assert(needed > 1 && weft_orders_step_units(&problem) > 0);
    for (int64_t steps = 0; steps <= needed; steps++) {
        int64_t left = steps;
        cr_assert_eq(weft_orders_try(orders, strategies, SDP_NS, &left),
                     steps < needed ? WEFT_ORDERS_SPENT : WEFT_ORDERS_NONE, "%d of %d", (int)steps,
                     (int)needed);
        cr_assert_eq(left, 0);
    }
    weft_orders_destroy(orders);
}

Test(orders, what_is_found_is_in_lane_order)
{
    const struct weft_problem problem = small_problem();
    const int32_t strategies[] = {IS_SDP, IS_SDP};
    struct weft_orders *orders = NULL;
    int64_t steps = STEPS;
    int32_t n_blocks[N_SMALL_ITEMS] = {0};
    cr_assert_eq(weft_orders_create(&problem, &orders, NULL), WEFT_OK);
    cr_assert_eq(weft_orders_try(orders, strategies, SDP_NS + 1, &steps), WEFT_ORDERS_FOUND);
    const struct weft_order_found *found = weft_orders_found(orders);
    cr_assert_eq(found->n_moves, 8);
    cr_assert_arr_eq(found->strategies, strategies, sizeof strategies);
    for (int32_t k = 0; k < found->n_moves; k++) {
        const struct weft_item *item = &problem.items[found->moves[k].item].item;
        n_blocks[found->moves[k].item]++;
        cr_assert(found->moves[k].launch >= item->first && found->moves[k].slot <= item->last + 1);
        cr_assert(found->moves[k].launch <= found->moves[k].slot);
        cr_assert(item->acquires || found->moves[k].slot <= item->last);
    }
    for (int32_t i = 0; i < N_SMALL_ITEMS; i++)
        cr_assert_eq(n_blocks[i], weft_problem_needs(&problem, strategies, i) ? 2 : 0);
    weft_orders_destroy(orders);
}

static bool can_with(int32_t n_blocks)
{
    struct weft_problem problem = small_problem();
    problem.items[A_GATHER].item.n_blocks = n_blocks;
    return weft_orders_can(&problem);
}

Test(orders, too_deep_a_problem_has_no_search)
{
    cr_assert(can_with(900));
    cr_assert_not(can_with(1000));
    struct weft_problem problem = small_problem();
    cr_assert_eq(weft_orders_most_steps(&problem), WEFT_ORDERS_MOST_STEPS);
    problem.n_items = 400;
    problem.n_slots = 400;
    cr_assert_lt(weft_orders_most_steps(&problem), 60000);
}

static enum weft_status check_searched(struct fixture *f, int64_t searched_ns, int64_t steps,
                                       int64_t *proven_ns, struct weft_error *err)
{
    f->nodes[0].searched_ns = searched_ns;
    f->nodes[0].steps = steps;
    *err = (struct weft_error){0};
    *proven_ns = 0;
    return weft_certificate_check(&f->certificate, &f->problem, searched_ns, proven_ns, err);
}

/* A leaf's search is repeated, so no number of its own is believed. */
Test(orders, a_leaf_proves_no_more_than_its_search)
{
    struct fixture f;
    struct weft_error err;
    int64_t proven_ns;
    init(&f);
    cr_assert_eq(check_searched(&f, BEST_NS, STEPS, &proven_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(proven_ns, BEST_NS);
    cr_assert_eq(check_searched(&f, BEST_NS + 1, STEPS, &proven_ns, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "leaf 0 claims that no order takes less than 8151 ns; one "
                                        "takes 8150 ns"),
                       "%s", err.text);
    cr_assert_eq(check_searched(&f, BEST_NS, 10, &proven_ns, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "leaf 0 takes more than 10 steps"), "%s", err.text);
    cr_assert_eq(check_searched(&f, BEST_NS, 0, &proven_ns, &err), WEFT_E_DATA);
    cr_assert_eq(check_searched(&f, BEST_NS, WEFT_ORDERS_MOST_STEPS + 1, &proven_ns, &err),
                 WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "more than 2097152 steps in all, up to leaf 0"), "%s",
                       err.text);
    cr_assert_eq(check_searched(&f, 6000, STEPS, &proven_ns, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(proven_ns, 6550, "prices prove more");
}

/* Both leaves search. Together they may not take more steps than a certificate has. */
Test(orders, steps_of_all_leaves_count_together)
{
    struct fixture f;
    struct weft_error err = {0};
    int64_t proven_ns = 0;
    init(&f);
    f.nodes[0] = (struct weft_certificate_node){
        .kind = WEFT_NODE_STRATEGIES, .decision = 0, .strategies = SDP};
    f.nodes[1] = (struct weft_certificate_node){
        .kind = WEFT_NODE_LEAF, .searched_ns = A_SDP_NS, .steps = STEPS};
    f.nodes[2] = (struct weft_certificate_node){
        .kind = WEFT_NODE_LEAF, .searched_ns = BEST_NS, .steps = STEPS};
    f.certificate.n_nodes = 3;
    cr_assert_eq(weft_certificate_check(&f.certificate, &f.problem, 1, &proven_ns, &err), WEFT_OK,
                 "%s", err.text);
    cr_assert_eq(proven_ns, BEST_NS);
    f.nodes[1].searched_ns++;
    cr_assert_eq(weft_certificate_check(&f.certificate, &f.problem, 1, NULL, &err), WEFT_E_DATA);
    f.nodes[1].searched_ns--;
    err = (struct weft_error){0};
    f.nodes[1].steps = WEFT_ORDERS_MOST_STEPS;
    cr_assert_eq(weft_certificate_check(&f.certificate, &f.problem, 1, NULL, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "up to leaf 2"), "%s", err.text);
}

/* If the host runs ahead, blocks begin at events, which a search does not know. */
Test(orders, no_search_counts_where_the_host_runs_ahead)
{
    struct fixture f;
    struct weft_error err;
    int64_t proven_ns;
    init(&f);
    for (f.problem.target = 0; !weft_targets[f.problem.target].runs_ahead;)
        f.problem.target++;
    f.problem.items[A_GATHER].item.first = 2; /* no gather begins before `fill` */
    f.certificate.problem = weft_problem_hash(&f.problem);
    cr_assert_eq(check_searched(&f, 7000, STEPS, &proven_ns, &err), WEFT_E_DATA);
    cr_assert_not_null(strstr(err.text, "the host runs ahead"), "%s", err.text);
}
