/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/tree/groups.h"

#include <criterion/criterion.h>

#include "scheduler/relax/ilp.h"
#include "scheduler/relax/ilp_keeper.h"
#include "tests/problem/small_problem.h"

struct made {
    struct weft_pool pool;
    struct weft_digest *table;
    uint8_t keeper[2 * N_SMALL_STRATEGIES];
    struct weft_group *groups;
    int32_t n_groups;
};

static void make(const struct weft_problem *problem, struct made *out)
{
    *out = (struct made){0};
    cr_assert_eq(weft_digest_create(problem, &out->table, NULL), WEFT_OK);
    for (int32_t u = 0; u < 2; u++)
        for (int32_t p = 0; p < N_SMALL_STRATEGIES; p++)
            out->keeper[weft_digest_at(out->table, u, p)] =
                (uint8_t)weft_ilp_keeper(out->table, u, p);
    cr_assert_eq(
        weft_groups_make(out->table, out->keeper, &out->pool, &out->groups, &out->n_groups, NULL),
        WEFT_OK);
}

static void finish_groups(struct made *made)
{
    weft_pool_finish(&made->pool);
    weft_digest_destroy(made->table);
}

/* Both units hold the same and move the same, at other times. */
Test(groups, alike_units_are_one_group_a_policy)
{
    struct weft_problem problem = small_problem();
    struct made made;
    make(&problem, &made);
    cr_assert_eq(made.n_groups, 2);
    cr_assert_eq(made.groups[0].strategies, DP);
    cr_assert_eq(made.groups[1].strategies, SDP);
    for (int g = 0; g < 2; g++) {
        cr_assert_eq(made.groups[g].n_decisions, 2);
        cr_assert(made.groups[g].decisions[0] == 0 && made.groups[g].decisions[1] == 1);
    }
    finish_groups(&made);
}

Test(groups, what_differs_is_in_none)
{
    struct weft_problem problem = small_problem();
    struct made made;
    problem.items[B_GATHER].block_ns++;
    make(&problem, &made);
    cr_assert_eq(made.n_groups, 0, "b's blocks take longer");
    finish_groups(&made);
    problem = small_problem();
    problem.items[B_REDUCE].item.n_blocks = 1;
    make(&problem, &made);
    cr_assert_eq(made.n_groups, 0, "b has fewer blocks");
    finish_groups(&made);
    problem = small_problem();
    struct weft_problem_strategy *sdp = &problem.decisions[1].strategies[IS_SDP];
    sdp->times[0].ns++;
    make(&problem, &made);
    cr_assert_eq(made.n_groups, 0, "b's updates take longer");
    finish_groups(&made);
    sdp->times[0].ns--;
    sdp->holds[0].bytes++;
    make(&problem, &made);
    cr_assert_eq(made.n_groups, 0, "b holds more");
    sdp->holds[0].bytes--;
    finish_groups(&made);
}
