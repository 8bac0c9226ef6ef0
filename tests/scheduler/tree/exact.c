#include "scheduler/tree/exact.h"

#include <criterion/criterion.h>

#include "tests/effort.h"
#include "tests/scheduler/chain.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/limit.h"
#include "tests/scheduler/tiny.h"

/* For the strategies of the best plan of all, the search finds its time, in all of its placements.
 */
Test(exact, finds_the_best_placement, .timeout = 900)
{
    for (uint64_t seed = 1; seed <= TEST_CASES(150, 45); seed++) {
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
