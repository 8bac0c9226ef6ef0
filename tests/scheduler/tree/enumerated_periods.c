/* SPDX-License-Identifier: Apache-2.0 */
/* The planner against all plans that there are of small models in whole: several micro-steps under
 * either cadence, no clipping, updates that ranks agree on, tied and frozen units. (The tiny
 * problems of schedule.c are chains of one micro-step, with clipping.) */
#include <criterion/criterion.h>

#include "problem/stages.h"
#include "scheduler/digest/digest.h"
#include "scheduler/schedule.h"
#include "spec/config_batch.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/enumerate.h"

/* Sizes that enumeration has time for. */
enum { MOST_MOVES = 5 };

/* Problems seen so far. */
struct seen {
    int n, n_closed, several, every, turns, rotated, backward, agreed, two_networks, slowed;
};

/* The most blocks that move, each unit with the strategy that moves most. */
static int32_t most_moves(const struct weft_problem *problem)
{
    int32_t sum = 0;
    for (int32_t u = 0; u < problem->n_decisions; u++) {
        int32_t most = 0;
        for (int32_t p = 0; p < problem->decisions[u].n_strategies; p++) {
            int32_t n = 0;
            for (int32_t i = 0; i < problem->n_items; i++) {
                const struct weft_item *item = &problem->items[i].item;
                if (item->decision == u && item->strategies >> p & 1u) n += item->n_blocks;
            }
            most = n > most ? n : most;
        }
        sum += most;
    }
    return sum;
}

/* Small enough, and nothing that schedule.c has already. */
static bool is_wanted(const struct weft_problem *problem)
{
    const struct weft_period_rule *period = &problem->period;
    return problem->n_decisions > 0 && problem->n_decisions <= ENUMERATE_MOST_UNITS &&
           problem->n_items <= 5 * ENUMERATE_MOST_UNITS &&
           problem->n_slots <= ENUMERATE_MOST_SLOTS && most_moves(problem) <= MOST_MOVES &&
           (period->n_micro > 1 || period->rotated || period->agreed_updates);
}

static void count(const struct weft_problem *problem, struct seen *seen)
{
    const struct weft_period_rule *period = &problem->period;
    seen->several += period->n_micro > 1;
    seen->every += weft_period_reductions(period) > 1;
    seen->turns += period->layers > 0;
    seen->rotated += period->rotated;
    seen->backward += period->update_after > 0;
    seen->agreed += period->agreed_updates;
    seen->two_networks += problem->n_lanes > 2;
    seen->slowed += problem->lanes[1].rates.compute < WEFT_RATE_ONE;
}

static void check_limit(struct weft_problem *problem, int64_t limit_bytes, uint64_t seed,
                        struct seen *seen)
{
    struct weft_schedule_options options = {.planner = "ilp"};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    problem->tiers[0].limit_bytes = limit_bytes;
    int64_t best_ns = enumerate_best(problem, limit_bytes, NULL);
    cr_assert_eq(weft_schedule(problem, NULL, &options, &plan, NULL, &err), WEFT_OK, "%s",
                 err.text);
    cr_assert_eq(plan->prediction.step_ns, best_ns, "seed %d: %lld, the best is %lld", (int)seed,
                 (long long)plan->prediction.step_ns, (long long)best_ns);
    cr_assert_leq(plan->bound_ns, best_ns, "seed %d", (int)seed);
    cr_assert_eq(weft_certificate_check(&plan->certificate, problem, plan->bound_ns, NULL, &err),
                 WEFT_OK, "%s", err.text);
    seen->n++;
    seen->n_closed += plan->bound_ns == best_ns;
    weft_plan_destroy(plan);
}

static void check_problem(struct weft_problem *problem, uint64_t seed, struct seen *seen)
{
    int64_t least = enumerate_least_limit(problem);
    cr_assert_eq(weft_least_limit(problem, 0, NULL), least, "seed %d", (int)seed);
    count(problem, seen);
    check_limit(problem, least, seed, seen);
    check_limit(problem, least + least / 16, seed, seen);
    check_limit(problem, least + least / 4, seed, seen);
}

/* They always run and have every kind of period. Few drawn ones may lack a kind. */
static bool has_kinds(uint64_t seed)
{
    return seed == 96 || seed == 388;
}

Test(enumerated_periods, the_plan_is_the_best_of_all, .timeout = 900)
{
    struct seen seen = {0};
    for (uint64_t seed = 1; seed <= 1200; seed++) {
        if (!has_kinds(seed) && !test_draws(seed, 5, 40)) continue;
        struct random_case random;
        struct weft_variant variants[WEFT_MOST_VARIANTS];
        random_case_init(&random, seed);
        /* Next to one micro-step after the other. */
        if (seed % 2 == 0) random.config->plan.micro_step_order = WEFT_ORDER_AUTO;
        if (seed % 3 != 0) random.config->plan.update_in = WEFT_UPDATE_IN_AUTO;
        int32_t n = weft_variants_list(random.config, variants);
        for (int32_t v = 0; v < n; v++) {
            struct weft_stages stages = {0};
            struct weft_error err = {0};
            cr_assert_eq(weft_stages_create_variant(random.config, random.profile, &variants[v],
                                                    &stages, &err),
                         WEFT_OK, "%s", err.text);
            if (is_wanted(stages.problem)) check_problem(stages.problem, seed, &seen);
            weft_stages_finish(&stages);
        }
        random_case_finish(&random);
    }
    cr_log_info("%d plans, %d proven the best; several micro-steps %d, reduced in each %d, by "
                "turns %d, rotated %d, updated in backward %d, agreed %d, two channels %d, slowed "
                "%d",
                seen.n, seen.n_closed, seen.several, seen.every, seen.turns, seen.rotated,
                seen.backward, seen.agreed, seen.two_networks, seen.slowed);
    cr_assert_geq(seen.n, TEST_CASES_OF(500, 15, 15));
    cr_assert_geq(seen.n_closed, seen.n - seen.n / 50); /* by searches of orders */
    int some = TEST_CASES_OF(20, 1, 1);
    cr_assert(seen.several > some && seen.every > some / 3 && seen.rotated > some);
    cr_assert(seen.turns > some / 3 && seen.backward > some / 3);
    cr_assert(seen.agreed > some && seen.two_networks > some && seen.slowed > some);
}
