/* SPDX-License-Identifier: Apache-2.0 */
#include "problem/waits.h"

#include <criterion/criterion.h>

#include "tests/problem/small_problem.h"

/* Both gathers block slot 3, each on its own lane. */
static struct weft_problem two_lanes(void)
{
    struct weft_problem problem = small_problem();
    problem.n_lanes = 3;
    problem.items[B_GATHER].item.last = 2;
    problem.items[B_GATHER].lane = 2;
    return problem;
}

static int32_t count_waits(const struct weft_problem *problem, int32_t at[N_SMALL_SLOTS][3])
{
    struct weft_pool pool = {0};
    struct weft_waits waits;
    struct weft_error err = {0};
    cr_assert_eq(weft_problem_waits(problem, &pool, &waits, &err), WEFT_OK, "%s", err.text);
    for (int32_t s = 0; s < N_SMALL_SLOTS; s++)
        for (int32_t lane = 0; lane < 3; lane++)
            at[s][lane] = weft_waits_at(&waits, s, lane);
    weft_pool_finish(&pool);
    return waits.n;
}

Test(waits, lanes_share_slots_that_several_may_block)
{
    int32_t at[N_SMALL_SLOTS][3];
    struct weft_problem problem = two_lanes();
    cr_assert_eq(count_waits(&problem, at), 2);
    cr_assert_eq(at[3][0], -1);
    cr_assert_eq(at[3][1], 0);
    cr_assert_eq(at[3][2], 1);
    cr_assert_eq(at[4][2], -1);
    problem.items[B_GATHER].item.last = 3; /* slot 4, alone */
    cr_assert_eq(count_waits(&problem, at), 0);
    cr_assert_eq(at[3][1], -1);
    problem.items[B_GATHER].item.last = 2;
    problem.items[B_GATHER].lane = 1;
    cr_assert_eq(count_waits(&problem, at), 0, "on one lane");
}

Test(waits, blocks_of_no_time_do_not_count)
{
    int32_t at[N_SMALL_SLOTS][3];
    struct weft_problem problem = two_lanes();
    problem.items[B_GATHER].block_ns = 0;
    cr_assert_eq(count_waits(&problem, at), 0);
    cr_assert_eq(at[3][1], -1);
}

Test(waits, a_chain_takes_every_item_once_and_the_slowest_for_all_blocks)
{
    struct weft_problem problem = small_problem();
    struct weft_chain chain = weft_problem_chain(&problem, A_GATHER);
    cr_assert(chain.first == 1 && chain.last == 2 && chain.may_block);
    cr_assert_eq(chain.ns, 2 * 600);
    problem.items[A_REDUCE].item.first = 6;
    problem.items[A_REDUCE].block_ns = 900;
    problem.items[B_REDUCE].after = A_REDUCE;
    problem.items[B_REDUCE].item.n_blocks = 4;
    chain = weft_problem_chain(&problem, B_REDUCE);
    cr_assert(chain.first == 6 && chain.last == 7 && !chain.may_block);
    cr_assert_eq(chain.ns, 900 + 600 + 3 * 900);
}
