/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/branch.h"

#include <criterion/criterion.h>
#include <string.h>

#include "scheduler/tree/grow.h"
#include "tests/problem/small_problem.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/solver.h"

struct branch_fixture {
    struct weft_problem problem;
    struct branch_rig rig;
};

/* The small problem without a limit. Its best step is 8150: 6550 without communication, a's
 * reductions (1200) beside nothing, and either dp for both, whose updates take 400 longer, or dp
 * for a alone, 200 longer, and 200 of b's gathers beside nothing. */
enum { BEST_NS = 6550 + 1200 + 400 };

static void init_branch(struct branch_fixture *f, double gap, struct weft_solver solver)
{
    *f = (struct branch_fixture){.problem = small_problem(),
                                 .rig.options = {.gap = gap, .solver = solver}};
    branch_rig_begin(&f->rig, &f->problem, f->problem.tiers[0].limit_bytes);
}

static void grow_branch(struct branch_fixture *f)
{
    struct weft_pool pool = {0};
    struct weft_certificate certificate;
    int64_t proven_ns = 0;
    cr_assert_eq(weft_branch_root(f->rig.branch, NULL), WEFT_OK);
    cr_assert_eq(weft_branch_grow(f->rig.branch, INT32_MAX, NULL), WEFT_OK);
    cr_assert_eq(f->rig.search->step_ns, BEST_NS);
    cr_assert_leq(weft_branch_bound_ns(f->rig.branch), BEST_NS);
    cr_assert_eq(weft_proof_certificate(f->rig.branch->proof, &pool, &certificate, NULL), WEFT_OK);
    cr_assert_eq(weft_certificate_check(&certificate, &f->problem,
                                        weft_branch_bound_ns(f->rig.branch), &proven_ns, NULL),
                 WEFT_OK);
    cr_assert_eq(proven_ns, weft_branch_bound_ns(f->rig.branch));
    weft_pool_finish(&pool);
}

/* The root's relaxation mixes strategies and stays at 7944: it takes branches to prove the best. */
Test(branch, proves_the_best_plan)
{
    struct branch_fixture f;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    init_branch(&f, 0, test_solver());
    grow_branch(&f);
    cr_assert_str_eq(f.rig.branch->failure, "");
    cr_assert_eq(weft_branch_bound_ns(f.rig.branch), BEST_NS);
    cr_assert_str_eq(f.rig.branch->stop, "gap closed");
    cr_assert_gt(f.rig.branch->proof->n_nodes, 1);
    int n_counts = 0;
    for (int32_t i = 0; i < f.rig.branch->proof->n_nodes; i++)
        n_counts += f.rig.branch->proof->nodes[i].kind == WEFT_NODE_COUNT;
    cr_assert_gt(n_counts, 0, "the two units are alike");
    branch_rig_end(&f.rig);
}

Test(branch, comes_close_without_a_solver)
{
    struct branch_fixture f;
    init_branch(&f, 1e-3, (struct weft_solver){0});
    grow_branch(&f);
    cr_assert_geq((double)weft_branch_bound_ns(f.rig.branch), BEST_NS / (1 + 1e-3) - 1);
    cr_assert_str_eq(f.rig.branch->stop, "gap closed");
    branch_rig_end(&f.rig);
}

/* A gap that the root closes needs no tree. */
Test(branch, stops_when_the_gap_is_closed)
{
    struct branch_fixture f;
    init_branch(&f, 0.05, (struct weft_solver){0});
    cr_assert_eq(weft_branch_root(f.rig.branch, NULL), WEFT_OK);
    cr_assert_geq(weft_branch_enough_ns(f.rig.branch), weft_branch_bound_ns(f.rig.branch));
    cr_assert(weft_branch_is_over(f.rig.branch), "step %lld, bound %lld",
              (long long)f.rig.search->step_ns, (long long)weft_branch_bound_ns(f.rig.branch));
    cr_assert_eq(weft_branch_grow(f.rig.branch, INT32_MAX, NULL), WEFT_OK);
    cr_assert_str_eq(f.rig.branch->stop, "gap closed");
    cr_assert_eq(f.rig.branch->proof->n_nodes, 1);
    branch_rig_end(&f.rig);
}

Test(branch, stops_when_the_budget_is_used_up)
{
    struct branch_fixture f;
    struct weft_work work = {0};
    init_branch(&f, 0, (struct weft_solver){0});
    weft_search_begin(f.rig.search, weft_budget_of(&work, 1));
    weft_work_spend(&work, 1);
    cr_assert_eq(weft_branch_root(f.rig.branch, NULL), WEFT_OK);
    cr_assert_eq(weft_branch_grow(f.rig.branch, INT32_MAX, NULL), WEFT_OK);
    cr_assert_str_eq(f.rig.branch->stop, "work limit");
    cr_assert_geq(weft_branch_bound_ns(f.rig.branch), 6550, "compute alone is proven at once");
    branch_rig_end(&f.rig);
}
