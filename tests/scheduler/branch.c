#include "scheduler/branch.h"

#include <criterion/criterion.h>
#include <string.h>

#include "solver.h"
#include "tests/plan/small_problem.h"

struct fixture {
    struct weft_problem problem;
    struct weft_schedule_options options;
    struct weft_digest *table;
    struct weft_search *search;
    struct weft_branch *branch;
};

/* The small problem without a limit. Its best step is 8150: 6550 without communication, a's
 * reductions (1200) beside nothing, and either dp for both, whose updates take 400 longer, or dp
 * for a alone, 200 longer, and 200 of b's gathers beside nothing. */
enum { BEST_NS = 6550 + 1200 + 400 };

static void init(struct fixture *f, double gap, struct weft_solver solver)
{
    f->problem = small_problem();
    f->options = (struct weft_schedule_options){.gap = gap, .solver = solver};
    int64_t limit_bytes = f->problem.memory_limit_bytes;
    cr_assert_eq(weft_digest_create(&f->problem, &f->table, NULL), WEFT_OK);
    cr_assert_eq(weft_search_create(f->table, limit_bytes, &f->search, NULL), WEFT_OK);
    weft_search_try(f->search, f->table->leanest);
    cr_assert_eq(weft_branch_create(f->table, &f->options, f->search, &f->branch, NULL), WEFT_OK);
}

static void finish(struct fixture *f)
{
    weft_branch_destroy(f->branch);
    weft_search_destroy(f->search);
    weft_digest_destroy(f->table);
}

static void grow(struct fixture *f)
{
    struct weft_pool pool = {0};
    struct weft_certificate certificate;
    int64_t proven_ns = 0;
    cr_assert_eq(weft_branch_root(f->branch, NULL), WEFT_OK);
    cr_assert_eq(weft_branch_grow(f->branch, INT32_MAX, NULL), WEFT_OK);
    cr_assert_eq(f->search->step_ns, BEST_NS);
    cr_assert_leq(weft_branch_bound_ns(f->branch), BEST_NS);
    cr_assert_eq(weft_proof_certificate(f->branch->proof, &pool, &certificate, NULL), WEFT_OK);
    cr_assert_eq(weft_certificate_check(&certificate, &f->problem, weft_branch_bound_ns(f->branch),
                                        &proven_ns, NULL),
                 WEFT_OK);
    cr_assert_eq(proven_ns, weft_branch_bound_ns(f->branch));
    weft_pool_finish(&pool);
}

/* The root's relaxation mixes policies and stays at 7944: it takes branches to prove the best. */
Test(branch, proves_the_best_plan)
{
    struct fixture f;
    if (!test_solver_exists()) cr_skip_test("no weft-solve in this build");
    init(&f, 0, test_solver());
    grow(&f);
    cr_assert_str_eq(f.branch->failure, "");
    cr_assert_eq(weft_branch_bound_ns(f.branch), BEST_NS);
    cr_assert_str_eq(f.branch->stop, "gap closed");
    cr_assert_gt(f.branch->proof->n_nodes, 1);
    int n_counts = 0;
    for (int32_t i = 0; i < f.branch->proof->n_nodes; i++)
        n_counts += f.branch->proof->nodes[i].kind == WEFT_NODE_COUNT;
    cr_assert_gt(n_counts, 0, "the two units are alike");
    finish(&f);
}

Test(branch, comes_close_without_a_solver)
{
    struct fixture f;
    init(&f, 1e-3, (struct weft_solver){0});
    grow(&f);
    cr_assert_geq((double)weft_branch_bound_ns(f.branch), BEST_NS / (1 + 1e-3) - 1);
    cr_assert_str_eq(f.branch->stop, "gap closed");
    finish(&f);
}

/* A gap that the root closes needs no tree. */
Test(branch, stops_when_the_gap_is_closed)
{
    struct fixture f;
    init(&f, 0.05, (struct weft_solver){0});
    cr_assert_eq(weft_branch_root(f.branch, NULL), WEFT_OK);
    cr_assert_geq(weft_branch_enough_ns(f.branch), weft_branch_bound_ns(f.branch));
    cr_assert(weft_branch_is_over(f.branch), "step %lld, bound %lld", (long long)f.search->step_ns,
              (long long)weft_branch_bound_ns(f.branch));
    cr_assert_eq(weft_branch_grow(f.branch, INT32_MAX, NULL), WEFT_OK);
    cr_assert_str_eq(f.branch->stop, "gap closed");
    cr_assert_eq(f.branch->proof->n_nodes, 1);
    finish(&f);
}

static int64_t after_the_end(void)
{
    static int64_t now_ns;
    return now_ns += 1000;
}

Test(branch, stops_when_the_time_is_over)
{
    struct fixture f;
    init(&f, 0, (struct weft_solver){0});
    f.options.now_ns = after_the_end;
    f.options.time_limit_ns = 1;
    weft_search_start_clock(f.search, &f.options);
    cr_assert_eq(weft_branch_root(f.branch, NULL), WEFT_OK);
    cr_assert_eq(weft_branch_grow(f.branch, INT32_MAX, NULL), WEFT_OK);
    cr_assert_str_eq(f.branch->stop, "time limit");
    cr_assert_geq(weft_branch_bound_ns(f.branch), 6550, "compute alone is proven at once");
    finish(&f);
}
