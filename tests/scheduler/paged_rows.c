/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/paged_rows.h"

#include <criterion/criterion.h>
#include <string.h>

#include "problem/pages.h"
#include "scheduler/schedule.h"
#include "tests/effort.h"
#include "tests/program/random_model.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/solver.h"
#include "tests/scheduler/tiny.h"

static struct weft_problem *in_pages(const struct weft_problem *problem, int64_t page_bytes,
                                     enum weft_page_rows rows)
{
    struct weft_problem *paged = NULL;
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_in_pages(problem, page_bytes, rows, &paged, &err), WEFT_OK, "%s",
                 err.text);
    return paged;
}

/* The plan's program in pages of this size, within a limit that is just what it takes: every row of
 * the least pages is within its limit then. True if a row is full but for less than a page. */
static bool check_least(struct random_case *random, struct weft_plan *plan, int64_t page_bytes)
{
    struct weft_error err = {0};
    struct weft_program *program = NULL;
    struct weft_problem *problem = random->stages.problem;
    const int64_t limit_bytes = problem->tiers[0].limit_bytes;
    struct weft_lower_inputs inputs = random->inputs;
    inputs.page_bytes = page_bytes;
    cr_assert_eq(weft_program_lower(plan, &inputs, &program, &err), WEFT_OK, "%s", err.text);
    problem->tiers[0].limit_bytes =
        weft_program_outside_bytes(program) + program->paging->row_pages * page_bytes;
    struct weft_problem *paged = in_pages(problem, page_bytes, WEFT_PAGES_LEAST);
    plan->problem = paged;
    cr_assert_eq(weft_plan_check_rows(plan, "least pages", &err), WEFT_OK,
                 "seed %llu, pages of %lld: %s", (unsigned long long)random->seed,
                 (long long)page_bytes, err.text);
    const bool full = weft_plan_peak(plan, 0, NULL) > paged->tiers[0].limit_bytes - page_bytes;
    plan->problem = problem;
    problem->tiers[0].limit_bytes = limit_bytes;
    weft_problem_destroy(paged);
    weft_program_destroy(program);
    return full;
}

/* No program takes fewer pages than the rows of least pages. */
Test(paged_rows, no_program_takes_less_than_the_least_pages, .timeout = 900)
{
    int n_full = 0;
    for (uint64_t seed = 1; seed <= TEST_CASES(80, 30); seed++) {
        struct random_case random;
        if (seed % 2)
            random_case_init(&random, seed);
        else
            random_case_init_tiers(&random, seed);
        for (uint64_t draw = 0; draw < 3; draw++) {
            struct weft_plan *plan = random_plan(&random, 10 * seed + draw);
            for (int64_t page_bytes = 4096; page_bytes <= 65536; page_bytes *= 2)
                n_full += check_least(&random, plan, page_bytes);
            weft_plan_destroy(plan);
        }
        random_case_finish(&random);
    }
    cr_assert_gt(n_full, TEST_CASES(5, 3), "%d rows are tight", n_full);
}

/* Sets a limit between the least in pages and everything. False if no plan fits. */
static bool set_paged_limit(struct weft_problem *problem, int64_t page_bytes, uint64_t seed)
{
    const int64_t least_bytes = enumerate_least_limit_in_pages(problem, page_bytes);
    if (least_bytes < 0) return false;
    problem->tiers[0].limit_bytes = least_bytes + (int64_t)(seed % 5) * 700;
    return true;
}

/* It always runs: its bound in pages is higher. Few drawn ones are. */
static const uint64_t SEED_OF_HIGHER_BOUND = 3;

/* The bound of ilp in least pages against every plan, with the pages of each counted block by
 * block. A claim above what is proven is refused. */
Test(paged_rows, no_bound_in_pages_is_above_a_plan, .timeout = 900)
{
    int n_exact = 0, n_higher = 0, n = 0;
    for (uint64_t seed = 1; seed <= 36; seed++) {
        if (seed != SEED_OF_HIGHER_BOUND && !test_draws(seed, 3, 9)) continue;
        const int64_t page_bytes = INT64_C(512) << seed % 5;
        struct weft_problem *problem = tiny_problem_of(seed, 2);
        if (!set_paged_limit(problem, page_bytes, seed)) {
            weft_problem_destroy(problem);
            continue;
        }
        struct weft_problem *paged = in_pages(problem, page_bytes, WEFT_PAGES_LEAST);
        struct weft_schedule_options options = {.planner = "ilp", .solver = test_solver()};
        struct weft_plan *plan = NULL, *in_bytes = NULL;
        struct weft_error err = {0};
        const int64_t best_ns =
            enumerate_best_in_pages(problem, page_bytes, problem->tiers[0].limit_bytes);
        cr_assert_gt(best_ns, 0);
        cr_assert_eq(weft_schedule(paged, NULL, &options, &plan, NULL, &err), WEFT_OK, "%s",
                     err.text);
        cr_assert_eq(weft_schedule(problem, NULL, &options, &in_bytes, NULL, &err), WEFT_OK, "%s",
                     err.text);
        cr_assert_leq(plan->bound_ns, best_ns, "seed %llu: bound in pages",
                      (unsigned long long)seed);
        struct weft_certificate certificate = plan->certificate;
        certificate.problem = weft_problem_hash(problem);
        int64_t proven_ns = 0;
        cr_assert_eq(weft_certificate_check_in_pages(&certificate, problem, page_bytes,
                                                     plan->bound_ns, &proven_ns, &err),
                     WEFT_OK, "%s", err.text);
        cr_assert_leq(proven_ns, best_ns);
        cr_assert_eq(weft_certificate_check_in_pages(&certificate, problem, page_bytes,
                                                     proven_ns + 1, NULL, &err),
                     WEFT_E_DATA);
        n_exact += plan->bound_ns == best_ns;
        n_higher += plan->bound_ns > in_bytes->bound_ns;
        n++;
        weft_plan_destroy(plan);
        weft_plan_destroy(in_bytes);
        weft_problem_destroy(paged);
        weft_problem_destroy(problem);
    }
    cr_assert_gt(n_exact, n / 4, "%d of %d", n_exact, n);
    cr_assert_gt(n_higher, TEST_CASES_OF(n / 8, 0, 0), "%d of %d", n_higher, n);
}
