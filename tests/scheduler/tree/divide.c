/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/divide.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "scheduler/tree/grow.h"
#include "tests/effort.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/solver.h"
#include "tests/scheduler/tiny.h"

static void init_divide(struct branch_rig *f, uint64_t seed, struct weft_solver solver)
{
    struct tiny_shape shape = {.n_units = 3, .most_blocks = 2, .policies = 15, .load = 0.9};
    *f = (struct branch_rig){.problem = tiny_problem(&shape, seed), .options = {.solver = solver}};
    tiny_set_limit(f->problem, 0.3);
    branch_rig_begin(f, f->problem, f->problem->tiers[0].limit_bytes);
    cr_assert_eq(weft_branch_root(f->branch, NULL), WEFT_OK);
}

/* The value of the root's relaxation as a child would have it; that of the best plan at most. */
static double value_of(struct branch_rig *f, const struct weft_proof_node *child)
{
    struct weft_pool pool = {0};
    struct weft_lp_result result = {0};
    double best = ldexp((double)f->search->step_ns, -f->branch->ilp->time_shift), value = best;
    weft_proof_enter_below(f->branch->proof, 0, child, 1);
    if (!f->branch->proof->box->empty &&
        weft_branch_relax(f->branch, f->branch->proof->box, 0, &pool, &result))
        value = result.value < best ? result.value : best;
    weft_pool_finish(&pool);
    return value;
}

/* The first way to divide the root, which is what is left without trials. */
static struct weft_proof_node first_way(const struct branch_rig *f)
{
    const struct weft_branch_split *split = &f->branch->splits[0];
    struct weft_proof_node way = {.kind = WEFT_NODE_STRATEGIES,
                                  .decision = split->choices[0].decision};
    if (split->count.n_decisions > 0)
        return (struct weft_proof_node){.kind = WEFT_NODE_COUNT, .count = split->count};
    if (split->decided && split->milestone.n_blocks > 0 && f->branch->milestones_left > 0)
        return (struct weft_proof_node){.kind = WEFT_NODE_MILESTONE, .milestone = split->milestone};
    const struct weft_digest *table = f->branch->table;
    for (int32_t p = 0; p < weft_digest_count(table, way.decision); p++)
        if (f->branch->keeper[weft_digest_at(table, way.decision, p)] == split->choices[0].strategy)
            way.strategies |= UINT64_C(1) << p;
    return way;
}

static double score(struct branch_rig *f, struct weft_proof_node way)
{
    double missing = (double)(f->search->step_ns - f->branch->proof->nodes[0].bound_ns);
    double from = (double)f->branch->proof->nodes[0].bound_ns, product = 1;
    for (int side = 0; side < 2; side++) {
        way.milestone.reached = way.count.reached = side == 0;
        double gain = ldexp(value_of(f, &way), f->branch->ilp->time_shift) - from;
        product *= fmax(gain / missing, 1e-3);
        way.strategies = ~way.strategies;
    }
    return product;
}

/* It always runs: another way than the first is taken. Few drawn ones have such a way. */
static const uint64_t SEED_OF_BETTER_WAY = 24;

Test(divide, what_it_takes_raises_both_sides_no_less_than_the_first_way, .timeout = 900)
{
    int n_divided = 0, n_better = 0;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    for (uint64_t seed = 0; seed < 60; seed++) {
        if (seed != SEED_OF_BETTER_WAY && !test_draws(seed, 3, 10)) continue;
        struct branch_rig f;
        init_divide(&f, seed, test_solver());
        struct weft_proof *proof = f.branch->proof;
        const struct weft_branch_split *split = &f.branch->splits[0];
        if (!weft_branch_is_over(f.branch) && split->n_choices + split->count.n_decisions > 0) {
            struct weft_proof_node first = first_way(&f);
            double before = score(&f, first);
            cr_assert(weft_divide(f.branch, 0));
            struct weft_proof_node taken = proof->nodes[proof->nodes[0].children];
            double after = score(&f, taken);
            cr_assert_geq(after, before * (1 - 1e-6), "seed %d", (int)seed);
            n_divided++;
            n_better += after > before * 1.01;
        }
        branch_rig_end(&f);
    }
    cr_assert_gt(n_divided, TEST_CASES_OF(5, 0, 0));
    cr_assert_geq(n_better, 1);
}

/* Every child is in the box in which it was tried. */
Test(divide, a_child_has_the_box_that_it_was_tried_in)
{
    int n_divided = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct branch_rig f;
        init_divide(&f, seed, (struct weft_solver){0});
        struct weft_proof *proof = f.branch->proof;
        if (!weft_branch_is_over(f.branch) && f.branch->splits[0].n_choices > 0) {
            uint64_t tried[8];
            cr_assert_leq(f.problem->n_decisions, 8);
            cr_assert(weft_divide(f.branch, 0));
            for (int side = 0; side < 2; side++) {
                int32_t child = proof->nodes[0].children + side;
                size_t size = (size_t)f.problem->n_decisions * sizeof *tried;
                weft_proof_enter_below(proof, 0, &proof->nodes[child], 1);
                memcpy(tried, proof->box->allowed, size);
                weft_proof_enter(proof, child);
                cr_assert_eq(memcmp(tried, proof->box->allowed, size), 0);
            }
            n_divided++;
        }
        branch_rig_end(&f);
    }
    cr_assert_gt(n_divided, 5);
}

Test(divide, with_nothing_suggested_there_is_no_way)
{
    struct branch_rig f;
    init_divide(&f, 1, (struct weft_solver){0});
    f.branch->splits[0] = (struct weft_branch_split){0};
    cr_assert_not(weft_divide(f.branch, 0));
    cr_assert_eq(f.branch->proof->n_nodes, 1);
    branch_rig_end(&f);
}
