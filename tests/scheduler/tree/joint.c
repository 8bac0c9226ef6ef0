/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/joint.h"

#include <criterion/criterion.h>

#include "scheduler/tree/grow.h"
#include "tests/effort.h"
#include "tests/scheduler/enumerate.h"
#include "tests/scheduler/rigs.h"
#include "tests/scheduler/tiny.h"

/* The root's bound and its roundings alone leave some of these plans slower than the best of all
 * strategies and placements. */
Test(joint, finds_the_best_of_all_choices, .timeout = 900)
{
    int n = 0, n_behind = 0;
    for (uint64_t seed = 1; seed <= 240; seed++) {
        if (!test_draws(seed, 4, 24)) continue;
        struct weft_problem *problem = tiny_problem_of(seed, 2);
        struct branch_rig rig = {.problem = problem};
        int32_t best[ENUMERATE_MOST_UNITS];
        const int64_t best_ns = enumerate_best(problem, problem->tiers[0].limit_bytes, best);
        branch_rig_begin(&rig, problem, problem->tiers[0].limit_bytes);
        cr_assert_eq(weft_branch_root(rig.branch, NULL), WEFT_OK);
        n_behind += rig.search->step_ns > best_ns;
        cr_assert_eq(weft_joint_search(rig.branch, NULL), WEFT_OK);
        cr_assert_eq(rig.search->step_ns, best_ns, "seed %d: %lld, the best is %lld", (int)seed,
                     (long long)rig.search->step_ns, (long long)best_ns);
        cr_assert_leq(rig.search->peak_bytes, problem->tiers[0].limit_bytes);
        n++;
        branch_rig_end(&rig);
    }
    cr_assert_geq(n_behind, TEST_CASES_OF(4, 0, 0), "%d of %d", n_behind, n);
}
