/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/scheduler/against_all.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"
#include "problem/waits.h"
#include "program/predict.h"
#include "proof/orders.h"
#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "scheduler/tree/exact.h"
#include "tests/scheduler/enumerate.h"

enum { MOST_REDRAWN = 128 };

void against_set_limits(struct weft_problem *problem, uint64_t seed)
{
    struct weft_digest *table = NULL;
    problem->tiers[0].limit_bytes = problem->tiers[1].limit_bytes = INT64_MAX;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    for (int32_t tier = 0; tier < 2; tier++) {
        int64_t least = weft_least_limit(problem, tier, NULL), most = table->tier_most_bytes[tier];
        double share = tier == 0 ? 0.03 * (double)(seed % 6) : 0.2 * (double)(seed % 5);
        cr_assert_geq(least, 0);
        problem->tiers[tier].limit_bytes = least + 1 + (int64_t)(share * (double)(most - least));
    }
    weft_digest_destroy(table);
}

static struct weft_plan *plan_against(const struct weft_problem *problem, const char *planner)
{
    struct weft_work work = {0};
    struct weft_schedule_options options = {
        .planner = planner, .seed = 5, .budget = weft_budget_of(&work, 10000000000)};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_schedule(problem, NULL, &options, &plan, NULL, &err);
    if (status == WEFT_E_INFEASIBLE) return NULL;
    cr_assert_eq(status, WEFT_OK, "%s: %s", planner, err.text);
    return plan;
}

/* A plan that was written and read is the same, and says that it is within all limits. */
static void check_plan_file(const struct weft_plan *plan)
{
    struct weft_error err = {0};
    struct weft_text text, again;
    struct weft_plan *back = NULL;
    weft_text_init(&text);
    weft_text_init(&again);
    weft_plan_write(plan, &text);
    cr_assert_eq(weft_plan_parse(weft_text_chars(&text), text.length, "a plan", &back, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_rows(back, "plan", &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_prediction(back, &err), WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_check_bounds(back, &err), WEFT_OK, "%s", err.text);
    weft_plan_write(back, &again);
    cr_assert_str_eq(weft_text_chars(&text), weft_text_chars(&again));
    weft_plan_destroy(back);
    weft_text_finish(&text);
    weft_text_finish(&again);
}

/* Greedy is feasible wherever some plan is, no planner beats the best, and none exceeds a limit. */
static void check_planners(const struct weft_problem *problem, int64_t best_ns)
{
    static const char *const planners[] = {"greedy", "random", "two-stage"};
    for (size_t k = 0; k < sizeof planners / sizeof *planners; k++) {
        struct weft_error err = {0};
        struct weft_plan *plan = plan_against(problem, planners[k]);
        cr_assert(plan != NULL || k > 0, "greedy finds none");
        if (plan == NULL) continue;
        cr_assert_eq(weft_plan_check_rows(plan, "plan", &err), WEFT_OK, "%s: %s", planners[k],
                     err.text);
        cr_assert_geq(plan->prediction.step_ns, best_ns, "%s", planners[k]);
        weft_plan_destroy(plan);
    }
}

/* No order of the strategies takes less than their best plan, and a search of orders finds one that
 * takes as long. */
static void check_orders(const struct weft_problem *problem, struct weft_orders *orders,
                         const int32_t *strategies, int seed)
{
    const int64_t best_ns = enumerate_of(problem, strategies);
    const int64_t below_ns = best_ns < 0 ? WEFT_PROBLEM_MOST : best_ns;
    int64_t steps = WEFT_ORDERS_MOST_STEPS;
    cr_assert_eq(weft_orders_try(orders, strategies, below_ns, &steps), WEFT_ORDERS_NONE,
                 "seed %d: an order takes %lld, the best plan %lld", seed,
                 (long long)weft_orders_found(orders)->step_ns, (long long)best_ns);
    if (best_ns < 0) return;
    cr_assert_eq(weft_orders_try(orders, strategies, best_ns + 1, &steps), WEFT_ORDERS_FOUND,
                 "seed %d: no order takes %lld", seed, (long long)best_ns);
    cr_assert_eq(weft_orders_found(orders)->step_ns, best_ns, "seed %d", seed);
}

/* For drawn strategies exact placement finds the best of all placements, if it says that it tried
 * all. Most drawn strategies have chains of items on several lanes. */
static void check_exact(const struct weft_problem *problem, int seed)
{
    enum { DRAWS = 6 };
    struct weft_digest *table = NULL;
    struct weft_search *search = NULL;
    struct weft_exact *exact = NULL;
    struct weft_orders *orders = NULL;
    int32_t strategies[ENUMERATE_MOST_UNITS];
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_orders_create(problem, &orders, NULL), WEFT_OK);
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        bool complete = false;
        for (int32_t u = 0; u < problem->n_decisions; u++)
            strategies[u] = (int32_t)weft_rng_below((uint64_t)seed, 30 + draw, (uint64_t)u,
                                                    (uint64_t)weft_digest_count(table, u));
        check_orders(problem, orders, strategies, seed);
        cr_assert_eq(weft_search_create(table, &search, NULL), WEFT_OK);
        cr_assert_eq(weft_exact_create(search, &exact, NULL), WEFT_OK);
        if (weft_search_try(search, strategies) >= 0) {
            cr_assert_eq(weft_exact_try(exact, strategies, 1000000, &complete, NULL), WEFT_OK);
            cr_assert(!complete || search->step_ns == enumerate_of(problem, strategies),
                      "seed %d, draw %d: %lld, the best is %lld", seed, (int)draw,
                      (long long)search->step_ns, (long long)enumerate_of(problem, strategies));
        }
        weft_exact_destroy(exact);
        weft_search_destroy(search);
    }
    weft_orders_destroy(orders);
    weft_digest_destroy(table);
}

int32_t against_all(struct weft_problem *problem, int seed, const char *name, int32_t *n_chosen)
{
    struct weft_error err = {0};
    int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
    struct weft_plan *plan = plan_against(problem, "ilp");
    cr_assert_eq(plan != NULL, best_ns >= 0, "seed %d", seed);
    if (plan == NULL) return 0;
    check_exact(problem, seed);
    cr_assert_leq(plan->bound_ns, best_ns, "seed %d: bound %lld, best %lld", seed,
                  (long long)plan->bound_ns, (long long)best_ns);
    cr_assert_geq(plan->prediction.step_ns, best_ns, "seed %d", seed);
    cr_assert_eq(weft_certificate_check(&plan->certificate, problem, plan->bound_ns, NULL, &err),
                 WEFT_OK, "%s", err.text);
    check_plan_file(plan);
    check_planners(problem, best_ns);
    for (int32_t u = 0; u < problem->n_decisions; u++)
        *n_chosen += strstr(weft_plan_chosen(plan, u)->name, name) != NULL;
    int32_t slower = plan->prediction.step_ns > best_ns;
    weft_plan_destroy(plan);
    return slower;
}

static void *mutable(const void *constant)
{
    void *out;
    memcpy(&out, &constant, sizeof out);
    return out;
}

/* Random parts of what is left of every slot, often all of it. */
static int64_t draw_part(int64_t room, uint64_t seed, uint64_t k, uint64_t n)
{
    uint64_t all = weft_rng_below(seed, 20, 1000 * k + n, 3);
    int64_t part = (int64_t)weft_rng_below(seed, 21, 1000 * k + n, (uint64_t)room + 1);
    return all == 0 ? room : all == 1 ? 0 : part;
}

/* Draws prices of chains, and takes them off the room of their slots. */
static void redraw_chains(const struct weft_problem *problem, struct weft_prices *prices,
                          uint64_t seed, uint64_t k, int64_t *room)
{
    static struct weft_chain_price chains[MOST_REDRAWN];
    int32_t n = 0;
    cr_assert_leq(problem->n_items, MOST_REDRAWN);
    for (int32_t i = 0; i < problem->n_items; i++) {
        const struct weft_chain chain = weft_problem_chain(problem, i);
        const int32_t last = chain.last + chain.may_block;
        int64_t left = WEFT_PRICE_ONE;
        for (int32_t s = chain.first; s <= last; s++)
            if (room[s] < left) left = room[s];
        if (problem->items[i].after < 0 && weft_rng_below(seed, 22, 1000 * k + (uint64_t)i, 4) > 0)
            continue;
        chains[n] = (struct weft_chain_price){i, draw_part(left, seed, k, 500 + (uint64_t)i)};
        for (int32_t s = chain.first; s <= last; s++)
            room[s] -= chains[n].rho;
        n++;
    }
    prices->chains = chains;
    prices->n_chains = n;
}

/* Draws prices of waits and, if asked, of chains. Lane time keeps its share of the rest. */
static void redraw_times(const struct weft_problem *problem, struct weft_prices *prices,
                         uint64_t seed, uint64_t k, bool with_chains)
{
    static struct weft_wait_price waits[MOST_REDRAWN];
    static int64_t room[MOST_REDRAWN];
    struct weft_pool pool = {0};
    struct weft_waits at;
    uint64_t n = 0;
    cr_assert_eq(weft_problem_waits(problem, &pool, &at, NULL), WEFT_OK);
    cr_assert(at.n <= MOST_REDRAWN && problem->n_slots <= MOST_REDRAWN);
    for (int32_t s = 0; s < problem->n_slots; s++)
        room[s] = WEFT_PRICE_ONE;
    prices->n_chains = 0;
    if (with_chains) redraw_chains(problem, prices, seed, k, room);
    for (int32_t s = 0; s < problem->n_slots; s++) {
        const double part = (double)room[s] / (double)WEFT_PRICE_ONE;
        for (int32_t lane = 0; lane < weft_problem_n_moving(problem); lane++) {
            int64_t *lambda = &prices->lambda[lane * problem->n_slots + s];
            int64_t left = (int64_t)((double)*lambda * part);
            *lambda = left > room[s] ? room[s] : left;
            room[s] -= *lambda;
        }
        for (int32_t i = at.first[s]; i < at.first[s + 1]; i++, n++) {
            waits[n] = (struct weft_wait_price){s, at.lanes[i], draw_part(room[s], seed, k, n)};
            room[s] -= waits[n].kappa;
        }
    }
    prices->waits = waits;
    prices->n_waits = (int32_t)n;
    weft_pool_finish(&pool);
}

/* Another number somewhere in the certificate; false when there is none to change. */
static bool mutate(const struct weft_problem *problem, struct weft_certificate *certificate,
                   uint64_t seed, uint64_t k)
{
    struct weft_prices *prices =
        &certificate->prices[weft_rng_below(seed, 1, k, (uint64_t)certificate->n_prices)];
    int64_t by = (int64_t)weft_rng_below(seed, 2, k, UINT64_C(1) << weft_rng_below(seed, 3, k, 45));
    if (weft_rng_below(seed, 4, k, 2) > 0) by = -by;
    uint64_t n_rows = (uint64_t)weft_problem_n_rows(problem);
    uint64_t n_lambda = (uint64_t)weft_problem_n_moving(problem) * (uint64_t)problem->n_slots;
    struct weft_wait_price *wait = NULL;
    if (weft_rng_below(seed, 10, k, 3) == 0) {
        struct weft_certificate_node *leaf = &certificate->nodes[certificate->n_nodes - 1];
        leaf->searched_ns += by;
        leaf->steps = (int64_t)weft_rng_below(seed, 11, k, 2) * 10000;
        return leaf->searched_ns >= 0;
    }
    switch (weft_rng_below(seed, 5, k, 7)) {
    case 0:
        prices->mu[weft_rng_below(seed, 6, k, n_rows)] += by;
        return true;
    case 1:
        prices->lambda[weft_rng_below(seed, 6, k, n_lambda)] += by;
        return true;
    case 2:
        if (prices->n_whole == 0) return false;
        prices->whole[0].nu += by;
        return true;
    case 3:
        if (prices->n_waits == 0) return false;
        wait = &prices->waits[weft_rng_below(seed, 6, k, (uint64_t)prices->n_waits)];
        if (weft_rng_below(seed, 7, k, 4) == 0)
            wait->lane = (int32_t)weft_rng_below(seed, 8, k, (uint64_t)problem->n_lanes);
        else
            wait->kappa += by;
        return true;
    case 4:
        if (prices->n_chains == 0) return false;
        prices->chains[weft_rng_below(seed, 6, k, (uint64_t)prices->n_chains)].rho += by;
        return true;
    case 5:
        redraw_times(problem, prices, seed, k, weft_rng_below(seed, 9, k, 3) > 0);
        return true;
    default:
        if (prices->n_whole == 0) return false;
        prices->whole[0].row = (int32_t)weft_rng_below(seed, 6, k, n_rows);
        return true;
    }
}

void against_changes(struct weft_problem *problem, uint64_t seed, struct against_changes *changes)
{
    int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, NULL);
    struct weft_plan *plan = plan_against(problem, "ilp");
    struct weft_error err = {0};
    if (plan == NULL) return;
    for (uint64_t k = 0; k < 100; k++) {
        struct weft_pool pool = {0};
        struct weft_certificate changed;
        int64_t proven_ns = 0;
        cr_assert_eq(weft_certificate_copy(&plan->certificate, problem, &pool, &changed, &err),
                     WEFT_OK);
        if (mutate(problem, &changed, seed, k)) {
            enum weft_status status =
                weft_certificate_check(&changed, problem, plan->bound_ns, &proven_ns, &err);
            changes->n++;
            changes->n_refused += status != WEFT_OK;
            cr_assert(status != WEFT_OK || proven_ns <= best_ns, "seed %d, %d", (int)seed, (int)k);
        }
        weft_pool_finish(&pool);
    }
    struct weft_hold *hold = mutable(&problem->decisions[0].strategies[0].holds[0]);
    hold->tier = 1 - hold->tier;
    cr_assert_neq(weft_plan_check_bounds(plan, &err), WEFT_OK);
    hold->tier = 1 - hold->tier;
    problem->tiers[1].limit_bytes++;
    cr_assert_neq(weft_plan_check_bounds(plan, &err), WEFT_OK);
    weft_plan_destroy(plan);
}
