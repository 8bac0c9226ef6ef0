/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "scheduler/relax/dual.h"
#include "tests/problem/small_problem.h"

/* Climbs from zero prices within a box of the small problem, without a limit; the steps it took. */
static int32_t climb_ascend(uint32_t a, uint32_t b, double target_ns, double enough_ns,
                            int32_t most_steps, double *value_ns)
{
    struct weft_problem problem = small_problem();
    struct weft_digest *table = NULL;
    struct weft_dual *dual = NULL;
    struct weft_box *box = NULL;
    uint64_t allowed[2] = {a, b};
    cr_assert_eq(weft_digest_create(&problem, &table, NULL), WEFT_OK);
    cr_assert_eq(weft_dual_create(table, &dual, NULL), WEFT_OK);
    cr_assert_eq(weft_box_create(&problem, &box, NULL), WEFT_OK);
    weft_box_restrict(box, &(struct weft_facts){.allowed = allowed});
    weft_dual_reset(dual, WEFT_LANE_COMPUTE);
    int32_t steps = weft_dual_ascend(dual, box, target_ns, enough_ns, most_steps);
    *value_ns = dual->value_ns;
    weft_box_destroy(box);
    weft_dual_destroy(dual);
    weft_digest_destroy(table);
    return steps;
}

/* By hand, of 6550 without communication. With sdp for both, what is gathered in slots 1 to 3
 * (2400) has 1200 there, and a's reductions (1200) have none. With dp for both there are no
 * gathers, and updates take 400 longer. With dp for a alone b's gathers (1200) have 1000. */
Test(ascend, climbs_to_the_bound_known_by_hand)
{
    static const struct {
        uint32_t a, b;
        double bound_ns;
    } cases[] = {{SDP, SDP, 6550 + 1200 + 1200},
                 {DP, DP, 6550 + 400 + 1200},
                 {DP, SDP, 6550 + 200 + 200 + 1200}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double value_ns, bound_ns = cases[i].bound_ns;
        climb_ascend(cases[i].a, cases[i].b, bound_ns, 1e18, 2000, &value_ns);
        cr_assert_geq(value_ns, bound_ns * 0.999, "case %zu: %g of %g", i, value_ns, bound_ns);
        cr_assert_leq(value_ns, bound_ns * (1 + 1e-9), "case %zu: %g of %g", i, value_ns, bound_ns);
    }
}

/* With both strategies open a relaxation mixes them: 5/6 of b's gathers fit beside a's forward, and
 * 233 1/3 of a's beside the update of b: 6550 + 200 x (1 - 7/36) + 200 / 6 + 1200. */
Test(ascend, a_mixture_is_worth_less_than_any_plan)
{
    double value_ns, bound_ns = 6550 + 200 * (1 - 7.0 / 36) + 200.0 / 6 + 1200;
    climb_ascend(DP | SDP, DP | SDP, bound_ns, 1e18, 4000, &value_ns);
    cr_assert_geq(value_ns, bound_ns * 0.998, "%g of %g", value_ns, bound_ns);
    cr_assert_leq(value_ns, bound_ns * (1 + 1e-9), "%g of %g", value_ns, bound_ns);
}

Test(ascend, stops_where_it_is_told_to)
{
    double value_ns;
    cr_assert_leq(climb_ascend(SDP, SDP, 8950, 1e18, 7, &value_ns), 7);
    cr_assert_geq(value_ns, 6550, "the best point so far, and the first was that");
    int32_t steps = climb_ascend(SDP, SDP, 8950, 8000, 2000, &value_ns);
    cr_assert_lt(steps, 2000);
    cr_assert_geq(value_ns, 8000);
}
