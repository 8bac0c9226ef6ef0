/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/chain.h"

#include <criterion/criterion.h>
#include <stdio.h>

#include "plan/plan.h"
#include "tests/problem/small_problem.h"

/* On two lanes: a's reduction comes after its gather, and b's after its own. */
static struct weft_problem chained_problem(void)
{
    struct weft_problem problem = small_problem();
    struct weft_error err = {0};
    problem.n_lanes = 3;
    problem.items[A_GATHER].lane = problem.items[B_REDUCE].lane = 2;
    problem.items[A_REDUCE].after = A_GATHER;
    problem.items[B_REDUCE].after = B_GATHER;
    cr_assert_eq(weft_problem_check(&problem, "here", &err), WEFT_OK, "%s", err.text);
    return problem;
}

enum { N_CHAINED = 8 };

static enum weft_status plan_chained(const struct weft_problem *problem, const int32_t *items,
                                     struct weft_plan **out, struct weft_error *err)
{
    const int32_t strategies[] = {IS_SDP, IS_SDP};
    struct weft_move moves[N_CHAINED];
    for (int32_t k = 0; k < N_CHAINED; k++) {
        const struct weft_item *item = &problem->items[items[k / 2]].item;
        moves[k] = (struct weft_move){items[k / 2], item->acquires ? item->first : item->last, 0};
    }
    return weft_plan_create(problem, "here", strategies, moves, N_CHAINED, out, err);
}

/* On lane 1 a's reduction stands ahead of b's gather, on lane 2 b's reduction ahead of a's gather:
 * each waits for the next one. */
Test(chain, a_circle_of_lane_orders_is_named)
{
    const struct weft_problem problem = chained_problem();
    const int32_t items[] = {A_REDUCE, B_GATHER, B_REDUCE, A_GATHER};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    char expected[256];
    cr_assert_eq(plan_chained(&problem, items, &plan, &err), WEFT_E_INFEASIBLE);
    snprintf(expected, sizeof expected,
             "here: placements wait for one another: items[%d] block 0 on lane network comes after "
             "items[%d] block 0, ahead of which items[%d] block 0 on lane network 2 comes after "
             "items[%d] block 0, after the first",
             A_REDUCE, A_GATHER, B_REDUCE, B_GATHER);
    cr_assert_str_eq(err.text, expected);
}

/* The plan ignores the mix of lanes and puts each block after its predecessor. */
Test(chain, what_comes_after_stands_behind)
{
    const struct weft_problem problem = chained_problem();
    const int32_t items[] = {B_GATHER, A_REDUCE, A_GATHER, B_REDUCE};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    cr_assert_eq(plan_chained(&problem, items, &plan, &err), WEFT_OK, "%s", err.text);
    int32_t n_after = 0;
    for (int32_t k = 0; k < N_CHAINED; k++) {
        const struct weft_placement *at = &plan->placements[k];
        cr_assert_lt(at->after, k);
        if (problem.items[at->item].after < 0) continue;
        cr_assert_geq(at->after, 0);
        cr_assert_eq(plan->placements[at->after].item, problem.items[at->item].after);
        cr_assert_eq(plan->placements[at->after].block, at->block);
        n_after++;
    }
    cr_assert_eq(n_after, 4);
    weft_plan_destroy(plan);
}
