/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of the small problem that both report tests look at: every block as late (gathers) or as
 * early (reductions) as its window lets it. Rows are 1200 1100 1200 1400 1400 1600 1700 1400 1200;
 * a block holds 100 bytes. */
#ifndef WEFT_TESTS_REPORT_SMALL_PLAN_H
#define WEFT_TESTS_REPORT_SMALL_PLAN_H

#include <criterion/criterion.h>

#include "plan/plan.h"
#include "program/predict.h"
#include "tests/problem/small_problem.h"

/* Steps of no plan with other memory. */
static const int64_t no_stairs[3] = {-1, -1, -1};

/* Predicted, not lowered. The caller destroys it before the problem. */
static inline struct weft_plan *small_plan(const struct weft_problem *problem)
{
    static const int32_t strategies[] = {IS_SDP, IS_SDP};
    static const struct weft_move moves[] = {{A_GATHER, 2, 0}, {A_GATHER, 2, 0}, {B_GATHER, 3, 0},
                                             {B_GATHER, 3, 0}, {B_REDUCE, 6, 0}, {B_REDUCE, 6, 0},
                                             {A_REDUCE, 7, 0}, {A_REDUCE, 7, 0}};
    struct weft_plan *plan = NULL;
    struct weft_error err = {0};
    enum weft_status status = weft_plan_create(problem, "test", strategies, moves, 8, &plan, &err);
    cr_assert_eq(status, WEFT_OK, "%s", err.text);
    cr_assert_eq(weft_plan_predict(plan, &err), WEFT_OK, "%s", err.text);
    return plan;
}

#endif
