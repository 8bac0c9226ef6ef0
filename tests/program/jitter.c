/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of ranks of unequal speed, by hand and against the simulation of one rank. */
#include "program/jitter.h"

#include <criterion/criterion.h>
#include <math.h>

#include "program/predict.h"
#include "tests/effort.h"
#include "tests/problem/small_problem.h"
#include "tests/program/random_model.h"

enum { JITTER_CASES = TEST_CASES(200, 60) };
enum { N_JITTER_MOVES = 8 };

/* U:a to 200, U:b to 400. Gathers end at 800, 1400 (F:a begins), 2000 and 2600 (F:b begins). F:a
 * takes 1400-2400, F:b 2600-3600, B:b 3600-5600, B:a 5600-7600. Reductions of b end at 6200 and
 * 6800, of a at 8200 and 8800. Norm ends at 8900, the agreement at 8950. */
static struct weft_plan *jitter_plan(const struct weft_problem *problem)
{
    static const int32_t all_sdp[] = {IS_SDP, IS_SDP};
    static const struct weft_move moves[N_JITTER_MOVES] = {
        {A_GATHER, 1, 0}, {A_GATHER, 2, 0}, {B_GATHER, 2, 0}, {B_GATHER, 3, 0},
        {B_REDUCE, 6, 0}, {B_REDUCE, 7, 0}, {A_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_plan_create(problem, "test", all_sdp, moves, N_JITTER_MOVES, &plan, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK, "%s", err.text);
    return plan;
}

static struct weft_jitter_steps run_law(const struct weft_plan *plan, struct weft_jitter_law law,
                                        int64_t n_steps)
{
    struct weft_jitter_steps steps = {0};
    struct weft_error err = {0};
    cr_assert_eq(weft_simulate_jitter(plan, law, n_steps, &steps, &err), WEFT_OK, "%s", err.text);
    return steps;
}

static struct weft_jitter_steps run_cv(const struct weft_plan *plan, double cv, int64_t n_steps)
{
    const struct weft_jitter_factors factors = {cv, 7};
    return run_law(plan, weft_jitter_lognormal(&factors), n_steps);
}

/* Rank 1 takes twice as long in F:a. */
static int64_t slow_forward_ns(const void *of, int64_t step, int64_t rank, int32_t slot,
                               int64_t slot_ns)
{
    (void)of, (void)step;
    return rank == 1 && slot == 3 ? 2 * slot_ns : slot_ns;
}
static const struct weft_jitter_law slow_forward = {slow_forward_ns, NULL};

/* F:b of rank 1 begins at 3400, so b's reductions begin at 6400 and end at 7600. Those of a begin
 * with rank 1's drain at 8400 and end at 9600. Rank 0 waits 1000 + 200 + 2000 + 50, rank 1 waits
 * 1000 + 1200 + 50. */
Test(jitter, a_collective_begins_with_its_last_rank)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = jitter_plan(&problem);
    cr_assert_eq(plan->prediction.step_ns, 8950);
    const struct weft_jitter_steps steps = run_law(plan, slow_forward, 1);
    cr_assert_eq(steps.mean_ns, 9750);
    cr_assert_eq(steps.longest_ns, 9750);
    cr_assert_float_eq(steps.waiting, 2750.0 / 9750, 1e-12);
    weft_plan_destroy(plan);
}

static void make_hybrid(struct weft_problem *problem)
{
    problem->ranks = 4;
    problem->ranks_per_node = 2;
    for (int32_t u = 0; u < problem->n_decisions; u++)
        problem->decisions[u].strategies[IS_SDP].policy = WEFT_POLICY_HSDP;
}

/* Rank 1 takes twice as long in U:a, rank 2 in F:a, and rank 3 ten times in norm. */
static int64_t slow_in_turn_ns(const void *of, int64_t step, int64_t rank, int32_t slot,
                               int64_t slot_ns)
{
    (void)of, (void)step;
    if (rank == 3 && slot == N_SMALL_SLOTS - 1) return 10 * slot_ns;
    return (rank == 1 && slot == 0) || (rank == 2 && slot == 3) ? 2 * slot_ns : slot_ns;
}
static const struct weft_jitter_law slow_in_turn = {slow_in_turn_ns, NULL};

/* All ranks together: F:a begins at 1600, rank 2 ends it at 3600 and B:a at 8600. Reductions of a
 * end at 9800, and rank 3 ends norm at 10800. In nodes F:a begins at 1400 in node 1, and all that
 * follows there is 200 earlier. */
Test(jitter, a_collective_of_a_node_waits_for_its_node)
{
    struct weft_problem problem = small_problem();
    problem.ranks = 4;
    struct weft_plan *plan = jitter_plan(&problem);
    cr_assert_eq(run_law(plan, slow_in_turn, 1).mean_ns, 10850);
    problem.ranks_per_node = 2;
    problem.period.every = 8;
    cr_assert_eq(run_law(plan, slow_in_turn, 1).mean_ns, 10650);
    weft_plan_destroy(plan);
    problem.period.every = 0;
    make_hybrid(&problem);
    plan = jitter_plan(&problem);
    cr_assert_eq(run_law(plan, slow_in_turn, 1).mean_ns, 10650);
    weft_plan_destroy(plan);
}

/* Sums of a are over nodes. Ranks 0 and 2 begin theirs at 8400, ranks 1 and 3 at 7800. So rank 3
 * begins norm at 9000. */
Test(jitter, a_sum_over_nodes_waits_for_its_place)
{
    struct weft_problem problem = small_problem();
    make_hybrid(&problem);
    problem.items[A_REDUCE].item.kind = WEFT_ACROSS_REDUCE;
    struct weft_plan *plan = jitter_plan(&problem);
    struct weft_jitter_steps steps = run_law(plan, slow_in_turn, 1);
    cr_assert_eq(steps.mean_ns, 10050);
    problem.ranks_per_node = 0;
    struct weft_error err = {0};
    cr_assert_eq(weft_simulate_jitter(plan, slow_in_turn, 1, &steps, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "not how many ranks a "), "%s", err.text);
    weft_plan_destroy(plan);
}

/* Step i takes 100 i longer in norm. */
static int64_t longer_norm_ns(const void *of, int64_t step, int64_t rank, int32_t slot,
                              int64_t slot_ns)
{
    (void)of, (void)rank;
    return slot == N_SMALL_SLOTS - 1 ? slot_ns + 100 * step : slot_ns;
}

Test(jitter, figures_are_of_all_steps)
{
    struct weft_problem problem = small_problem();
    struct weft_plan *plan = jitter_plan(&problem);
    const struct weft_jitter_law law = {longer_norm_ns, NULL};
    const struct weft_jitter_steps steps = run_law(plan, law, 100);
    cr_assert_eq(steps.mean_ns, 8950 + 4950);
    cr_assert_eq(steps.median_ns, 8950 + 4900);
    cr_assert_eq(steps.p99_ns, 8950 + 9800);
    cr_assert_eq(steps.longest_ns, 8950 + 9900);
    cr_assert_float_eq(steps.waiting, 2450.0 / 13900, 1e-12);
    weft_plan_destroy(plan);
}

Test(jitter, factors_have_mean_1_and_the_asked_deviation)
{
    enum { DRAWS = 200000, NS = 1000000 };
    const struct weft_jitter_factors factors = {0.5, 3}, none = {0, 3};
    const struct weft_jitter_law law = weft_jitter_lognormal(&factors);
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < DRAWS; i++) {
        const int64_t ns = law.time_ns(law.of, i / 100, i % 100, 4, NS);
        cr_assert_gt(ns, 0);
        sum += (double)ns / NS;
        squares += (double)ns / NS * ((double)ns / NS);
    }
    const double mean = sum / DRAWS;
    cr_assert_float_eq(mean, 1, 0.005);
    cr_assert_float_eq(sqrt(squares / DRAWS - mean * mean), 0.5, 0.01);
    cr_assert_eq(law.time_ns(law.of, 5, 6, 7, NS), law.time_ns(law.of, 5, 6, 7, NS));
    cr_assert_neq(law.time_ns(law.of, 5, 6, 7, NS), law.time_ns(law.of, 6, 5, 7, NS));
    cr_assert_eq(weft_jitter_lognormal(&none).time_ns(&none, 5, 6, 7, NS), NS);
}

Test(jitter, lanes_that_slow_compute_are_refused)
{
    struct weft_problem problem = small_problem();
    struct weft_jitter_steps steps;
    struct weft_error err = {0};
    problem.lanes[1].rates.compute = WEFT_RATE_ONE / 2;
    problem.lanes[1].rates.own = WEFT_RATE_ONE / 2;
    struct weft_plan *plan = jitter_plan(&problem);
    cr_assert_eq(weft_simulate_jitter(plan, slow_forward, 1, &steps, &err), WEFT_E_DATA);
    cr_assert(strstr(err.text, "slow each other"), "%s", err.text);
    weft_plan_destroy(plan);
}

/* The plan's own times give the plan's step and waits. Each slower rank lengthens the step or
 * leaves it, at most by the time that it takes longer. */
static void check_random(void init(struct random_case *random, uint64_t seed))
{
    for (uint64_t seed = 0; seed < JITTER_CASES; seed++) {
        struct random_case random;
        init(&random, seed);
        struct weft_problem *problem = random.stages.problem;
        for (int32_t lane = 0; lane < problem->n_lanes; lane++)
            problem->lanes[lane].rates = (struct weft_rates){WEFT_RATE_ONE, WEFT_RATE_ONE};
        struct weft_plan *plan = random_plan(&random, seed);
        const struct weft_prediction *p = &plan->prediction;
        const struct weft_jitter_steps same = run_cv(plan, 0, 2);
        cr_assert_eq(same.mean_ns, p->step_ns, "seed %d: %lld, %lld", (int)seed,
                     (long long)same.mean_ns, (long long)p->step_ns);
        cr_assert_eq(same.longest_ns, p->step_ns, "seed %d", (int)seed);
        cr_assert_float_eq(same.waiting, (double)p->exposed_ns / (double)p->step_ns, 1e-12);
        const struct weft_jitter_steps slow = run_law(plan, slow_forward, 1);
        cr_assert_geq(slow.mean_ns, p->step_ns, "seed %d", (int)seed);
        cr_assert_leq(slow.mean_ns, p->step_ns + weft_plan_slot_ns(plan, 3), "seed %d", (int)seed);
        const struct weft_jitter_steps some = run_cv(plan, 0.3, 3), again = run_cv(plan, 0.3, 3);
        cr_assert_eq(some.mean_ns, again.mean_ns);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

Test(jitter, without_jitter_it_is_the_simulation)
{
    check_random(random_case_init);
}

Test(jitter, without_jitter_it_is_the_simulation_with_tiers)
{
    check_random(random_case_init_tiers);
}

Test(jitter, without_jitter_it_is_the_simulation_with_nodes)
{
    check_random(random_case_init_nodes);
}
