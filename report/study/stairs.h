/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a sweep's figure. A plan holds from its limit up, so the step over memory is a
 * staircase. */
#ifndef WEFT_REPORT_STUDY_STAIRS_H
#define WEFT_REPORT_STUDY_STAIRS_H

#include "base/pool.h"
#include "report/study/sweep.h"

/* The step from these bytes on, up to the next corner. */
struct weft_sweep_corner {
    int64_t bytes, ns;
};

struct weft_sweep_stairs {
    int32_t n;
    struct weft_sweep_corner *corners; /* bytes increase; ns decreases, except in a split */
};

/* The least step over memory by all plans of curves `first` to `end` - 1. In a split the curve is
 * one, and the step is that of the last point so far. The pool owns the corners. False: no memory
 * for them. */
WEFT_MUST_USE bool weft_sweep_climb(const struct weft_sweep *sweep, int32_t first, int32_t end,
                                    struct weft_pool *pool, struct weft_sweep_stairs *out);

/* Moves places apart to at least `gap`, within [low, high], which has room for all of them. They
 * are in increasing order and stay so. A crowd keeps its middle, except at an end of the range. */
void weft_sweep_spread(double *places, int32_t n, double gap, double low, double high);

#endif
