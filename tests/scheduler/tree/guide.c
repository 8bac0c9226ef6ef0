/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/guide.h"
#include "program/predict.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "scheduler/digest/digest.h"
#include "scheduler/tree/grow.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/solver.h"
#include "tests/scheduler/tiny.h"

struct guide_fixture {
    struct branch_rig rig;
    struct weft_guide *guide;
};

/* The leanest strategies by list scheduling, and the root's relaxation. */
static void init_guide(struct guide_fixture *f, const struct weft_problem *problem,
                       int64_t limit_bytes, struct weft_solver solver)
{
    *f = (struct guide_fixture){.rig.options = {.solver = solver}};
    branch_rig_begin(&f->rig, problem, limit_bytes);
    cr_assert_eq(weft_branch_root(f->rig.branch, NULL), WEFT_OK);
    cr_assert_eq(weft_guide_create(f->rig.branch, &f->guide, NULL), WEFT_OK);
}

static void finish_guide(struct guide_fixture *f)
{
    weft_guide_destroy(f->guide);
    branch_rig_end(&f->rig);
}

/* The search's best is what the simulator says of it, within the limit. */
static void check_best_guide(const struct guide_fixture *f)
{
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    const struct weft_search *search = f->rig.search;
    cr_assert_eq(weft_plan_create(f->rig.table->problem, "ilp", search->strategies, search->moves,
                                  search->n_moves, &plan, &err),
                 WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK);
    cr_assert_eq(plan->prediction.step_ns, search->step_ns);
    cr_assert_leq(plan->prediction.peak_bytes, weft_digest_limit_bytes(search->table));
    weft_plan_destroy(plan);
}

/* Guides the best plan's strategies, then dives, then those near the bound; true when the guide
 * found a faster plan than list scheduling of the same strategies. */
static bool improves(const struct weft_problem *problem, int64_t limit_bytes)
{
    struct guide_fixture f;
    init_guide(&f, problem, limit_bytes, test_solver());
    int64_t listed_ns = f.rig.search->step_ns;
    bool over = weft_branch_is_over(f.rig.branch) || limit_bytes >= f.rig.table->most_bytes;
    cr_assert_eq(weft_guide_try(f.guide, f.rig.search->strategies), !over);
    bool better = f.rig.search->step_ns < listed_ns;
    check_best_guide(&f);
    if (!better) cr_assert_not(weft_guide_try(f.guide, f.rig.search->strategies), "known already");
    (void)weft_guide_dive(f.guide, 0);
    check_best_guide(&f);
    cr_assert_eq(weft_guide_try_near(f.guide, 0, 8, NULL), WEFT_OK);
    check_best_guide(&f);
    cr_assert_leq(f.rig.search->step_ns, listed_ns);
    cr_assert_geq(f.rig.search->step_ns, weft_branch_bound_ns(f.rig.branch));
    cr_assert_str_eq(f.rig.branch->failure, "");
    finish_guide(&f);
    return better;
}

Test(guide, finds_faster_placements_of_models)
{
    int n_better = 0;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    for (uint64_t seed = 1; seed <= TEST_CASES(6, 3); seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        int64_t least = weft_least_limit(random.stages.problem, 0, NULL);
        for (int step = 0; step < 4; step++)
            n_better += improves(random.stages.problem, least + least * step / 20);
        random_case_finish(&random);
    }
    cr_assert_gt(n_better, 0);
}

Test(guide, is_valid_on_tiny_problems)
{
    int n_better = 0;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    for (uint64_t seed = 1; seed <= 24; seed++) {
        if (!test_draws(seed, 1, 8)) continue;
        struct tiny_shape shape = {.n_units = 3 + (int32_t)(seed % 5),
                                   .most_blocks = 4,
                                   .policies = 15,
                                   .load = 0.2 + 0.1 * (double)(seed % 13),
                                   .contends = seed % 3 == 1,
                                   .two_networks = seed % 4 == 1};
        struct weft_problem *problem = tiny_problem(&shape, seed);
        tiny_set_limit(problem, 0.1 * (double)(seed % 8));
        n_better += improves(problem, problem->tiers[0].limit_bytes);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_better, TEST_CASES(0, -1));
}

Test(guide, has_nothing_to_try_without_a_solver)
{
    struct tiny_shape shape = {.n_units = 5, .most_blocks = 4, .policies = 15, .load = 1};
    struct weft_problem *problem = tiny_problem(&shape, 7);
    struct guide_fixture f;
    tiny_set_limit(problem, 0.2);
    init_guide(&f, problem, problem->tiers[0].limit_bytes, (struct weft_solver){0});
    int64_t before_ns = f.rig.search->step_ns;
    cr_assert_not(weft_guide_try(f.guide, f.rig.search->strategies));
    (void)weft_guide_dive(f.guide, 0);
    cr_assert_eq(weft_guide_try_near(f.guide, 0, 8, NULL), WEFT_OK);
    cr_assert_eq(f.rig.search->step_ns, before_ns);
    finish_guide(&f);
    weft_problem_destroy(problem);
}
