/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/exact.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/rng.h"
#include "tests/effort.h"
#include "tests/scheduler/chain.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/limit.h"
#include "tests/scheduler/tiny.h"

/* For the strategies of the best plan of all, the search finds its time, in all of its placements.
 */
Test(exact, finds_the_best_placement, .timeout = 900)
{
    for (uint64_t seed = 1; seed <= 150; seed++) {
        if (!test_draws(seed, 3, 12)) continue;
        struct tiny_shape shape = {.n_units = 2 + (int32_t)(seed % 2),
                                   .most_blocks = seed % 2 ? 1 : 2,
                                   .policies = seed % 2 ? 12 : 15,
                                   .load = 0.1 * (double)(seed % 25)};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.03 * (double)(seed % 13));
        int32_t best[ENUMERATE_MOST_UNITS];
        int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, best);
        struct weft_digest *table = NULL;
        struct weft_search *search = NULL;
        struct weft_exact *exact = NULL;
        bool complete = false;
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        cr_assert_eq(weft_search_create(table, &search, NULL), WEFT_OK);
        cr_assert_eq(weft_exact_create(search, &exact, NULL), WEFT_OK);
        cr_assert_geq(weft_search_try(search, best), 0);
        cr_assert_eq(weft_exact_try(exact, best, 1000000, &complete, NULL), WEFT_OK);
        cr_assert(complete);
        cr_assert_eq(search->step_ns, best_ns, "seed %d: %lld, the best is %lld", (int)seed,
                     (long long)search->step_ns, (long long)best_ns);
        cr_assert_leq(search->peak_bytes, problem->tiers[0].limit_bytes);
        weft_exact_destroy(exact);
        weft_search_destroy(search);
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
}

/* Two units, one of them updated on the host: its update waits for gradients, and parameters wait
 * for the update, on three lanes and often in the middle of a slot. */
static struct weft_problem *host_update_problem(uint64_t seed)
{
    struct chain chain = {.n_layers = 2, .policies = 1u << WEFT_POLICY_ZERO1};
    for (int32_t u = 0; u < chain.n_layers; u++) {
        uint64_t n = (uint64_t)u * 10;
        chain.n_blocks[u] = 1;
        chain.block_bytes[u] = 1000;
        chain.forward_ns[u] = 20 + (int64_t)weft_rng_below(seed, 1, n + 1, 400);
        chain.gather_ns[u] = 5 + (int64_t)weft_rng_below(seed, 1, n + 2, 150);
        chain.host_ns[u] = 5 + (int64_t)weft_rng_below(seed, 1, n + 3, 150);
        chain.update_ns[u] = 5 + (int64_t)weft_rng_below(seed, 1, n + 4, 150);
    }
    return chain_problem(&chain);
}

/* Steps of three of these problems. If blocks began only at the start of a slot they would be 1078,
 * 1252 and 1328. */
Test(exact, starts_followers_in_the_middle_of_a_slot)
{
    static const struct {
        uint64_t seed;
        int64_t step_ns;
    } cases[] = {{4, 1070}, {13, 1175}, {14, 1217}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct weft_problem *problem = host_update_problem(cases[k].seed);
        struct weft_digest *table = NULL;
        struct weft_search *search = NULL;
        struct weft_exact *exact = NULL;
        int32_t strategies[2] = {weft_decision_of_policy(&problem->decisions[0], WEFT_POLICY_ZERO1),
                                 -1};
        bool complete = false;
        for (int32_t p = 0; p < problem->decisions[1].n_strategies; p++)
            if (strstr(problem->decisions[1].strategies[p].name, "+host-update")) strategies[1] = p;
        problem->tiers[0].limit_bytes = INT64_MAX;
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        cr_assert_eq(weft_search_create(table, &search, NULL), WEFT_OK);
        cr_assert_eq(weft_exact_create(search, &exact, NULL), WEFT_OK);
        cr_assert_geq(weft_search_try(search, strategies), 0);
        cr_assert_eq(weft_exact_try(exact, strategies, 100000, &complete, NULL), WEFT_OK);
        cr_assert(complete);
        cr_assert_eq(search->step_ns, cases[k].step_ns, "%lld", (long long)search->step_ns);
        weft_exact_destroy(exact);
        weft_search_destroy(search);
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
}

/* The best step of the leanest strategies after so many steps of search. */
static int64_t step_after(const struct weft_problem *problem, int64_t most_steps, bool *complete)
{
    struct weft_digest *table = NULL;
    struct weft_search *search = NULL;
    struct weft_exact *exact = NULL;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(table, &search, NULL), WEFT_OK);
    cr_assert_eq(weft_exact_create(search, &exact, NULL), WEFT_OK);
    cr_assert_geq(weft_search_try(search, table->leanest), 0);
    cr_assert_eq(weft_exact_try(exact, table->leanest, most_steps, complete, NULL), WEFT_OK);
    const int64_t step_ns = search->step_ns;
    weft_exact_destroy(exact);
    weft_search_destroy(search);
    weft_digest_destroy(table);
    return step_ns;
}

/* A search that takes items in the order of their numbers finds none of these plans so soon. */
Test(exact, begins_near_the_best_plan)
{
    int n_open = 0, n_found = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct tiny_shape shape = {.n_units = 4,
                                   .most_blocks = 2,
                                   .policies = 15,
                                   .load = 0.5 + 0.05 * (double)(seed % 20)};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        bool complete = false;
        tiny_set_limit(problem, 0.03 * (double)(seed % 13));
        const int64_t first_ns = step_after(problem, 0, &complete);
        const int64_t best_ns = step_after(problem, 300000, &complete);
        if (complete && best_ns < first_ns) {
            n_open++;
            n_found += step_after(problem, 150, &complete) == best_ns;
        }
        weft_problem_destroy(problem);
    }
    cr_assert_geq(n_open, 5, "%d", n_open);
    cr_assert_geq(3 * n_found, 2 * n_open, "%d of %d", n_found, n_open);
}

Test(exact, says_when_its_steps_ran_out)
{
    int n_incomplete = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct tiny_shape shape = {.n_units = 3, .most_blocks = 3, .policies = 12, .load = 1.5};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        struct weft_digest *table = NULL;
        struct weft_search *search = NULL;
        struct weft_exact *exact = NULL;
        bool complete = true;
        tiny_set_limit(problem, 0.1);
        cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
        cr_assert_eq(weft_search_create(table, &search, NULL), WEFT_OK);
        cr_assert_eq(weft_exact_create(search, &exact, NULL), WEFT_OK);
        int64_t first_ns = weft_search_try(search, table->leanest);
        cr_assert_geq(first_ns, 0);
        cr_assert_eq(weft_exact_try(exact, table->leanest, 5, &complete, NULL), WEFT_OK);
        cr_assert_leq(weft_exact_steps(exact), 5);
        cr_assert_eq(search->step_ns, first_ns);
        n_incomplete += !complete;
        weft_exact_destroy(exact);
        weft_search_destroy(search);
        weft_digest_destroy(table);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_incomplete, 10);
}

/* The search is as deep as a step has events. */
Test(exact, leaves_alone_what_is_too_deep)
{
    struct chain chain = {.n_layers = CHAIN_MOST_LAYERS, .policies = 1 << WEFT_POLICY_SDP};
    for (int i = 0; i < CHAIN_MOST_LAYERS; i++) {
        chain.n_blocks[i] = 4000;
        chain.block_bytes[i] = 16;
        chain.gather_ns[i] = 1;
    }
    struct weft_problem *problem = chain_problem(&chain);
    struct weft_digest *table = NULL;
    struct weft_search *search = NULL;
    struct weft_exact *exact = NULL;
    bool complete = true;
    cr_assert_eq(weft_digest_create(problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(with_limit(table, table->most_bytes), &search, NULL), WEFT_OK);
    cr_assert_eq(weft_exact_create(search, &exact, NULL), WEFT_OK);
    cr_assert_geq(weft_search_try(search, table->leanest), 0);
    cr_assert_eq(weft_exact_try(exact, table->leanest, 1000000000, &complete, NULL), WEFT_OK);
    cr_assert(!complete);
    cr_assert_eq(weft_exact_steps(exact), 0);
    weft_exact_destroy(exact);
    weft_search_destroy(search);
    weft_digest_destroy(table);
    weft_problem_destroy(problem);
}
