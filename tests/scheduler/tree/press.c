/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/press.h"

#include <criterion/criterion.h>
#include <math.h>

#include "scheduler/tree/grow.h"
#include "tests/effort.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/solver.h"
#include "tests/scheduler/tiny.h"

static struct weft_work work_of_press;

/* Problems too large to be closed at the root; with a budget that allows for milestones. */
static void init_press(struct branch_rig *f, uint64_t seed)
{
    struct tiny_shape shape = {.n_units = 7, .most_blocks = 3, .policies = 15, .load = 0.8};
    *f = (struct branch_rig){.problem = tiny_problem(&shape, seed),
                             .options = {.solver = test_solver(),
                                         .budget = weft_budget_of(&work_of_press, 10000000000)}};
    tiny_set_limit(f->problem, 0.05 + 0.05 * (double)(seed % 8));
    branch_rig_begin(f, f->problem, f->problem->tiers[0].limit_bytes);
    cr_assert_eq(weft_branch_root(f->branch, NULL), WEFT_OK);
}

/* The value of the root's relaxation, in ns. */
static double value_under(struct branch_rig *f, double pressure)
{
    struct weft_pool pool = {0};
    struct weft_lp_result result = {0};
    weft_ilp_press(f->branch->ilp, pressure);
    cr_assert(weft_branch_relax(f->branch, f->branch->proof->box, 0, &pool, &result));
    weft_ilp_press(f->branch->ilp, 0);
    double value_ns = ldexp(result.value, f->branch->ilp->time_shift);
    weft_pool_finish(&pool);
    return value_ns;
}

/* It always runs: it has a pressure and doubts. Few drawn ones have them. */
static const uint64_t SEED_WITH_DOUBTS = 11;

/* As much as makes the relaxation worth the goal, and no more; without it all is as before. */
Test(press, brings_the_relaxation_to_the_goal, .timeout = 900)
{
    int n_found = 0;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    for (uint64_t seed = 0; seed < 40; seed++) {
        if (seed != SEED_WITH_DOUBTS && !test_draws(seed, 3, 8)) continue;
        struct branch_rig f;
        struct weft_press press;
        init_press(&f, seed);
        weft_proof_enter(f.branch->proof, 0);
        if (!weft_branch_is_over(f.branch) && !f.branch->proof->box->empty) {
            double before_ns = value_under(&f, 0), goal_ns = (double)f.search->step_ns;
            bool found = weft_press_find(f.branch, 0, f.search->step_ns, &press);
            cr_assert_float_eq(value_under(&f, 0), before_ns, 1e-6 * before_ns);
            if (found && press.pressure < 0.5) {
                double off_ns = 0.01 * press.spare_ns + 1e-6 * goal_ns;
                cr_assert_float_eq(press.value_ns, goal_ns, off_ns, "seed %d", (int)seed);
                cr_assert_float_eq(value_under(&f, press.pressure), press.value_ns, off_ns);
                cr_assert_leq(value_under(&f, press.pressure / 2), goal_ns + off_ns);
                cr_assert_gt(press.spare_ns, 0);
                n_found++;
            }
        }
        branch_rig_end(&f);
    }
    cr_assert_gt(n_found, TEST_CASES_OF(10, 0, 0), "%d found", n_found);
}

/* The most valuable of the blocks that its solution interrupts come first, one a slot: reductions
 * that gathers go through, or gathers that reductions do. What comes next is the end of such a
 * block. */
Test(press, asks_of_each_slot_what_is_under_way, .timeout = 900)
{
    int n_order = 0, n_next = 0;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    for (uint64_t seed = 0; seed < 40; seed++) {
        if (seed != SEED_WITH_DOUBTS && !test_draws(seed, 3, 8)) continue;
        struct branch_rig f;
        struct weft_press press = {0};
        init_press(&f, seed);
        bool found = !weft_branch_is_over(f.branch) &&
                     weft_press_find(f.branch, 0, f.search->step_ns, &press);
        for (int32_t k = 0; found && k < press.n_doubts; k++) {
            const struct weft_doubt *doubt = &press.doubts[k];
            cr_assert(weft_milestone_is_of(&doubt->milestone, f.problem));
            if (doubt->milestone.moment == WEFT_PLACED) {
                cr_assert_eq(k, press.n_doubts - 1, "what memory holds is the last");
                cr_assert_eq(doubt->next.n_blocks, 0);
                continue;
            }
            n_order++;
            if (k > 0) cr_assert_leq(doubt->value, doubt[-1].value);
            if (doubt->next.n_blocks == 0) continue;
            n_next++;
            cr_assert_eq(doubt->milestone.moment, WEFT_BEGUN);
            cr_assert_eq(doubt->next.moment, WEFT_ENDED);
            cr_assert_eq(doubt->next.item, doubt->milestone.item);
            cr_assert_eq(doubt->next.n_blocks, doubt->milestone.n_blocks);
            cr_assert(weft_milestone_is_of(&doubt->next, f.problem));
            for (int32_t before = 0; before < k; before++)
                if (press.doubts[before].milestone.moment == WEFT_BEGUN)
                    cr_assert_neq(press.doubts[before].milestone.slot, doubt->milestone.slot);
        }
        branch_rig_end(&f);
    }
    cr_assert_gt(n_order, TEST_CASES_OF(10, 0, 0), "%d of order", n_order);
    cr_assert_gt(n_next, TEST_CASES_OF(5, 0, 0), "%d have a next", n_next);
}

/* The gap that a tree of so many nodes leaves, as a part of the step. */
static double gap_of(uint64_t seed, int32_t n_presses)
{
    struct branch_rig f;
    init_press(&f, seed);
    f.branch->presses_left = n_presses;
    cr_assert_eq(weft_branch_grow(f.branch, 60, NULL), WEFT_OK);
    cr_assert_eq(weft_branch_polish(f.branch, NULL), WEFT_OK);
    int64_t bound_ns = weft_branch_bound_ns(f.branch), step_ns = f.search->step_ns;
    cr_assert_leq(bound_ns, step_ns);
    branch_rig_end(&f);
    return (double)(step_ns - bound_ns) / (double)step_ns;
}

/* Without pressure a tree stops rising where channels have time to spare. */
Test(press, closes_gaps_that_trees_leave_open, .timeout = 900)
{
    int n_smaller = 0, n_larger = 0;
    double with = 0, without = 0;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    for (uint64_t seed = 42; seed < 47; seed++) {
        if (!test_draws(seed, 1, 5)) continue;
        double a = gap_of(seed, 0), b = gap_of(seed, WEFT_BRANCH_PRESSES);
        n_smaller += b < a - 1e-6;
        n_larger += b > a + 1e-6;
        without += a;
        with += b;
    }
    cr_assert_geq(n_smaller, n_larger + TEST_CASES(1, 0), "%d smaller, %d larger", n_smaller,
                  n_larger);
    if (TEST_SANITIZED) return; /* one period alone may keep more of its gap */
    cr_assert_lt(with, without / 4, "%.4f of %.4f", with, without);
}
