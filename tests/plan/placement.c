/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/placement.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/problem/small_problem.h"
#include "tests/program/random_model.h"

Test(placement, normal_form_is_a_fixed_point)
{
    for (uint64_t seed = 0; seed < 80; seed++) {
        struct random_case random;
        struct weft_error err = {0};
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        cr_assert_eq(weft_placements_check(plan->problem, plan->strategies, plan->placements,
                                           plan->n_placements, "plan", &err),
                     WEFT_OK, "%s", err.text);
        int32_t *scratch = calloc((size_t)plan->n_placements + 1, sizeof *scratch);
        cr_assert_eq(
            weft_placements_stuck(plan->problem, plan->placements, plan->n_placements, scratch),
            -1);
        free(scratch);
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}

static void refused_placements(const struct weft_problem *problem,
                               const struct weft_placement *placements, int32_t n,
                               const char *fault)
{
    static const int32_t strategies[] = {IS_SDP, IS_SDP};
    struct weft_error err = {0};
    cr_assert_eq(weft_placements_check(problem, strategies, placements, n, "it", &err),
                 WEFT_E_DATA);
    cr_assert(strstr(err.text, fault) != NULL, "%s", err.text);
}

/* An item that cannot block is launched in a slot before its use. A block that follows one
 * launched in its own due slot is never in time. */
Test(placement, what_cannot_block_is_launched_before_it_is_due)
{
    struct weft_problem problem = small_problem();
    struct weft_problem_item items[N_SMALL_ITEMS];
    memcpy(items, problem.items, sizeof items);
    problem.items = items;
    items[A_GATHER].item.may_block = false;
    const struct weft_placement late[] = {{A_GATHER, 0, 3, 3, -1}, {A_GATHER, 1, 3, 3, -1}};
    refused_placements(&problem, late, 2, "launch is outside the item's window");
    items[B_GATHER].item.last = 6;
    const struct weft_placement behind[] = {{B_GATHER, 0, 7, 7, -1}, {B_REDUCE, 0, 6, 7, -1}};
    refused_placements(&problem, behind, 2, "is due before an earlier one");
}

/* Every change of a number in a placement is found. */
Test(placement, changes_are_found)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct random_case random;
        random_case_init(&random, seed);
        struct weft_plan *plan = random_plan(&random, 0);
        for (int32_t i = 0; i < plan->n_placements; i++) {
            struct weft_placement *at = &plan->placements[i], good = *at;
            bool gathers = plan->problem->items[at->item].item.acquires;
            struct weft_error err = {0};
            at->block++;
            cr_assert_eq(weft_placements_check(plan->problem, plan->strategies, plan->placements,
                                               plan->n_placements, "here", &err),
                         WEFT_E_DATA);
            cr_assert(strncmp(err.text, "here: placements[", 17) == 0, "%s", err.text);
            *at = good;
            if (gathers) {
                at->deadline--;
            } else {
                at->launch = at->deadline;
            }
            cr_assert_eq(weft_placements_check(plan->problem, plan->strategies, plan->placements,
                                               plan->n_placements, "here", NULL),
                         WEFT_E_DATA);
            *at = good;
        }
        weft_plan_destroy(plan);
        random_case_finish(&random);
    }
}
