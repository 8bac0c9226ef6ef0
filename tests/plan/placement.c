#include "plan/placement.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

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

/* Any change of one number of one placement is found. */
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
