/* A bound is a proof: a number below which no feasible point of a program can be. By weak duality
 * any multipliers give one,
 *
 *     cost . x >= sum_i y_i * (row_lower_i if y_i > 0 else row_upper_i)
 *               + sum_j min(d_j * lower_j, d_j * upper_j),      d = cost - y A,
 *
 * so nothing of the solver that found them has to be trusted; bad ones only give a low bound. */
#ifndef WEFT_SCHEDULER_BOUND_H
#define WEFT_SCHEDULER_BOUND_H

#include <stdbool.h>

#include "base/status.h"
#include "plan/problem.h"
#include "scheduler/mip.h"

/* The bound of `multipliers` [n_rows] on the relaxation of `mip`, safe against rounding: every sum
 * is taken in long double with the magnitude of its terms beside it, and the most that rounding can
 * have added is taken off the result. Multipliers that would need an infinite row bound count as 0.
 * *bound is -INFINITY when a column with an infinite bound is needed. WEFT_E_SYSTEM only. */
WEFT_MUST_USE enum weft_status weft_bound(const struct weft_mip *mip, const double *multipliers,
                                          long double *bound, struct weft_error *err);

/* What needs no solver, in ns: compute does not overlap with compute, nor the channel with itself.
 * The larger of the two; *by names it ("compute", "channel"). */
int64_t weft_bound_trivial(const struct weft_problem *problem, const char **by);

#endif
