/* SPDX-License-Identifier: Apache-2.0 */
/* The point of a plan in the program of scheduler/relax/ilp.h: an oracle that no row of the program
 * cuts off a plan. */
#ifndef WEFT_TESTS_SCHEDULER_ILP_POINT_H
#define WEFT_TESTS_SCHEDULER_ILP_POINT_H

#include "scheduler/relax/ilp.h"

/* Fills x [n_columns] with the point of strategies and moves. False if the program has no column
 * for one of the strategies (weft_ilp_dominated), or without memory. */
bool ilp_point_of(const struct weft_ilp *ilp, const int32_t *strategies,
                  const struct weft_move *moves, int32_t n_moves, double *x);

#endif
