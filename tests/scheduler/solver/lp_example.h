/* SPDX-License-Identifier: Apache-2.0 */
/* A linear program of three columns and two rows, with numbers that text rounds easily. A later
 * program has a third row. */
#ifndef WEFT_TESTS_SCHEDULER_SOLVER_LP_EXAMPLE_H
#define WEFT_TESTS_SCHEDULER_SOLVER_LP_EXAMPLE_H

#include <math.h>

#include "scheduler/solver/lp.h"

struct lp_example {
    double cost[3], lower[3], upper[3], row_lower[3], row_upper[3], value[5];
    int32_t column[5];
    int64_t row_start[4];
    double point[3]; /* a solution of its first rows */
    struct weft_lp lp;
};

/* Its lp refers to it. */
static inline void lp_example_init(struct lp_example *e, int32_t n_rows)
{
    *e = (struct lp_example){.cost = {1, -0.1, 1e-300},
                             .lower = {0, -INFINITY, 0.1},
                             .upper = {1, INFINITY, 1e300},
                             .row_lower = {-INFINITY, 2, 0},
                             .row_upper = {1.0 / 3, 2, INFINITY},
                             .value = {1, -7.25, 0.1, 3, 1.0 / 7},
                             .column = {0, 2, 1, 2, 0},
                             .row_start = {0, 2, 3, 5},
                             .point = {1, -2.5, 1.0 / 7}};
    e->lp = (struct weft_lp){.n_columns = 3,
                             .cost = e->cost,
                             .lower = e->lower,
                             .upper = e->upper,
                             .n_rows = n_rows,
                             .row_lower = e->row_lower,
                             .row_upper = e->row_upper,
                             .n_entries = n_rows == 3 ? 5 : 3,
                             .row_start = e->row_start,
                             .column = e->column,
                             .value = e->value};
}

#endif
